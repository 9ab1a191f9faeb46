// SPDX-License-Identifier: Apache-2.0
// What the applications' command lines share: options by CLI11, one sentence and a status when
// something is wrong, and figures as JSON beside the readable report.
#pragma once

#include <fmt/format.h>
#include <sojourn/sojourn.hpp>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <utility>

#include "common/measure.hpp"

namespace apps {

/// Ends the program: rank 0 says `what()`, one sentence. Thrown by every rank alike, because all
/// see the same command line and the same files.
class refusal : public std::runtime_error {
 public:
  refusal(int status, const std::string& what) : std::runtime_error(what), status_(status) {}
  /// 2 for a bad option or bad input, 1 for all that failed later.
  int status() const { return status_; }

 private:
  int status_;
};

/// Says something on rank 0 only; once, whatever the number of ranks.
inline void say(std::FILE* stream, const std::string& text) {
  if (sojourn::rank_me() != 0) return;
  std::fwrite(text.data(), 1, text.size(), stream);
  std::fflush(stream);
}

/// Parses the command line into what `options` is bound to and runs `body`, an int(), on every
/// rank. Returns the exit status. --help and errors are printed by rank 0 alone.
template <class Body>
int run_application(CLI::App& options, int argc, char** argv, Body body) {
  int parsed = 0;
  std::string text;
  try {
    options.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    const bool help = e.get_exit_code() == 0;
    parsed = help ? 0 : 2;
    text = help ? options.help() : fmt::format("{}: {}\n", options.get_name(), e.what());
    if (text.empty()) throw;
  }
  return sojourn::run(argc, argv, [&]() -> int {
    int status = parsed;
    std::string last_words = text;
    if (last_words.empty()) {
      try {
        status = body();
      } catch (const refusal& e) {
        status = e.status();
        last_words = fmt::format("{}: {}\n", options.get_name(), e.what());
      }
    }
    if (!last_words.empty()) say(status == 0 ? stdout : stderr, last_words);
    // The first rank that returns a status ends the job: let it be the one that has spoken.
    return sojourn::rank_me() == 0 ? status : 0;
  });
}

/// CLI::Range lets "nan" through, which lies in no range.
inline CLI::Validator number_between(double least, double most) {
  CLI::Validator in_range = CLI::Range(least, most);
  in_range.operation([in_range](std::string& text) {
    double value = 0;
    const bool is_nan = CLI::detail::lexical_cast(text, value) && std::isnan(value);
    return is_nan ? fmt::format("{} is no number", text) : in_range(text);
  });
  return in_range;
}

/// `--via rpc|migrate`
inline CLI::Option* add_via(CLI::App& options, sojourn::via& how) {
  auto set = [&how](const std::string& name) {
    how = name == "rpc" ? sojourn::via::rpc : sojourn::via::migrate;
  };
  return options.add_option_function<std::string>("--via", set, "How remote objects are reached")
      ->check(CLI::IsMember({"rpc", "migrate"}))
      ->default_str("migrate");
}
inline const char* name_of(sojourn::via how) {
  return how == sojourn::via::rpc ? "rpc" : "migrate";
}

/// `--json [FILE]`: figures for machines, in FILE or, without one, on standard output; the readable
/// report then goes to standard error.
class json_report {
 public:
  void add_to(CLI::App& options) {
    option_ = options.add_option("--json", path_, "Write the figures as JSON too")
                  ->expected(0, 1)
                  ->option_text("[FILE]");
  }
  /// Where the readable report goes.
  std::FILE* readable() const { return *option_ && path_.empty() ? stderr : stdout; }

  /// Collective. Opens the file before the work begins. Throws refusal.
  void open() {
    if (path_.empty()) return;
    if (sojourn::rank_me() == 0) file_ = std::fopen(path_.c_str(), "w");
    const bool opened = sojourn::broadcast(file_ != nullptr);
    if (!opened) throw refusal(1, fmt::format("cannot write the figures to {}", path_));
  }
  /// Throws refusal when the disk is full; rank 0 writes, so the others must be told: collective.
  void write(const nlohmann::ordered_json& figures) {
    if (!*option_) return;
    bool written = true;
    if (sojourn::rank_me() == 0) {
      std::FILE* out = file_ != nullptr ? file_ : stdout;
      const std::string text = figures.dump(2) + "\n";
      written = std::fwrite(text.data(), 1, text.size(), out) == text.size();
      written = std::fflush(out) == 0 && written;
      if (file_ != nullptr) written = std::fclose(std::exchange(file_, nullptr)) == 0 && written;
    }
    if (!sojourn::broadcast(written)) {
      throw refusal(1, fmt::format("cannot write the figures to {}", path_));
    }
  }

 private:
  CLI::Option* option_ = nullptr;
  std::string path_;
  std::FILE* file_ = nullptr;
};

inline nlohmann::ordered_json to_json(const figures& f) {
  const auto thousandths = [](double x) { return std::round(x * 1000) / 1000; };
  return {{"operations", f.operations},
          {"seconds", f.seconds},
          {"operations_per_second", std::round(f.per_second())},
          {"messages_per_operation", thousandths(f.messages_each())},
          {"bytes_per_operation", thousandths(f.bytes_each())},
          {"migrations_per_operation", thousandths(f.migrations_each())},
          {"p50_us", thousandths(f.p50_us)},
          {"p99_us", thousandths(f.p99_us)}};
}

/// Two lines for people.
inline std::string to_text(const figures& f) {
  return fmt::format(
      "{} operations in {:.3f} s: {:.0f} a second, p50 {:.1f} us, p99 {:.1f} us\n"
      "{:.2f} messages and {:.0f} bytes an operation, {:.2f} of them migrations\n",
      f.operations, f.seconds, f.per_second(), f.p50_us, f.p99_us, f.messages_each(),
      f.bytes_each(), f.migrations_each());
}

}  // namespace apps
