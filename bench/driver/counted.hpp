// SPDX-License-Identifier: Apache-2.0
//
// Instructions of one operation, counted by callgrind.
#pragma once

#include <cstdint>
#include <string>

#include "driver/installation.hpp"
#include "driver/process.hpp"

namespace bench {

constexpr const char* valgrind_missing = "valgrind is not installed (./dev bench installs it)";

class instruction_count {
 public:
  /// `program` takes --operation, --iterations and --samples. Requires: valgrind is in PATH.
  instruction_count(const installation& here, const std::string& program, std::uint64_t iterations)
      : program_(here.program(program)), iterations_(iterations) {}

  /// The difference of two runs, of which one does the operation so many times more often: starting
  /// and ending cancel out. Errors: failure when a run does not end well.
  double an_iteration(const std::string& operation) const;

 private:
  double of_run(const std::string& operation, std::uint64_t iterations) const;

  std::string program_;
  std::uint64_t iterations_;
  temporary_directory scratch_;
};

}  // namespace bench
