// SPDX-License-Identifier: Apache-2.0
//
// What an access via::cache costs where there is no copy yet, in time, and where there is one, in
// instructions.
#include <fmt/format.h>

#include <cmath>

#include "driver/counted.hpp"
#include "driver/policies.hpp"

namespace bench {
namespace {

constexpr const char* hit = "read of a copy over a local call, instructions";

void add_hit(report& result, const installation& here) {
  if (!in_path("valgrind")) {
    result.add_missing(policies_group, "cache_read_hit_over_plain_call", hit, 25, valgrind_missing);
    return;
  }
  tell_progress("policies: counting instructions under callgrind");
  const auto count = instruction_count::of_two_ranks(here, "bench_policies");
  const double on_copy = count.a_marked_iteration("cache_hit");
  const double local = count.a_marked_iteration("local");
  result.add_value({policies_group, "cache_read_hit_over_plain_call", hit,
                    std::round((on_copy - local) * 100) / 100, 25, fmt::format("{:.2f}", on_copy),
                    fmt::format("{:.2f}", local), std::nullopt, 0});
}

}  // namespace

void add_policies_accesses(report& result, const installation& here, const settings& chosen) {
  tell_progress("policies: first accesses");
  {
    worker ours("bench_policies", here.job(2, "bench_policies"), 1);
    const batch_plan plan{
        .iterations = chosen.work.quick ? 200u : 1000u, .repeats = 5, .bytes = 64};
    const samples all = interleave(
        chosen.work.rounds(), {{"cache_miss", [&] { return ours.median_of("cache_miss", plan); }},
                               {"fetch", [&] { return ours.median_of("fetch", plan); }},
                               {"rpc", [&] { return ours.median_of("rpc", plan); }}});
    result.add_ratio(policies_group, "cache_miss_over_rpc",
                     "first read of a 64 B object via::cache, over an rpc", 1.3,
                     compare(all, "cache_miss", "rpc"));
    result.add_ratio(policies_group, "fetch_over_rpc",
                     "first read of a 64 B object via::fetch, which brings it here, over an rpc",
                     2.0, compare(all, "fetch", "rpc"));
  }
  add_hit(result, here);
}

}  // namespace bench
