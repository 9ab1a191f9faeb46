// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "driver/benchmarks.hpp"

namespace bench {
namespace {

constexpr const char* local_call = "local call over a plain call, instructions";
constexpr const char* local_activate = "local activate over a plain call, instructions";

/// Instructions that callgrind counted in one whole run of bench_calls.
double instructions_of(const installation& here, const temporary_directory& scratch,
                       const std::string& kind, std::uint64_t iterations) {
  const std::string profile = (scratch.path() / "profile").string();
  const captured run = run_and_capture(
      {"valgrind", "--tool=callgrind", "--callgrind-out-file=" + profile,
       "--log-file=" + (scratch.path() / "log").string(), here.program("bench_calls"),
       "--operation", kind, "--iterations", std::to_string(iterations)});
  if (run.status != 0)
    throw failure(fmt::format("bench_calls ended with status {} under valgrind", run.status));
  std::ifstream lines(profile);
  for (std::string line; std::getline(lines, line);)
    if (line.rfind("totals:", 0) == 0) return std::stod(line.substr(7));
  throw failure("callgrind wrote no totals into its profile");
}

/// What one iteration costs: the difference of two runs, so that starting and ending cancel out.
double instructions_an_iteration(const installation& here, const temporary_directory& scratch,
                                 const std::string& kind, std::uint64_t iterations) {
  const double once = instructions_of(here, scratch, kind, iterations);
  const double twice = instructions_of(here, scratch, kind, 2 * iterations);
  return (twice - once) / static_cast<double>(iterations);
}

figure instruction_figure(const std::string& key, const std::string& what, double reach,
                          double ours, double plain) {
  return {"calls",
          key,
          what,
          std::round((ours - plain) * 100) / 100,
          reach,
          fmt::format("{:.2f}", ours),
          fmt::format("{:.2f}", plain),
          std::nullopt,
          0};
}

}  // namespace

void bench_calls(report& result, const installation& here, const settings& chosen) {
  if (!in_path("valgrind")) {
    const std::string why = "valgrind is not installed (./dev bench installs it)";
    result.add_missing("calls", "local_extra_instructions", local_call, 6, why);
    result.add_missing("calls", "activate_extra_instructions", local_activate, 45, why);
    return;
  }
  tell_progress("calls: counting instructions under callgrind");
  const temporary_directory scratch;
  const std::uint64_t iterations = chosen.work.quick ? 20'000 : 100'000;
  const auto cost = [&](const char* kind) {
    return instructions_an_iteration(here, scratch, kind, iterations);
  };
  const double method = cost("method");
  const double by_rpc = cost("call_rpc");
  const double by_migrate = cost("call_migrate");
  const double function = cost("function");
  const double activated = cost("activate");

  result.add_value(instruction_figure("local_extra_instructions", local_call, 6,
                                      std::max(by_rpc, by_migrate), method));
  result.add_value(
      instruction_figure("activate_extra_instructions", local_activate, 45, activated, function));
  result.add_detail("calls", "method_instructions", method);
  result.add_detail("calls", "call_rpc_instructions", by_rpc);
  result.add_detail("calls", "call_migrate_instructions", by_migrate);
  result.add_detail("calls", "function_instructions", function);
  result.add_detail("calls", "activate_instructions", activated);
}

}  // namespace bench
