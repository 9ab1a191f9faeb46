// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <tuple>
#include <utility>

#include "common/fork_kernels.hpp"
#include "driver/benchmarks.hpp"
#include "driver/counted.hpp"

namespace bench {
namespace {

/// A program of Table 3 and the seconds that the paper gives for it on a SPARC workstation.
struct program {
  const char* name;
  const char* title;
  const char* tree;   // the peers' name of it
  const char* forks;  // of those that fork and do not pass continuations
  std::uint64_t size;
  std::uint64_t repeats;  // of one run, so that a batch takes a millisecond or so
  double parallel, hybrid, c;
  bool forks_each_call = true;  ///< Counts in the means: of the others' calls none is a fork.
};
constexpr std::array<program, 6> table_3{{
    {"fib", "fib(29)", "tree.fib", "fib", 29, 1, 13.12, 0.70, 1.10},
    {"tak", "tak(18,12,6)", "tree.tak", "tak", 0, 5, 152.87, 6.75, 7.00},
    {"qsort", "qsort(10000)", "tree.qsort", "qsort", 0, 2, 2.90, 0.23, 0.16},
    {"queens", "nqueens(8)", "tree.queens", "queens", 0, 50, 3.37, 0.60, 0.38},
    {"forward", "list of 128, forwarded", "tree.forward", "", 0, 1000, 1.34, 0.81, 0.78, false},
    {"list", "list of 128, returned", "tree.list", "list", 0, 1000, 1.34, 0.87, 0.78},
}};
constexpr const char* over_cpp = "Table 3 with a fork a call, over the same calls: geometric mean";
constexpr const char* worst_over_cpp = "the same, the program that does worst";
constexpr const char* over_hand = "the same over the programs as one would write them";
constexpr const char* over_deque = "the same over Lace's split deque, written by hand";
constexpr const char* over_tbb = "fib with a fork a call, one worker, over oneTBB's tasks";
constexpr const char* over_openmp = "the same over OpenMP's tasks";
constexpr const char* over_boost = "a child on the heap over a boost::context, run and destroyed";
constexpr const char* of_two_cores = "speed of fib on 2 ranks over that of 2 copies side by side";

double rounded(double value) { return to_thousandths(value); }

struct peer {
  std::string name;
  std::unique_ptr<worker> process;
};

peer start_peer(const installation& here, const std::string& name, const std::string& cpus) {
  if (!here.has(name)) return {name, nullptr};
  return {name, std::make_unique<worker>(name, arguments{here.program(name), "--cpus", cpus}, 1,
                                         environment{{"OMP_WAIT_POLICY", "passive"}})};
}

class sequential_table {
 public:
  sequential_table(report& result, const installation& here, const settings& chosen)
      : result_(result),
        here_(here),
        chosen_(chosen),
        hybrid_("bench_hybrid", here.job(1, "bench_hybrid"), 1, {{"SOJOURN_EXECUTION", "hybrid"}}),
        cpus_(comma_list(hybrid_.ask("cpus", {}))),
        heap_("bench_hybrid", here.job(1, "bench_hybrid"), 1, {{"SOJOURN_EXECUTION", "heap"}}),
        plain_(start_peer(here, "peer_cpp", cpus_)),
        tbb_(start_peer(here, "peer_tbb", cpus_)),
        openmp_(start_peer(here, "peer_openmp", cpus_)),
        deque_(start_peer(here, "peer_split_deque", cpus_)),
        context_(start_peer(here, "peer_boost_context", cpus_)) {
    if (!plain_.process) throw failure(here.program("peer_cpp"));
  }

