// SPDX-License-Identifier: Apache-2.0
#include "driver/rpc_table.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <optional>
#include <string>

#include "driver/benchmarks.hpp"

namespace bench {
namespace {

/// A row of the paper's, in microseconds on an IBM SP.
struct row_of_paper {
  int total, am, threads, yields, creates, syncs, runtime;
  int split_c;  ///< Its total in Split-C; 0 where there is none.
  int nexus;    ///< The same in Nexus, on top of IBM's MPL.
};
constexpr std::array<row_of_paper, 8> paper{{{67, 55, 4, 0, 0, 10, 8, 0, 158},
                                             {77, 55, 12, 1, 0, 15, 10, 0, 0},
                                             {94, 70, 12, 1, 0, 15, 12, 0, 0},
                                             {95, 70, 12, 1, 0, 15, 13, 0, 0},
                                             {87, 55, 21, 2, 1, 10, 11, 0, 240},
                                             {88, 55, 21, 2, 1, 14, 12, 56, 0},
                                             {92, 55, 21, 2, 1, 10, 16, 57, 0},
                                             {154, 70, 21, 2, 1, 10, 63, 74, 0}}};
constexpr row_of_paper bulk_read_of_paper{177, 70, 21, 2, 1, 10, 86, 75, 0};

/// One of ours. `am`: the operation that moves the same bytes without a call, or "" where ours
/// sends no message when the heap is shared.
struct row {
  const char* label;
  const row_of_paper* paper;
  const char* operation;
  const char* am;
  std::uint64_t am_bytes;
  int syncs;      ///< Locks, unlocks, releases and acquires that the row's own code makes.
  bool unshared;  ///< Shown for SOJOURN_SHARE=off: it goes another way then.
};
constexpr std::array<row, 24> rows{{
    {"0-Word Simple", &paper[0], "simple", "am", 8, 0, false},
    {"  a function", nullptr, "function", "am", 8, 0, false},
    {"  by name", nullptr, "by_name", "am", 8, 0, false},
    {"0-Word", &paper[1], "null", "am", 8, 2, false},
    {"1-Word", &paper[2], "one_word", "am", 8, 2, false},
    {"2-Word", &paper[3], "two_words", "am", 8, 2, false},
    {"0-Word Threaded", &paper[4], "threaded", "am", 8, 2, false},
    {"  no switch at the caller", nullptr, "simple_threaded", "am", 8, 0, false},
    {"0-Word Atomic", &paper[5], "atomic", "am", 8, 4, false},
    {"  that does not block", nullptr, "simple_atomic", "am", 8, 2, false},
    {"GP 2-Word Read: load", &paper[6], "load", "am", 8, 0, true},
    {"GP 2-Word Write: store", &paper[6], "store", "am", 8, 0, true},
    {"  read by a method", nullptr, "read", "am", 8, 0, false},
    {"  written by a method", nullptr, "write", "am", 8, 0, false},
    {"BulkWrite 40-Word: put", &paper[7], "put", "am_there", 160, 0, true},
    {"  array to a method", nullptr, "write_array", "am_there", 160, 0, false},
    {"  vector to a method", nullptr, "write_vector", "am_there", 160, 0, false},
    {"  view to a method", nullptr, "write_view", "am_there", 160, 0, false},
    {"BulkRead 40-Word: get", &bulk_read_of_paper, "get", "am_back", 160, 0, true},
    {"  array of a method", nullptr, "read_array", "am_back", 160, 0, false},
    {"  vector of a method", nullptr, "read_vector", "am_back", 160, 0, false},
    {"64 bytes, as they are", nullptr, "block", "am_there", 64, 0, false},
    {"  in a vector", nullptr, "bytes", "am_there", 64, 0, false},
    {"  as a view", nullptr, "view", "am_there", 64, 0, false},
}};

/// What a call counts on both ranks, as bench_rpc answers.
struct counted {
  double switches, fibers_made, requests, request_bytes, replies, reply_bytes, copied, bulk;
};
counted count(worker& ours, const char* operation) {
  const std::vector<double> each =
      ours.ask(std::string("count.") + operation, {.iterations = 200, .repeats = 1, .bytes = 8});
  return {each.at(0), each.at(1), each.at(2), each.at(3),
          each.at(4), each.at(5), each.at(6), each.at(7)};
}

std::string am_name(const row& r) { return fmt::format("{} {}", r.am, r.am_bytes); }
std::string unshared_name(const row& r) { return std::string(r.operation) + ", not shared"; }

samples measure(worker& ours, worker& unshared, const settings& chosen) {
  const auto plan = [&](std::uint64_t bytes) {
    return batch_plan{.iterations = chosen.work.quick ? 200u : 1000u, .repeats = 5, .bytes = bytes};
  };
  std::vector<contender> contenders;
  const auto add = [&](const std::string& name, worker& who, const char* operation,
                       std::uint64_t bytes) {
    for (const contender& c : contenders)
      if (c.name == name) return;
    contenders.push_back(
        {name, [&who, operation, p = plan(bytes)] { return who.median_of(operation, p); }});
  };
  for (const row& r : rows) {
    add(r.operation, ours, r.operation, 8);
    add(am_name(r), ours, r.am, r.am_bytes);
    if (r.unshared) add(unshared_name(r), unshared, r.operation, 8);
  }
  for (const char* unit : {"switch", "create", "sync"}) add(unit, ours, unit, 1);
  return interleave(chosen.work.rounds(), contenders);
}

struct unit_costs {
  double yield, create, sync;
};

struct parts {
  double total, am, threads, runtime;
};
/// As the paper does: threads by counts and unit costs, the runtime is what is left.
parts take_apart(double total, double am, const counted& calls, int syncs, const unit_costs& unit) {
  const double threads =
      calls.switches * unit.yield + calls.fibers_made * unit.create + syncs * unit.sync;
  return {total, am, threads, total - am - threads};
}

std::string paper_columns(const row_of_paper* p) {
  if (p == nullptr)
    return fmt::format("{:>5} {:>4} {:>4} {:>8} {:>4} {:>7} {:>5}", "", "", "", "", "", "", "");
  return fmt::format("{:>5} {:>4} {:>4} {:>8} {:>4} {:>7} {:>5}", p->total, p->am, p->threads,
                     fmt::format("{}/{}/{}", p->yields, p->creates, p->syncs), p->runtime,
                     p->split_c == 0 ? "-" : std::to_string(p->split_c),
                     p->nexus == 0 ? "-" : std::to_string(p->nexus));
}

nlohmann::json to_json(const row& r, const char* share, const parts& ours, const counted& calls) {
  const auto rounded = [](double v) { return std::round(v * 100) / 100; };
  nlohmann::json found = {{"operation", r.operation},
                          {"share", share},
                          {"total_ns", rounded(ours.total)},
                          {"am_ns", rounded(ours.am)},
                          {"threads_ns", rounded(ours.threads)},
                          {"yields", rounded(calls.switches)},
                          {"creates", rounded(calls.fibers_made)},
                          {"syncs", r.syncs},
                          {"runtime_ns", rounded(ours.runtime)},
                          {"request_bytes", rounded(calls.request_bytes)},
                          {"reply_bytes", rounded(calls.reply_bytes)},
                          {"marshal_copies_bytes", rounded(calls.copied)}};
  if (r.paper != nullptr) {
    found["paper_us"] = {{"total", r.paper->total},
                         {"am", r.paper->am},
                         {"threads", r.paper->threads},
                         {"runtime", r.paper->runtime}};
  }
  return found;
}

}  // namespace

void add_call_table(report& result, worker& ours, worker& unshared, const settings& chosen) {
  const samples all = measure(ours, unshared, chosen);
  const auto of = [&](const std::string& name) { return median(all.at(name)); };
  const unit_costs unit{of("switch"), of("create"), of("sync")};
  std::string text = fmt::format(
      "Calls by the columns of the paper's Table 8 (Chang, Czajkowski and von Eicken, 1999)\n"
      "{:<26} {:^43}  {:^45}\n{:<26} {:>5} {:>4} {:>4} {:>8} {:>4} {:>7} {:>5}  {:>6} {:>5} {:>7} "
      "{:>11} "
      "{:>7} {:>5}\n",
      "", "CC++/MRPC on an IBM SP, us", "Sojourn, ns", "", "total", "AM", "thr.", "y/c/s", "run.",
      "Split-C", "Nexus", "total", "AM", "threads", "y/c/s", "runtime", "bytes");
  nlohmann::json json = nlohmann::json::array();
  const auto add_line = [&](const row& r, const std::string& label, const row_of_paper* p,
                            const char* share, double total, double am, const counted& calls) {
    const parts made = take_apart(total, am, calls, r.syncs, unit);
    text += fmt::format("{:<26} {}  {:>6.0f} {:>5.0f} {:>7.0f} {:>11} {:>7.0f} {:>5.0f}\n", label,
                        paper_columns(p), made.total, made.am, made.threads,
                        fmt::format("{:.1f}/{:.1f}/{}", calls.switches, calls.fibers_made, r.syncs),
                        made.runtime, calls.request_bytes + calls.reply_bytes);
    json.push_back(to_json(r, share, made, calls));
  };
  for (const row& r : rows) {
    const counted calls = count(ours, r.operation);
    // Where the heap is shared, loads and stores of the processor reach it.
    const double am = r.unshared ? 0 : of(am_name(r));
    add_line(r, r.label, r.paper, "on", of(r.operation), am, calls);
    if (!r.unshared) continue;
    add_line(r, "  heap not shared", nullptr, "off", of(unshared_name(r)), of(am_name(r)),
             count(unshared, r.operation));
  }
  text += fmt::format(
      "y/c/s: switches (the paper: yields), fibers made, and locks and the like, a call, on both "
      "ranks; here\n{:.1f}, {:.1f} and {:.1f} ns each. AM: the round trip of a request and a reply "
      "with the row's data. Runtime:\nthe rest; below zero where threads are switched while the "
      "message is on its way, or a wait in place is\nquicker than the dispatcher. Bytes: of all "
      "messages, with headers. In rows with a switch at the caller\nanother fiber is ready, which "
      "takes a turn: two of the switches.",
      unit.yield, unit.create, unit.sync);
  result.add_text(text);
  result.add_detail("rpc", "table_8", json);
  result.add_detail("rpc", "unit_ns",
                    {{"yield", unit.yield}, {"create", unit.create}, {"sync", unit.sync}});
}

}  // namespace bench
