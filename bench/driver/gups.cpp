// SPDX-License-Identifier: Apache-2.0
//
// Aggregation: random updates (GUPS) and random reads (indexgather) of a table on two ranks.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "driver/application_run.hpp"
#include "driver/benchmarks.hpp"

namespace bench {
namespace {

constexpr int ranks = 2;

/// Of a bundle; with headers on our side.
constexpr std::array<std::uint64_t, 7> bundle_sizes{512, 1024, 2048, 4000, 8128, 16384, 65536};

/// A form of an application, and how many operations each rank does in a run.
struct form {
  std::string name;
  std::string title;
  std::string program;
  std::string option;  // --form
  bool shared = true;  // the heap, where it is Sojourn's
  std::uint64_t operations = 0;
  std::uint64_t bundle_bytes = 0;  ///< 0: as the program has it.

  bool is_mpi() const { return program.ends_with("_mpi"); }
};

/// Nanoseconds an operation of a rank.
double run(const installation& here, const form& f) {
  const bool updates = f.program.starts_with("gups");
  arguments options{"--form", f.option, updates ? "--updates" : "--reads",
                    std::to_string(f.operations)};
  if (f.bundle_bytes != 0) {
    options.insert(options.end(), {"--bundle", std::to_string(f.bundle_bytes)});
  }
  application_run job =
      f.is_mpi() ? application_run::of_mpi(here, ranks, f.program, options)
                 : application_run::of_sojourn(here, ranks, f.program, options,
                                               {{"SOJOURN_SHARE", f.shared ? "on" : "off"}});
  return job.nanoseconds() / static_cast<double>(f.operations);
}

samples measure(const installation& here, const settings& chosen, const std::vector<form>& forms) {
  std::vector<contender> contenders;
  for (const form& f : forms) contenders.push_back({f.name, [&here, &f] { return run(here, f); }});
  return interleave(chosen.work.rounds(), contenders);
}

/// Operations a second.
std::string rate(double ns) { return fmt::format("{:.1f} M/s", ranks * 1e3 / ns); }

void add_rates(report& result, const std::string& title, const std::string& prefix,
               const std::vector<form>& forms, const samples& all) {
  std::string text = fmt::format("{}, {} ranks: medians\n{:<32} {:>14} {:>18}", title, ranks,
                                 "form", "million a s", "ns each of a rank");
  for (const form& f : forms) {
    const double ns = median(all.find(f.name)->second);
    text += fmt::format("\n{:<32} {:>14.2f} {:>18.2f}", f.title, ranks * 1e3 / ns, ns);
    result.add_detail("gups", prefix + f.name + "_per_second", std::round(ranks * 1e9 / ns));
  }
  result.add_text(text);
}

}  // namespace

void bench_gups(report& result, const installation& here, const settings& chosen) {
  const std::uint64_t many = chosen.work.quick ? 1u << 20 : 1u << 23;
  const std::uint64_t few = chosen.work.quick ? 1u << 16 : 1u << 19;  // each in its own message
  std::vector<form> updates;
  std::vector<std::string> our_bundles;
  std::vector<std::string> mpi_bundles;
  const std::string no_gups = here.mpi_missing("gups_mpi");
  const std::string no_reads = here.mpi_missing("indexgather_mpi");
  for (const std::uint64_t bytes : bundle_sizes) {
    our_bundles.push_back(fmt::format("rpc_{}", bytes));
    updates.push_back({our_bundles.back(), fmt::format("rpc, aggregated, bundles of {}", bytes),
                       "gups", "rpc", true, many, bytes});
    if (!no_gups.empty()) continue;
    mpi_bundles.push_back(fmt::format("mpi_{}", bytes));
    updates.push_back({mpi_bundles.back(), fmt::format("MPI, by hand, bundles of {}", bytes),
                       "gups_mpi", "aggregated", true, many, bytes});
  }
  const std::vector<form> further{
      {"rpc_off", "rpc, aggregated, share off", "gups", "rpc", false, many},
      {"onesided", "one-sided", "gups", "onesided", true, many},
      {"onesided_off", "one-sided, aggregated, share off", "gups", "onesided", false, many},
      {"plain", "rpc, unbundled", "gups", "plain", true, few},
      {"plain_off", "rpc, unbundled, share off", "gups", "plain", false, few}};
  updates.insert(updates.end(), further.begin(), further.end());
  std::vector<form> reads{
      {"rpc", "rpc, aggregated", "indexgather", "rpc", true, many / 4},
      {"rpc_off", "rpc, aggregated, share off", "indexgather", "rpc", false, many / 4},
      {"onesided", "one-sided", "indexgather", "onesided", true, many / 4},
      {"onesided_off", "one-sided, share off", "indexgather", "onesided", false, few}};
  if (no_gups.empty()) {
    updates.push_back({"mpi_isend", "MPI, MPI_Isend each", "gups_mpi", "isend", true, few});
    updates.push_back({"mpi_rma", "MPI, MPI_Accumulate each", "gups_mpi", "rma", true, few});
  }
  if (no_reads.empty()) {
    reads.push_back(
        {"mpi", "MPI, aggregated by hand", "indexgather_mpi", "aggregated", true, many / 4});
  }

  tell_progress("gups: random updates");
  const samples of_updates = measure(here, chosen, updates);
  tell_progress("gups: random reads (indexgather)");
  const samples of_reads = measure(here, chosen, reads);

  // Rates, so the peer's time stands over ours.
  const auto add = [&](const char* key, const char* what, double reach, const std::string& ours,
                       const std::string& peer) {
    if (!no_gups.empty()) return result.add_missing("gups", key, what, reach, no_gups, true);
    const comparison pairs = compare(of_updates, peer, ours);
    result.add_ratio_of({"gups", key, what, std::nullopt, reach, rate(pairs.peer_ns),
                         rate(pairs.ours_ns), std::nullopt, 0, true},
                        pairs);
  };
  // Each with the bundles that suit it best.
  const std::string our_best = quickest(of_updates, our_bundles);
  const std::string mpi_best = mpi_bundles.empty() ? "" : quickest(of_updates, mpi_bundles);
  result.add_detail("gups", "aggregated_best", our_best);
  if (!mpi_best.empty()) result.add_detail("gups", "aggregated_mpi_best", mpi_best);
  add("aggregated_over_mpi", "updates a second, rpc_ff bundled over MPI aggregated by hand", 1.1,
      our_best, mpi_best);
  add("plain_over_mpi_isend", "updates a second, rpc_ff unbundled over MPI_Isend each", 1.0,
      "plain", "mpi_isend");

  std::string shown;
  const auto show = [&](const samples& all, const char* key, const char* ours,
                        const std::string& peer) {
    const comparison pairs = compare(all, peer, ours);
    result.add_ratio_detail("gups", key, pairs);
    shown += fmt::format("{}gups.{}: {}", shown.empty() ? "" : "\n", key, ratio_text(pairs));
  };
  if (no_gups.empty()) {
    show(of_updates, "aggregated_off_over_mpi", "rpc_off", mpi_best);
    show(of_updates, "onesided_over_mpi", "onesided", mpi_best);
    show(of_updates, "onesided_off_over_mpi", "onesided_off", mpi_best);
    show(of_updates, "plain_off_over_mpi_isend", "plain_off", "mpi_isend");
    show(of_updates, "onesided_over_mpi_rma", "onesided", "mpi_rma");
  }
  if (no_reads.empty()) {
    show(of_reads, "indexgather_over_mpi", "rpc", "mpi");
    show(of_reads, "indexgather_off_over_mpi", "rpc_off", "mpi");
    show(of_reads, "indexgather_onesided_over_mpi", "onesided", "mpi");
  }
  add_rates(result, "Random updates", "", updates, of_updates);
  add_rates(result, "Random reads", "indexgather_", reads, of_reads);
  if (!shown.empty()) result.add_text(shown);
}

}  // namespace bench