  void measure() {
    std::vector<comparison> over_tree;
    std::vector<comparison> over_by_hand;
    std::vector<comparison> over_heap;
    std::string text = fmt::format(
        "Table 3: microseconds on one rank, and over the same calls without forks; beside, the "
        "paper's seconds on a SPARC\n"
        "{:24} {:>9} {:>9} {:>9} {:>9}  {:>6} {:>6} {:>6} {:>6} {:>7} {:>7}   {:>8} {:>8} {:>6}  "
        "{:>10} {:>8}\n",
        "program", "by hand", "calls", "hybrid", "heap", "hand", "hybrid", "heap", "deque",
        "oneTBB", "OpenMP", "parallel", "hybrid", "C", "hybrid / C", "heap / C");
    nlohmann::json rows = nlohmann::json::array();
    const char* worst = "";
    comparison of_worst;
    for (const program& each : table_3) {
      tell_progress(fmt::format("hybrid: {}", each.title));
      const samples all = measure_one(each);
      const auto over = [&](const char* form) {
        return all.contains(form) ? compare(all, form, "tree").ratio_median : 0;
      };
      const comparison hybrid = compare(all, "hybrid", "tree");
      if (each.forks_each_call) {
        over_tree.push_back(hybrid);
        over_by_hand.push_back(compare(all, "hybrid", "hand"));
        over_heap.push_back(compare(all, "heap", "hybrid"));
      }
      if (each.forks_each_call && hybrid.ratio_median > of_worst.ratio_median) {
        of_worst = hybrid;
        worst = each.name;
      }
      const auto or_dash = [](double ratio) {
        return ratio > 0 ? fmt::format("{:.1f}", ratio) : std::string("-");
      };
      const auto of = [&](const char* form) { return median(all.at(form)) * 1e-3; };
      text += fmt::format(
          "{:24} {:>9.2f} {:>9.2f} {:>9.2f} {:>9.2f}  {:>6.2f} {:>6.2f} {:>6.1f} {:>6} {:>7} {:>7} "
          "  {:>8.2f} {:>8.2f} {:>6.2f}  {:>10.2f} {:>8.2f}\n",
          each.title, of("hand"), of("tree"), of("hybrid"), of("heap"), over("hand"),
          over("hybrid"), over("heap"), or_dash(over("deque")), or_dash(over("tbb")),
          or_dash(over("openmp")), each.parallel, each.hybrid, each.c, each.hybrid / each.c,
          each.parallel / each.c);
      nlohmann::json row{{"program", each.name}};
      for (const auto& [form, batches] : all) row[form + "_ns"] = rounded(median(batches));
      row["paper_seconds"] = {{"parallel", each.parallel}, {"hybrid", each.hybrid}, {"c", each.c}};
      for (const char* form : {"hand", "hybrid", "heap", "deque", "tbb", "openmp"}) {
        if (all.contains(form)) row[fmt::format("{}_over_calls", form)] = rounded(over(form));
      }
      row["hybrid_over_calls_q1"] = rounded(hybrid.ratio_q1);
      row["hybrid_over_calls_q3"] = rounded(hybrid.ratio_q3);
      row["hybrid_over_calls_min"] = rounded(hybrid.ratio_min);
      rows.push_back(row);
      if (std::string_view(each.name) == "fib") add_peers(all);
    }
    result_.add_ratio("hybrid", "sequential_over_cpp", over_cpp, 1.3, geometric_mean(over_tree));
    result_.add_ratio("hybrid", "sequential_over_by_hand", over_hand, std::nullopt,
                      geometric_mean(over_by_hand));
    result_.add_ratio("hybrid", "sequential_worst", worst_over_cpp, 2, of_worst);
    result_.add_detail("hybrid", "sequential_worst_program", worst);
    result_.add_ratio("hybrid", "heap_over_hybrid", "the same on the heap over in place",
                      std::nullopt, geometric_mean(over_heap));
    text.pop_back();
    result_.add_text(text);
    result_.add_detail("hybrid", "table_3", rows);
    add_heap_child();
  }

 private:
  /// In nanoseconds a run of the program: what a batch of `repeats` takes in the middle.
  std::function<double()> batch(worker& of, std::string operation, const program& each,
                                bool is_slow) {
    const std::uint64_t fewer = is_slow ? 10 : 1;
    const batch_plan plan{.iterations = std::max<std::uint64_t>(1, each.repeats / fewer),
                          .repeats = is_slow ? 1u : 3u,
                          .bytes = each.size};
    return [&of, operation = std::move(operation), plan] { return of.median_of(operation, plan); };
  }

