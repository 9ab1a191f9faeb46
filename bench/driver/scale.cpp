// SPDX-License-Identifier: Apache-2.0
//
// What many ranks cost beside OpenMPI: collectives, calls under load, pairs at once, memory, and
// starting. With more ranks than cores the ranks of neither side are bound, and both yield.
#include <fmt/format.h>

#include <array>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "driver/benchmarks.hpp"

namespace bench {
namespace {

constexpr std::array rank_counts{2, 4, 8};
constexpr std::uint64_t call_bytes = 64;
constexpr const char* ours_name = "bench_scale";
constexpr const char* mpi_name = "peer_mpi_scale";

bool is_oversubscribed(int ranks) {
  return static_cast<int>(std::thread::hardware_concurrency()) < ranks;
}

/// Both sides of a job. Where there are enough cores each rank is bound to one, the same ones.
class contest {
 public:
  contest(const installation& here, int ranks) : ours_(ours_name, here.job(ranks, ours_name), 1) {
    if (!here.mpi_missing(mpi_name).empty()) return;
    arguments words = here.mpi_job(ranks, mpi_name);
    if (!is_oversubscribed(ranks)) {
      words.insert(words.end(), {"--cpus", comma_list(ours_.ask("cpus", {}))});
    }
    mpi_ = std::make_unique<worker>(mpi_name, words, ranks);
  }

  worker& ours() { return ours_; }
  /// Null where it is missing.
  worker* mpi() { return mpi_.get(); }

  /// Medians of batches, in turns.
  samples measure(const settings& chosen, const std::string& operation, const batch_plan& plan) {
    std::vector<contender> contenders{{"ours", [&] { return ours_.median_of(operation, plan); }}};
    if (mpi_) contenders.push_back({"mpi", [&] { return mpi_->median_of(operation, plan); }});
    return interleave(chosen.work.rounds(), contenders);
  }

