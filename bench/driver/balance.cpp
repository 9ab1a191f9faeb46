// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <map>
#include <string>
#include <utility>

#include "driver/application_run.hpp"
#include "driver/benchmarks.hpp"

namespace bench {
namespace {

application_run run_of(const installation& here, int ranks, const std::string& program,
                       const arguments& options) {
  return application_run::of_sojourn(here, ranks, program, options);
}

std::string milliseconds(double ns) { return fmt::format("{:.1f} ms", ns * 1e-6); }

/// What runs of PHOLD have handled, and in which order: the same under every policy, on any ranks.
class checksums {
 public:
  /// Errors: failure when it is not what the first run handled.
  void compare(const nlohmann::json& figures) {
    const std::string found = fmt::format("{} events with checksum {}", figures.at("events").dump(),
                                          figures.at("checksum").get<std::string>());
    if (first_.empty()) first_ = found;
    if (found == first_) return;
    throw failure(fmt::format("phold, policy {}, handled {}, but the first run {}",
                              figures.at("policy").get<std::string>(), found, first_));
  }

 private:
  std::string first_;
};

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
  const auto loop = [&] {
    return run_of(here, 1, "uts", {"--tree", "T1", "--alone"}).nanoseconds();
  };
  const samples all =
      interleave(chosen.work.rounds(),
                 {{"loop", loop}, {"one", batch(1)}, {"two", batch(2)}, {"copies", side_by_side}});
  // The time on one rank over twice that on two, over the same ratio of the copies, which do two
  // trees in the time of one: it falls out.
  comparison two = compare(all, "two", "copies");
  std::vector<double> efficiencies;
  for (const double ratio : two.ratios) efficiencies.push_back(1 / (2 * ratio));
  two.take_ratios(std::move(efficiencies));
  result.add_ratio_of(
      {"uts", "efficiency_2", "speed on 2 ranks over that of 2 copies side by side", std::nullopt,
       0.9, milliseconds(two.ours_ns), milliseconds(two.peer_ns), std::nullopt, 0, true},
      two);
  const comparison over_loop = inverse(compare(all, "two", "loop"));
  result.add_ratio_of({"uts", "speedup_2", "speed on 2 ranks over that of one loop without threads",
                       std::nullopt, std::nullopt, milliseconds(over_loop.ours_ns),
                       milliseconds(over_loop.peer_ns), std::nullopt, 0, true},
                      over_loop);
  for (const auto& [name, key] :
       {std::pair{"loop", "seconds_loop"}, std::pair{"one", "seconds_1"},
        std::pair{"two", "seconds_2"}, std::pair{"copies", "seconds_side_by_side"}}) {
    result.add_detail("uts", key, to_thousandths(median(all.find(name)->second) * 1e-9));
  }

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
  checksums handled;
  const auto figures = [&](const char* begin, const char* policy, const arguments& more = {}) {
    arguments options = load;
    options.insert(options.end(), {"--begin", begin, "--policy", policy});
    options.insert(options.end(), more.begin(), more.end());
    nlohmann::json found = run_of(here, 2, "phold", options).figures();
    handled.compare(found);
    return found;
  };
  // The first run compares itself with a simulation by one loop, and all others with the first.
  figures("spread", "none", {"--check"});
  const auto batch = [&](const char* begin, const char* policy) {
    return [&, begin, policy] { return figures(begin, policy).at("seconds").get<double>() * 1e9; };
  };
  const samples all = interleave(chosen.work.rounds(), {{"balanced", batch("one", "steal")},
                                                        {"diffused", batch("one", "diffuse")},
                                                        {"spread", batch("spread", "none")},
                                                        {"left", batch("one", "none")}});
  result.add_ratio("phold", "steal_over_spread",
                   "PHOLD begun on 1 rank of 2 and balanced, over begun on both", 1.15,
                   compare(all, "balanced", "spread"));
  result.add_ratio_detail("phold", "diffuse_over_spread", compare(all, "diffused", "spread"));
  result.add_ratio_detail("phold", "none_over_spread", compare(all, "left", "spread"));
}

}  // namespace bench
