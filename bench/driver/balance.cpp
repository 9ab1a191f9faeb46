// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "driver/application_run.hpp"
#include "driver/benchmarks.hpp"

namespace bench {
namespace {

double rounded(double value) { return std::round(value * 1000) / 1000; }

application_run run_of(const installation& here, int ranks, const std::string& program,
                       const arguments& options) {
  return application_run::of_sojourn(here, ranks, program, options);
}

}  // namespace

void bench_uts(report& result, const installation& here, const settings& chosen) {
  tell_progress("uts: T1 on one rank, on two, and twice side by side");
  const arguments options{"--tree", "T1", "--policy", "steal"};
  const auto batch = [&](int ranks) {
    return [&, ranks] { return run_of(here, ranks, "uts", options).nanoseconds(); };
  };
  const auto side_by_side = [&] {
    application_run left = run_of(here, 1, "uts", options);
    application_run right = run_of(here, 1, "uts", options);
    return (left.nanoseconds() + right.nanoseconds()) / 2;
  };
  const samples all = interleave(chosen.work.rounds(),
                                 {{"one", batch(1)}, {"two", batch(2)}, {"copies", side_by_side}});
  // The time on one rank over twice that on two, over the same ratio of the copies, which do two
  // trees in the time of one: it falls out.
  const comparison two = compare(all, "two", "copies");
  std::vector<double> efficiencies;
  for (const double ratio : two.ratios) efficiencies.push_back(1 / (2 * ratio));
  const double efficiency = rounded(median(efficiencies));
  result.add_value({"uts", "efficiency_2", "speed on 2 ranks over that of 2 copies side by side",
                    efficiency, 0.9, fmt::format("{:.1f} ms", two.ours_ns * 1e-6),
                    fmt::format("{:.1f} ms", two.peer_ns * 1e-6), rounded(minimum(efficiencies)),
                    static_cast<int>(efficiencies.size()), true});
  result.add_detail("uts", "efficiency_2_min", rounded(minimum(efficiencies)));
  result.add_detail("uts", "efficiency_2_pairs", efficiencies.size());
  result.add_detail("uts", "seconds_1", rounded(median(all.at("one")) * 1e-9));
  result.add_detail("uts", "seconds_2", rounded(median(all.at("two")) * 1e-9));
  result.add_detail("uts", "seconds_side_by_side", rounded(median(all.at("copies")) * 1e-9));

  std::string text =
      fmt::format("One run of each on 2 ranks\n{:>6} {:>9} {:>9} {:>10} {:>9} {:>8}\n", "tree",
                  "policy", "seconds", "handed on", "asked", "in vain");
  nlohmann::json rows = nlohmann::json::array();
  for (const char* tree : {"T1", "T3"}) {
    for (const char* policy : {"none", "steal", "diffuse"}) {
      const nlohmann::json f =
          run_of(here, 2, "uts", {"--tree", tree, "--policy", policy}).figures();
      text += fmt::format("{:>6} {:>9} {:>9.3f} {:>10} {:>9} {:>8}\n", tree, policy,
                          f.at("seconds").get<double>(), f.at("threads_handed_over").dump(),
                          f.at("steal_requests").dump(), f.at("steals_empty").dump());
      rows.push_back(f);
    }
  }
  text.pop_back();
  result.add_text(text);
  result.add_detail("uts", "by_policy", rows);
}

void bench_phold(report& result, const installation& here, const settings& chosen) {
  tell_progress("phold: begun on one rank and balanced, and begun on two");
  const arguments load{"--end", chosen.work.quick ? "50" : "200", "--work", "1000"};
  const auto batch = [&](const char* begin, const char* policy) {
    return [&, begin, policy] {
      arguments options = load;
      options.insert(options.end(), {"--begin", begin, "--policy", policy});
      return run_of(here, 2, "phold", options).nanoseconds();
    };
  };
  const samples all = interleave(chosen.work.rounds(), {{"balanced", batch("one", "steal")},
                                                        {"diffused", batch("one", "diffuse")},
                                                        {"spread", batch("spread", "none")},
                                                        {"left", batch("one", "none")}});
  result.add_ratio("phold", "steal_over_spread",
                   "PHOLD begun on 1 rank of 2 and balanced, over begun on both", 1.15,
                   compare(all, "balanced", "spread"));
  result.add_detail("phold", "diffuse_over_spread",
                    rounded(compare(all, "diffused", "spread").ratio_median));
  result.add_detail("phold", "none_over_spread",
                    rounded(compare(all, "left", "spread").ratio_median));
}

}  // namespace bench
