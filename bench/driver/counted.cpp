// SPDX-License-Identifier: Apache-2.0
#include "driver/counted.hpp"

#include <fmt/format.h>

#include <fstream>

namespace bench {

double instruction_count::of_run(const std::string& operation, std::uint64_t iterations) const {
  const std::string profile = (scratch_.path() / "profile").string();
  const captured run =
      run_and_capture({"valgrind", "--tool=callgrind", "--callgrind-out-file=" + profile,
                       "--log-file=" + (scratch_.path() / "log").string(), program_, "--operation",
                       operation, "--samples", "1", "--iterations", std::to_string(iterations)});
  if (run.status != 0) {
    throw failure(fmt::format("{} ended with status {} under valgrind", program_, run.status));
  }
  std::ifstream lines(profile);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("totals:", 0) == 0) return std::stod(line.substr(7));
  }
  throw failure("callgrind wrote no totals into its profile");
}

double instruction_count::an_iteration(const std::string& operation) const {
  const double once = of_run(operation, iterations_);
  const double twice = of_run(operation, 2 * iterations_);
  const double more = static_cast<double>(iterations_);
  return (twice - once) / more;
}

}  // namespace bench
