// SPDX-License-Identifier: Apache-2.0
//
// Two hosts: calls, migrations and one-way messages between them beside plain sockets and OpenMPI.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "driver/application_run.hpp"
#include "driver/benchmarks.hpp"
#include "driver/two_hosts.hpp"

namespace bench {
namespace {

constexpr std::uint64_t kibi = 1024;
constexpr std::array<std::uint64_t, 6> sizes{64 * kibi,       256 * kibi,       1024 * kibi,
                                             4 * 1024 * kibi, 16 * 1024 * kibi, 64 * 1024 * kibi};
constexpr std::array<std::uint64_t, 4> bundles{1024, 4096, 16 * kibi, 64 * kibi};
constexpr std::array<std::uint64_t, 2> locals{64, 4096};

constexpr const char* over_tcp = "null RPC over a plain spinning socket's round trip";
constexpr const char* over_mpi = "64-byte RPC over OpenMPI's round trip over TCP";
constexpr const char* over_ucx =
    "null RPC with --net ucx over a round trip of as many bytes by UCX's active messages, over TCP";
constexpr const char* encrypted = "null RPC with --encrypt over the same without";
constexpr const char* encrypted_bandwidth =
    "bandwidth of calls of 1 MiB with --encrypt over the same without";
constexpr const char* hop_over = "migration, {} B of locals, over a message of as many bytes";
constexpr const char* bandwidth =
    "bandwidth of calls and gets over a plain socket's, the worst of 64 KiB to 64 MiB";
constexpr const char* bundled = "bundled 8-byte one-way calls over MPI messages packed by hand";
constexpr const char* start = "a job of 2 hosts x 2 that begins, meets and ends, over mpirun's";

/// A connection of plain sockets between the two.
class sockets {
 public:
  sockets(const installation& here, const pair_of_hosts& two)
      : first_("peer_tcp", two.on(0, {here.program("peer_tcp"), "--cpus", "0,1"}), 1) {
    const auto port = static_cast<int>(first_.ask("port", {}).front());
    second_ = std::make_unique<child_process>(
        two.on(1, {here.program("peer_tcp"), "--partner",
                   fmt::format("{}:{}", two.name_of_first(), port), "--cpus", "0,1"}));
  }
  double median_of(const std::string& operation, const batch_plan& plan) {
    return first_.median_of(operation, plan);
  }

 private:
  worker first_;
  std::unique_ptr<child_process> second_;
};

struct contest {
  report& result;
  const installation& here;
  const settings& chosen;
  const pair_of_hosts& two;
  sockets& tcp;
  worker* mpi;  ///< Null where there is none.
  std::string no_mpi;

