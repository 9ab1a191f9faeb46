// SPDX-License-Identifier: Apache-2.0
//
// Table 2 of Plevyak, Karamcheti, Zhang and Chien (1995), and the wrappers of their Figure 8, in
// instructions. Their schemas, said with ours: a function that never waits and is called plainly
// (NB), one that may wait and is forked (MB), one that takes a continuation (CP); and what has a
// context of its own from the start (parallel).
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <map>
#include <string>
#include <string_view>

#include "driver/benchmarks.hpp"
#include "driver/counted.hpp"

namespace bench {
namespace {

constexpr std::uint64_t table_iterations = 2'000;

/// To tenths, and never to minus zero.
double rounded(double value) { return std::round(value * 10) / 10 + 0.0; }

/// An entry of the paper's two tables. A call: the instructions of a loop of bench_hybrid less
/// those of `base`. Falling back: those of a fork of `loop` that waits less those of one that does
/// not have to, and what is left of that without the frame of the caller, with `base`.
struct entry {
  const char* overhead;
  const char* caller;
  const char* callee;
  const char* called;
  int paper;
  const char* loop;
  const char* base = nullptr;
};
constexpr std::array entries{
    entry{"call", "parallel", "parallel", "heap", 130, "parallel.fork", "parallel.plain"},
    entry{"call", "parallel", "NB", "plainly", 0, "parallel.plain", "plain"},
    entry{"call", "parallel", "MB", "forked", 6, "parallel.fork", "parallel.plain"},
    entry{"call", "parallel", "CP", "call_cc", 8, "parallel.cc", "parallel.plain"},
    entry{"call", "NB", "NB", "plainly", 0, "nb.plain", "plain"},
    entry{"call", "MB", "NB", "plainly", 0, "mb.plain", "plain"},
    entry{"call", "MB", "MB", "forked", 6, "mb.fork", "mb.plain"},
    entry{"call", "MB", "CP", "call_cc", 8, "mb.cc", "mb.plain"},
    entry{"call", "CP", "NB", "plainly", 0, "cp.plain", "plain"},
    entry{"call", "CP", "MB", "forked", 6, "cp.fork", "cp.plain"},
    entry{"call", "CP", "CP", "call_cc", 8, "cp.cc", "cp.plain"},
    entry{"fallback", "parallel", "MB", "forked", 8, "mb"},
    entry{"fallback", "parallel", "CP", "call_cc", 8, "cp"},
    entry{"fallback", "MB", "MB", "plainly", 79, "mb_mb", "mb"},
    entry{"fallback", "MB", "MB", "forked", 79, "mb_mb_forked", "mb"},
    entry{"fallback", "MB", "CP", "call_cc", 39, "mb_cp", "cp"},
    entry{"fallback", "CP", "MB", "plainly", 140, "cp_mb", "mb"},
    entry{"fallback", "CP", "CP", "call_cc", 100, "cp_cp", "cp"},
};

double count_fallback(const instruction_count& count, const char* forked) {
  return count.a_marked_iteration(fmt::format("waits.{}", forked)) -
         count.a_marked_iteration(fmt::format("finds.{}", forked));
}

/// A fork of a child with a context of its own, until its caller goes on with a future: the part
/// that fallbacks are counted for. The child runs, and is joined, afterwards.
double count_begun(const instruction_count& count) {
  return count.a_marked_iteration("finds.mb", true) - count.an_iteration("count.plain");
}

double count_entry(const instruction_count& count, const entry& e) {
  if (std::string_view(e.overhead) == "fallback") {
    const double more = count_fallback(count, e.loop);
    return e.base == nullptr ? more : more - count_fallback(count, e.base);
  }
  const bool heap = std::string_view(e.called) == "heap";
  const auto of = [&](const char* loop) {
    return count.an_iteration(fmt::format("count.{}", loop), heap);
  };
  return of(e.loop) - of(e.base);
}

void add_table_2(report& result, const instruction_count& count) {
  nlohmann::json json = nlohmann::json::array();
  std::map<std::string, std::string> cells;
  for (const entry& e : entries) {
    const double ours = rounded(count_entry(count, e));
    cells[fmt::format("{} {} {} {}", e.overhead, e.caller, e.callee, e.called)] =
        fmt::format("{:.0f} ({})", ours, e.paper);
    json.push_back({{"overhead", e.overhead},
                    {"caller", e.caller},
                    {"callee", e.callee},
                    {"called", e.called},
                    {"instructions", ours},
                    {"paper", e.paper}});
  }
  std::string text = fmt::format(
      "Table 2: instructions beyond a plain call, and the paper's of a SPARC\n"
      "{:10}{:>33}{:>32}\n{:10}{:>12}{:>9}{:>9}{:>9}   {:>11}{:>11}{:>10}\n",
      "", "the call, which does not block", "falling back", "caller", "heap", "NB", "MB", "CP",
      "MB plainly", "MB forked", "CP");
  for (const char* caller : {"parallel", "NB", "MB", "CP"}) {
    const auto cell = [&](const char* overhead, const char* callee) {
      const auto found = cells.find(fmt::format("{} {} {}", overhead, caller, callee));
      return found == cells.end() ? std::string("-") : found->second;
    };
    text += fmt::format("{:10}{:>12}{:>9}{:>9}{:>9}   {:>11}{:>11}{:>10}\n", caller,
                        cell("call", "parallel heap"), cell("call", "NB plainly"),
                        cell("call", "MB forked"), cell("call", "CP call_cc"),
                        cell("fallback", "MB plainly"), cell("fallback", "MB forked"),
                        cell("fallback", "CP call_cc"));
  }
  const double begun = rounded(count_begun(count));
  const double fallback = rounded(count_fallback(count, "mb"));
  const double joined = rounded(count.an_iteration("count.parallel.fork", true) -
                                count.an_iteration("count.parallel.plain", true));
  const double fallback_joined =
      rounded(count.an_iteration("count.blocked") - count.an_iteration("count.ready"));
  text += fmt::format(
      "A child with a context of its own, and one that falls back, until the caller goes on: "
      "{:.0f} and {:.0f};\nuntil the child is joined: {:.0f} and {:.0f}.\n",
      begun, fallback, joined, fallback_joined);
  text +=
      "NB never waits and is called plainly; MB may wait and is forked (called plainly it costs "
      "what NB does);\nCP takes a continuation (call_cc). Parallel: a callee that has a context of "
      "its own from the start\n(SOJOURN_EXECUTION=heap), a caller that has one by now. Falling "
      "back: until the caller goes on with a future;\nof MB and CP what one more frame of such a "
      "caller adds to the parallel one's, and one that forks\nis set aside itself.";
  result.add_text(text);
  result.add_detail("hybrid", "table_2", json);
  result.add_detail("hybrid", "heap_child_instructions", begun);
  result.add_detail("hybrid", "heap_child_and_join_instructions", joined);
}

void add_figure_8(report& result, const instruction_count& count) {
  const auto of = [&](const char* kind) {
    return count.a_marked_iteration(fmt::format("request.{}", kind));
  };
  struct row {
    const char* schema;
    const char* what;
    double instructions;
    int requests;
  };
  const double may_block = of("may_block");
  const std::array rows{
      row{"NB", "replies", of("nonblocking"), 1},
      row{"MB", "does not block, replies", may_block, 1},
      row{"MB", "blocks once, replies", may_block + of("waited") - of("found"), 1},
      row{"CP", "replies at once", of("cc"), 1},
      row{"CP", "forwards, the next replies", of("forwarded"), 2},
      row{"NB", "one-way", of("one_way"), 1},
      row{"NB", "one-way, in a bundle", of("bundled_nonblocking"), 1},
      row{"MB", "one-way, in a bundle", of("bundled_may_block"), 1}};
  std::string text = fmt::format(
      "Figure 8: instructions from a request in the message buffer to its reply\n{:<10} {:<28} "
      "{:>9} {:>13}\n",
      "schema", "what is called", "requests", "instructions");
  nlohmann::json json = nlohmann::json::array();
  for (const row& r : rows) {
    text += fmt::format("{:<10} {:<28} {:>9} {:>13.1f}\n", r.schema, r.what, r.requests,
                        r.instructions);
    json.push_back({{"schema", r.schema},
                    {"what", r.what},
                    {"requests", r.requests},
                    {"instructions", rounded(r.instructions)}});
  }
  text +=
      "Requests of a rank to itself, which lie in a queue of their own and are handled by the code "
      "that handles\nother ranks'; without sending them and taking the answers, with their share "
      "of "
      "the dispatcher's rounds.\nThe reply to another rank is a message besides. What blocks is "
      "set "
      "aside, and woken by a later request,\nwhich is not counted. The paper gives no counts.";
  result.add_text(text);
  result.add_detail("hybrid", "figure_8", json);
}

}  // namespace

void add_schema_tables(report& result, const installation& here) {
  tell_progress("hybrid: counting Table 2 under callgrind");
  const instruction_count count(here, "bench_hybrid", table_iterations);
  add_table_2(result, count);
  tell_progress("hybrid: counting Figure 8 under callgrind");
  add_figure_8(result, count);
}

}  // namespace bench
