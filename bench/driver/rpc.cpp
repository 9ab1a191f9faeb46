// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "driver/benchmarks.hpp"
#include "driver/messaging_peers.hpp"
#include "driver/rpc_table.hpp"

namespace bench {
namespace {

constexpr std::uint64_t word_bytes = 8;
constexpr std::uint64_t payload_bytes = 64;
constexpr std::uint64_t bulk_bytes = std::uint64_t{1} << 20;
/// With headers on our side. From 4 KiB on OpenMPI meets the receiver first.
constexpr std::array<std::uint64_t, 9> bundle_sizes{256,  512,   1024,  2048, 4000,
                                                    8128, 16384, 32768, 65536};

double rounded(double value) { return to_thousandths(value); }

batch_plan round_trips(const settings& chosen, std::uint64_t bytes) {
  return {.iterations = chosen.work.quick ? 200u : 2000u, .repeats = 5, .bytes = bytes};
}

void add_over_am(report& result, worker& ours, const settings& chosen) {
  const batch_plan plan = round_trips(chosen, word_bytes);
  const auto time = [&](const char* operation) {
    return contender{operation,
                     [&ours, operation, plan] { return ours.median_of(operation, plan); }};
  };
  const samples all = interleave(
      chosen.work.rounds(),
      {time("simple"), time("am"), time("threaded"), time("am_ticket"), time("simple_threaded")});
  // From handler to handler, or with a ticket that the caller waits for: the quicker one.
  const std::string best = quickest(all, {"am", "am_ticket"});
  result.add_ratio("rpc", "simple_over_am", "null call over an active-message round trip", 1.15,
                   compare(all, "simple", best));
  result.add_ratio("rpc", "threaded_over_am", "threaded null call over the same", 1.35,
                   compare(all, "threaded", best));
  result.add_detail("rpc", "am_way", best);
  result.add_ratio_detail("rpc", "simple_over_am_ticket", compare(all, "simple", "am_ticket"));
  result.add_ratio_detail("rpc", "threaded_at_callee_over_am",
                          compare(all, "simple_threaded", best));
}

void add_over_peers(report& result, worker& ours, const messaging_peers& peers,
                    const settings& chosen) {
  const batch_plan plan = round_trips(chosen, payload_bytes);
  std::vector<contender> contenders{{"echo", [&] { return ours.median_of("echo", plan); }}};
  peers.add_round_trips(contenders, payload_bytes, chosen.work.quick);
  const samples all = interleave(chosen.work.rounds(), contenders);

  const auto add = [&](const std::string& key, const std::string& what, std::optional<double> reach,
                       const std::vector<std::string>& ways, const std::string& why_not) {
    const std::string line = "64-byte call over " + what;
    if (!why_not.empty()) return result.add_missing("rpc", key, line, reach, why_not);
    const std::string best = quickest(all, ways);
    result.add_ratio("rpc", key, line, reach, compare(all, "echo", best));
    if (ways.size() > 1) result.add_detail("rpc", key + "_way", best);
  };
  add("null_over_mpi", "MPI_Send and MPI_Recv", 0.75, {"mpi"}, peers.why_no_mpi());
  add("null_over_ucx_am", "UCX's active messages", 0.75, {"ucx"}, peers.why_no_ucx());
  add("null_over_grpc", "gRPC, unix socket", 0.02, {"grpc_sync", "grpc_async", "grpc_poll"},
      peers.why_no_grpc());
  add("null_over_capnp", "Cap'n Proto, unix socket", std::nullopt, {"capnp"}, peers.why_no_capnp());
}

void add_bulk(report& result, worker& ours, const settings& chosen) {
  const batch_plan plan{
      .iterations = chosen.work.quick ? 20u : 100u, .repeats = 5, .bytes = bulk_bytes};
  std::vector<contender> contenders;
  for (const char* operation : {"rpc_view", "memcpy", "rpc_moved", "rpc_vector"}) {
    contenders.push_back(
        {operation, [&ours, operation, plan] { return ours.median_of(operation, plan); }});
  }
  const samples all = interleave(chosen.work.rounds(), contenders);
  result.add_rate_ratio("rpc", "bulk_1MiB_bandwidth_over_memcpy",
                        "bandwidth of a call with 1 MiB over memcpy", 0.45,
                        compare(all, "rpc_view", "memcpy"));
  result.add_rate_ratio("rpc", "bulk_1MiB_moved_over_memcpy",
                        "the same, a vector that is given away", std::nullopt,
                        compare(all, "rpc_moved", "memcpy"));
  result.add_rate_ratio("rpc", "bulk_1MiB_vector_over_memcpy", "the same, a vector that is kept",
                        std::nullopt, compare(all, "rpc_vector", "memcpy"));
}

/// Of each side the setting that does best, by its median.
double add_rates(report& result, worker& ours, const messaging_peers& peers,
                 const settings& chosen) {
  const auto plan_of = [&](std::uint64_t bytes) {
    return batch_plan{
        .iterations = chosen.work.quick ? 5'000u : 50'000u, .repeats = 3, .bytes = bytes};
  };
  std::vector<contender> contenders;
  const auto add_contender = [&](const std::string& name, worker* of, const char* operation,
                                 std::uint64_t bytes) {
    if (of == nullptr) return;
    contenders.push_back(
        {name, [of, operation, plan = plan_of(bytes)] { return of->median_of(operation, plan); }});
  };
  add_contender("plain", &ours, "rate", word_bytes);
  add_contender("mpi", peers.mpi(), "rate", word_bytes);
  add_contender("ucx", peers.ucx(), "rate", word_bytes);
  std::vector<std::string> our_bundles;
  std::vector<std::string> mpi_bundles;
  for (const std::uint64_t bytes : bundle_sizes) {
    our_bundles.push_back(fmt::format("bundles of {}", bytes));
    mpi_bundles.push_back(fmt::format("MPI, {}", bytes));
    add_contender(our_bundles.back(), &ours, "bundled", bytes);
    add_contender(mpi_bundles.back(), peers.mpi(), "packed", bytes);
  }
  const samples all = interleave(chosen.work.rounds(), contenders);
  const auto add = [&](const std::string& key, const std::string& what, std::optional<double> reach,
                       const std::string& mine, const std::string& peer,
                       const std::string& why_not) {
    if (!why_not.empty()) return result.add_missing("rpc", key, what, reach, why_not, true);
    result.add_rate_ratio("rpc", key, what, reach, compare(all, mine, peer));
  };
  const std::string our_best = quickest(all, our_bundles);
  const std::string mpi_best = peers.mpi() != nullptr ? quickest(all, mpi_bundles) : "";
  add("bundled_rate_over_mpi_bundled", "one-way 8-byte calls, bundled, over MPI packed by hand",
      1.2, our_best, mpi_best, peers.why_no_mpi());
  add("plain_rate_over_mpi", "one-way 8-byte calls, each a message, over MPI_Isend", 1.0, "plain",
      "mpi", peers.why_no_mpi());
  add("plain_rate_over_ucx_am", "the same over UCX's active messages", std::nullopt, "plain", "ucx",
      peers.why_no_ucx());

  std::string text = fmt::format(
      "One-way calls of 8 bytes by the size of a bundle: ns each (medians)\n{:>8} {:>10} {:>10}\n",
      "bytes", "Sojourn", "MPI");
  nlohmann::json rows = nlohmann::json::array();
  for (std::size_t i = 0; i < bundle_sizes.size(); ++i) {
    nlohmann::json row = {{"bytes", bundle_sizes[i]}, {"ns", nullptr}, {"mpi_ns", nullptr}};
    row["ns"] = rounded(median(all.at(our_bundles[i])));
    if (peers.mpi() != nullptr) row["mpi_ns"] = rounded(median(all.at(mpi_bundles[i])));
    const auto cell = [&](const char* key) {
      return row[key].is_null() ? std::string("-") : fmt::format("{:.2f}", row[key].get<double>());
    };
    text += fmt::format("{:>8} {:>10} {:>10}\n", bundle_sizes[i], cell("ns"), cell("mpi_ns"));
    rows.push_back(std::move(row));
  }
  text.pop_back();
  result.add_text(text);
  result.add_detail("rpc", "rate_by_bundle", rows);
  result.add_detail("rpc", "bundled_rate_best", our_best);
  if (!mpi_best.empty()) result.add_detail("rpc", "bundled_rate_mpi_best", mpi_best);
  return median(all.at("plain"));
}

/// §4.2: where a rank looks for messages, and what that costs.
void add_detection(report& result, worker& ours, double one_way_ns, const settings& chosen) {
  constexpr std::uint64_t many = 32;  // fibers that are ready at once, as many as run in a round
  const auto time = [&](const char* operation, std::uint64_t fibers) {
    const batch_plan plan = round_trips(chosen, fibers);
    return contender{operation + std::to_string(fibers),
                     [&ours, operation, plan] { return ours.ask(operation, plan).front(); }};
  };
  const samples all =
      interleave(chosen.work.rounds(), {time("switch", 1), time("switch", many), time("served", 0),
                                        time("served", 1), time("served", many)});
  const auto of = [&](const char* name) { return median(all.find(name)->second); };
  const auto switches_a_call = [&](std::uint64_t fibers) {
    return ours.ask("served", round_trips(chosen, fibers)).back();
  };
  const double poll = std::max(0.0, of("switch1") - of("switch32")) * many / (many - 1);
  const double polls_each = switches_a_call(1);
  const double polls_round = switches_a_call(many) / many;
  std::string text = fmt::format(
      "Detection of arrival (section 4.2 of the paper): rank 0 computes, rank 1 calls it\n"
      "{:<46} {:>10} {:>10} {:>12} {:>12}\n",
      "rank 0 looks for messages", "ns/switch", "polling", "polls/call", "call, ns");
  text += fmt::format("{:<46} {:>10} {:>10} {:>12} {:>12.0f}\n", "all the time: nothing runs", "-",
                      "-", "-", of("served0"));
  text += fmt::format("{:<46} {:>10.1f} {:>10.1f} {:>12.1f} {:>12.0f}\n",
                      "at every switch: one fiber yields", of("switch1"), poll, polls_each,
                      of("served1"));
  text += fmt::format("{:<46} {:>10.1f} {:>10.1f} {:>12.1f} {:>12.0f}\n",
                      "every 32 switches: 32 fibers yield", of("switch32"), poll / many,
                      polls_round, of("served32"));
  text += fmt::format(
      "A look costs {:.1f} ns. The paper looks at every send, too; that would add as much to the "
      "{:.0f} ns\nof a one-way call. Here a rank that sends looks when its fiber waits, yields or "
      "ends.",
      poll, one_way_ns);
  result.add_text(text);
  result.add_detail("rpc", "poll_ns", rounded(poll));
  result.add_detail("rpc", "switch_with_poll_ns", rounded(of("switch1")));
  result.add_detail("rpc", "switch_in_round_ns", rounded(of("switch32")));
  result.add_detail("rpc", "polls_a_call_at_every_switch", rounded(polls_each));
  result.add_detail("rpc", "polls_a_call_in_rounds", rounded(polls_round));
  result.add_detail("rpc", "served_idle_ns", rounded(of("served0")));
  result.add_detail("rpc", "served_at_every_switch_ns", rounded(of("served1")));
  result.add_detail("rpc", "served_in_rounds_ns", rounded(of("served32")));
}

}  // namespace

void bench_rpc(report& result, const installation& here, const settings& chosen) {
  tell_progress("rpc: calls over active messages");
  worker ours("bench_rpc", here.job(2, "bench_rpc"), 1);
  const std::string cpus = comma_list(ours.ask("cpus", {}));
  const messaging_peers peers(here, cpus);
  add_over_am(result, ours, chosen);
  tell_progress("rpc: calls over other systems");
  add_over_peers(result, ours, peers, chosen);
  tell_progress("rpc: large arguments");
  add_bulk(result, ours, chosen);
  tell_progress("rpc: one-way calls");
  const double one_way_ns = add_rates(result, ours, peers, chosen);
  add_bandwidth(result, ours, peers, chosen);
  tell_progress("rpc: the paper's Table 8");
  {
    worker unshared("bench_rpc", here.job(2, "bench_rpc"), 1, {{"SOJOURN_SHARE", "off"}});
    unshared.ask("cpus", {});
    add_call_table(result, ours, unshared, chosen);
  }
  tell_progress("rpc: detection of arrival");
  add_detection(result, ours, one_way_ns, chosen);
}

}  // namespace bench
