// SPDX-License-Identifier: Apache-2.0
//
// `sojourn bench policies`: the words at an access, in the two applications of Hsieh, Wang and
// Weihl (1993), beside their figures, and in six small programs.
#include "driver/policies.hpp"

#include <algorithm>
#include <array>

namespace bench {
namespace {

/// How many rounds give medians and quartiles of whole runs, of which each has hundreds.
constexpr int rounds_of_runs = 11;

/// Table 5, and the ticks a nanosecond of all others.
double add_migration_costs(report& result, const installation& here, const settings& chosen) {
  tell_progress("policies: where the time of a migration goes");
  worker ours("bench_migrate", here.job(2, "bench_migrate"), 1);
  const std::string cpus = comma_list(ours.ask("cpus", {}));
  worker raw("peer_raw", {here.program("peer_raw"), "--cpus", cpus}, 1);
  const std::vector<double> ships =
      ours.ask("ships", {.iterations = 100, .repeats = 1, .bytes = 64});
  add_breakdown(result, ours, raw, ships.front(), chosen, policies_group);
  return ours.ask("clock", {}).front();
}

}  // namespace

void bench_policies(report& result, const installation& here, const settings& chosen) {
  constexpr std::array programs{"btree",    "counting_network", "hot_table",  "chains",
                                "counters", "phases",           "graph_walk", "hash_join"};
  for (const char* program : programs) {
    if (here.has(program)) continue;
    result.add_note(std::string("policies was not measured: ") + program + " was not built.");
    return;
  }
  const policy_plan plan{chosen.work.quick ? std::vector{2, 4} : std::vector{2, 4, 8, 16},
                         chosen.work.quick ? 1 : std::min(chosen.work.pairs, rounds_of_runs),
                         chosen.work.quick};
  add_policies_accesses(result, here, chosen);
  const double ticks_a_ns = add_migration_costs(result, here, chosen);
  automatic_choices choices;
  add_policies_btree(result, here, plan, ticks_a_ns, choices);
  add_policies_network(result, here, plan, chosen.figures, choices);
  add_policies_programs(result, here, plan, choices);
  choices.add_to(result);
}

}  // namespace bench