  samples measure_one(const program& each) {
    std::vector<contender> contenders{
        {"tree", batch(*plain_.process, each.tree, each, false)},
        {"hybrid", batch(hybrid_, each.name, each, false)},
        {"hand", batch(*plain_.process, fmt::format("hand.{}", each.name), each, false)},
        {"heap", batch(heap_, each.name, each, true)}};
    if (*each.forks != 0) {
      if (deque_.process)
        contenders.push_back({"deque", batch(*deque_.process, each.forks, each, false)});
      if (tbb_.process) contenders.push_back({"tbb", batch(*tbb_.process, each.forks, each, true)});
      if (openmp_.process)
        contenders.push_back({"openmp", batch(*openmp_.process, each.forks, each, true)});
    }
    if (std::string_view(each.name) == "fib") {
      contenders.push_back({"both", batch(hybrid_, "fib_both", each, false)});
    }
    return interleave(chosen_.work.rounds(), contenders);
  }

  void add_peers(const samples& fib) {
    if (deque_.process) {
      result_.add_ratio("hybrid", "fork_over_split_deque", over_deque, 0.8,
                        compare(fib, "hybrid", "deque"));
    } else {
      result_.add_missing("hybrid", "fork_over_split_deque", over_deque, 0.8,
                          "peer_split_deque was not built");
    }
    if (tbb_.process) {
      result_.add_ratio("hybrid", "fork_over_tbb", over_tbb, 0.03, compare(fib, "hybrid", "tbb"));
    } else {
      result_.add_missing("hybrid", "fork_over_tbb", over_tbb, 0.03,
                          here_.peer_missing(tbb_.name, "oneTBB"));
    }
    if (openmp_.process) {
      result_.add_ratio("hybrid", "fork_over_openmp", over_openmp, 0.04,
                        compare(fib, "hybrid", "openmp"));
    } else {
      result_.add_missing("hybrid", "fork_over_openmp", over_openmp, 0.04,
                          here_.peer_missing(openmp_.name, "the compiler's OpenMP"));
    }
    result_.add_ratio_detail("hybrid", "fib_every_call_forked", compare(fib, "both", "tree"));
    result_.add_ratio_detail("hybrid", "fib_over_by_hand", compare(fib, "hybrid", "hand"));
  }

  void add_heap_child() {
    if (!context_.process) {
      result_.add_missing("hybrid", "heap_child_over_boost_context", over_boost, 2,
                          here_.peer_missing(context_.name, "boost::context"));
      return;
    }
    tell_progress("hybrid: a child on the heap");
    const batch_plan plan{.iterations = 5000, .repeats = 5, .bytes = 0};
    const samples all =
        interleave(chosen_.work.rounds(),
                   {{"heap", [&] { return heap_.median_of("fork", plan); }},
                    {"boost", [&] { return context_.process->median_of("child", plan); }}});
    result_.add_ratio("hybrid", "heap_child_over_boost_context", over_boost, 2,
                      compare(all, "heap", "boost"));
  }

