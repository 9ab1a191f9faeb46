// SPDX-License-Identifier: Apache-2.0
//
// Containers: k-mers counted and keys inserted, beside MPI by hand and one std::unordered_map;
// random updates by a bundle; walks that migrate; searches of a graph beside one loop.
#include <fmt/format.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "driver/application_run.hpp"
#include "driver/benchmarks.hpp"

namespace bench {
namespace {

constexpr int ranks = 2;
constexpr const char* group = "containers";
/// Of what goes to a rank in one message; with headers on our side.
constexpr std::array<const char*, 4> bundle_sizes{"4000", "8128", "16384", "65536"};

constexpr int rounds_of_sizes = 5;

/// One thing that both sides do, and the program and options of each.
struct pairing {
  const char* key;
  const char* what;
  double reach;
  bool is_rate;  ///< Told as a rate over a rate, to be reached at least.
  std::string program;
  arguments ours;
  arguments peers;
  arguments both;
};

std::string of_size(const char* side, const char* size) { return fmt::format("{}_{}", side, size); }

/// Each side with the bundles that suit it best. In `alone`: the same in one loop, in nanoseconds.
void compare_with_mpi(report& result, const installation& here, const settings& chosen,
                      const pairing& pair, std::vector<double>* alone) {
  const std::string peer = pair.program + "_mpi";
  if (const std::string missing = here.mpi_missing(peer); !missing.empty())
    return result.add_missing(group, pair.key, pair.what, pair.reach, missing, pair.is_rate);
  tell_progress(fmt::format("containers: {}", pair.what));
  const auto options = [&](const arguments& own, const char* size) {
    arguments all = own;
    all.insert(all.end(), pair.both.begin(), pair.both.end());
    all.insert(all.end(), {"--bundle", size});
    return all;
  };
  std::vector<contender> contenders;
  std::vector<std::string> ours;
  std::vector<std::string> peers;
  for (const char* size : bundle_sizes) {
    ours.push_back(of_size("ours", size));
    contenders.push_back({ours.back(), [&, size, alone] {
                            const nlohmann::json figures =
                                application_run::of_sojourn(here, ranks, pair.program,
                                                            options(pair.ours, size))
                                    .figures();
                            if (alone != nullptr)
                              alone->push_back(figures.at("seconds_alone").get<double>() * 1e9);
                            return figures.at("seconds").get<double>() * 1e9;
                          }});
    peers.push_back(of_size("mpi", size));
    contenders.push_back({peers.back(), [&, size] {
                            return application_run::of_mpi(here, ranks, peer,
                                                           options(pair.peers, size))
                                .nanoseconds();
                          }});
  }
  // The best size of each side is found first, and then these two are compared.
  const samples sizes = interleave(chosen.work.quick ? 1 : rounds_of_sizes, contenders);
  const std::string our_best = quickest(sizes, ours);
  const std::string mpi_best = quickest(sizes, peers);
  std::erase_if(contenders,
                [&](const contender& c) { return c.name != our_best && c.name != mpi_best; });
  if (alone != nullptr) alone->clear();
  const samples all = interleave(chosen.work.rounds(), contenders);
  if (pair.is_rate) {
    result.add_rate_ratio(group, pair.key, pair.what, pair.reach, compare(all, our_best, mpi_best));
  } else {
    result.add_ratio(group, pair.key, pair.what, pair.reach, compare(all, our_best, mpi_best));
  }
  result.add_detail(group, std::string(pair.key) + "_best", our_best);
  result.add_detail(group, std::string(pair.key) + "_mpi_best", mpi_best);
  if (alone == nullptr) return;
  // Each of our runs has timed the loop, too.
  const samples beside{{"ours", all.find(our_best)->second}, {"alone", *alone}};
  result.add_ratio(group, "counter_over_alone",
                   "time, k-mers counted by dist_counter over std::unordered_map in one process",
                   0.6, compare(beside, "ours", "alone"));
}

void compare_walks(report& result, const installation& here, const settings& chosen) {
  tell_progress("containers: walks");
  const std::string walks = chosen.work.quick ? "1000" : "4000";
  std::vector<contender> contenders;
  for (const char* place : {"minimizer", "hash"})
    for (const char* word : {"rpc", "migrate"})
      contenders.push_back({fmt::format("{}_{}", word, place), [&here, walks, place, word] {
                              const nlohmann::json figures =
                                  application_run::of_sojourn(here, ranks, "kmers",
                                                              {"--form", "walk", "--via", word,
                                                               "--place", place, "--walks", walks})
                                      .figures();
                              return figures.at("seconds").get<double>() * 1e9 /
                                     figures.at("steps").get<double>();
                            }});
  const samples all = interleave(chosen.work.rounds(), contenders);
  result.add_ratio(group, "walk_migrate_over_rpc",
                   "time, walks along k-mers that lie by minimizer, migrate over rpc", 0.45,
                   compare(all, "migrate_minimizer", "rpc_minimizer"));
  result.add_ratio(group, "walk_by_hash_migrate_over_rpc", "the same where they lie by hash",
                   std::nullopt, compare(all, "migrate_hash", "rpc_hash"));
}

/// Graphs: each run times the same in one loop of one process.
void compare_with_loop(report& result, const installation& here, const settings& chosen) {
  struct search {
    const char* form;
    double reach;
  };
  constexpr std::array<search, 3> searches{{{"bfs", 2}, {"components", 1.2}, {"triangles", 0.7}}};
  tell_progress("containers: graphs");
  std::vector<contender> contenders;
  samples alone;
  for (const search& s : searches)
    contenders.push_back(
        {s.form, [&, form = std::string(s.form)] {
           const nlohmann::json figures =
               application_run::of_sojourn(
                   here, ranks, "rmat",
                   {"--form", form, "--scale", chosen.work.quick ? "15" : "18", "--repeats", "1"})
                   .figures();
           alone[form].push_back(figures.at("seconds_alone").get<double>() * 1e9);
           return figures.at("seconds").get<double>() * 1e9;
         }});
  const samples all = interleave((chosen.work.rounds() + 1) / 2, contenders);
  for (const search& s : searches) {
    const samples both{{"ours", all.find(s.form)->second}, {"alone", alone.find(s.form)->second}};
    result.add_ratio(group, fmt::format("{}_over_serial", s.form),
                     fmt::format("time, {} of an R-MAT graph over one loop in one process", s.form),
                     s.reach, compare(both, "ours", "alone"));
  }
}

}  // namespace

void bench_containers(report& result, const installation& here, const settings& chosen) {
  const bool quick = chosen.work.quick;
  std::vector<double> alone;
  const arguments reads{"--bases", quick ? "50000" : "200000", "--coverage", "10"};
  compare_with_mpi(result, here, chosen,
                   {"counter_over_mpi",
                    "time, k-mers counted by dist_counter over MPI by hand",
                    1.0,
                    false,
                    "kmers",
                    {"--form", "counter"},
                    {},
                    reads},
                   &alone);
  compare_with_mpi(result, here, chosen,
                   {"map_insert_over_mpi",
                    "time, random keys put into dist_map over MPI by hand",
                    1.0,
                    false,
                    "kmers",
                    {"--form", "map"},
                    {},
                    {"--random-keys", quick ? "100000" : "400000"}},
                   nullptr);
  const std::string updates = quick ? "1048576" : "8388608";
  compare_with_mpi(result, here, chosen,
                   {"typed_bundle_over_mpi_bundled",
                    "8-byte items a second, a bundle over MPI packed by hand",
                    1.2,
                    true,
                    "gups",
                    {"--form", "batch"},
                    {"--form", "aggregated"},
                    {"--updates", updates, "--log2", "14"}},
                   nullptr);
  compare_with_mpi(result, here, chosen,
                   {"gups_over_mpi",
                    "random updates a second, a bundle over MPI packed by hand",
                    1.1,
                    true,
                    "gups",
                    {"--form", "batch"},
                    {"--form", "aggregated"},
                    {"--updates", updates}},
                   nullptr);
  compare_walks(result, here, chosen);
  compare_with_loop(result, here, chosen);
}

}  // namespace bench
