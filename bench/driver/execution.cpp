// SPDX-License-Identifier: Apache-2.0
//
// Applications of many small children, in place and each on the heap: Tables 4 to 6 of Plevyak,
// Karamcheti, Zhang and Chien. Another one is a row of the table below.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string_view>

#include "driver/application_run.hpp"
#include "driver/benchmarks.hpp"

namespace bench {
namespace {

constexpr int ranks = 2;

/// What the paper gives for a row: local invocations for each remote one, and the time on the heap
/// over that of the hybrid, on a CM-5 and a T3D, and the seconds of both.
struct in_paper {
  double locality;
  double cm5;
  double t3d;
  struct machine {
    double parallel;
    double hybrid;
  } cm5_seconds, t3d_seconds;
};

struct configuration {
  std::string name;
  arguments options;
  in_paper paper;
};

/// Every run takes these options and `--json FILE`, and says there `seconds` and the `counts`; with
/// several `laps`, also what each took (`lap_seconds`).
struct application {
  std::string name;  ///< Of the benchmark.
  std::string program;
  std::string title;
  double reach;  ///< Of the configuration that gains least.
  int laps;      ///< A run is measured in so many parts, each with one of the other kind's.
  std::vector<configuration> configurations;
};

application sor() {
  const auto of = [](const char* block, in_paper paper) {
    return configuration{
        fmt::format("block {}", block), {"--block", block, "--iterations", "6"}, paper};
  };
  return {"sor",
          "sor",
          "SOR, 1024 x 1024 points",
          1.8,
          6,
          {of("8", {0.083, 0.991, 1.126, {135.58, 136.85}, {48.99, 43.50}}),
           of("16", {1.167, 1.102, 1.632, {97.16, 88.15}, {46.77, 28.66}}),
           of("32", {3.333, 1.601, 2.099, {83.47, 52.15}, {43.46, 20.70}}),
           of("64", {7.667, 1.860, 2.334, {60.33, 32.43}, {34.94, 14.97}}),
           of("128", {16.333, 2.303, 2.372, {45.80, 19.89}, {28.46, 12.00}})}};
}

application em3d_flow() {
  const auto low = [](const char* form, in_paper paper) {
    return configuration{fmt::format("{} random", form), {"--form", form, "--steps", "5"}, paper};
  };
  const auto high = [](const char* form, in_paper paper) {
    return configuration{
        fmt::format("{} near", form), {"--form", form, "--remote", "1", "--steps", "30"}, paper};
  };
  return {"em3d-flow",
          "em3d_flow",
          "EM3D, 8192 nodes of degree 16",
          1,
          1,
          {low("pull", {0.0156, 1.362, 1.037, {93.93, 68.94}, {349.04, 336.32}}),
           high("pull", {99, 2.222, 1.148, {7.42, 3.34}, {29.681, 25.96}}),
           low("push", {0.0156, 3.741, 1.045, {543.73, 145.36}, {494.85, 473.59}}),
           high("push", {99, 1.073, 1.400, {11.76, 10.96}, {41.27, 29.47}}),
           low("forward", {0.0156, 0.993, 1.389, {180.40, 181.6}, {602.41, 433.65}}),
           high("forward", {99, 1.214, 2.262, {18.86, 15.53}, {112.79, 39.41}})}};
}

application mdforce() {
  const auto of = [](const char* layout, const char* steps, in_paper paper) {
    return configuration{layout, {"--layout", layout, "--steps", steps}, paper};
  };
  return {"mdforce",
          "mdforce",
          "MD-Force, 10503 atoms",
          2,
          1,
          {of("random", "1", {0.38, 1.03, 1.03, {10.71, 10.41}, {3.94, 3.82}}),
           of("orb", "1", {6.05, 1.43, 1.52, {1.46, 1.02}, {1.32, 0.87}})}};
}

std::vector<application> applications() { return {sor(), em3d_flow(), mdforce()}; }

constexpr std::array counts{"local",         "remote",        "forks",
                            "forks_blocked", "forks_on_heap", "messages"};

double rounded(double value) { return to_thousandths(value); }

/// What the rounds of one configuration gave. Counts are the same in each round, but for those that
/// depend on what comes first; the last round's are shown.
struct outcome {
  const configuration* of;
  comparison pairs;
  nlohmann::json hybrid;
  nlohmann::json heap;

