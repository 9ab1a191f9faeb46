// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <fstream>

#include "driver/benchmarks.hpp"

namespace bench {
namespace {

constexpr int ranks = 2;

/// Nanoseconds an operation of one run of the B-tree, built or set in one of three ways.
double operation_of(const installation& here, const temporary_directory& scratch,
                    const std::string& program, const char* is_checked, const settings& chosen) {
  const std::string file = (scratch.path() / "figures.json").string();
  arguments words = here.job(ranks, program);
  for (const std::string& word :
       {std::string("--ints"), std::string("--workload"), std::string("A"), std::string("--via"),
        std::string("migrate"), std::string("--ops"),
        std::string(chosen.work.quick ? "100000" : "1000000"), std::string("--json"), file})
    words.push_back(word);
  const captured run = run_and_capture(words, {{"SOJOURN_CHECKED", is_checked}});
  if (run.status != 0)
    throw failure(fmt::format("{} ended with status {}: {}", program, run.status, run.output));
  std::ifstream in(file);
  const nlohmann::json figures = nlohmann::json::parse(in).at("figures");
  return 1e9 / figures.at("operations_per_second").get<double>();
}

}  // namespace

void bench_checked(report& result, const installation& here, const settings& chosen) {
  tell_progress("checked: the B-tree, YCSB A by migration, in checked mode and without");
  const temporary_directory scratch;
  const auto batch = [&](const char* program, const char* is_checked) {
    return [&, program, is_checked] {
      return operation_of(here, scratch, program, is_checked, chosen);
    };
  };
  const samples all = interleave(chosen.work.rounds(), {{"on", batch("btree", "1")},
                                                        {"off", batch("btree", "0")},
                                                        {"out", batch("btree_unchecked", "0")}});
  result.add_ratio("checked", "slowdown_btree", "B-tree in checked mode over the same without", 1.5,
                   compare(all, "on", "off"));
  result.add_ratio("checked", "off_cost", "B-tree without, over one built without checked mode",
                   1.01, compare(all, "off", "out"));
}

}  // namespace bench
