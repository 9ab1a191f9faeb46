// SPDX-License-Identifier: Apache-2.0
// On any number of ranks, under every policy and wherever the processes begin, the same events are
// handled in the same order as by one loop.
#include <fmt/format.h>
#include <sojourn/sojourn.hpp>

#include "phold/simulation.hpp"

namespace {

using namespace apps::phold;

int failures = 0;

void expect(bool holds, const std::string& claim) {
  if (holds) return;
  ++failures;
  fmt::print(stderr, "rank {}: does not hold: {}\n", sojourn::rank_me(), claim);
}

void agrees_with_one_loop(settings s, const std::string& what) {
  const result wanted = simulate_alone(s);
  for (auto policy : {sojourn::balance_policy::none, sojourn::balance_policy::steal,
                      sojourn::balance_policy::diffuse}) {
    sojourn::balance(policy);
    for (bool spread : {false, true}) {
      for (bool affinity : {false, true}) {
        s.spread = spread;
        s.affinity = affinity;
        const result r = simulate(s);
        expect(r.events == wanted.events && r.checksum == wanted.checksum,
               fmt::format("{}, policy {}, spread {}, affinity {}: {} events with {:x}, not {} "
                           "with {:x}",
                           what, sojourn::name_of(policy), spread, affinity, r.events, r.checksum,
                           wanted.events, wanted.checksum));
      }
    }
  }
  sojourn::balance(sojourn::balance_policy::none);
}

}  // namespace

int main(int argc, char** argv) {
  return sojourn::run(argc, argv, [] {
    agrees_with_one_loop({.processes = 24, .events = 4, .end = 20}, "as it is");
    agrees_with_one_loop({.processes = 1, .events = 3, .end = 20}, "one process");
    agrees_with_one_loop({.processes = 8, .events = 90, .lookahead = 2, .end = 8},
                         "full mailboxes");
    agrees_with_one_loop({.processes = 8, .events = 2, .mean_delay = 0, .end = 5}, "equal times");
    agrees_with_one_loop({.processes = 8, .events = 2, .end = 0}, "nothing to do");
    agrees_with_one_loop({.processes = 16, .lookahead = 0.1, .end = 3, .work = 0, .seed = 7},
                         "small windows");
    return sojourn::reduce(failures, [](int a, int b) { return a + b; }) == 0 ? 0 : 1;
  });
}