  double locality() const {
    return hybrid.at("local").get<double>() / std::max(1.0, hybrid.at("remote").get<double>());
  }
};

outcome measure(const installation& here, const application& app, const configuration& of,
                int pairs) {
  tell_progress(fmt::format("{}: {}", app.name, of.name));
  std::map<std::string, nlohmann::json, std::less<>> last;
  samples laps;
  const auto runs = [&](const std::string& execution) {
    return contender{
        execution, [&, execution] {
          last[execution] = application_run::of_sojourn(here, ranks, app.program, of.options,
                                                        {{"SOJOURN_EXECUTION", execution}})
                                .figures();
          const nlohmann::json& ended = last[execution];
          const double seconds = ended.at("seconds").get<double>();
          for (const double lap : ended.value("lap_seconds", std::vector<double>{seconds})) {
            laps[execution].push_back(lap * 1e9);
          }
          return seconds * 1e9;
        }};
  };
  interleave((pairs + app.laps - 1) / app.laps, {runs("hybrid"), runs("heap")});
  return {&of, compare(laps, "heap", "hybrid"), last["hybrid"], last["heap"]};
}

/// The paper's seconds are of 100 iterations of SOR and EM3D and of one of MD-Force, on 64 and 16
/// processors; ours are of as many as the options say.
std::string seconds_table(const application& app, const std::vector<outcome>& outcomes) {
  std::string text = fmt::format(
      "{:<15} {:>21}  {:>21}  {:>21}\n{:<15} {:>10} {:>10}  {:>10} {:>10}  "
      "{:>10} {:>10}  {}\n",
      "seconds", "Sojourn", "CM-5", "T3D", "", "heap", "hybrid", "heap", "hybrid", "heap", "hybrid",
      "Sojourn ran with");
  for (const outcome& o : outcomes) {
    const in_paper& paper = o.of->paper;
    text += fmt::format(
        "{:<15} {:>10.4f} {:>10.4f}  {:>10.2f} {:>10.2f}  {:>10.2f} {:>10.2f}  {} {}\n", o.of->name,
        o.pairs.ours_ns * app.laps * 1e-9, o.pairs.peer_ns * app.laps * 1e-9,
        paper.cm5_seconds.parallel, paper.cm5_seconds.hybrid, paper.t3d_seconds.parallel,
        paper.t3d_seconds.hybrid, app.program, fmt::join(o.of->options, " "));
  }
  return text;
}

std::string table(const application& app, const std::vector<outcome>& outcomes) {
  std::string text = fmt::format(
      "{}, {} ranks: milliseconds, medians; beside, what the paper gives for a CM-5 and a T3D\n"
      "{:<15} {:>9} {:>9}  {:>6} {:>14}  {:>5} {:>5}  {:>8} {:>8}  {:>9} {:>9} {:>9} {:>9}\n",
      app.title, ranks, "", "heap", "hybrid", "ratio", "quartiles", "CM-5", "T3D", "local:1",
      "paper", "forks", "blocked", "on heap", "messages");
  for (const outcome& o : outcomes) {
    const auto count = [](const nlohmann::json& run, const char* name) {
      return run.at(name).get<std::uint64_t>();
    };
    const in_paper& paper = o.of->paper;
    text += fmt::format(
        "{:<15} {:>9.2f} {:>9.2f}  {:>6.2f} {:>14}  {:>5.2f} {:>5.2f}  {:>8.3g} {:>8.3g}  {:>9} "
        "{:>9} {:>9} {:>9}\n",
        o.of->name, o.pairs.ours_ns * 1e-6, o.pairs.peer_ns * 1e-6, o.pairs.ratio_median,
        fmt::format("{:.2f} to {:.2f}", o.pairs.ratio_q1, o.pairs.ratio_q3), paper.cm5, paper.t3d,
        o.locality(), paper.locality, count(o.hybrid, "forks"), count(o.hybrid, "forks_blocked"),
        count(o.heap, "forks_on_heap"), count(o.hybrid, "messages"));
  }
  text += seconds_table(app, outcomes);
  text +=
      "blocked: children in place that needed a context after all; on heap: those that had one\n"
      "from the start, with SOJOURN_EXECUTION=heap";
  return text;
}

nlohmann::json rows(const std::vector<outcome>& outcomes) {
  nlohmann::json all = nlohmann::json::array();
  for (const outcome& o : outcomes) {
    nlohmann::json row{{"configuration", o.of->name},
                       {"heap_over_hybrid", rounded(o.pairs.ratio_median)},
                       {"heap_over_hybrid_q1", rounded(o.pairs.ratio_q1)},
                       {"heap_over_hybrid_q3", rounded(o.pairs.ratio_q3)},
                       {"heap_over_hybrid_min", rounded(o.pairs.ratio_min)},
                       {"heap_ns", rounded(o.pairs.ours_ns)},
                       {"hybrid_ns", rounded(o.pairs.peer_ns)},
                       {"local_over_remote", rounded(o.locality())},
                       {"paper",
                        {{"local_over_remote", o.of->paper.locality},
                         {"cm5", o.of->paper.cm5},
                         {"t3d", o.of->paper.t3d},
                         {"cm5_seconds",
                          {{"heap", o.of->paper.cm5_seconds.parallel},
                           {"hybrid", o.of->paper.cm5_seconds.hybrid}}},
                         {"t3d_seconds",
                          {{"heap", o.of->paper.t3d_seconds.parallel},
                           {"hybrid", o.of->paper.t3d_seconds.hybrid}}}}}};
    for (const char* name : counts) {
      row["hybrid"][name] = o.hybrid.at(name);
      row["heap"][name] = o.heap.at(name);
    }
    all.push_back(row);
  }
  return all;
}

}  // namespace

std::vector<std::string> execution_names() {
  std::vector<std::string> names;
  for (const application& app : applications()) names.push_back(app.name);
  return names;
}

void bench_execution(report& result, const installation& here, const settings& chosen,
                     const std::string& name) {
  const auto all = applications();
  const application& app = *std::ranges::find(all, name, &application::name);
  const std::string what = fmt::format("{}: on the heap over in place", app.title);
  if (!here.has(app.program)) {
    result.add_missing(app.name, "heap_over_hybrid", what, app.reach,
                       fmt::format("{} was not built", app.program), true);
    return;
  }
  // All pairs for the configuration that gains least, which is the figure; fewer find out which
  // that is, and are enough for the others.
  const int pairs = chosen.work.rounds();
  std::vector<outcome> outcomes;
  for (const configuration& each : app.configurations) {
    outcomes.push_back(measure(here, app, each, std::min(pairs, effort::pairs_min)));
  }
  outcome& shown = *std::ranges::min_element(outcomes, {},
                                             [](const outcome& o) { return o.pairs.ratio_median; });
  if (pairs > effort::pairs_min) shown = measure(here, app, *shown.of, pairs);
  result.add_ratio_of(
      {app.name, "heap_over_hybrid",
       fmt::format("{}, {} (paper: {:.1f}, {:.1f})", what, shown.of->name, shown.of->paper.cm5,
                   shown.of->paper.t3d),
       std::nullopt, app.reach, fmt::format("{:.1f} ms", shown.pairs.ours_ns * 1e-6),
       fmt::format("{:.1f} ms", shown.pairs.peer_ns * 1e-6), std::nullopt, 0, true},
      shown.pairs);
  result.add_detail(app.name, "heap_over_hybrid_of", shown.of->name);
  result.add_detail(app.name, "rows", rows(outcomes));
  result.add_text(table(app, outcomes));
}

}  // namespace bench
