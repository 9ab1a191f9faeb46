// SPDX-License-Identifier: Apache-2.0
//
// Instructions of one operation, counted by callgrind.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "driver/installation.hpp"
#include "driver/process.hpp"

namespace bench {

constexpr const char* valgrind_missing = "valgrind is not installed (./dev bench installs it)";

class instruction_count {
 public:
  /// `program` takes --operation, --iterations and --samples. Requires: valgrind is in PATH.
  instruction_count(const installation& here, const std::string& program, std::uint64_t iterations)
      : program_(here.program(program)), iterations_(iterations) {}
  /// The same of rank 0 of a job of two, each under valgrind; only a_marked_iteration() is right,
  /// because a rank that waits does so as long as it takes.
  static instruction_count of_two_ranks(const installation& here, const std::string& program) {
    instruction_count count(here, program, 0);
    count.job_ = {here.program("sojourn"), "run", "-n", "2", "--no-bind"};
    return count;
  }

  /// The difference of two runs, of which one does the operation so many times more often: starting
  /// and ending cancel out. Each operation is counted once; `heap`: under SOJOURN_EXECUTION=heap.
  /// Errors: failure when a run does not end well.
  double an_iteration(const std::string& operation, bool heap = false) const;

  /// The same of 200 iterations and of twice as many, which are the most that the program does,
  /// between its first calls of `counting_begins` and `counting_ends`.
  double a_marked_iteration(const std::string& operation, bool heap = false) const;

  /// The same, but only of functions whose names contain one of `parts`, without what they call:
  /// for operations that wait.
  double a_marked_iteration_in(const std::vector<std::string>& parts,
                               const std::string& operation) const;

 private:
  struct callgrind_run {
    std::string operation;
    arguments options;
    environment variables;
    std::string profile;             ///< Which of the files that it writes.
    std::vector<std::string> parts;  ///< Of names of functions; none: all are counted.
  };
  double difference(const callgrind_run& run, std::uint64_t iterations) const;
  double of_run(const callgrind_run& run, std::uint64_t iterations) const;

  std::string program_;
  std::uint64_t iterations_;
  arguments job_;  ///< What starts it as a job; empty: it is started alone.
  std::unique_ptr<temporary_directory> scratch_ = std::make_unique<temporary_directory>();
  mutable std::map<std::string, double> found_;
};

}  // namespace bench