  batch_plan plan(std::uint64_t bytes, std::uint64_t full = 1000) const {
    return {.iterations = chosen.work.quick ? full / 10 : full, .repeats = 3, .bytes = bytes};
  }
};

void measure_round_trips(const contest& c) {
  tell_progress("net: round trips");
  worker ours("bench_ping", c.two.job("bench_ping"), 1);
  constexpr std::uint64_t header = 32;  // as long as a message's
  std::vector<contender> contenders{
      {"null", [&] { return ours.median_of("null", c.plan(0)); }},
      {"tcp", [&] { return c.tcp.median_of("ping", c.plan(header)); }},
      {"echo", [&] { return ours.median_of("echo", c.plan(64)); }}};
  if (c.mpi != nullptr)
    contenders.push_back({"mpi", [&] { return c.mpi->median_of("ping", c.plan(64)); }});
  const samples all = interleave(c.chosen.work.rounds(), contenders);
  c.result.add_ratio("net", "rpc_over_tcp_ping", over_tcp, 1.15, compare(all, "null", "tcp"));
  if (c.mpi == nullptr) {
    c.result.add_missing("net", "rpc_over_mpi", over_mpi, 1.0, c.no_mpi);
  } else {
    c.result.add_ratio("net", "rpc_over_mpi", over_mpi, 1.0, compare(all, "echo", "mpi"));
  }
}

void measure_ucx(const contest& c) {
  tell_progress("net: round trips over UCX");
  constexpr const char* key = "ucx_rpc_over_ucx_am";
  constexpr double reach = 1.1;
  constexpr const char* peer = "peer_ucx_am";
  const std::string why_not = c.two.are_this_machine() ? c.here.peer_missing(peer, "UCX")
                                                       : "the peer is two processes of one machine";
  if (!why_not.empty()) return c.result.add_missing("net", key, over_ucx, reach, why_not);
  worker ours("bench_ping", c.two.ucx_job("bench_ping"), 1);
  worker theirs(peer, {"env", "UCX_TLS=tcp", c.here.program(peer), "--cpus", "0,1"}, 1);
  constexpr std::uint64_t headers = 48;  // of a message, and of what goes at once
  const samples all = interleave(
      c.chosen.work.rounds(), {{"null", [&] { return ours.median_of("null", c.plan(0)); }},
                               {"ucx", [&] { return theirs.median_of("ping", c.plan(headers)); }}});
  c.result.add_ratio("net", key, over_ucx, reach, compare(all, "null", "ucx"));
}

void measure_encryption(const contest& c) {
  tell_progress("net: what encryption costs");
  worker open("bench_ping", c.two.job("bench_ping"), 1);
  worker sealed("bench_ping", c.two.encrypted_job("bench_ping"), 1);
  const samples calls = interleave(
      c.chosen.work.rounds(), {{"open", [&] { return open.median_of("null", c.plan(0)); }},
                               {"sealed", [&] { return sealed.median_of("null", c.plan(0)); }}});
  c.result.add_ratio("net", "encrypted_rpc_over_plain", encrypted, 1.2,
                     compare(calls, "sealed", "open"));
  worker open_views("bench_rpc", c.two.job("bench_rpc"), 1);
  worker sealed_views("bench_rpc", c.two.encrypted_job("bench_rpc"), 1);
  const batch_plan plan{
      .iterations = c.chosen.work.quick ? 16u : 128u, .repeats = 1, .bytes = 1024 * kibi};
  const samples views =
      interleave((c.chosen.work.rounds() + 1) / 2,
                 {{"open", [&] { return open_views.median_of("rpc_view", plan); }},
                  {"sealed", [&] { return sealed_views.median_of("rpc_view", plan); }}});
  c.result.add_rate_ratio("net", "encrypted_bandwidth_over_plain", encrypted_bandwidth, 0.5,
                          compare(views, "sealed", "open"));
}

void measure_hops(const contest& c) {
  tell_progress("net: migrations");
  worker ours("bench_migrate", c.two.job("bench_migrate"), 1);
  for (const std::uint64_t bytes : locals) {
    const std::vector<double> ships =
        ours.ask("ships", {.iterations = 100, .repeats = 1, .bytes = bytes});
    const batch_plan message = c.plan(static_cast<std::uint64_t>(ships.front()));
    const samples all = interleave(
        c.chosen.work.rounds(), {{"hop", [&] { return ours.median_of("hop", c.plan(bytes)); }},
                                 {"message", [&] { return ours.median_of("message", message); }}});
    c.result.add_ratio("net", fmt::format("hop{}_over_message", bytes),
                       fmt::format(fmt::runtime(hop_over), bytes), 1.1,
                       compare(all, "hop", "message"));
  }
}

void measure_bandwidth(const contest& c) {
  worker ours("bench_rpc", c.two.job("bench_rpc"), 1);
  std::optional<comparison> worst;
  std::uint64_t worst_bytes = 0;
  std::string text =
      fmt::format("Bandwidth between the hosts by size, GB/s (medians)\n{:>10} {:>9} {:>9} {:>9}\n",
                  "size", "Sojourn", "socket", "ratio");
  nlohmann::json rows = nlohmann::json::array();
  for (const std::uint64_t bytes : sizes) {
    tell_progress(fmt::format("net: bandwidth, {} KiB", bytes / kibi));
    const std::uint64_t moved = (c.chosen.work.quick ? 16 : 128) * 1024 * kibi;
    const batch_plan plan{.iterations = std::clamp<std::uint64_t>(moved / bytes, 2, 500),
                          .repeats = 1,
                          .bytes = bytes};
    const samples all =
        interleave((c.chosen.work.rounds() + 1) / 2,
                   {{"call", [&] { return ours.median_of("rpc_view", plan); }},
                    {"one-way", [&] { return ours.median_of("view_stream", plan); }},
                    {"get", [&] { return ours.median_of("window_get", plan); }},
                    {"there", [&] { return c.tcp.median_of("there", plan); }},
                    {"stream", [&] { return c.tcp.median_of("stream", plan); }}});
    const std::string mine = quickest(all, {"call", "one-way", "get"});
    const std::string theirs = quickest(all, {"there", "stream"});
    const comparison pairs = inverse(compare(all, mine, theirs));
    const auto rate = [&](const std::string& name) {
      return static_cast<double>(bytes) / median(all.find(name)->second);
    };
    text += fmt::format("{:>6} KiB {:>9.2f} {:>9.2f} {:>9.2f}\n", bytes / kibi, rate(mine),
                        rate(theirs), pairs.ratio_median);
    rows.push_back({{"bytes", bytes},
                    {"gb_s", to_thousandths(rate(mine))},
                    {"way", mine},
                    {"socket_gb_s", to_thousandths(rate(theirs))},
                    {"socket_way", theirs},
                    {"ratio", to_thousandths(pairs.ratio_median)}});
    if (worst && pairs.ratio_median >= worst->ratio_median) continue;
    worst = pairs;
    worst_bytes = bytes;
  }
  text.pop_back();
  c.result.add_ratio_of(
      {"net", "bandwidth_over_tcp", fmt::format("{} ({} KiB)", bandwidth, worst_bytes / kibi),
       std::nullopt, 0.9, "", "", std::nullopt, 0, true},
      *worst);
  c.result.add_text(text);
  c.result.add_detail("net", "bandwidth", rows);

  tell_progress("net: bundled calls");
  if (c.mpi == nullptr)
    return c.result.add_missing("net", "rate_over_mpi_bundled", bundled, 1.0, c.no_mpi, true);
  std::vector<contender> contenders;
  std::vector<std::string> mine, theirs;
  const std::uint64_t items = c.chosen.work.quick ? 100'000 : 1'000'000;
  for (const std::uint64_t bytes : bundles) {
    const batch_plan plan{.iterations = items, .repeats = 1, .bytes = bytes};
    mine.push_back(fmt::format("ours in {} B", bytes));
    contenders.push_back({mine.back(), [&ours, plan] { return ours.median_of("bundled", plan); }});
    theirs.push_back(fmt::format("MPI in {} B", bytes));
    contenders.push_back({theirs.back(), [&c, plan] { return c.mpi->median_of("packed", plan); }});
  }
  const samples all = interleave(c.chosen.work.rounds(), contenders);
  const std::string best = quickest(all, mine);
  const std::string best_of_peer = quickest(all, theirs);
  c.result.add_rate_ratio("net", "rate_over_mpi_bundled",
                          fmt::format("{} ({}; {})", bundled, best, best_of_peer), 1.0,
                          compare(all, best, best_of_peer));
}

/// Whole applications, a rank on each host, beside the same over MPI.
void measure_applications(const contest& c) {
  struct row {
    const char* key;
    const char* what;
    const char* program;
    arguments options;
    arguments of_sojourn{};
  };
  const bool quick = c.chosen.work.quick;
  const std::array<row, 4> rows{
      {{"em3d_ghost_over_mpi",
        "EM3D whose values go one by one, time over MPI",
        "em3d",
        {"--variant", "ghost", "--remote", "100", "--steps", quick ? "2" : "10"},
        {"--form", "rpc"}},
       {"em3d_bulk_over_mpi",
        "EM3D whose values go together, time over MPI",
        "em3d",
        {"--variant", "bulk", "--remote", "100", "--steps", quick ? "100" : "1000"},
        {"--form", "rpc"}},
       {"fft_over_mpi",
        "FFT of 2^20 points, time over MPI",
        "fft",
        {"--log2", "20", "--repeats", quick ? "1" : "5"},
        {"--form", "rpc"}},
       {"lu_over_mpi",
        "LU of 512 x 512 in blocks of 16, time over MPI",
        "lu",
        {"--size", "512", "--repeats", quick ? "1" : "5"},
        {"--form", "rpc", "--exchange", "send"}}}};
  for (const row& r : rows) {
    tell_progress(fmt::format("net: {}", r.key));
    const std::string peer = std::string(r.program) + "_mpi";
    if (const std::string why = c.here.mpi_missing(peer.c_str()); !why.empty()) {
      c.result.add_missing("net", r.key, r.what, std::nullopt, why);
      continue;
    }
    const auto run = [&](arguments words, const arguments& options) {
      words.insert(words.end(), options.begin(), options.end());
      words.insert(words.end(), r.options.begin(), r.options.end());
      return application_run(r.program, std::move(words)).nanoseconds();
    };
    // Neither is bound: the MPI programs are not, either.
    const samples all =
        interleave((c.chosen.work.rounds() + 2) / 3,
                   {{"ours", [&] { return run(c.two.job(r.program, 1, false), r.of_sojourn); }},
                    {"mpi", [&] { return run(c.two.mpi_job(peer), {}); }}});
    c.result.add_ratio("net", r.key, r.what, std::nullopt, compare(all, "ours", "mpi"));
  }
}

void measure_start(const contest& c) {
  tell_progress("net: jobs that begin and end");
  if (c.mpi == nullptr)
    return c.result.add_missing("net", "start_over_mpirun", start, 1.0, c.no_mpi);
  const auto whole = [](arguments words) {
    words.insert(words.end(), {"--operation", "barrier", "--iterations", "1", "--samples", "1"});
    const std::uint64_t start_ns = clock_ns();
    if (const captured run = run_and_capture(words); run.status != 0)
      throw failure(fmt::format("{} ended with status {}", words.front(), run.status));
    return static_cast<double>(clock_ns() - start_ns);
  };
  const samples all = interleave(
      c.chosen.work.rounds(), {{"ours", [&] { return whole(c.two.job("bench_scale", 2, false)); }},
                               {"mpi", [&] { return whole(c.two.mpi_job("peer_mpi_scale", 2)); }}});
  c.result.add_ratio("net", "start_over_mpirun", start, 1.0, compare(all, "ours", "mpi"));
}

}  // namespace

void bench_net(report& result, const installation& here, const settings& chosen,
               const net_settings& asked) {
  const pair_of_hosts two(here, asked);
  sockets tcp(here, two);
  std::unique_ptr<worker> mpi;
  const std::string no_mpi = here.mpi_missing("peer_mpi_pingpong");
  if (no_mpi.empty()) {
    arguments words = two.mpi_job("peer_mpi_pingpong");
    words.insert(words.end(), {"--cpus", "0,1"});
    mpi = std::make_unique<worker>("peer_mpi_pingpong", words, 2);
  }
  const contest c{result, here, chosen, two, tcp, mpi.get(), no_mpi};
  if (two.are_this_machine())
    result.add_note(
        "Both hosts are this machine, and TCP goes over its loopback: --hosts and --agent name "
        "others.");
  measure_round_trips(c);
  measure_ucx(c);
  measure_encryption(c);
  measure_hops(c);
  measure_bandwidth(c);
  measure_applications(c);
  measure_start(c);
  measure_losses(result, chosen, two, asked.breaks);
}

}  // namespace bench
