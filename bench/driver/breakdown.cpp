// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "driver/benchmarks.hpp"

namespace bench {
namespace {

/// Medians in nanoseconds of the micro-measurements that a breakdown is derived from.
struct parts {
  samples whole;         // what is broken down, by the name of its measurement
  double line = 0;       // one cache line, one way, without a runtime
  double ring = 0;       // the shipped bytes through the raw ring, one way
  double message = 0;    // the shipped bytes as an active message, one way
  double switching = 0;  // leave a fiber and come back through the dispatcher
  double ticks_a_ns = 1;

  double of(const char* name) const { return median(whole.find(name)->second); }
  // Our message may be quicker than the raw ring: it uses the same lines again.
  double copying() const { return std::max(0.0, std::min(ring, message) - line); }
  double handling() const { return std::max(0.0, message - ring); }
};

/// One line of a table: what the paper found, what we found, and from what.
struct row {
  std::string category;
  const char* paper;  // in the paper's unit; "" where it has no such category
  const char* paper_percent;
  std::optional<double> nanoseconds;
  std::string source;
};

/// A breakdown as the paper has it, and where it goes in the report.
struct table {
  std::string title;
  std::string system;  // the paper's
  std::string unit;    // of its figures
  std::string unit_key;
  std::string group;
  std::string remark;
  std::vector<row> rows;  // the total first
};

/// `whole` are ours, measured in turns with the parts.
parts measure_parts(worker& ours, worker& raw, double shipped_bytes, const settings& chosen,
                    const std::vector<std::pair<std::string, batch_plan>>& whole) {
  const batch_plan plan{.iterations = chosen.work.quick ? 200u : 1000u,
                        .repeats = 5,
                        .bytes = static_cast<std::uint64_t>(shipped_bytes)};
  std::vector<contender> contenders{{"line", [&] { return raw.median_of("line", plan) / 2; }},
                                    {"message", [&] { return ours.median_of("message", plan); }},
                                    {"ring", [&] { return raw.median_of("ring", plan); }},
                                    {"switch", [&] { return ours.median_of("switch", plan); }}};
  for (const auto& [name, of_whole] : whole) {
    contenders.push_back({name, [&] { return ours.median_of(name, of_whole); }});
  }
  parts measured{.whole = interleave(chosen.work.rounds(), contenders)};
  measured.line = measured.of("line");
  measured.ring = measured.of("ring");
  measured.message = measured.of("message");
  measured.switching = measured.of("switch");
  measured.ticks_a_ns = ours.ask("clock", plan).front();
  return measured;
}

/// Table 5 of Hsieh, Wang and Weihl.
std::vector<row> rows_of_activation(const parts& p, double shipped_bytes) {
  const double visit = p.of("visit");
  const double visit_local = p.of("visit_local");
  const double overhead = visit - visit_local - p.line;
  const double rest = overhead - p.copying() - p.handling() - p.switching;
  return {
      {"Total time", "651", "100", visit, "an access that migrates, counting network's balancer"},
      {"User code", "150", "23", visit_local, "the same access where it needs no migration"},
      {"Network transit", "17", "3", p.line, "one cache line, one way, no runtime"},
      {"Message overhead total", "484", "74", overhead, "what is left"},
      {fmt::format("  Copy packet ({:.0f} bytes; paper 32)", shipped_bytes), "76", "10",
       p.copying(), "raw ring with these bytes, or the message if quicker, less transit"},
      {"  Allocate packet, message send", "74", "11", p.handling(),
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

/// Table 3 of Sang and Rego.
std::vector<row> rows_of_thread(const parts& p, double shipped_bytes) {
  const double hop = p.of("hop");
  return {
      {"Total time", "299", "100", hop, "one move, one way: half of there and back"},
      {"Message transmit", "241", "81", p.message,
       fmt::format("active message of the {:.0f} bytes that a move ships", shipped_bytes)},
      {"  Network transit", "", "", p.line, "one cache line, one way, no runtime"},
      {"  Copy in and out", "", "", p.copying(),
       "raw ring with these bytes, or the message if quicker, less transit"},
      {"  Allocate, send, dispatch", "", "", p.handling(),
       "active message of these bytes, less the raw ring"},
      {"Copy data", "16", "5", std::nullopt, "none: registers lie on the stack, which is sent"},
      {"Ready list in, switch, ready list out", "30", "10", p.switching,
       "leave a fiber and come back through the dispatcher"},
      {"Get a thread entry, others", "12", "4", hop - p.message - p.switching,
       "what is left: the checks before it leaves, its entry and its place"},
  };
}

void add_table(report& result, const table& laid_out, double ticks_a_ns) {
  std::string text = fmt::format(
      "{}\n{:<38} {:>7} {:>4}  {:>7} {:>6} {:>4}\n{:<38} {:>7} {:>4}  {:>7} {:>6} {:>4}  {}\n",
      laid_out.title, "", laid_out.system, "", "Sojourn", "", "", "category", laid_out.unit, "%",
      "ticks", "ns", "%", "how ours was obtained");
  nlohmann::json json = nlohmann::json::array();
  for (const row& line : laid_out.rows) {
    const double nanoseconds = line.nanoseconds.value_or(0);
    const double ticks = nanoseconds * ticks_a_ns;
    const double percent = nanoseconds / *laid_out.rows.front().nanoseconds * 100;
    text += fmt::format("{:<38} {:>7} {:>4}  {:>7.0f} {:>6.0f} {:>4.0f}  {}\n", line.category,
                        line.paper, line.paper_percent, ticks, nanoseconds, percent, line.source);
    nlohmann::json found = {
        {"category", line.category.substr(line.category.find_first_not_of(' '))},
        {"ticks", std::round(ticks)},
        {"ns", std::round(nanoseconds * 10) / 10},
        {"percent", std::round(percent * 10) / 10}};
    found[laid_out.unit_key] =
        *line.paper == '\0' ? nlohmann::json() : nlohmann::json(std::stoi(line.paper));
    json.push_back(std::move(found));
  }
  text += fmt::format("Ticks are the processor's time-stamp counter ({:.2f} a ns). {}", ticks_a_ns,
                      laid_out.remark);
  result.add_text(text);
  result.add_detail(laid_out.group, "breakdown", json);
}

}  // namespace

void add_breakdown(report& result, worker& ours, worker& raw, double shipped_bytes,
                   const settings& chosen, const std::string& group) {
  const batch_plan visits{.iterations = chosen.work.quick ? 200u : 1000u, .repeats = 5, .bytes = 0};
  const parts measured =
      measure_parts(ours, raw, shipped_bytes, chosen, {{"visit", visits}, {"visit_local", visits}});
  add_table(result,
            {.title = "One migration by the categories of the paper's Table 5 (Hsieh, Wang and "
                      "Weihl, PPoPP 1993)",
             .system = "Prelude",
             .unit = "cycles",
             .unit_key = "paper_cycles",
             .group = group,
             .remark = "The paper's parts do not add up\nto its totals exactly; rows that name two "
                       "of its categories add them.",
             .rows = rows_of_activation(measured, shipped_bytes)},
            measured.ticks_a_ns);
}

void add_thread_breakdown(report& result, worker& ours, worker& raw, std::uint64_t locals,
                          double shipped_bytes, const settings& chosen) {
  const batch_plan hops{
      .iterations = chosen.work.quick ? 200u : 1000u, .repeats = 5, .bytes = locals};
  const parts measured = measure_parts(ours, raw, shipped_bytes, chosen, {{"hop", hops}});
  add_table(result,
            {.title = fmt::format("One move of a thread with {} B of locals by the categories of "
                                  "the paper's Table 3 (Sang and Rego, 1993)",
                                  locals),
             .system = "nCUBE2",
             .unit = "us",
             .unit_key = "paper_us",
             .group = "threads",
             .remark = "Rows that name several of the\npaper's categories add them. It breaks down "
                       "the nCUBE2 alone; the iPSC/860 took 156 us in all.",
             .rows = rows_of_thread(measured, shipped_bytes)},
            measured.ticks_a_ns);
}

}  // namespace bench
