// SPDX-License-Identifier: Apache-2.0
// Under every policy and with every grain the threads find what a loop finds.
#include <fmt/format.h>
#include <sojourn/sojourn.hpp>

#include "uts/search.hpp"

namespace {

using namespace apps::uts;

int failures = 0;

void expect(bool holds, const std::string& claim) {
  if (holds) return;
  ++failures;
  fmt::print(stderr, "rank {}: does not hold: {}\n", sojourn::rank_me(), claim);
}

void threads_find_what_a_loop_finds() {
  const tree trees[] = {
      {.kind = shape::geometric, .seed = 19, .branching = 4, .depth_limit = 6},
      {.kind = shape::geometric, .seed = 7, .branching = 2, .depth_limit = 0},
      {.kind = shape::binomial, .seed = 3, .branching = 200, .q = 0.12, .children = 8},
  };
  for (const tree& t : trees) {
    const tally wanted = search_alone(t);
    for (auto policy : {sojourn::balance_policy::none, sojourn::balance_policy::steal,
                        sojourn::balance_policy::diffuse}) {
      sojourn::balance(policy);
      for (std::uint32_t grain : {1u, 10u, 250u, 1'000'000u}) {
        const search_result r = search({.tree = t, .grain = grain});
        expect(r.found == wanted,
               fmt::format("tree of seed {}, policy {}, grain {}: {} nodes, not {}", t.seed,
                           sojourn::name_of(policy), grain, r.found.nodes, wanted.nodes));
        expect(r.busiest <= wanted.nodes, "no rank finds more than there is");
        if (policy == sojourn::balance_policy::none) {
          expect(r.busiest == wanted.nodes && r.spent.threads_handed_over == 0,
                 "without load balance all is done where it began");
        }
      }
    }
    sojourn::balance(sojourn::balance_policy::none);
  }
}

void published_ones_are_known_by_name() {
  expect(find_tree("T1") != nullptr && find_tree("T3")->size.depth == 1572, "T1 and T3 are there");
  expect(find_tree("T0") == nullptr, "others are not");
}

}  // namespace

int main(int argc, char** argv) {
  return sojourn::run(argc, argv, [] {
    threads_find_what_a_loop_finds();
    published_ones_are_known_by_name();
    return sojourn::reduce(failures, [](int a, int b) { return a + b; }) == 0 ? 0 : 1;
  });
}
