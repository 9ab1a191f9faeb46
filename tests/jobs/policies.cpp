// SPDX-License-Identifier: Apache-2.0
// The annotation never changes a result: one program of walks, calls within calls, exceptions and
// recursion over a random graph of objects, run under every policy and compared.
#include <functional>
#include <stdexcept>
#include <vector>

#include "check.hpp"

using namespace sojourn;

namespace {

constexpr int nodes = 40;

std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 31)) * 0x9e3779b97f4a7c15u;
  return x ^ (x >> 29);
}

struct node {
  std::uint64_t key = 0;
  global_ptr<node> left, right;
  long visits = 0;

  explicit node(std::uint64_t k) : key(k) {}
  void link(global_ptr<node> l, global_ptr<node> r) {
    left = l;
    right = r;
  }
  std::uint64_t read() const { return key; }
  std::uint64_t visit(std::uint64_t seed) {
    ++visits;
    return mix(key + seed);
  }
  global_ptr<node> choose(std::uint64_t seed) const { return seed & 1 ? left : right; }
  /// Refuses some, so that exceptions cross the same ways.
  std::uint64_t strict(std::uint64_t seed) {
    if ((key ^ seed) % 3 == 0) throw std::domain_error(std::to_string(key % 1000));
    return key;
  }
  /// Asks another object in the middle of its own method.
  std::uint64_t ask(int how_index, int depth);
  long count() const { return visits; }
};

/// What a test is run under; `through` names the outermost activation of the walk.
via policy(int index, activation outer) {
  switch (index) {
    case 0:
      return via::rpc;
    case 1:
      return via::migrate;
    case 2:
      return via::migrate.activations(2);
    case 3:
      return via::migrate.all();
    case 5:
      return via::cache;
    case 6:
      return via::fetch;
    case 7:
      return via::automatic;
    case 8:
      return via::unsaid;
    default:
      return via::migrate.through(outer);
  }
}
constexpr int policies = 9;
const char* const policy_names[policies] = {"rpc",   "migrate", "migrate 2", "all",   "through",
                                            "cache", "fetch",   "automatic", "unsaid"};

std::uint64_t node::ask(int how_index, int depth) {
  if (depth == 0) return key;
  via how = policy(how_index, this_activation());
  return mix(key + left.call<&node::ask>(how, how_index, depth - 1));
}

std::uint64_t inner_walk(global_ptr<node> at, std::uint64_t seed, int steps, via how) {
  std::uint64_t sum = seed;
  for (int i = 0; i < steps; ++i) {
    sum = mix(sum ^ at.call<&node::visit>(how, sum));
    at = at.call<&node::choose>(how, sum);
    try {
      sum += at.call<&node::strict>(how, sum);
    } catch (const std::domain_error& e) {
      sum = mix(sum + static_cast<std::uint64_t>(std::atoi(e.what())));
    }
  }
  return sum;
}

std::uint64_t tree_walk(global_ptr<node> at, std::uint64_t seed, int depth, int how_index,
                        activation outer) {
  via how = policy(how_index, outer);
  std::uint64_t sum = at.call<&node::read>(how);
  if (depth == 0) return sum;
  global_ptr<node> l = at.call<&node::choose>(how, 1u);
  global_ptr<node> r = at.call<&node::choose>(how, 0u);
  sum = mix(sum + activate(tree_walk, l, seed, depth - 1, how_index, outer));
  sum = mix(sum + activate(tree_walk, r, seed + 1, depth - 1, how_index, outer));
  return mix(sum + r.call<&node::visit>(how, sum));
}

std::uint64_t outer_walk(global_ptr<node> at, std::uint64_t seed, int how_index) {
  activation outer = this_activation();
  via how = policy(how_index, outer);
  std::uint64_t sum = activate(inner_walk, at, seed, 6, how);
  sum = mix(sum + activate(tree_walk, at, seed, 3, how_index, outer));
  for (int i = 0; i < 3; ++i) {
    try {
      // An exception that leaves a nested activation on its way.
      sum += activate(
          [](global_ptr<node> n, std::uint64_t s, via h) {
            std::uint64_t first = n.call<&node::strict>(h, s);
            return first + n.call<&node::choose>(h, s).call<&node::strict>(h, first);
          },
          at, sum, how);
    } catch (const std::domain_error& e) {
      sum = mix(sum * 3 + static_cast<std::uint64_t>(std::atoi(e.what())));
    }
    at = at.call<&node::choose>(how, sum);
  }
  return mix(sum + at.call<&node::ask>(how, how_index, 5));
}

std::uint64_t requester(global_ptr<node> at, std::uint64_t seed, int how_index) {
  return activate(outer_walk, at, seed, how_index);
}

struct outcome {
  std::vector<std::uint64_t> sums;
  counters used;
};

/// The graph is the same each time, whatever the number of ranks.
std::vector<global_ptr<node>> make_graph() {
  std::vector<global_ptr<node>> all;
  for (std::uint64_t i = 0; i < nodes; ++i) {
    all.push_back(make<node>(static_cast<rank_t>(mix(i) % static_cast<unsigned>(rank_count())),
                             mix(i + 100)));
  }
  for (std::uint64_t i = 0; i < nodes; ++i) {
    all[i].call<&node::link>(all[mix(i + 7) % nodes], all[mix(i + 9) % nodes]);
  }
  return all;
}

outcome run_under(int how_index) {
  outcome o;
  std::vector<global_ptr<node>> graph;
  if (rank_me() == 0) graph = make_graph();
  barrier();
  counters before = counters_now();
  if (rank_me() == 0) {
    std::vector<future<std::uint64_t>> all;
    for (std::uint64_t i = 0; i < 12; ++i) {
      all.push_back(rpc(rank_me(), requester, graph[mix(i) % nodes], i * 1000, how_index));
    }
    for (auto& f : all) o.sums.push_back(f.get());
    // From the main fiber, which does not move: only what it activates does.
    o.sums.push_back(activate(outer_walk, graph[0], 5u, how_index));
    o.sums.push_back(inner_walk(graph[1], 6u, 5, policy(how_index, this_activation())));
    long visits = 0;
    for (auto n : graph) visits += n.call<&node::count>(via::rpc);
    o.sums.push_back(static_cast<std::uint64_t>(visits));
    for (auto n : graph) destroy(n);
  }
  barrier();
  o.used = reduce(counters_now() - before, std::plus<>{});
  return o;
}

void every_policy_finds_the_same() {
  outcome expected = run_under(0);
  CHECK_EQUAL(expected.used.migrations, 0);
  // Not of this run alone: the graph and the walks depend on nothing but their seeds.
  if (rank_me() == 0) CHECK_EQUAL(expected.sums[0], 16733135286598306326u);
  for (int i = 1; i < policies; ++i) {
    outcome o = run_under(i);
    if (o.sums != expected.sums) check::fail(__FILE__, __LINE__, policy_names[i], "other results");
    const via::mechanism how = policy(i, {}).how();
    if (how == via::mechanism::automatic) continue;  // may do any of these, or none
    const bool is_shared = rank_count() > 1;
    CHECK_EQUAL(o.used.migrations > 0, is_shared && how == via::mechanism::migrate);
    CHECK_EQUAL(o.used.copies_given > 0, is_shared && how == via::mechanism::cache);
    const bool moves = how == via::mechanism::fetch || how == via::mechanism::cache;
    CHECK_EQUAL(o.used.objects_moved > 0, is_shared && moves);
  }
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    check::claim("every policy finds the same", every_policy_finds_the_same);
    return check::verdict();
  });
}
