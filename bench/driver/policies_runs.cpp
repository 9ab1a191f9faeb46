// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "common/policies.hpp"
#include "driver/application_run.hpp"
#include "driver/policies.hpp"

namespace bench {
namespace {

policy_outcome run_once(const installation& here, const policy_program& what, const policy_row& row,
                        int ranks) {
  arguments words = here.job(ranks, what.name);
  for (const arguments& some : {what.options, row.options}) {
    words.insert(words.end(), some.begin(), some.end());
  }
  // Operations of the network are requests.
  words.emplace_back(what.name == "counting_network" ? "--requests" : "--ops");
  words.push_back(std::to_string(row.operations));
  const nlohmann::json found = application_run(what.name, words).figures().at("figures");
  policy_outcome outcome{found.at("operations_per_second"), found.at("messages_per_operation"),
                         found.at("bytes_per_operation").get<double>() / paper_word_bytes,
                         std::nullopt};
  if (const auto& rate = found.at("hit_rate"); !rate.is_null()) outcome.hit_rate = rate;
  return outcome;
}

template <class Value>
std::vector<double> values_of(const std::vector<policy_outcome>& rounds, Value value) {
  std::vector<double> all;
  for (const policy_outcome& o : rounds) all.push_back(value(o));
  return all;
}

}  // namespace

std::vector<policy_row> policy_rows(bool has_shared_form, std::uint64_t operations) {
  std::vector<policy_row> rows;
  for (const apps::policy& p : apps::policies)
    rows.push_back({p.name, {"--via", p.name}, operations});
  // There a request takes some hundred times as long.
  if (has_shared_form) {
    rows.push_back({apps::shared_form,
                    {"--via", apps::shared_form},
                    std::max<std::uint64_t>(operations / 20, 100)});
  }
  return rows;
}

void automatic_choices::add(const std::string& program, const std::vector<policy_runs>& all) {
  samples times;
  const policy_runs* best = nullptr;
  for (const policy_runs& runs : all) {
    times[runs.row] = runs.nanoseconds();
    const bool is_word =
        runs.row != "automatic" &&
        std::ranges::any_of(apps::policies, [&](const auto& p) { return runs.row == p.name; });
    if (is_word && (best == nullptr || runs.per_second() > best->per_second())) best = &runs;
  }
  if (best != nullptr && times.contains("automatic"))
    all_.push_back({program, best->row, compare(times, "automatic", best->row)});
}

void automatic_choices::add_to(report& result) const {
  if (all_.empty()) return;
  std::vector<comparison> over_best;
  for (const choice& each : all_) over_best.push_back(each.over_best);
  const auto worst = std::max_element(all_.begin(), all_.end(), [](const auto& a, const auto& b) {
    return a.over_best.ratio_median < b.over_best.ratio_median;
  });
  result.add_ratio(policies_group, "automatic_over_best",
                   "time via::automatic over the best word of each program, geometric mean", 1.05,
                   geometric_mean(over_best));
  result.add_ratio(policies_group, "automatic_over_best_worst",
                   "the same, worst program (" + worst->program + ", best: " + worst->best + ")",
                   1.1, worst->over_best);
  nlohmann::json rows = nlohmann::json::array();
  for (const choice& each : all_) {
    rows.push_back({{"program", each.program},
                    {"best", each.best},
                    {"automatic_over_best", to_thousandths(each.over_best.ratio_median)}});
  }
  result.add_detail(policies_group, "automatic", rows);
}

double policy_runs::per_second(double quantile_of) const {
  return quantile(values_of(rounds, [](const auto& o) { return o.per_second; }), quantile_of);
}
double policy_runs::messages() const {
  return median(values_of(rounds, [](const auto& o) { return o.messages; }));
}
double policy_runs::words() const {
  return median(values_of(rounds, [](const auto& o) { return o.words; }));
}
std::optional<double> policy_runs::hit_rate() const {
  if (!rounds.front().hit_rate) return std::nullopt;
  return median(values_of(rounds, [](const auto& o) { return o.hit_rate.value_or(0); }));
}
std::vector<double> policy_runs::nanoseconds() const {
  return values_of(rounds, [](const auto& o) { return 1e9 / o.per_second; });
}

std::vector<policy_runs> run_in_turns(const installation& here, const policy_program& what,
                                      int ranks, int rounds) {
  std::vector<policy_runs> all;
  for (const policy_row& row : what.rows) all.push_back({row.name, {}});
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t turn = 0; turn < all.size(); ++turn) {
      const std::size_t i = round % 2 == 0 ? turn : all.size() - 1 - turn;
      all[i].rounds.push_back(run_once(here, what, what.rows[i], ranks));
    }
  }
  return all;
}

const policy_runs* find_row(const std::vector<policy_runs>& all, const std::string& row) {
  const auto found = std::ranges::find(all, row, &policy_runs::row);
  return found == all.end() ? nullptr : &*found;
}

nlohmann::json json_of(const policy_runs& runs, int ranks) {
  nlohmann::json row = {{"ranks", ranks},
                        {"via", runs.row},
                        {"operations_per_second", runs.per_second()},
                        {"operations_per_second_q1", runs.per_second(0.25)},
                        {"operations_per_second_q3", runs.per_second(0.75)},
                        {"messages_per_operation", runs.messages()},
                        {"words_per_operation", to_thousandths(runs.words())},
                        {"hit_rate", nullptr},
                        {"rounds", runs.rounds.size()}};
  if (const auto rate = runs.hit_rate()) row["hit_rate"] = *rate;
  return row;
}

}  // namespace bench
