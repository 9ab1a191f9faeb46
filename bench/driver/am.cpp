// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <string>

#include "driver/benchmarks.hpp"
#include "driver/messaging_peers.hpp"

namespace bench {
namespace {

constexpr std::uint64_t word_bytes = 8;
constexpr std::array<std::uint64_t, 5> more_sizes{64, 256, 1024, 4096, 16384};

batch_plan plan_of(const settings& chosen, std::uint64_t bytes) {
  const std::uint64_t full = bytes > 4096 ? 300 : 2000;
  return {.iterations = chosen.work.quick ? full / 10 : full, .repeats = 5, .bytes = bytes};
}

contender ours_as(const char* name, worker& ours, const char* operation, const batch_plan& plan) {
  return {name, [&ours, operation, plan] { return ours.median_of(operation, plan); }};
}

struct line {
  const char* layer;
  const char* name;      // of the contender
  const char* of_paper;  // the layer it stands for there
  int paper_us;
};
constexpr std::array<line, 10> table_9{{
    {"Sojourn, active messages, 1 word", "am", "AM 1-word req/rep", 51},
    {"Sojourn, null call", "simple", "", 0},
    {"Sojourn, null call, threaded", "threaded", "MRPC null-RPC", 87},
    {"OpenMPI, send and receive, 1 word", "mpi", "IBM MPL; IBM MPI-F", 88},
    {"MPICH, send and receive, 1 word", "mpich", "MPICH/AM", 88},
    {"UCX, active messages, 1 word", "ucx", "", 0},
    {"gRPC, unix socket, sync", "grpc_sync", "", 0},
    {"gRPC, unix socket, async", "grpc_async", "", 0},
    {"gRPC, unix socket, polling", "grpc_poll", "Nexus 3.0 RPC", 240},
    {"Cap'n Proto, unix socket", "capnp", "", 0},
}};

double to_tenths(double ns) { return std::round(ns * 10) / 10; }

void add_table_9(report& result, const samples& all) {
  std::string text = fmt::format(
      "Round trips of messaging layers, as the paper's Table 9 has them\n{:<36} {:>10} {:>16}   "
      "{:<26} {:>6}\n",
      "", "ns, median", "quartiles", "the paper's (IBM SP, 1997)", "us");
  nlohmann::json json = nlohmann::json::array();
  for (const line& l : table_9) {
    const auto found = all.find(l.name);
    const bool measured = found != all.end();
    const auto in_ns = [&](double v) { return measured ? fmt::format("{:.0f}", v) : "-"; };
    text += fmt::format("{:<36} {:>10} {:>16}   {:<26} {:>6}\n", l.layer,
                        in_ns(measured ? median(found->second) : 0),
                        measured ? fmt::format("{:.0f} to {:.0f}", quantile(found->second, 0.25),
                                               quantile(found->second, 0.75))
                                 : "-",
                        l.of_paper, l.paper_us == 0 ? "" : std::to_string(l.paper_us));
    nlohmann::json row = {{"layer", l.layer}, {"ns", nullptr}, {"paper_us", nullptr}};
    if (measured) {
      row["ns"] = to_tenths(median(found->second));
      row["ns_q1"] = to_tenths(quantile(found->second, 0.25));
      row["ns_q3"] = to_tenths(quantile(found->second, 0.75));
    }
    if (l.paper_us != 0) row["paper_us"] = l.paper_us;
    json.push_back(std::move(row));
  }
  text.pop_back();
  result.add_text(text);
  result.add_detail("am", "table_9", json);
}

/// Names what no line of the table can have.
void add_missing_peers(report& result, const messaging_peers& peers) {
  for (const std::string& why : {peers.why_no_mpi(), peers.why_no_mpich(), peers.why_no_ucx(),
                                 peers.why_no_grpc(), peers.why_no_capnp()}) {
    if (!why.empty()) result.add_note("A peer was not measured: " + why);
  }
}

samples measure_words(worker& ours, worker& raw, const messaging_peers& peers,
                      const settings& chosen) {
  const batch_plan plan = plan_of(chosen, word_bytes);
  std::vector<contender> contenders{
      ours_as("am", ours, "am", plan), ours_as("raw", raw, "line", plan),
      ours_as("simple", ours, "simple", plan), ours_as("threaded", ours, "threaded", plan)};
  peers.add_round_trips(contenders, word_bytes, chosen.work.quick);
  return interleave(chosen.work.rounds(), contenders);
}

void add_over(report& result, const samples& all, std::uint64_t bytes,
              const messaging_peers& peers) {
  const auto add = [&](const char* peer, const std::string& name, const std::string& why_not) {
    const std::string key = fmt::format("over_{}_{}B", name, bytes);
    const std::string what =
        fmt::format("active message of {} B, round trip, over {}", bytes, name);
    if (!why_not.empty()) return result.add_missing("am", key, what, std::nullopt, why_not);
    result.add_ratio("am", key, what, std::nullopt, compare(all, "am", peer));
  };
  add("mpi", "mpi", peers.why_no_mpi());
  add("ucx", "ucx_am", peers.why_no_ucx());
}

void add_sizes(report& result, worker& ours, const messaging_peers& peers, const settings& chosen,
               const samples& words) {
  std::string text =
      fmt::format("Round trips by size, ns (medians)\n{:>8} {:>10} {:>12} {:>10} {:>10}\n", "bytes",
                  "handlers", "with ticket", "MPI", "UCX AM");
  nlohmann::json json = nlohmann::json::array();
  const auto add_row = [&](std::uint64_t bytes, const samples& all) {
    nlohmann::json row = {{"bytes", bytes}};
    text += fmt::format("{:>8}", bytes);
    for (const auto& [name, width] :
         {std::pair{"am", 10}, {"ticket", 12}, {"mpi", 10}, {"ucx", 10}}) {
      const auto found = all.find(name);
      const bool measured = found != all.end();
      text += fmt::format(" {:>{}}", measured ? fmt::format("{:.0f}", median(found->second)) : "-",
                          width);
      row[std::string(name) + "_ns"] =
          measured ? nlohmann::json(std::round(median(found->second) * 10) / 10) : nlohmann::json();
    }
    text += '\n';
    json.push_back(std::move(row));
  };
  add_row(word_bytes, words);
  for (const std::uint64_t bytes : more_sizes) {
    const batch_plan plan = plan_of(chosen, bytes);
    std::vector<contender> contenders{ours_as("am", ours, "am", plan),
                                      ours_as("ticket", ours, "am_ticket", plan)};
    peers.add_messages(contenders, bytes, chosen.work.quick);
    const samples all = interleave(chosen.work.rounds(), contenders);
    add_row(bytes, all);
    if (bytes <= 1024 && bytes != 256) add_over(result, all, bytes, peers);
  }
  text.pop_back();
  result.add_text(text);
  result.add_detail("am", "by_size", json);
}

}  // namespace

void bench_am(report& result, const installation& here, const settings& chosen) {
  tell_progress("am: round trips of one word");
  worker ours("bench_rpc", here.job(2, "bench_rpc"), 1);
  const std::string cpus = comma_list(ours.ask("cpus", {}));
  worker raw("peer_raw", {here.program("peer_raw"), "--cpus", cpus}, 1);
  const messaging_peers peers(here, cpus);
  const samples words = measure_words(ours, raw, peers, chosen);
  result.add_ratio("am", "over_raw", "active message of a word over the raw line", std::nullopt,
                   compare(words, "am", "raw"));
  tell_progress("am: round trips by size");
  add_sizes(result, ours, peers, chosen, words);
  add_table_9(result, words);
  add_missing_peers(result, peers);
}

}  // namespace bench
