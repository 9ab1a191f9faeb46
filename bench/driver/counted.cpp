// SPDX-License-Identifier: Apache-2.0
#include "driver/counted.hpp"

#include <fmt/format.h>

#include <fstream>
#include <future>

namespace bench {

double instruction_count::of_run(const callgrind_run& run, std::uint64_t iterations) const {
  const std::string files = (scratch_->path() / std::to_string(iterations)).string();
  const std::string rank = job_.empty() ? "" : ".%q{SOJOURN_RANK}";
  arguments command = job_;
  command.insert(command.end(), {"valgrind", "--tool=callgrind",
                                 "--callgrind-out-file=" + files + rank + ".profile",
                                 "--log-file=" + files + rank + ".log"});
  command.insert(command.end(), run.options.begin(), run.options.end());
  command.insert(command.end(), {program_, "--operation", run.operation, "--samples", "1",
                                 "--iterations", std::to_string(iterations)});
  const captured ended = run_and_capture(command, run.variables);
  if (ended.status != 0) {
    throw failure(fmt::format("{} ended with status {} under valgrind", program_, ended.status));
  }
  std::ifstream lines(files + (job_.empty() ? "" : ".0") + run.profile);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("totals:", 0) == 0) return std::stod(line.substr(7));
  }
  throw failure("callgrind wrote no totals into its profile");
}

double instruction_count::difference(const callgrind_run& run, std::uint64_t iterations) const {
  // Side by side: instructions are as many on a busy machine.
  auto once = std::async(std::launch::async, [&] { return of_run(run, iterations); });
  const double twice = of_run(run, 2 * iterations);
  return (twice - once.get()) / static_cast<double>(iterations);
}

double instruction_count::an_iteration(const std::string& operation, bool heap) const {
  const std::string name = heap ? operation + " on the heap" : operation;
  if (const auto known = found_.find(name); known != found_.end()) return known->second;
  const environment variables{{"SOJOURN_EXECUTION", heap ? "heap" : "hybrid"}};
  return found_[name] = difference({operation, {}, variables, ".profile"}, iterations_);
}

double instruction_count::a_marked_iteration(const std::string& operation, bool heap) const {
  const std::string name = heap ? operation + " on the heap" : operation;
  if (const auto known = found_.find(name); known != found_.end()) return known->second;
  constexpr std::uint64_t iterations = 200;
  const environment variables{{"SOJOURN_EXECUTION", heap ? "heap" : "hybrid"}};
  return found_[name] =
             difference({operation,
                         {"--zero-before=counting_begins", "--dump-before=counting_ends"},
                         variables,
                         ".profile.1"},
                        iterations);
}

}  // namespace bench