 private:
  worker ours_;
  std::unique_ptr<worker> mpi_;
};

std::string of_ranks(const std::string& what, int ranks) {
  return fmt::format("{}, {} ranks{}", what, ranks,
                     is_oversubscribed(ranks) ? ", oversubscribed" : "");
}

/// Of a figure without a mark: a ratio, or why there is none.
void add(report& result, const installation& here, const char* group, const std::string& key,
         const std::string& what, const samples& all) {
  if (!all.contains("mpi")) {
    return result.add_missing(group, key, what, std::nullopt, here.mpi_missing(mpi_name));
  }
  result.add_ratio(group, key, what, std::nullopt, compare(all, "ours", "mpi"));
}

std::uint64_t fewer_if_quick(const settings& chosen, std::uint64_t full) {
  return chosen.work.quick ? full / 10 : full;
}

}  // namespace

void bench_collectives(report& result, const installation& here, const settings& chosen) {
  struct operation {
    const char* name;
    const char* title;
    std::uint64_t bytes;
  };
  constexpr std::array operations{operation{"broadcast", "broadcast of 8 B", 8},
                                  operation{"broadcast", "broadcast of 4 KiB", 4096},
                                  operation{"reduce", "reduce to all of 8 B", 8},
                                  operation{"reduce", "reduce to all of 4 KiB", 4096}};
  for (const int ranks : rank_counts) {
    tell_progress(fmt::format("collectives: {} ranks", ranks));
    contest both(here, ranks);
    const batch_plan few{
        .iterations = fewer_if_quick(chosen, is_oversubscribed(ranks) ? 200 : 1000), .repeats = 3};
    for (const operation& each : operations) {
      batch_plan plan = few;
      plan.bytes = each.bytes;
      add(result, here, "collectives",
          fmt::format("{}{}_{}B_over_mpi", each.name, ranks, each.bytes),
          of_ranks(fmt::format("{} over OpenMPI's", each.title), ranks),
          both.measure(chosen, each.name, plan));
    }
  }
}

void bench_load(report& result, const installation& here, const settings& chosen) {
  contest both(here, 2);
  const batch_plan plan{
      .iterations = fewer_if_quick(chosen, 20'000), .repeats = 1, .bytes = call_bytes};
  constexpr std::array<std::pair<std::size_t, const char*>, 3> ranks_of{
      {{0, "p50"}, {1, "p99"}, {2, "p99_9"}}};
  for (const int width : {1, 8, 64}) {
    tell_progress(fmt::format("load: {} calls under way", width));
    const std::string operation = fmt::format("load.{}", width);
    // Each round gives all three percentiles of both.
    std::map<std::string, std::vector<std::vector<double>>> rounds;
    std::vector<contender> contenders{{"ours", [&] {
                                         auto p = both.ours().ask(operation, plan);
                                         rounds["ours"].push_back(p);
                                         return p.front();
                                       }}};
    if (both.mpi() != nullptr) {
      contenders.push_back({"mpi", [&] {
                              auto p = both.mpi()->ask(operation, plan);
                              rounds["mpi"].push_back(p);
                              return p.front();
                            }});
    }
    interleave(chosen.work.rounds(), contenders);
    for (const auto& [index, name] : ranks_of) {
      samples of_percentile;
      for (const auto& [side, all] : rounds) {
        for (const auto& round : all) of_percentile[side].push_back(round.at(index));
      }
      std::string title = name;
      if (title == "p99_9") title = "p99.9";
      add(result, here, "load", fmt::format("{}_of_{}_over_mpi", name, width),
          fmt::format("{} of 64-byte round trips, {} under way, over OpenMPI's", title, width),
          of_percentile);
    }
  }
}

void bench_scaling(report& result, const installation& here, const settings& chosen) {
  for (const int pairs : {1, 2, 4}) {
    tell_progress(fmt::format("scaling: {} pairs of ranks", pairs));
    const int ranks = 2 * pairs;
    contest both(here, ranks);
    const batch_plan plan{
        .iterations = fewer_if_quick(chosen, is_oversubscribed(ranks) ? 200 : 2000),
        .repeats = 3,
        .bytes = call_bytes};
    add(result, here, "scaling", fmt::format("pairs{}_over_mpi", pairs),
        of_ranks(fmt::format("64-byte round trips, {} pairs at once, over OpenMPI's", pairs),
                 ranks),
        both.measure(chosen, "pairs", plan));
  }
  for (const int ranks : {2, 16, 64}) {
    tell_progress(fmt::format("scaling: a pair among {} ranks", ranks));
    contest both(here, ranks);
    const batch_plan plan{
        .iterations = fewer_if_quick(chosen, 1000), .repeats = 3, .bytes = call_bytes};
    add(result, here, "scaling", fmt::format("pair_among{}_over_mpi", ranks),
        of_ranks("64-byte round trip while all other ranks wait, over OpenMPI's", ranks),
        both.measure(chosen, "corner", plan));
  }
}

void bench_start(report& result, const installation& here, const settings& chosen) {
  for (const int ranks : rank_counts) {
    tell_progress(fmt::format("start: memory of {} ranks", ranks));
    contest both(here, ranks);
    const auto bytes = [&](worker& of) { return of.ask("memory", {}).front(); };
    const double ours = bytes(both.ours());
    const double mpi = both.mpi() != nullptr ? bytes(*both.mpi()) : 0;
    const auto mebibytes = [](double b) { return fmt::format("{:.1f} MiB", b / (1 << 20)); };
    const std::string key = fmt::format("memory{}_over_mpi", ranks);
    const std::string what =
        of_ranks("memory of a rank that has done nothing, over OpenMPI's", ranks);
    if (both.mpi() == nullptr) {
      result.add_missing("start", key, what, std::nullopt, here.mpi_missing(mpi_name));
    } else {
      result.add_value({"start", key, what, to_thousandths(ours / mpi), std::nullopt,
                        mebibytes(ours), mebibytes(mpi), std::nullopt});
      result.add_detail("start", fmt::format("memory{}_mpi_bytes", ranks), mpi);
    }
    result.add_detail("start", fmt::format("memory{}_bytes", ranks), ours);
  }
  for (const int ranks : rank_counts) {
    tell_progress(fmt::format("start: jobs of {} ranks", ranks));
    const auto whole = [](arguments words, const char* operation) {
      words.insert(words.end(), {"--operation", operation, "--iterations", "1", "--samples", "1"});
      const std::uint64_t start_ns = clock_ns();
      if (const captured run = run_and_capture(words); run.status != 0) {
        throw failure(fmt::format("{} ended with status {}", words.front(), run.status));
      }
      return static_cast<double>(clock_ns() - start_ns);
    };
    std::vector<contender> contenders{
        {"ours", [&] { return whole(here.job(ranks, ours_name), "barrier"); }}};
    if (here.mpi_missing(mpi_name).empty()) {
      contenders.push_back(
          {"mpi", [&] { return whole(here.mpi_job(ranks, mpi_name), "barrier"); }});
    }
    add(result, here, "start", fmt::format("job{}_over_mpirun", ranks),
        of_ranks("a job that begins, meets and ends, over mpirun's", ranks),
        interleave(chosen.work.rounds(), contenders));
  }
}

void bench_onesided(report& result, const installation& here, const settings& chosen) {
  constexpr const char* peer = "peer_mpi_window";
  tell_progress("onesided: one-sided access");
  worker ours("bench_rpc", here.job(2, "bench_rpc"), 1);
  const std::string cpus = comma_list(ours.ask("cpus", {}));
  const std::string no_mpi = here.mpi_missing(peer);
  std::unique_ptr<worker> mpi;
  if (no_mpi.empty()) {
    arguments words = here.mpi_job(2, peer);
    words.insert(words.begin() + 1, {"--mca", "osc", "sm"});
    words.insert(words.end(), {"--cpus", cpus});
    mpi = std::make_unique<worker>(peer, words, 2);
  }
  struct access {
    const char* key;
    const char* what;
    const char* operation;
    std::uint64_t bytes;
  };
  constexpr std::array accesses{
      access{"put_8B", "put of 8 B", "window_put", 8},
      access{"get_8B", "get of 8 B", "window_get", 8},
      access{"put_4KiB", "put of 4 KiB", "window_put", 4096},
      access{"get_4KiB", "get of 4 KiB", "window_get", 4096},
      access{"fetch_add", "atomic fetch and add", "window_fetch_add", 8},
      access{"put_signal", "put of 4 KiB and a signal, seen there and answered so",
             "window_put_signal", 4096}};
  for (const access& each : accesses) {
    tell_progress(fmt::format("onesided: {}", each.what));
    const batch_plan plan{
        .iterations = fewer_if_quick(chosen, 5000), .repeats = 5, .bytes = each.bytes};
    std::vector<contender> contenders{
        {"ours", [&] { return ours.median_of(each.operation, plan); }}};
    if (mpi) contenders.push_back({"mpi", [&] { return mpi->median_of(each.operation, plan); }});
    const samples all = interleave(chosen.work.rounds(), contenders);
    const std::string key = fmt::format("{}_over_mpi_window", each.key);
    const std::string what = fmt::format("{}, over MPI's shared-memory window", each.what);
    if (!mpi) {
      result.add_missing("onesided", key, what, std::nullopt, no_mpi);
    } else {
      result.add_ratio("onesided", key, what, std::nullopt, compare(all, "ours", "mpi"));
    }
  }
}

}  // namespace bench
