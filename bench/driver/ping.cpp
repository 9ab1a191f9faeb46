// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <thread>

#include "driver/benchmarks.hpp"

namespace bench {
namespace {

constexpr int many_ranks = 8;
constexpr int idle_ranks = 4;
constexpr double idle_seconds = 5;
constexpr double quick_idle_seconds = 0.4;

constexpr const char* over_raw = "null RPC over raw one-line ping-pong";
constexpr const char* over_mpi = "64-byte RPC over 64-byte MPI ping-pong";
constexpr const char* barrier2_over_mpi = "barrier of 2 bound ranks over OpenMPI's";
constexpr const char* barrier8_over_mpi = "barrier of 8 ranks over OpenMPI's";
constexpr const char* barrier8_oversubscribed =
    "barrier of 8 ranks, oversubscribed (both sides yield), over OpenMPI's";
constexpr const char* idle_cpu = "CPU seconds of 4 idle ranks over 5 s";

batch_plan round_trip_plan(const settings& chosen) {
  return {.iterations = chosen.work.quick ? 200u : 2000u, .repeats = 5, .bytes = 64};
}

void measure_round_trips(report& result, const installation& here, const settings& chosen) {
  tell_progress("ping: round trips");
  worker ours("bench_ping", here.job(2, "bench_ping"), 1);
  const std::string cpus = comma_list(ours.ask("cpus", {}));
  worker raw("peer_raw", {here.program("peer_raw"), "--cpus", cpus}, 1);
  const std::string no_mpi = here.mpi_missing("peer_mpi_pingpong");
  std::unique_ptr<worker> mpi;
  if (no_mpi.empty()) {
    arguments words = here.mpi_job(2, "peer_mpi_pingpong");
    words.insert(words.end(), {"--cpus", cpus});
    mpi = std::make_unique<worker>("peer_mpi_pingpong", words, 2);
  }

  const batch_plan plan = round_trip_plan(chosen);
  std::vector<contender> contenders{
      {"null", [&] { return ours.median_of("null", plan); }},
      {"raw", [&] { return raw.median_of("line", plan); }},
      {"echo", [&] { return ours.median_of("echo", plan); }},
  };
  if (mpi) contenders.push_back({"mpi", [&] { return mpi->median_of("ping", plan); }});
  contenders.push_back({"argument", [&] { return ours.median_of("argument", plan); }});
  const samples all = interleave(chosen.work.rounds(), contenders);

  result.add_ratio("ping", "rpc_over_raw", over_raw, 1.4, compare(all, "null", "raw"));
  if (!mpi) {
    result.add_missing("ping", "rpc_over_mpi", over_mpi, 0.75, no_mpi);
    return;
  }
  result.add_ratio("ping", "rpc_over_mpi", over_mpi, 0.75, compare(all, "echo", "mpi"));
  result.add_ratio_detail("ping", "rpc_argument_only_over_mpi", compare(all, "argument", "mpi"));
  result.add_ratio_detail("ping", "mpi_over_raw", compare(all, "mpi", "raw"));
}

/// Two ranks are bound to a core each, on both sides; more than there are cores are not.
void measure_barrier(report& result, const installation& here, const settings& chosen, int ranks,
                     const char* key, const char* what) {
  tell_progress(fmt::format("ping: barriers of {} ranks", ranks));
  const std::string no_mpi = here.mpi_missing("peer_mpi_scale");
  if (!no_mpi.empty()) {
    result.add_missing("ping", key, what, 1.0, no_mpi);
    return;
  }
  worker ours("bench_ping", here.job(ranks, "bench_ping"), 1);
  arguments words = here.mpi_job(ranks, "peer_mpi_scale");
  if (ranks == 2) words.insert(words.end(), {"--cpus", comma_list(ours.ask("cpus", {}))});
  worker mpi("peer_mpi_scale", words, ranks);
  const std::uint64_t full = ranks == 2 ? 2000 : 200;
  const batch_plan plan{
      .iterations = chosen.work.quick ? full / 4 : full, .repeats = 3, .bytes = 0};
  const samples all =
      interleave(chosen.work.rounds(), {{"ours", [&] { return ours.median_of("barrier", plan); }},
                                        {"mpi", [&] { return mpi.median_of("barrier", plan); }}});
  result.add_ratio("ping", key, what, 1.0, compare(all, "ours", "mpi"));
}

/// In bench_ping's `idle` each rank sleeps in the system for one part of the time and waits in the
/// runtime for the others; the figure is scaled as if all had waited all the time.
void measure_idleness(report& result, const installation& here, const settings& chosen) {
  tell_progress("ping: five seconds of idleness");
  const double seconds = chosen.work.quick ? quick_idle_seconds : idle_seconds;
  worker ours("bench_ping", here.job(idle_ranks, "bench_ping"), 1);
  ours.ask("null", {.iterations = 100, .repeats = 1, .bytes = 0});
  const batch_plan plan{.iterations = static_cast<std::uint64_t>(seconds * 1000 / idle_ranks),
                        .repeats = 1};
  const double before = tree_cpu_seconds(ours.pid());
  const double elapsed = ours.ask("idle", plan).front();
  const double used = tree_cpu_seconds(ours.pid()) - before;
  constexpr double waiting_share = (idle_ranks - 1.0) / idle_ranks;
  const double scaled = used / waiting_share / elapsed * idle_seconds;
  result.add_value({"ping", "idle_cpu_seconds", idle_cpu, std::round(scaled * 1e5) / 1e5, 0.05,
                    fmt::format("{:.2f} ms", used * 1e3), fmt::format("{:.2f} s", elapsed),
                    std::nullopt, 0});
  result.add_detail("ping", "idle_elapsed_seconds", elapsed);
}

}  // namespace

void bench_ping(report& result, const installation& here, const settings& chosen) {
  measure_round_trips(result, here, chosen);
  measure_idleness(result, here, chosen);
  measure_barrier(result, here, chosen, 2, "barrier2_over_mpi", barrier2_over_mpi);
  const bool crowded = static_cast<int>(std::thread::hardware_concurrency()) < many_ranks;
  measure_barrier(result, here, chosen, many_ranks, "barrier8_over_mpi",
                  crowded ? barrier8_oversubscribed : barrier8_over_mpi);
  result.add_detail("ping", "barrier8_oversubscribed", crowded);
}

}  // namespace bench
