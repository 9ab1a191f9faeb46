// SPDX-License-Identifier: Apache-2.0
//
// How the driver commands a benchmark process: one line a command through a FIFO, one line back.
// A process between two commands sleeps in read(), so it takes nothing from the one being measured.
// Knows nothing of Sojourn, so that the peers can share it.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "common/timing.hpp"

namespace bench {

/// What the driver asked for: an operation's name and how often to run it.
struct command {
  std::string operation;
  batch_plan plan;
};

/// The options every benchmark process takes. Without `commands` it measures once and prints JSON.
struct process_options {
  std::string commands;  // path of the FIFO to read commands from; ".<rank>" is appended
  std::string answers;   // path of the FIFO to write answers to
  std::vector<int> cpus{0, 1};
  bool cpus_given = false;
  std::string operation;
  batch_plan plan;
};

inline std::vector<int> parse_cpus(std::string_view text) {
  std::vector<int> cpus;
  std::stringstream list{std::string{text}};
  for (std::string item; std::getline(list, item, ',');) cpus.push_back(std::atoi(item.c_str()));
  return cpus;
}

/// Reads `--name value` pairs; an unknown name or a missing value ends the process with status 2.
inline process_options parse_options(int argc, char** argv, std::string_view default_operation) {
  process_options options;
  options.operation = default_operation;
  for (int i = 1; i < argc; i += 2) {
    const std::string_view name = argv[i];
    const char* value = i + 1 < argc ? argv[i + 1] : nullptr;
    if (value == nullptr) {
      std::fprintf(stderr, "%s: option %s needs a value\n", argv[0], argv[i]);
      std::exit(2);
    }
    if (name == "--commands") {
      options.commands = value;
    } else if (name == "--answers") {
      options.answers = value;
    } else if (name == "--cpus") {
      options.cpus = parse_cpus(value);
      options.cpus_given = true;
    } else if (name == "--operation") {
      options.operation = value;
    } else if (name == "--bytes") {
      options.plan.bytes = std::strtoull(value, nullptr, 10);
    } else if (name == "--samples") {
      options.plan.repeats = std::strtoull(value, nullptr, 10);
    } else if (name == "--iterations") {
      options.plan.iterations = std::strtoull(value, nullptr, 10);
    } else {
      std::fprintf(stderr,
                   "%s: unknown option %s (options: --operation, --bytes, --samples, --iterations, "
                   "--cpus A,B, --commands, --answers)\n",
                   argv[0], argv[i]);
      std::exit(2);
    }
  }
  return options;
}

/// The process's end of the two FIFOs. Only the process that answers opens the second one.
class command_channel {
 public:
  command_channel(const process_options& options, int rank) {
    const std::string path = options.commands + "." + std::to_string(rank);
    commands_ = std::fopen(path.c_str(), "re");
    if (rank == 0) answers_ = std::fopen(options.answers.c_str(), "we");
    if (commands_ == nullptr || (rank == 0 && answers_ == nullptr)) {
      std::perror(path.c_str());
      std::exit(2);
    }
  }
  command_channel(const command_channel&) = delete;
  command_channel& operator=(const command_channel&) = delete;
  ~command_channel() {
    if (commands_ != nullptr) std::fclose(commands_);
    if (answers_ != nullptr) std::fclose(answers_);
  }

  /// Sleeps until the next command. Nothing on "quit" and when the driver is gone.
  std::optional<command> next() {
    char line[256];
    if (std::fgets(line, sizeof line, commands_) == nullptr) return std::nullopt;
    std::istringstream words(line);
    command result;
    words >> result.operation >> result.plan.iterations >> result.plan.repeats >> result.plan.bytes;
    if (result.operation == "quit") return std::nullopt;
    return result;
  }

  /// Answers with figures, in the order the driver expects.
  void answer(const std::vector<double>& figures) {
    for (const double figure : figures) std::fprintf(answers_, "%.3f ", figure);
    std::fputc('\n', answers_);
    std::fflush(answers_);
  }

  /// Answers that the command cannot be carried out; `why` is one line.
  void refuse(std::string_view why) {
    std::fprintf(answers_, "error %.*s\n", static_cast<int>(why.size()), why.data());
    std::fflush(answers_);
  }

 private:
  std::FILE* commands_ = nullptr;
  std::FILE* answers_ = nullptr;
};

/// Prints one stand-alone measurement as a JSON object.
inline void print_samples(std::string_view peer, const process_options& options,
                          const std::vector<double>& nanoseconds) {
  std::printf("{\"peer\": \"%.*s\", \"operation\": \"%s\", \"bytes\": %llu, \"iterations\": %llu, ",
              static_cast<int>(peer.size()), peer.data(), options.operation.c_str(),
              static_cast<unsigned long long>(options.plan.bytes),
              static_cast<unsigned long long>(options.plan.iterations));
  std::printf("\"ns\": [");
  for (std::size_t i = 0; i < nanoseconds.size(); ++i)
    std::printf("%s%.2f", i == 0 ? "" : ", ", nanoseconds[i]);
  std::printf("]}\n");
}

}  // namespace bench
