// SPDX-License-Identifier: Apache-2.0
//
// Six small programs under each word: four in which different words win, and two that nobody tuned.
#include <fmt/format.h>

#include <array>

#include "driver/policies.hpp"

namespace bench {
namespace {

struct small_program {
  const char* name;
  const char* about;
  std::uint64_t operations;  ///< On 4 ranks.
};
constexpr std::array programs{
    small_program{"hot_table", "hash table, hot keys, 2% writes", 40'000},
    small_program{"chains", "long runs on one object", 1'000},
    small_program{"counters", "small counters that all change", 20'000},
    small_program{"phases", "read by all, then changed by all", 16'000},
    small_program{"graph_walk", "random walks, skewed graph", 5'000},
    small_program{"hash_join", "hash join, skewed keys", 40'000},
};

void add_ratios(report& result, const small_program& program, int ranks,
                const std::vector<policy_runs>& all) {
  samples times;
  for (const policy_runs& runs : all) times[runs.row] = runs.nanoseconds();
  for (const policy_runs& runs : all) {
    if (runs.row == "rpc") continue;
    result.add_rate_ratio(
        policies_group, fmt::format("{}_{}_over_rpc", program.name, runs.row),
        fmt::format("{}, {} ranks: throughput, {} over rpc", program.name, ranks, runs.row),
        std::nullopt, compare(times, runs.row, "rpc"));
  }
}

std::string rows_of(const std::vector<policy_runs>& all, const small_program& program, int ranks) {
  std::string text;
  const double by_rpc = find_row(all, "rpc")->per_second();
  for (const policy_runs& runs : all) {
    const auto hits = runs.hit_rate();
    text += fmt::format(
        "\n{:<11} {:<33} {:>5} {:<10} {:>10.0f} ({:>9.0f} to {:>9.0f}) {:>8.2f} "
        "{:>9.2f} {:>9.1f} {:>6}",
        program.name, program.about, ranks, runs.row, runs.per_second(), runs.per_second(0.25),
        runs.per_second(0.75), runs.per_second() / by_rpc, runs.messages(), runs.words(),
        hits ? fmt::format("{:.1f}%", *hits * 100) : "-");
  }
  return text;
}

}  // namespace

void add_policies_programs(report& result, const installation& here, const policy_plan& plan,
                           automatic_choices& choices) {
  std::string text = fmt::format(
      "Six programs, 16 requesters; medians of {} rounds (more than 4 ranks: 5 at most), and "
      "quartiles of the operations a "
      "second\n{:<11} {:<33} {:>5} {:<10} {:>10} {:>24} {:>8} {:>9} {:>9} {:>6}\n{:<11} {:<33} "
      "{:>5} {:<10} {:>10} {:>24} {:>8} {:>9} {:>9} {:>6}",
      plan.rounds, "program", "", "ranks", "via", "ops/s", "", "over rpc", "messages", "words",
      "hits", "", "", "", "", "", "", "", "an op", "an op", "");
  nlohmann::json rows = nlohmann::json::array();
  for (const small_program& program : programs) {
    for (const int ranks : plan.ranks) {
      tell_progress(fmt::format("policies: {}, {} ranks", program.name, ranks));
      const policy_program what{
          program.name, {}, policy_rows(false, plan.operations(program.operations, ranks))};
      const std::vector<policy_runs> all = run_in_turns(here, what, ranks, plan.rounds_on(ranks));
      text += rows_of(all, program, ranks);
      // On as many ranks as most machines have cores.
      if (ranks == plan.ranks.front()) {
        add_ratios(result, program, ranks, all);
        choices.add(program.name, all);
      }
      for (const policy_runs& runs : all) {
        rows.push_back(json_of(runs, ranks));
        rows.back()["program"] = program.name;
      }
    }
  }
  result.add_text(text);
  result.add_detail(policies_group, "programs", rows);
}

}  // namespace bench
