// SPDX-License-Identifier: Apache-2.0
// What the applications' command lines share: options, one sentence and a status when
// something is wrong, and figures as JSON beside the readable report.
#pragma once

#include <fmt/format.h>
#include <sojourn/jobs/launcher.hpp>
#include <sojourn/sojourn.hpp>

#include <cmath>
#include <compiled_json.hpp>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "common/command_line.hpp"
#include "common/measure.hpp"
#include "common/policies.hpp"

namespace apps {

/// Says something on rank 0 only; once, whatever the number of ranks.
inline void say(std::FILE* stream, const std::string& text) {
  if (sojourn::rank_me() != 0) return;
  std::fwrite(text.data(), 1, text.size(), stream);
  std::fflush(stream);
}

/// Parses the command line into what `options` is bound to and runs `body`, an int(), on every
/// rank. Returns the exit status. --help and errors are printed by rank 0 alone.
template <class Body>
int run_application(command_line& options, int argc, char** argv, Body body) {
  const parsed command_line = options.parse(argc, argv);
  return sojourn::run(argc, argv, [&]() -> int {
    auto [status, last_words] = command_line;
    if (last_words.empty()) {
      try {
        status = body();
      } catch (const refusal& e) {
        status = e.status();
        last_words = fmt::format("{}: {}\n", options.name(), e.what());
      }
    }
    // What the user wrote is quoted in a refusal.
    if (status == 0) {
      say(stdout, last_words);
    } else {
      say(stderr, sojourn::printable(last_words));
    }
    if (sojourn::rank_me() == 0 && (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)) {
      say(stderr, options.name() + ": cannot write to standard output\n");
      if (status == 0) status = 1;
    }
    // The first rank that returns a status ends the job: let it be the one that has spoken.
    return sojourn::rank_me() == 0 ? status : 0;
  });
}

/// `--via WORD`, one of the words of policies.hpp.
inline void add_via(command_line& options, sojourn::via& how) {
  std::vector<std::pair<const char*, sojourn::via>> words;
  for (const policy& p : policies) words.emplace_back(p.name, p.how);
  options.add_choice("--via", how, words, "How remote objects are reached");
}
/// The same of a program that has a form in shared memory, too: then `in_shared_memory` is set.
inline void add_via(command_line& options, sojourn::via& how, bool& in_shared_memory) {
  std::vector<std::string> words;
  for (const policy& p : policies) words.emplace_back(p.name);
  words.emplace_back(shared_form);
  options
      .add_words(
          "--via", words,
          [&](std::size_t chosen) {
            in_shared_memory = chosen == policies.size();
            if (!in_shared_memory) how = policies[chosen].how;
          },
          "How remote objects are reached; shared: they lie in shared memory")
      .default_text(name_of(how));
}
inline const char* name_of(sojourn::via how, bool in_shared_memory) {
  return in_shared_memory ? shared_form : name_of(how);
}

/// `--json [FILE]`, see json_option; collective where others must be told.
class json_report : public json_option {
 public:
  /// Collective. Opens the file before the work begins. Throws refusal.
  void open() {
    if (path().empty()) return;
    const bool opened = sojourn::rank_me() != 0 || open_file();
    if (!sojourn::broadcast(opened)) throw failure();
  }
  /// Throws refusal when the disk is full; rank 0 writes, so the others must be told: collective.
  void write(const nlohmann::ordered_json& figures) {
    if (!given()) return;
    const bool written = sojourn::rank_me() != 0 || write_here(figures);
    if (!sojourn::broadcast(written)) throw failure();
  }
};

inline nlohmann::ordered_json to_json(const figures& f) {
  const auto thousandths = [](double x) { return std::round(x * 1000) / 1000; };
  return {{"operations", f.operations},
          {"seconds", f.seconds},
          {"operations_per_second", std::round(f.per_second())},
          {"messages_per_operation", thousandths(f.messages_each())},
          {"bytes_per_operation", thousandths(f.bytes_each())},
          {"migrations_per_operation", thousandths(f.migrations_each())},
          {"hit_rate", f.hits + f.misses == 0 ? nlohmann::ordered_json()
                                              : nlohmann::ordered_json(thousandths(f.hit_rate()))},
          {"p50_us", thousandths(f.p50_us)},
          {"p99_us", thousandths(f.p99_us)}};
}

/// Two lines for people.
inline std::string to_text(const figures& f) {
  const std::string hits =
      f.hits + f.misses == 0 ? "" : fmt::format(", {:.1f}% of accesses hit", f.hit_rate() * 100);
  return fmt::format(
      "{} operations in {:.3f} s: {:.0f} a second, p50 {:.1f} us, p99 {:.1f} us\n"
      "{:.2f} messages and {:.0f} bytes an operation, {:.2f} of them migrations{}\n",
      f.operations, f.seconds, f.per_second(), f.p50_us, f.p99_us, f.messages_each(),
      f.bytes_each(), f.migrations_each(), hits);
}

}  // namespace apps
