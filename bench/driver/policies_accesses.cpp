// SPDX-License-Identifier: Apache-2.0
//
// What an access via::cache costs where there is no copy yet, in time, and where there is one, in
// instructions; and, in instructions, what a choice of its own and a read of a replicated object
// do.
#include <fmt/format.h>

#include <cmath>

#include "driver/counted.hpp"
#include "driver/policies.hpp"

namespace bench {
namespace {

/// Instructions of one thing beyond another.
struct difference {
  const char* key;
  const char* about;
  double aim;
};
constexpr difference hit{"cache_read_hit_over_plain_call",
                         "read of a copy over a local call, instructions", 25};
constexpr difference replicated{"replicated_read_over_plain_read",
                                "read of a replicated object over a plain call, instructions", 8};
constexpr difference choice{"automatic_overhead",
                            "call via automatic over the same via rpc, instructions", 15};

void add_difference(report& result, const difference& what, double more, double less) {
  result.add_value({policies_group, what.key, what.about, std::round((more - less) * 100) / 100,
                    what.aim, fmt::format("{:.2f}", more), fmt::format("{:.2f}", less),
                    std::nullopt, 0});
}

void add_instructions(report& result, const installation& here) {
  if (!in_path("valgrind")) {
    for (const difference& what : {hit, replicated, choice})
      result.add_missing(policies_group, what.key, what.about, what.aim, valgrind_missing);
    return;
  }
  tell_progress("policies: counting instructions under callgrind");
  const auto count = instruction_count::of_two_ranks(here, "bench_policies");
  const auto cost = [&](const char* operation) { return count.a_marked_iteration(operation); };
  add_difference(result, hit, cost("cache_hit"), cost("local"));
  add_difference(result, replicated, cost("replicated_hit"), cost("plain"));
  // Both send and wait in the same way; that is left out.
  const auto choosing = [&](const char* operation) {
    return count.a_marked_iteration_in(
        {"::perform<", "choose_way_slowly", "place_costs::", "look_at_trials"}, operation);
  };
  add_difference(result, choice, choosing("automatic_rpc"), choosing("said_rpc"));
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
  add_instructions(result, here);
}

}  // namespace bench
