// SPDX-License-Identifier: Apache-2.0
//
// What faults, diffs, locks and barriers of shared memory cost beside calls, memcmp, MPI and
// ArgoDSM.
#include "driver/shared.hpp"

#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <thread>

#include "driver/shared_paper.hpp"

namespace bench {
namespace {

constexpr const char* program = "bench_shared";
constexpr const char* group = shared_group;

std::uint64_t fewer_if_quick(const settings& chosen, std::uint64_t full) {
  return chosen.work.quick ? full / 10 : full;
}

contender of(const char* name, worker& by, const std::string& operation, const batch_plan& plan) {
  return {name, [&by, operation, plan] { return by.median_of(operation, plan); }};
}

/// A job of three ranks on the two cores of `cpus`. The third takes no part in what is timed, and
/// sleeps then, so the others wait for messages as ranks do that have a core each.
worker three_ranks(const installation& here, const std::string& cpus, const environment& extra) {
  arguments words{here.program("sojourn"), "run", "-n", "3", "--no-bind", here.program(program)};
  words.insert(words.end(), {"--cpus", cpus});
  return {program, words, 1, extra};
}

void measure_faults(report& result, const installation& here, const settings& chosen,
                    const std::string& cpus) {
  tell_progress("shared: faults");
  const environment of_core_each{{"SOJOURN_CORES", "3"}, {"SOJOURN_SHARED_FETCH", "1"}};
  environment eight = of_core_each;
  eight.back().second = "8";
  worker alone = three_ranks(here, cpus, of_core_each);
  worker together = three_ranks(here, cpus, eight);
  worker bare("peer_fault", {here.program("peer_fault"), "--cpus", cpus}, 1);
  const batch_plan pages{.iterations = fewer_if_quick(chosen, 2048), .repeats = 5};
  const batch_plan calls{.iterations = fewer_if_quick(chosen, 2000), .repeats = 5};
  samples all =
      interleave(chosen.work.rounds(),
                 {of("fault", alone, "fault", pages), of("call", alone, "call", calls),
                  of("bare", bare, "fault", pages), of("fault8", together, "fault", pages),
                  of("own", alone, "fault_own", pages)});
  std::vector<double>& sums = all["call and bare fault"];
  for (std::size_t i = 0; i < all["call"].size(); ++i)
    sums.push_back(all["call"][i] + all["bare"][i]);
  result.add_ratio(group, "fault_over_rpc",
                   "remote fault of a clean page over a call that brings 4 KiB and a bare fault",
                   1.15, compare(all, "fault", "call and bare fault"));
  result.add_ratio(group, "fault8_over_fault",
                   "a page of 8 fetched together over one fetched alone", 0.45,
                   compare(all, "fault8", "fault"));
  result.add_ratio_detail(group, "fault_own_over_rpc", compare(all, "own", "call and bare fault"));
  result.add_detail(group, "fault_call_ns", to_thousandths(median(all["call"])));
  result.add_detail(group, "fault_bare_ns", to_thousandths(median(all["bare"])));
  result.add_detail(group, "fault_bare_by",
                    bare.ask("is_uffd", {}).front() != 0 ? "userfaultfd" : "mprotect");
}

void measure_argo(report& result, const installation& here, const settings& chosen,
                  const std::string& cpus) {
  constexpr const char* peer = "peer_argodsm";
  constexpr const char* what = "remote fault of a page over ArgoDSM's read miss";
  if (!here.has(peer)) {
    return result.add_missing(group, "fault_over_argo", what, 0.5,
                              "ArgoDSM was not found when this was built "
                              "(cmake -DARGODSM_ROOT=FOLDER)");
  }
  tell_progress("shared: faults beside ArgoDSM's");
  worker ours = three_ranks(here, cpus, {{"SOJOURN_CORES", "3"}, {"SOJOURN_SHARED_FETCH", "1"}});
  arguments words = here.mpi_job(2, peer);
  words.insert(words.end(), {"--cpus", cpus});
  // Blocks of pages in turn, so that both processes are the home of some.
  worker argo(peer, words, 2, {{"ARGO_LOAD_SIZE", "1"}, {"ARGO_ALLOCATION_POLICY", "1"}});
  const batch_plan pages{.iterations = fewer_if_quick(chosen, 2048), .repeats = 5};
  const samples all = interleave(
      chosen.work.rounds(), {of("ours", ours, "fault", pages), of("argo", argo, "miss", pages)});
  result.add_ratio(group, "fault_over_argo", what, 0.5, compare(all, "ours", "argo"));
}

void measure_diffs(report& result, const installation& here, const settings& chosen,
                   const std::string& cpus) {
  constexpr const char* peer = "bench_diff";
  struct pattern {
    const char* key;
    const char* what;
    double reach;
  };
  constexpr std::array patterns{pattern{"clean", "of equal pages", 0.8},
                                pattern{"eighth", "of pages of which an eighth has changed", 0.6},
                                pattern{"dense", "of pages with a change in each line", 0.35}};
  const auto key = [](const pattern& p) { return fmt::format("diff_over_memcmp_{}", p.key); };
  const auto what = [](const pattern& p) {
    return fmt::format("speed of diffs {} over memcmp's", p.what);
  };
  if (!here.has(peer)) {
    for (const pattern& p : patterns) {
      result.add_missing(group, key(p), what(p), p.reach,
                         "bench_diff was not built: it is one of the tests", true);
    }
    return;
  }
  tell_progress("shared: diffs");
  worker diffs(peer, {here.program(peer), "--cpus", cpus}, 1);
  constexpr std::uint64_t near_bytes = 16 << 10;  // as much again are twins: the first-level cache
  const auto measure = [&](std::uint64_t bytes) {
    const batch_plan plan{
        .iterations = fewer_if_quick(chosen, 20'000), .repeats = 5, .bytes = bytes};
    std::vector<contender> contenders{of("memcmp", diffs, "memcmp", plan)};
    for (const pattern& p : patterns) contenders.push_back(of(p.key, diffs, p.key, plan));
    return interleave(chosen.work.rounds(), contenders);
  };
  const samples near = measure(near_bytes);
  const samples far = measure(std::uint64_t{64} << 20);
  for (const pattern& p : patterns) {
    result.add_rate_ratio(group, key(p), what(p), p.reach, compare(near, p.key, "memcmp"));
    result.add_ratio_detail(group, key(p) + "_from_memory", inverse(compare(far, p.key, "memcmp")));
  }
}

void measure_locks(report& result, const installation& here, const settings& chosen, worker& two,
                   const std::string& cpus) {
  tell_progress("shared: locks");
  const batch_plan plan{.iterations = fewer_if_quick(chosen, 2000), .repeats = 5};
  const samples two_hop = interleave(
      chosen.work.rounds(), {of("lock", two, "lock2", plan), of("call", two, "null", plan)});
  result.add_ratio(group, "lock_over_rpc_two_hop",
                   "lock that another rank held last, two messages, over a null call", 1.5,
                   compare(two_hop, "lock", "call"));

  // Where ranks share cores, calls among all pairs of them are as good as locks that go round.
  const bool crowded = std::thread::hardware_concurrency() < 3;
  arguments words{here.program("sojourn"), "run", "-n", "3", "--no-bind", here.program(program)};
  if (crowded) words.insert(words.end(), {"--cpus", cpus});
  worker three(program, words, 1);
  const samples three_hop =
      interleave(chosen.work.rounds(),
                 {of("lock", three, "lock3", plan), of("call", three, "null_pairs", plan)});
  result.add_ratio(group, "lock_over_rpc_three_hop",
                   fmt::format("the same, three messages among three ranks{}, over a null call",
                               crowded ? " on two cores" : ""),
                   2.5, compare(three_hop, "lock", "call"));
  result.add_detail(group, "lock_over_rpc_three_hop_crowded", crowded);

  std::vector<double> waits;
  const batch_plan one{.iterations = 1, .repeats = 5};
  for (int round = 0; round < chosen.work.rounds(); ++round)
    waits.push_back(median(two.ask("lock_computing", one)) / 1000);
  const auto tenths = [](double us) { return std::round(us * 10) / 10; };
  result.add_value(
      {group, "lock_from_computing_us",
       "us until a lock comes whose last holder computes for 10 ms", tenths(median(waits)), 100,
       fmt::format("{:.1f} us", median(waits)), "-",
       spread{tenths(quantile(waits, 0.25)), tenths(quantile(waits, 0.75)), tenths(minimum(waits))},
       chosen.work.rounds()});
  result.add_detail(group, "lock_from_computing_us_q1", tenths(quantile(waits, 0.25)));
  result.add_detail(group, "lock_from_computing_us_q3", tenths(quantile(waits, 0.75)));
}

void measure_barrier(report& result, const installation& here, const settings& chosen, int ranks) {
  const bool crowded = static_cast<int>(std::thread::hardware_concurrency()) < ranks;
  const std::string key = fmt::format("barrier{}_over_mpi", ranks);
  const std::string what = fmt::format("shared::barrier of {} {}ranks{} over OpenMPI's", ranks,
                                       ranks == 2 ? "bound " : "",
                                       crowded ? ", oversubscribed (both sides yield)," : "");
  tell_progress(fmt::format("shared: barriers of {} ranks", ranks));
  const std::string no_mpi = here.mpi_missing("peer_mpi_scale");
  if (!no_mpi.empty()) return result.add_missing(group, key, what, 1.2, no_mpi);
  worker ours(program, here.job(ranks, program), 1);
  arguments words = here.mpi_job(ranks, "peer_mpi_scale");
  if (ranks == 2) words.insert(words.end(), {"--cpus", comma_list(ours.ask("cpus", {}))});
  worker mpi("peer_mpi_scale", words, ranks);
  const batch_plan plan{.iterations = fewer_if_quick(chosen, ranks == 2 ? 2000 : 200),
                        .repeats = 3};
  const samples all = interleave(
      chosen.work.rounds(), {of("ours", ours, "barrier", plan), of("mpi", mpi, "barrier", plan)});
  result.add_ratio(group, key, what, 1.2, compare(all, "ours", "mpi"));
}

/// What a barrier costs as ranks become more, each of which stores a word before it.
void tell_growth_of_barriers(report& result, const installation& here, const settings& chosen) {
  constexpr int most_ranks = 128;
  std::string text = fmt::format(
      "Barriers before which each rank has stored one word, on {} cores\n"
      "{:>7} {:>14} {:>26}\n",
      std::thread::hardware_concurrency(), "ranks", "us", "most bytes a rank sends");
  nlohmann::json rows = nlohmann::json::array();
  for (int ranks = 2; ranks <= most_ranks; ranks *= 2) {
    tell_progress(fmt::format("shared: barriers of {} ranks that store", ranks));
    arguments words{here.program("sojourn"), "run", "-n", std::to_string(ranks)};
    words.push_back(here.program(program));
    worker job(program, words, 1);
    const batch_plan plan{.iterations = fewer_if_quick(chosen, ranks <= 8 ? 200 : 40),
                          .repeats = 3};
    const double us = median(job.ask("barrier_words", plan)) / 1000;
    const double bytes = median(job.ask("barrier_bytes", plan));
    text += fmt::format("{:>7} {:>14.1f} {:>26.0f}\n", ranks, us, bytes);
    rows.push_back({{"ranks", ranks}, {"us", us}, {"bytes_sent_most", bytes}});
  }
  result.add_text(std::move(text));
  result.add_detail(group, "barrier_words", std::move(rows));
}

}  // namespace

void bench_shared(report& result, const installation& here, const settings& chosen,
                  const shared_settings& asked) {
  const std::vector<nine_application> applications = those_of(asked);
  if (asked.paper) {
    return bench_paper_of_shared(
        result, here, {applications, asked.size, asked.ranks, asked.delay, chosen.figures});
  }
  {
    worker two(program, here.job(2, program), 1);
    const std::string cpus = comma_list(two.ask("cpus", {}));
    measure_faults(result, here, chosen, cpus);
    measure_argo(result, here, chosen, cpus);
    measure_diffs(result, here, chosen, cpus);
    measure_locks(result, here, chosen, two, cpus);
  }
  for (const int ranks : {2, 4, 8}) measure_barrier(result, here, chosen, ranks);
  tell_growth_of_barriers(result, here, chosen);
  if (applications.empty()) return;
  add_sor_over_mpi(result, here, chosen);
  add_nine_figures(result, here, chosen, applications);
}

}  // namespace bench
