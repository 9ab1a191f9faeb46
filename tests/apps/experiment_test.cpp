// SPDX-License-Identifier: Apache-2.0
// Every workload leaves the tree equal to std::map, with the same answers, under every policy,
// layout and type of key; reads cost the messages that they should.
#include <fmt/format.h>
#include <sojourn/sojourn.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include "btree/experiment.hpp"

namespace {

using sojourn::via;

int failures = 0;

void expect(bool holds, const std::string& claim) {
  if (holds) return;
  ++failures;
  if (sojourn::rank_me() == 0) fmt::print(stderr, "does not hold: {}\n", claim);
}

template <class Key>
std::vector<Key> some_keys(int count) {
  std::vector<Key> keys;
  for (int i = 0; i < count; ++i) {
    if constexpr (std::is_same_v<Key, std::uint64_t>) {
      keys.push_back(apps::mix64(static_cast<std::uint64_t>(i)));
    } else {
      keys.push_back(fmt::format("key{}", i * 7));
    }
  }
  return keys;
}

template <class Key, class Value>
void every_workload_leaves_what_it_should(const apps::btree_options& options) {
  apps::experiment<Key, Value> tree(some_keys<Key>(700), options);
  const auto loaded = tree.load({.requesters = 5});
  expect(loaded.wrong.empty(), "load: " + loaded.wrong);
  expect(loaded.measured.operations == 700, "all records were loaded");
  for (const apps::workload& what : apps::workloads()) {
    for (via how : {via::rpc, via::migrate}) {
      const auto run =
          tree.run(what, {.requesters = 5, .operations = 200, .think_cycles = 100, .how = how});
      expect(run.wrong.empty(), fmt::format("workload {}: {}", what.name, run.wrong));
      expect(run.measured.operations == 200, "all requests were made");
    }
  }
  tree.destroy();
}

void fewer_records_than_requesters_do() {
  apps::experiment<apps::text_key, apps::text_value> tree({"alone"}, {});
  expect(tree.load({.requesters = 4}).wrong.empty(), "a tree of one record is loaded");
  for (const apps::workload& what : apps::workloads()) {
    const auto run = tree.run(what, {.requesters = 4, .operations = 40});
    expect(run.wrong.empty(), fmt::format("workload {}: {}", what.name, run.wrong));
  }
  tree.destroy();
}

/// Lookups in a tree of h levels: an rpc walk sends at most 2h messages, a migrating one h + 1.
void migration_sends_fewer_messages() {
  apps::experiment<std::uint64_t, std::uint64_t> tree(some_keys<std::uint64_t>(3000),
                                                      {.fanout = 10});
  expect(tree.load({}).wrong.empty(), "the records are loaded");
  const auto height = static_cast<double>(sojourn::broadcast(std::uint64_t{tree.shape().height()}));
  const apps::workload& reads = apps::workload_named("C");
  const auto called = tree.run(reads, {.operations = 500, .how = via::rpc}).measured;
  const auto moved = tree.run(reads, {.operations = 500, .how = via::migrate}).measured;
  expect(called.migrations == 0, "calls do not migrate");
  expect(called.messages_each() <= 2 * height, "at most two messages a page");
  expect(moved.messages_each() <= height + 1, "at most one message a page and one for the result");
  if (sojourn::rank_count() == 1) {
    expect(called.messages == 0 && moved.messages == 0, "one rank sends no messages");
  } else {
    expect(moved.messages < called.messages, "migration sends fewer messages");
  }
  tree.destroy();
}

/// Lookups that begin below the replicated levels.
void replicated_levels_save_their_messages() {
  std::vector<double> messages;
  for (const int levels : {0, 1, 2}) {
    apps::experiment<std::uint64_t, std::uint64_t> tree(some_keys<std::uint64_t>(3000),
                                                        {.fanout = 10, .replicated = levels});
    expect(tree.load({}).wrong.empty(), "the records are loaded");
    const auto height =
        static_cast<double>(sojourn::broadcast(std::uint64_t{tree.shape().height()}));
    const apps::workload& reads = apps::workload_named("C");
    for (const via how : {via::rpc, via::migrate}) {
      const auto run = tree.run(reads, {.operations = 500, .how = how});
      expect(run.wrong.empty(), run.wrong);
      const double most = how == via::rpc ? 2 * (height - levels) : height - levels + 1;
      // Some are versions that are still on their way.
      expect(run.measured.messages_each() <= most + 0.5,
             fmt::format("{} replicated levels of {}: {} messages a lookup", levels, height,
                         run.measured.messages_each()));
      if (how == via::rpc) messages.push_back(run.measured.messages_each());
    }
    tree.destroy();
  }
  if (sojourn::rank_count() > 1)
    expect(messages[0] > messages[1] && messages[1] > messages[2], "each level saves messages");
}

}  // namespace

int main(int argc, char** argv) {
  return sojourn::run(argc, argv, [] {
    for (apps::layout placement : {apps::layout::random, apps::layout::subtree}) {
      for (int fanout : {4, 100}) {
        every_workload_leaves_what_it_should<apps::text_key, apps::text_value>({fanout, placement});
        every_workload_leaves_what_it_should<std::uint64_t, std::uint64_t>({fanout, placement});
      }
    }
    for (int levels : {1, 2}) {
      every_workload_leaves_what_it_should<std::uint64_t, std::uint64_t>(
          {.fanout = 4, .replicated = levels});
      every_workload_leaves_what_it_should<apps::text_key, apps::text_value>(
          {.fanout = 6, .placement = apps::layout::subtree, .replicated = levels});
    }
    fewer_records_than_requesters_do();
    migration_sends_fewer_messages();
    replicated_levels_save_their_messages();
    return sojourn::reduce(failures, [](int a, int b) { return a + b; }) == 0 ? 0 : 1;
  });
}
