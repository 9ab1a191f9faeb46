// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <memory>

#include "driver/benchmarks.hpp"

namespace bench {
namespace {

/// Of the paper's Table 2, in microseconds; 0 where it has none.
struct row_of_paper {
  std::uint64_t bytes;
  int naive_ncube, stack_ncube, naive_ipsc, stack_ipsc;
};
constexpr std::array<row_of_paper, 7> table_2{{{16, 311, 259, 158, 144},
                                               {64, 437, 299, 180, 156},
                                               {256, 909, 403, 355, 290},
                                               {1024, 2805, 838, 686, 459},
                                               {4096, 0, 0, 0, 0},
                                               {16384, 0, 0, 0, 0},
                                               {65536, 0, 0, 0, 0}}};

batch_plan plan_for(const settings& chosen, std::uint64_t bytes) {
  const std::uint64_t full = bytes <= 4096 ? 1000 : 300;
  return {.iterations = chosen.work.quick ? 100u : full, .repeats = 5, .bytes = bytes};
}

double rounded(double value) { return to_thousandths(value); }

std::string or_dash(int microseconds) {
  return microseconds == 0 ? "-" : std::to_string(microseconds);
}

samples measure_frame(worker& ours, const settings& chosen, std::uint64_t locals,
                      double shipped_bytes) {
  const batch_plan hop = plan_for(chosen, locals);
  batch_plan message = hop;
  message.bytes = static_cast<std::uint64_t>(shipped_bytes);
  std::vector<contender> contenders{
      {"hop", [&] { return ours.median_of("hop", hop); }},
      {"switch", [&] { return ours.median_of("hop_switch", hop); }},
      {"naive", [&] { return ours.median_of("naive", hop); }},
  };
  if (message.bytes <= 64 * 1024) {
    contenders.push_back({"message", [&] { return ours.median_of("message", message); }});
  }
  return interleave(chosen.work.rounds(), contenders);
}

void add_moves(report& result, worker& ours, const settings& chosen) {
  std::string text = fmt::format(
      "One move of a thread, one way, by its local data (the paper's Tables 1 and 2 and Figure 10; "
      "medians)\n{:>8} {:>8} {:>7}  {:>8} {:>9} {:>8} {:>8}  {:>23} {:>23}\n"
      "{:>8} {:>8} {:>7}  {:>8} {:>9} {:>8} {:>8}  {:>23} {:>23}\n",
      "locals", "ships", "copied", "stack is", "by switch", "naive,", "message",
      "nCUBE2 (1993), us", "iPSC/860 (1993), us", "B", "B", "B", "buffer", "(II) ns", "buffer",
      "ns", "naive / stack is buffer", "naive / stack is buffer");
  nlohmann::json rows = nlohmann::json::array();
  for (const row_of_paper& paper : table_2) {
    const std::vector<double> ships =
        ours.ask("ships", {.iterations = 100, .repeats = 1, .bytes = paper.bytes});
    const samples all = measure_frame(ours, chosen, paper.bytes, ships.at(0));
    const auto of = [&](const char* name) {
      const auto found = all.find(name);
      return found == all.end() ? 0 : median(found->second);
    };
    text += fmt::format(
        "{:>8} {:>8.0f} {:>7.0f}  {:>8.0f} {:>9.0f} {:>8.0f} {:>8}  {:>15} {:>7} {:>15} {:>7}\n",
        paper.bytes, ships.at(0), ships.at(1), of("hop"), of("switch"), of("naive"),
        of("message") > 0 ? fmt::format("{:.0f}", of("message")) : "-", or_dash(paper.naive_ncube),
        or_dash(paper.stack_ncube), or_dash(paper.naive_ipsc), or_dash(paper.stack_ipsc));
    rows.push_back({{"locals_bytes", paper.bytes},
                    {"shipped_bytes", ships.at(0)},
                    {"copied_bytes", ships.at(1)},
                    {"hop_ns", rounded(of("hop"))},
                    {"hop_switch_ns", rounded(of("switch"))},
                    {"naive_ns", rounded(of("naive"))},
                    {"message_ns", rounded(of("message"))}});
    const auto add = [&](const char* key, double reach) {
      result.add_ratio("threads", key,
                       fmt::format("move of a thread, {} B of locals, over a message", paper.bytes),
                       reach, compare(all, "hop", "message"));
    };
    if (paper.bytes == 64) {
      add("hop_over_message_64B", 1.25);
      result.add_ratio_detail("threads", "approach_2_over_1", compare(all, "switch", "hop"));
    }
    if (paper.bytes == 1024) add("hop_over_message_1KiB", 1.2);
    if (paper.bytes == 16384) {
      add("hop_over_message_16KiB", 1.1);
      result.add_ratio_detail("threads", "naive_over_stack_buffer", compare(all, "naive", "hop"));
    }
  }
  text += "Table 1 of the paper, a null thread: 253 us by approach I, 263 us by approach II.";
  result.add_text(text);
  result.add_detail("threads", "by_locals", rows);
}

void add_parts(report& result, const installation& here, worker& ours, const std::string& cpus,
               const settings& chosen) {
  constexpr std::uint64_t locals = 64;  // of the paper's Table 3
  worker raw("peer_raw", {here.program("peer_raw"), "--cpus", cpus}, 1);
  const std::vector<double> ships =
      ours.ask("ships", {.iterations = 100, .repeats = 1, .bytes = locals});
  add_thread_breakdown(result, ours, raw, locals, ships.at(0), chosen);
}

void add_spawns(report& result, const installation& here, worker& ours, const std::string& cpus,
                const settings& chosen) {
  const batch_plan plan{.iterations = chosen.work.quick ? 500u : 5000u, .repeats = 5, .bytes = 0};
  batch_plan of_system = plan;
  of_system.iterations /= 10;
  worker system("peer_pthread", {here.program("peer_pthread"), "--cpus", cpus}, 1);
  std::unique_ptr<worker> boost;
  if (here.has("peer_boost_fiber")) {
    boost = std::make_unique<worker>(
        "peer_boost_fiber", arguments{here.program("peer_boost_fiber"), "--cpus", cpus}, 1);
  }
  std::vector<contender> contenders{
      {"ours", [&] { return ours.median_of("spawn_join", plan); }},
      {"pthread", [&] { return system.median_of("spawn_join", of_system); }}};
  for (const char* way : {"post", "dispatch"}) {
    if (boost) contenders.push_back({way, [&, way] { return boost->median_of(way, plan); }});
  }
  const samples all = interleave(chosen.work.rounds(), contenders);
  constexpr const char* over_boost = "start and join a thread, over boost::fiber";
  if (boost) {
    const std::string way = quickest(all, {"post", "dispatch"});
    result.add_ratio("threads", "spawn_join_over_boost_fiber", over_boost, 0.4,
                     compare(all, "ours", way));
    result.add_detail("threads", "spawn_join_over_boost_fiber_way", way);
  } else {
    result.add_missing("threads", "spawn_join_over_boost_fiber", over_boost, 0.4,
                       "boost::fiber was not found when this was built (./dev bench installs it)");
  }
  result.add_ratio("threads", "spawn_join_over_pthread", "the same over a thread of the system",
                   0.03, compare(all, "ours", "pthread"));
}

/// Bytes of page tables for each of `count` threads that wait, each with a stack of its own.
double page_tables_of(const installation& here, std::uint64_t count, const environment& extra) {
  worker ours("bench_threads", here.job(2, "bench_threads"), 1, extra);
  return ours.ask("stacks", {.iterations = 1, .repeats = 1, .bytes = count}).at(0);
}

/// What guards that are wider than a page cost.
void add_page_tables(report& result, const installation& here, std::uint64_t many) {
  const auto add = [&](const std::string& key, const std::string& what, std::uint64_t count) {
    const double wide = page_tables_of(here, count, {});
    // Such a region is too small for wide guards.
    const double narrow = page_tables_of(here, count, {{"SOJOURN_REGION_GIB", "8"}});
    result.add_value({"threads", key, what + "; right: with guards of a page", to_thousandths(wide),
                      std::nullopt, fmt::format("{:.1f} B", wide), fmt::format("{:.1f} B", narrow),
                      std::nullopt, 0});
    result.add_detail("threads", key + "_narrow", rounded(narrow));
  };
  // As many as stay in place. The frames of others that wait are copied out of their stacks.
  constexpr std::uint64_t in_place = 1000;
  add("page_table_bytes_per_stack", "bytes of page tables a stack in use", in_place);
  add("page_table_bytes_per_thread",
      fmt::format("bytes of page tables a thread, of {} that wait", many), many);
}

}  // namespace

void bench_threads(report& result, const installation& here, const settings& chosen) {
  tell_progress("threads: moves");
  worker ours("bench_threads", here.job(2, "bench_threads"), 1);
  const std::string cpus = comma_list(ours.ask("cpus", {}));
  add_moves(result, ours, chosen);
  tell_progress("threads: where the time of a move goes");
  add_parts(result, here, ours, cpus, chosen);
  tell_progress("threads: starting and joining");
  add_spawns(result, here, ours, cpus, chosen);
  tell_progress("threads: many that wait");
  const std::uint64_t many = chosen.work.quick ? 100'000 : 1'000'000;
  const std::vector<double> each =
      ours.ask("suspended", {.iterations = 1, .repeats = 1, .bytes = many});
  result.add_value({"threads", "bytes_per_suspended",
                    fmt::format("bytes of memory a thread, of {} that wait", many),
                    std::round(each.at(0)), 1000, fmt::format("{:.0f} B", each.at(0)), "",
                    std::nullopt, 0});
  result.add_detail("threads", "suspended_start_ns", rounded(each.at(1)));
  result.add_detail("threads", "suspended_wake_ns", rounded(each.at(2)));
  result.add_detail("threads", "suspended_page_table_bytes", rounded(each.at(3)));
  tell_progress("threads: page tables");
  add_page_tables(result, here, many);
}

}  // namespace bench
