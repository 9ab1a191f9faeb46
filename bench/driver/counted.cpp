// SPDX-License-Identifier: Apache-2.0
#include "driver/counted.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <future>

namespace bench {

namespace {

constexpr std::uint64_t marked_iterations = 200;

/// What the functions whose names contain one of `parts` have done themselves. (The format of the
/// profile: Callgrind Format Specification, in the manual of Valgrind.)
double own_instructions(std::istream& profile, const std::vector<std::string>& parts) {
  std::map<std::string, bool> wanted;  // by the number of a name, which is written out once
  bool is_wanted = false;
  bool is_any_there = false;
  bool is_of_call = false;
  double sum = 0;
  for (std::string line; std::getline(profile, line);) {
    const bool is_function = line.rfind("fn=", 0) == 0;
    if (is_function || line.rfind("cfn=", 0) == 0) {
      const std::size_t begin = line.find('(');
      const std::size_t end = line.find(')');
      bool& is_named = wanted[line.substr(begin, end - begin)];
      if (line.size() > end + 1) {
        const auto contains = [&](const std::string& part) { return line.find(part) != line.npos; };
        is_named = std::any_of(parts.begin(), parts.end(), contains);
      }
      if (is_function) is_wanted = is_named;
      is_any_there = is_any_there || is_wanted;
    } else if (line.rfind("calls=", 0) == 0) {
      is_of_call = true;  // the next line has what the call cost
    } else if (!line.empty() && (std::isdigit(static_cast<unsigned char>(line[0])) != 0 ||
                                 line[0] == '+' || line[0] == '-' || line[0] == '*')) {
      if (is_wanted && !is_of_call) sum += std::stod(line.substr(line.find(' ')));
      is_of_call = false;
    }
  }
  if (!is_any_there) throw failure("callgrind's profile names none of the functions to be counted");
  return sum;
}

}  // namespace

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
  const std::string profile = files + (job_.empty() ? "" : ".0") + run.profile;
  std::filesystem::remove(profile);  // of another operation
  const captured ended = run_and_capture(command, run.variables);
  if (ended.status != 0) {
    throw failure(fmt::format("{} ended with status {} under valgrind", program_, ended.status));
  }
  std::ifstream lines(profile);
  if (!run.parts.empty()) return own_instructions(lines, run.parts);
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
  return found_[name] = difference({operation, {}, variables, ".profile", {}}, iterations_);
}

double instruction_count::a_marked_iteration(const std::string& operation, bool heap) const {
  const std::string name = heap ? operation + " on the heap" : operation;
  if (const auto known = found_.find(name); known != found_.end()) return known->second;
  const environment variables{{"SOJOURN_EXECUTION", heap ? "heap" : "hybrid"}};
  return found_[name] =
             difference({operation,
                         {"--zero-before=counting_begins", "--dump-before=counting_ends"},
                         variables,
                         ".profile.1",
                         {}},
                        marked_iterations);
}

double instruction_count::a_marked_iteration_in(const std::vector<std::string>& parts,
                                                const std::string& operation) const {
  return difference({operation,
                     {"--zero-before=counting_begins", "--dump-before=counting_ends"},
                     {{"SOJOURN_EXECUTION", "hybrid"}},
                     ".profile.1",
                     parts},
                    marked_iterations);
}

}  // namespace bench
