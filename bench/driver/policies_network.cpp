// SPDX-License-Identifier: Apache-2.0
//
// The counting network of Hsieh, Wang and Weihl under each word: their Figures 2 and 3.
#include <fmt/format.h>

#include <array>

#include "driver/policies.hpp"
#include "driver/policies_paper.hpp"
#include "driver/svg_chart.hpp"

namespace bench {
namespace {

constexpr std::array think_times{0, 10'000};

/// Of one think time: the runs of all rows, by number of ranks.
using curves = std::vector<std::vector<policy_runs>>;

template <class Value>
void draw(const std::filesystem::path& file, const policy_plan& plan, const curves& all,
          const std::string& title, const char* y_label, Value value) {
  chart drawn{title, "ranks", y_label, {}};
  for (std::size_t row = 0; row < all.front().size(); ++row) {
    series line{all.front()[row].row, {}};
    for (std::size_t r = 0; r < plan.ranks.size(); ++r) {
      line.points.emplace_back(plan.ranks[r], value(all[r][row]));
    }
    drawn.lines.push_back(line);
  }
  write_svg(file, drawn);
}

std::string rows_of(const policy_plan& plan, const curves& all, int think) {
  std::string text;
  for (std::size_t row = 0; row < all.front().size(); ++row) {
    for (std::size_t r = 0; r < plan.ranks.size(); ++r) {
      const policy_runs& runs = all[r][row];
      const auto hits = runs.hit_rate();
      text += fmt::format(
          "{:>6} {:<10} {:>5} {:>10.0f} ({:>8.0f} to {:>8.0f}) {:>10.2f} {:>9.2f} {:>9.1f} {:>6}\n",
          think, runs.row, plan.ranks[r], runs.per_second(), runs.per_second(0.25),
          runs.per_second(0.75), runs.per_second() * runs.words() / 1e6, runs.messages(),
          runs.words(), hits ? fmt::format("{:.1f}%", *hits * 100) : "-");
    }
  }
  return text;
}

}  // namespace

void add_policies_network(report& result, const installation& here, const policy_plan& plan,
                          const std::filesystem::path& figures, automatic_choices& choices) {
  std::string text = fmt::format(
      "Figures 2 and 3: counting network, 16 requesters; medians of {} rounds (more than 4 ranks: "
      "5 at most), and quartiles of "
      "the requests a second\n{:>6} {:<10} {:>5} {:>10} {:>22} {:>10} {:>9} {:>9} {:>6}\n"
      "{:>6} {:<10} {:>5} {:>10} {:>22} {:>10} {:>9} {:>9} {:>6}\n",
      plan.rounds, "think", "via", "ranks", "requests/s", "", "million", "messages", "words",
      "hits", "cycles", "", "", "", "", "words/s", "a request", "a request", "");
  nlohmann::json rows = nlohmann::json::array();
  std::string files;
  for (const int think : think_times) {
    curves all;
    for (const int ranks : plan.ranks) {
      tell_progress(fmt::format("policies: counting network, think {}, {} ranks", think, ranks));
      const policy_program network{"counting_network",
                                   {"--think", std::to_string(think)},
                                   policy_rows(true, plan.operations(20'000, ranks))};
      all.push_back(run_in_turns(here, network, ranks, plan.rounds_on(ranks)));
      if (ranks == plan.ranks.front())
        choices.add(fmt::format("counting_network, think {}", think), all.back());
      for (const policy_runs& runs : all.back()) {
        rows.push_back(json_of(runs, ranks));
        rows.back()["think_cycles"] = think;
      }
    }
    text += rows_of(plan, all, think);
    const auto file = [&](const char* what) {
      const auto path = figures / fmt::format("policies_{}_think_{}.svg", what, think);
      files += "\nwritten: " + path.string();
      return path;
    };
    draw(file("figure_2"), plan, all,
         fmt::format("Figure 2: counting network, throughput, think time {} cycles", think),
         "requests a millisecond", [](const policy_runs& r) { return r.per_second() / 1e3; });
    draw(file("figure_3"), plan, all,
         fmt::format("Figure 3: counting network, bandwidth, think time {} cycles", think),
         "million words a second",
         [](const policy_runs& r) { return r.per_second() * r.words() / 1e6; });
    if (think == 0) {
      const policy_runs* cache = find_row(all.back(), "cache");
      const policy_runs* migrate = find_row(all.back(), "migrate");
      result.add_value(
          {policies_group, "network_words_cache_over_migrate",
           fmt::format("counting network, {} ranks: words a request, cache over migrate",
                       plan.ranks.back()),
           to_thousandths(cache->words() / migrate->words()), std::nullopt,
           fmt::format("{:.1f}", cache->words()), fmt::format("{:.1f}", migrate->words()),
           std::nullopt, 0});
    }
  }
  text += in_paper::of_figures_2_and_3;
  text +=
      "\nA word has 4 bytes. Balancers change at each access: via::cache they are called at their "
      "owner. Shared:\npages in the place of the paper's hardware; a balancer has a page, a hit is "
      "a "
      "visit that fetches none.";
  result.add_text(text + files);
  result.add_detail(policies_group, "figures_2_and_3", rows);
}

}  // namespace bench
