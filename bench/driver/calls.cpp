// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "driver/benchmarks.hpp"
#include "driver/counted.hpp"

namespace bench {
namespace {

constexpr const char* local_call = "local call over a plain call, instructions";
constexpr const char* local_activate = "local activate over a plain call, instructions";

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
    result.add_missing("calls", "local_extra_instructions", local_call, 6, valgrind_missing);
    result.add_missing("calls", "activate_extra_instructions", local_activate, 15,
                       valgrind_missing);
    return;
  }
  tell_progress("calls: counting instructions under callgrind");
  const instruction_count count(here, "bench_calls", chosen.work.quick ? 20'000 : 100'000);
  const auto cost = [&](const char* kind) { return count.an_iteration(kind); };
  const double method = cost("method");
  const double by_rpc = cost("call_rpc");
  const double by_migrate = cost("call_migrate");
  const double function = cost("function");
  const double activated = cost("activate");

  result.add_value(instruction_figure("local_extra_instructions", local_call, 6,
                                      std::max(by_rpc, by_migrate), method));
  result.add_value(
      instruction_figure("activate_extra_instructions", local_activate, 15, activated, function));
  result.add_detail("calls", "method_instructions", method);
  result.add_detail("calls", "call_rpc_instructions", by_rpc);
  result.add_detail("calls", "call_migrate_instructions", by_migrate);
  result.add_detail("calls", "function_instructions", function);
  result.add_detail("calls", "activate_instructions", activated);
}

}  // namespace bench
