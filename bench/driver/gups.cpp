// SPDX-License-Identifier: Apache-2.0
//
// Aggregation: random updates (GUPS) and random reads (indexgather) of a table on two ranks.
#include <fmt/format.h>

#include <cmath>

#include "driver/application_run.hpp"
#include "driver/benchmarks.hpp"

namespace bench {
namespace {

constexpr int ranks = 2;

double rounded(double value) { return std::round(value * 1000) / 1000; }

/// A form of an application, and how many operations each rank does in a run.
struct form {
  std::string name;
  std::string title;
  std::string program;
  std::string option;  // --form
  bool shared = true;  // the heap, where it is Sojourn's
  std::uint64_t operations = 0;

  bool is_mpi() const { return program.ends_with("_mpi"); }
};

/// Nanoseconds an operation of a rank.
double run(const installation& here, const form& f) {
  const bool updates = f.program.starts_with("gups");
  const arguments options{"--form", f.option, updates ? "--updates" : "--reads",
                          std::to_string(f.operations)};
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
  std::vector<form> updates{
      {"rpc", "rpc, aggregated", "gups", "rpc", true, many},
      {"rpc_off", "rpc, aggregated, share off", "gups", "rpc", false, many},
      {"onesided", "one-sided", "gups", "onesided", true, many},
      {"onesided_off", "one-sided, aggregated, share off", "gups", "onesided", false, many},
      {"plain", "rpc, unbundled", "gups", "plain", true, few},
      {"plain_off", "rpc, unbundled, share off", "gups", "plain", false, few}};
  std::vector<form> reads{
      {"rpc", "rpc, aggregated", "indexgather", "rpc", true, many / 4},
      {"rpc_off", "rpc, aggregated, share off", "indexgather", "rpc", false, many / 4},
      {"onesided", "one-sided", "indexgather", "onesided", true, many / 4},
      {"onesided_off", "one-sided, share off", "indexgather", "onesided", false, few}};
  const std::string no_gups = here.mpi_missing("gups_mpi");
  const std::string no_reads = here.mpi_missing("indexgather_mpi");
  if (no_gups.empty()) {
    updates.push_back({"mpi", "MPI, aggregated by hand", "gups_mpi", "aggregated", true, many});
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
  const auto add = [&](const char* key, const char* what, double reach, const char* ours,
                       const char* peer) {
    if (!no_gups.empty()) return result.add_missing("gups", key, what, reach, no_gups);
    const comparison pairs = compare(of_updates, peer, ours);
    result.add_value({"gups", key, what, rounded(pairs.ratio_median), reach, rate(pairs.peer_ns),
                      rate(pairs.ours_ns), rounded(pairs.ratio_min),
                      static_cast<int>(pairs.ratios.size()), true});
    result.add_detail("gups", std::string(key) + "_min", rounded(pairs.ratio_min));
    result.add_detail("gups", std::string(key) + "_pairs", pairs.ratios.size());
  };
  add("aggregated_over_mpi", "updates a second, rpc_ff bundled over MPI aggregated by hand", 1.2,
      "rpc", "mpi");
  add("plain_over_mpi_isend", "updates a second, rpc_ff unbundled over MPI_Isend each", 1.0,
      "plain", "mpi_isend");

  std::string shown;
  const auto show = [&](const samples& all, const char* key, const char* ours, const char* peer) {
    const comparison pairs = compare(all, peer, ours);
    result.add_detail("gups", key, rounded(pairs.ratio_median));
    result.add_detail("gups", std::string(key) + "_min", rounded(pairs.ratio_min));
    shown += fmt::format("{}gups.{}: {:.3g}", shown.empty() ? "" : "\n", key, pairs.ratio_median);
  };
  if (no_gups.empty()) {
    show(of_updates, "aggregated_off_over_mpi", "rpc_off", "mpi");
    show(of_updates, "onesided_over_mpi", "onesided", "mpi");
    show(of_updates, "onesided_off_over_mpi", "onesided_off", "mpi");
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
