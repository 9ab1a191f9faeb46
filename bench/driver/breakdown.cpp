// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "driver/benchmarks.hpp"

namespace bench {
namespace {

/// Medians in nanoseconds of the micro-measurements that the breakdown is derived from.
struct parts {
  double visit = 0;        // a migration and the access it was made for
  double visit_local = 0;  // the access alone
  double line = 0;         // one cache line, one way, without a runtime
  double ring = 0;         // the shipped bytes through the raw ring, one way
  double message = 0;      // the shipped bytes as an active message, one way
  double switching = 0;    // leave a fiber and come back through the dispatcher
  double ticks_a_ns = 1;
};

/// One line of the table: what the paper found, what we found, and from what.
struct row {
  std::string category;
  const char* paper_cycles;
  const char* paper_percent;
  std::optional<double> nanoseconds;
  std::string source;
};

parts measure_parts(worker& ours, worker& raw, double shipped_bytes, const settings& chosen) {
  const batch_plan plan{.iterations = chosen.work.quick ? 200u : 1000u,
                        .repeats = 5,
                        .bytes = static_cast<std::uint64_t>(shipped_bytes)};
  const samples all = interleave(
      chosen.work.rounds(), {{"visit", [&] { return ours.median_of("visit", plan); }},
                             {"line", [&] { return raw.median_of("line", plan) / 2; }},
                             {"message", [&] { return ours.median_of("message", plan); }},
                             {"ring", [&] { return raw.median_of("ring", plan); }},
                             {"visit_local", [&] { return ours.median_of("visit_local", plan); }},
                             {"switch", [&] { return ours.median_of("switch", plan); }}});
  const auto of = [&](const char* name) { return median(all.find(name)->second); };
  return {of("visit"),
          of("visit_local"),
          of("line"),
          of("ring"),
          of("message"),
          of("switch"),
          ours.ask("clock", plan).front()};
}

std::vector<row> rows_of(const parts& p, double shipped_bytes) {
  const double copying = std::max(0.0, p.ring - p.line);
  const double handling = std::max(0.0, p.message - p.ring);
  const double overhead = p.visit - p.visit_local - p.line;
  const double rest = overhead - copying - handling - p.switching;
  return {
      {"Total time", "651", "100", p.visit, "an access that migrates, counting network's balancer"},
      {"User code", "150", "23", p.visit_local, "the same access where it needs no migration"},
      {"Network transit", "17", "3", p.line, "one cache line, one way, no runtime"},
      {"Message overhead total", "484", "74", overhead, "what is left"},
      {fmt::format("  Copy packet ({:.0f} bytes; paper 32)", shipped_bytes), "76", "10", copying,
       "raw ring with these bytes, less transit"},
      {"  Allocate packet, message send", "74", "11", handling,
       "active message of these bytes, less the raw ring"},
      {"  Thread creation, scheduler", "102", "16", p.switching,
       "leave a fiber and come back through the dispatcher"},
      {"  Procedure linkage, cut and put back", "110", "17", rest, "what is left of the overhead"},
      {"  Marshaling, unmarshaling", "73", "11", std::nullopt, "none: the stack is the message"},
      {"  Object ID translation", "36", "6", std::nullopt,
       "none: a compare and a shift, in user code"},
      {"  Forwarding check", "23", "4", std::nullopt, "none: objects stay where they are"},
  };
}

}  // namespace

void add_breakdown(report& result, worker& ours, worker& raw, double shipped_bytes,
                   const settings& chosen) {
  const parts measured = measure_parts(ours, raw, shipped_bytes, chosen);
  std::string text = fmt::format(
      "One migration by the categories of the paper's Table 5 (Hsieh, Wang and Weihl, PPoPP 1993)\n"
      "{:<38} {:>7} {:>4}  {:>7} {:>6} {:>4}\n{:<38} {:>7} {:>4}  {:>7} {:>6} {:>4}  {}\n",
      "", "Prelude", "", "Sojourn", "", "", "category", "cycles", "%", "ticks", "ns", "%",
      "how ours was obtained");
  nlohmann::json json = nlohmann::json::array();
  for (const row& line : rows_of(measured, shipped_bytes)) {
    const double nanoseconds = line.nanoseconds.value_or(0);
    const double ticks = nanoseconds * measured.ticks_a_ns;
    const double percent = nanoseconds / measured.visit * 100;
    text += fmt::format("{:<38} {:>7} {:>4}  {:>7.0f} {:>6.0f} {:>4.0f}  {}\n", line.category,
                        line.paper_cycles, line.paper_percent, ticks, nanoseconds, percent,
                        line.source);
    json.push_back({{"category", line.category.substr(line.category.find_first_not_of(' '))},
                    {"paper_cycles", std::stoi(line.paper_cycles)},
                    {"ticks", std::round(ticks)},
                    {"ns", std::round(nanoseconds * 10) / 10},
                    {"percent", std::round(percent * 10) / 10}});
  }
  text += fmt::format(
      "Ticks are the processor's time-stamp counter ({:.2f} a ns). The paper's parts do not add "
      "up\n"
      "to its totals exactly; rows that name two of its categories add them.",
      measured.ticks_a_ns);
  result.add_text(text);
  result.add_detail("migrate", "breakdown", json);
}

}  // namespace bench
