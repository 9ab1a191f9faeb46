// SPDX-License-Identifier: Apache-2.0
//
// The benchmarks by name. Each starts what it needs, measures in turns and adds to the report;
// what cannot be measured on this machine is reported as missing, not as an error.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "driver/installation.hpp"
#include "driver/measure.hpp"
#include "driver/report.hpp"
#include "driver/worker.hpp"

namespace bench {

class messaging_peers;

struct settings {
  effort work;
  std::filesystem::path figures;  // folder that SVG files are written to
};

/// Round trips, barriers and idleness against the raw ping-pong and MPI.
void bench_ping(report& result, const installation& here, const settings& chosen);

/// Migrations against messages of the same size, and what they ship.
void bench_migrate(report& result, const installation& here, const settings& chosen);

/// Instructions of calls that stay on their rank.
void bench_calls(report& result, const installation& here, const settings& chosen);

/// The B-tree in checked mode, without it, and built without it.
void bench_checked(report& result, const installation& here, const settings& chosen);

/// Threads that move: the tables of Sang and Rego; starting and joining; a million that wait.
void bench_threads(report& result, const installation& here, const settings& chosen);

/// Forks in place against calls, stacks of their own, oneTBB and OpenMP: Tables 2 and 3 of Plevyak,
/// Karamcheti, Zhang and Chien.
void bench_hybrid(report& result, const installation& here, const settings& chosen);

/// Remote calls against active messages, MPI, UCX, gRPC and Cap'n Proto: Table 8 of Chang,
/// Czajkowski and von Eicken.
void bench_rpc(report& result, const installation& here, const settings& chosen);

/// Bandwidth of calls by size beside memcpy, MPI and UCX.
void add_bandwidth(report& result, worker& ours, const messaging_peers& peers,
                   const settings& chosen);

/// The bare active message by size beside the others' messages: their Table 9.
void bench_am(report& result, const installation& here, const settings& chosen);

/// Broadcasts and reductions of 2 to 8 ranks against OpenMPI's.
void bench_collectives(report& result, const installation& here, const settings& chosen);

/// How long calls take while others are under way: the 50th, 99th and 99.9th percentile.
void bench_load(report& result, const installation& here, const settings& chosen);

/// Round trips of several pairs at once, and of one pair among many ranks that wait.
void bench_scaling(report& result, const installation& here, const settings& chosen);

/// Memory of a rank, and jobs that begin and end, against mpirun's.
void bench_start(report& result, const installation& here, const settings& chosen);

/// One-sided access against MPI's windows in shared memory.
void bench_onesided(report& result, const installation& here, const settings& chosen);

/// Searching an unbalanced tree with threads that load balance spreads over two ranks.
void bench_uts(report& result, const installation& here, const settings& chosen);

/// Simulating processes that are threads, and move with their events.
void bench_phold(report& result, const installation& here, const settings& chosen);

/// What `shared` is asked for besides.
struct shared_settings {
  std::vector<std::string> applications{};  ///< Of the nine; empty: all. "none": none of them.
  bool paper = false;
  std::string size = "small";   ///< With `paper`: small, or paper.
  int ranks = 8;                ///< With `paper`.
  std::string delay = "200us";  ///< With `paper`: as SOJOURN_DELAY has it; none when empty.
};
/// The names of the nine, and "none".
std::vector<std::string> shared_application_names();

/// Memory that ranks share page by page, against calls, memcmp, MPI, ArgoDSM and threads; the nine
/// applications of Thitikamol and Keleher. With `paper`: their Tables 1 to 3 and Figures 1 to 7.
void bench_shared(report& result, const installation& here, const settings& chosen,
                  const shared_settings& asked);

/// Where `net` measures.
struct net_settings {
  std::vector<std::string> hosts{"a", "b"};
  std::string agent{};  ///< As --agent of `sojourn run`; empty: both hosts are this machine.
  /// A command that, with the word `cut` or `pull`, cuts the second host off or pulls its cable,
  /// and with `heal` or `plug` mends that; empty: the time until that is noticed is not measured.
  std::string breaks{};
};

/// Two hosts: calls, migrations, bandwidth, bundled calls and the start of jobs, against plain
/// sockets and OpenMPI over TCP.
void bench_net(report& result, const installation& here, const settings& chosen,
               const net_settings& asked);

/// The words at an access, in the counting network, the B-tree and six small programs: Tables 1 to
/// 5 and Figures 2 and 3 of Hsieh, Wang and Weihl.
void bench_policies(report& result, const installation& here, const settings& chosen);

/// Containers: k-mers counted and keys inserted beside MPI by hand; bundles; walks that migrate.
void bench_containers(report& result, const installation& here, const settings& chosen);

/// Random updates and reads of a table, aggregated and not: GUPS and indexgather.
void bench_gups(report& result, const installation& here, const settings& chosen);

/// The applications that are written three times: by remote calls, one-sided and for MPI. Their
/// names, and the benchmark of one.
std::vector<std::string> application_names();
void bench_application(report& result, const installation& here, const settings& chosen,
                       const std::string& name);

/// The applications of many small children, in place and each on the heap: Tables 4 to 6 of
/// Plevyak, Karamcheti, Zhang and Chien. Their names, and the benchmark of one.
std::vector<std::string> execution_names();
void bench_execution(report& result, const installation& here, const settings& chosen,
                     const std::string& name);

/// Says on standard error what is being measured; one line that the next one replaces.
void tell_progress(const std::string& what);

/// Instructions of calls, of falling back and of handling requests, by caller and callee: Table 2
/// and Figure 8 of Plevyak, Karamcheti, Zhang and Chien. Requires: valgrind is in PATH.
void add_schema_tables(report& result, const installation& here);
/// What a block costs with few and with many frames.
void add_depth(report& result, const installation& here, const settings& chosen);

/// Where one migration's time goes, in the categories of the paper's Table 5.
/// `shipped_bytes` is what a migration of the counting network's kind ships; `group`: of the JSON.
void add_breakdown(report& result, worker& ours, worker& raw, double shipped_bytes,
                   const settings& chosen, const std::string& group = "migrate");

/// Where the time goes of one move of a thread with so many bytes of locals, in the categories of
/// Sang and Rego's Table 3.
void add_thread_breakdown(report& result, worker& ours, worker& raw, std::uint64_t locals,
                          double shipped_bytes, const settings& chosen);

/// The counting network's throughput and bandwidth against requesters (the paper's Figures 2 and
/// 3), as tables and SVG files.
void add_network_figures(report& result, const installation& here, const settings& chosen);

/// The B-tree's throughput and bandwidth, by calls and by migration: the paper's Tables 1 to 4.
void add_btree_tables(report& result, const installation& here, const settings& chosen,
                      double ticks_a_ns);

}  // namespace bench