  report& result_;
  const installation& here_;
  const settings& chosen_;
  worker hybrid_;
  std::string cpus_;
  worker heap_;
  peer plain_, tbb_, openmp_, deque_, context_;
};

void add_instructions(report& result, const installation& here, const settings& chosen) {
  struct difference {
    const char* key;
    const char* what;
    std::optional<double> reach;
    const char* ours;
    const char* base;
  };
  constexpr std::array differences{
      difference{"call_extra_instructions", "call of a function that may block over a plain one", 0,
                 "may_block", "may_end"},
      difference{"fork_extra_instructions", "fork that does not block over a call, instructions",
                 12, "fork", "plain"},
      difference{"list_fork_extra_instructions", "the same at each node of a list of 128", 17,
                 "list_fork", "list_plain"},
      difference{"fallback_instructions",
                 "fork that blocks over one that does not, until its caller goes on", 350,
                 "waits.mb", "finds.mb"},
      difference{"fallback_and_join_instructions", "the same, until the child is joined", 800,
                 "blocked", "ready"}};
  if (!in_path("valgrind")) {
    for (const difference& each : differences) {
      result.add_missing("hybrid", each.key, each.what, each.reach, valgrind_missing);
    }
    return;
  }
  tell_progress("hybrid: counting instructions under callgrind");
  const instruction_count count(here, "bench_hybrid", chosen.work.quick ? 20'000 : 50'000);
  const instruction_count list_count(here, "bench_hybrid", chosen.work.quick ? 200 : 500);
  std::map<std::string, double> cost;
  for (const char* kind :
       {"plain", "may_block", "may_end", "fork", "cc", "ready", "blocked", "cc_blocked"}) {
    cost[kind] = count.an_iteration(fmt::format("count.{}", kind));
    result.add_detail("hybrid", fmt::format("{}_instructions", kind), cost[kind]);
  }
  const double forks = static_cast<double>(kernels::inputs::listed - 1);
  for (const char* kind : {"list_plain", "list_fork"}) {
    cost[kind] = list_count.an_iteration(fmt::format("count.{}", kind)) / forks;
  }
  for (const char* kind : {"waits.mb", "finds.mb"}) cost[kind] = count.a_marked_iteration(kind);
  for (const difference& each : differences) {
    const double ours = cost.at(each.ours);
    const double base = cost.at(each.base);
    result.add_value({"hybrid", each.key, each.what, std::round((ours - base) * 100) / 100,
                      each.reach, fmt::format("{:.2f}", ours), fmt::format("{:.2f}", base),
                      std::nullopt, 0});
  }
  add_schema_tables(result, here);
}

/// The time of the forking fib on 1 rank over twice that on 2, over the same ratio of two copies
/// side by side, which do two in the time of one: the time on 1 rank falls out.
void add_efficiency(report& result, const installation& here, const settings& chosen) {
  tell_progress("hybrid: fib on two ranks, and twice side by side");
  const auto start = [&](int ranks) {
    return std::make_unique<worker>(
        "bench_hybrid",
        arguments{here.program("sojourn"), "run", "-n", std::to_string(ranks), "--no-bind",
                  here.program("bench_hybrid")},
        1);
  };
  worker plain("peer_cpp", {here.program("peer_cpp"), "--cpus", "0"}, 1);
  const auto two = start(2);
  const auto left = start(1);
  const auto right = start(1);
  const batch_plan plan{.iterations = 1, .repeats = 3, .bytes = chosen.work.quick ? 30u : 35u};
  const samples all =
      interleave(chosen.work.rounds(),
                 {{"tree", [&] { return plain.median_of("tree.fib", plan); }},
                  {"hand", [&] { return plain.median_of("hand.fib", plan); }},
                  {"one", [&] { return left->median_of("fib", plan); }},
                  {"two", [&] { return two->median_of("fib", plan); }},
                  {"copies", [&] {
                     left->tell("fib", plan);
                     right->tell("fib", plan);
                     return (median(left->answer_to("fib")) + median(right->answer_to("fib"))) / 2;
                   }}});
  comparison pairs = compare(all, "two", "copies");
  std::vector<double> efficiencies;
  for (const double ratio : pairs.ratios) efficiencies.push_back(1 / (2 * ratio));
  pairs.take_ratios(std::move(efficiencies));
  const auto milliseconds = [](double ns) { return fmt::format("{:.1f} ms", ns * 1e-6); };
  result.add_ratio_of(
      {"hybrid", "fib_efficiency_2", of_two_cores, std::nullopt, 0.9, milliseconds(pairs.ours_ns),
       milliseconds(pairs.peer_ns), std::nullopt, 0, true},
      pairs);
  for (const auto& [form, key, what] :
       {std::tuple{"tree", "fib_speedup_2", "speed of fib on 2 ranks over plain calls on one core"},
        std::tuple{"hand", "fib_speedup_2_by_hand", "the same over fib as one would write it"}}) {
    const comparison speedup = inverse(compare(all, "two", form));
    result.add_ratio_of(
        {"hybrid", key, what, std::nullopt, std::nullopt, milliseconds(speedup.ours_ns),
         milliseconds(speedup.peer_ns), std::nullopt, 0, true},
        speedup);
  }
  for (const auto& [name, key] : {std::pair{"one", "fib_ns_1"}, std::pair{"two", "fib_ns_2"},
                                  std::pair{"copies", "fib_ns_side_by_side"}}) {
    result.add_detail("hybrid", key, rounded(median(all.find(name)->second)));
  }
}

}  // namespace

void bench_hybrid(report& result, const installation& here, const settings& chosen) {
  sequential_table(result, here, chosen).measure();
  add_instructions(result, here, chosen);
  add_depth(result, here, chosen);
  add_efficiency(result, here, chosen);
}

}  // namespace bench
