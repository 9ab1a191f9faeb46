// SPDX-License-Identifier: Apache-2.0
// Random operations on the tree by fibers on all ranks, against std::map: each fiber changes keys
// of its own and knows what it must find there, and at the end the whole tree is compared. The same
// operations give the same answers under every policy, layout and fan-out.
#include <fmt/format.h>
#include <sojourn/sojourn.hpp>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "btree/btree.hpp"
#include "btree/check.hpp"
#include "common/fibers.hpp"
#include "common/random.hpp"

namespace {

using apps::random_source;
using sojourn::via;

int failures = 0;

#define EXPECT(condition, ...)                                                                   \
  do {                                                                                           \
    if (!(condition) && ++failures < 10) {                                                       \
      fmt::print(stderr, "rank {}: {}:{}: {} does not hold: {}\n", sojourn::rank_me(), __FILE__, \
                 __LINE__, #condition, fmt::format(__VA_ARGS__));                                \
    }                                                                                            \
  } while (false)

template <class T>
T made_from(std::uint64_t number) {
  if constexpr (std::is_same_v<T, std::uint64_t>) {
    return number;
  } else {
    return T(fmt::format("{:x}", number));  // Of different lengths, so in another order.
  }
}

/// Keys of fiber f are those equal to f modulo the number of fibers.
struct workload {
  int fibers = 7;
  int operations = 600;  // of each fiber
  std::uint64_t keys_each = 60;
  std::uint64_t seed = 1;
};

template <class Key>
Key key_of(const workload& w, int fiber, std::uint64_t index) {
  const auto fibers = static_cast<std::uint64_t>(w.fibers);
  return made_from<Key>(index * fibers + static_cast<std::uint64_t>(fiber));
}

/// One fiber's operations. Returns a digest of all answers about its own keys.
template <class Key, class Value>
std::uint64_t operate(apps::btree<Key, Value> tree, const workload& w, int fiber, via how,
                      std::map<Key, Value>& model) {
  random_source random(w.seed * 1000 + static_cast<std::uint64_t>(fiber));
  std::uint64_t digest = 0;
  const auto note = [&](std::uint64_t answer) { digest = apps::mix64(digest ^ answer); };
  for (int i = 0; i < w.operations; ++i) {
    const Key key = key_of<Key>(w, fiber, random.below(w.keys_each));
    const auto known = model.find(key);
    switch (random.below(8)) {
      case 0:
      case 1:
      case 2:
      case 3: {
        const Value value = made_from<Value>(random.next());
        const bool is_new = tree.insert(key, value, how);
        EXPECT(is_new == (known == model.end()), "fiber {} operation {}", fiber, i);
        model[key] = value;
        note(is_new);
        break;
      }
      case 4: {
        const bool was_there = tree.erase(key, how);
        EXPECT(was_there == (known != model.end()), "fiber {} operation {}", fiber, i);
        if (known != model.end()) model.erase(known);
        note(was_there);
        break;
      }
      case 5: {
        // Others come and go between the entries, but they stay in order, and ours are all there.
        const auto entries = tree.scan(key, random.below(40), how);
        auto mine = model.lower_bound(key);
        for (std::size_t e = 0; e < entries.size(); ++e) {
          EXPECT(entries[e].first >= key, "fiber {} operation {}", fiber, i);
          EXPECT(e == 0 || entries[e - 1].first < entries[e].first, "fiber {} operation {}", fiber,
                 i);
          EXPECT(mine == model.end() || mine->first >= entries[e].first,
                 "fiber {} operation {}: a scan missed a key", fiber, i);
          if (mine != model.end() && mine->first == entries[e].first) {
            EXPECT(mine->second == entries[e].second, "fiber {} operation {}", fiber, i);
            ++mine;
          }
        }
        break;
      }
      case 6: {  // A key of somebody else: any answer is right.
        (void)tree.lookup(made_from<Key>(random.below(w.keys_each * 10)), how);
        break;
      }
      default: {
        const std::optional<Value> found = tree.lookup(key, how);
        EXPECT(found.has_value() == (known != model.end()), "fiber {} operation {}", fiber, i);
        if (found && known != model.end()) {
          EXPECT(*found == known->second, "fiber {} operation {}", fiber, i);
        }
        note(found.has_value());
      }
    }
  }
  return digest;
}

/// Runs the workload on a fresh tree; returns a digest of all answers of all fibers.
template <class Key, class Value>
std::uint64_t run_workload(const workload& w, const apps::btree_options& options, via how) {
  const bool first = sojourn::rank_me() == 0;
  apps::btree<Key, Value> tree;
  if (first) {
    std::vector<Key> boundaries;
    if (options.placement == apps::layout::subtree) {
      std::map<Key, int> all;
      for (std::uint64_t k = 0; k < w.keys_each * static_cast<std::uint64_t>(w.fibers); ++k) {
        all[made_from<Key>(k)] = 0;
      }
      const auto ranks = static_cast<std::size_t>(sojourn::rank_count());
      std::size_t i = 0;
      for (const auto& [key, unused] : all) {
        if (i > 0 && boundaries.size() + 1 < ranks &&
            i == (boundaries.size() + 1) * all.size() / ranks) {
          boundaries.push_back(key);
        }
        ++i;
      }
    }
    tree = apps::btree<Key, Value>::create(options, boundaries);
  }
  tree = sojourn::broadcast(tree);

  std::uint64_t digest = 0;
  std::map<Key, Value> here;  // What this rank's fibers left in the tree.
  apps::in_fibers(apps::share_of(w.fibers), [&](int i) {
    const int fiber = sojourn::rank_me() + i * sojourn::rank_count();
    std::map<Key, Value> model;
    digest ^= operate(tree, w, fiber, how, model);
    here.merge(model);
  });
  sojourn::barrier();

  // Every rank has seen its own keys; the digests tell that all saw the same. Rank 0 alone looks at
  // the whole: structure, and as many keys as all models together.
  const auto keys = sojourn::reduce(std::uint64_t{here.size()}, std::plus<>{});
  for (const auto& [key, value] : here) {
    const auto found = tree.lookup(key, how);
    EXPECT(found == value, "the tree lost a key or its value");
  }
  sojourn::barrier();
  if (first) {
    const apps::tree_shape shape = apps::inspect(tree);
    EXPECT(shape.wrong.empty(), "{}", shape.wrong);
    EXPECT(shape.keys == keys, "{} keys in the tree, {} in the models", shape.keys, keys);
    if (sojourn::rank_count() == 1) {
      const std::string difference = apps::compare(tree, here);
      EXPECT(difference.empty(), "{}", difference);
    }
    tree.destroy();
  }
  return sojourn::reduce(digest, std::bit_xor<>{});
}

template <class Key, class Value>
void every_policy_gives_the_same_answers(std::uint64_t seed, int operations) {
  for (int fanout : {2, 4, 10, 100}) {
    for (apps::layout placement : {apps::layout::random, apps::layout::subtree}) {
      workload w;
      w.seed = seed++;
      w.operations = operations;
      if (fanout == 100) w.keys_each = 200;
      const apps::btree_options options{fanout, placement};
      const std::uint64_t by_rpc = run_workload<Key, Value>(w, options, via::rpc);
      for (via how : {via::migrate, via::migrate.activations(2), via::migrate.all()}) {
        const std::uint64_t digest = run_workload<Key, Value>(w, options, how);
        EXPECT(digest == by_rpc, "fan-out {} layout {} seed {}", fanout, int(placement), w.seed);
      }
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::uint64_t seed = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1;
  const int of_all_ranks = argc > 2 ? std::atoi(argv[2]) : 0;
  return sojourn::run(argc, argv, [&] {
    const int operations =
        of_all_ranks > 0 ? of_all_ranks / sojourn::rank_count() : workload{}.operations;
    every_policy_gives_the_same_answers<std::uint64_t, std::uint64_t>(seed, operations);
    every_policy_gives_the_same_answers<apps::text_key, apps::text_value>(seed + 100, operations);
    const int all = sojourn::reduce(failures, std::plus<>{});
    if (all > 0 && sojourn::rank_me() == 0) {
      fmt::print(stderr, "{} failures; to replay: job_btree {} {}\n", all, seed, of_all_ranks);
    }
    return all == 0 ? 0 : 1;
  });
}
