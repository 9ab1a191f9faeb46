// SPDX-License-Identifier: Apache-2.0
// Under every policy and number of requesters a counting network hands out 0 … n-1, each once, and
// its counters have the step property; and it costs the messages that it should.
#include <fmt/format.h>
#include <sojourn/sojourn.hpp>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "counting_network/counting_network.hpp"

namespace {

using sojourn::via;

int failures = 0;

void expect(bool holds, const std::string& claim) {
  if (holds) return;
  ++failures;
  fmt::print(stderr, "rank {}: does not hold: {}\n", sojourn::rank_me(), claim);
}

void hands_out_each_number_once() {
  for (via how : {via::rpc, via::migrate, via::migrate.activations(2), via::migrate.all()}) {
    for (int requesters : {1, 3, 16}) {
      for (std::uint64_t requests : {1, 7, 500}) {
        const auto result = apps::run_counting(
            {.requesters = requesters, .requests = requests, .think_cycles = 0, .how = how});
        expect(result.wrong.empty(),
               fmt::format("{} requesters, {} requests: {}", requesters, requests, result.wrong));
        expect(result.measured.operations == requests, "every request was counted");
      }
    }
  }
}

void one_after_another_the_numbers_are_in_order() {
  apps::counting_network network;
  if (sojourn::rank_me() == 0) {
    network = apps::counting_network::create();
    for (std::uint64_t i = 0; i < 40; ++i) {
      // Where a request enters does not matter.
      const auto number = network.take(static_cast<int>(i * 5), i % 2 ? via::rpc : via::migrate);
      expect(number == i, fmt::format("request {} gets {}", i, number));
    }
    const auto counts = network.counts();
    expect(std::ranges::all_of(counts, [](std::uint64_t c) { return c == 5; }),
           "40 requests leave 5 at each counter");
    network.destroy();
  }
  sojourn::barrier();
}

/// With a remote object after every remote object, seven accesses cost an rpc walk 14 messages and
/// a migrating one 8; objects that lie together cost less, the same for every seed.
void migration_sends_fewer_messages() {
  const apps::counting_options by_rpc{.requesters = 8, .requests = 800, .how = via::rpc};
  apps::counting_options by_migration = by_rpc;
  by_migration.how = via::migrate;
  const auto called = apps::run_counting(by_rpc).measured;
  const auto moved = apps::run_counting(by_migration).measured;
  expect(called.migrations == 0, "calls do not migrate");
  if (sojourn::rank_count() == 1) {
    expect(called.messages == 0 && moved.messages == 0, "one rank sends no messages");
  } else {
    expect(called.messages % 2 == 0, "each call has a reply");
    expect(called.messages_each() <= 14, "at most two messages an access");
    expect(moved.messages_each() <= 8, "at most one message an access and one for the result");
    expect(moved.messages < called.messages, "migration sends fewer messages");
  }
}

}  // namespace

int main(int argc, char** argv) {
  return sojourn::run(argc, argv, [] {
    hands_out_each_number_once();
    one_after_another_the_numbers_are_in_order();
    migration_sends_fewer_messages();
    return sojourn::reduce(failures, [](int a, int b) { return a + b; }) == 0 ? 0 : 1;
  });
}
