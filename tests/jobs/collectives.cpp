// SPDX-License-Identifier: Apache-2.0
// Collective operations on any number of ranks and from any root.
#include <array>
#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "check.hpp"

using namespace sojourn;

namespace {

void a_barrier_holds_until_all_are_there() {
  static int passed;
  passed = 0;
  barrier();
  for (int round = 1; round <= 30; ++round) {
    // A different rank is late each time.
    if (rank_me() == round % rank_count()) {
      std::uint64_t until = now_ns() + 300'000;
      while (now_ns() < until) yield();
    }
    ++passed;
    barrier();
    rank_t other = (rank_me() + round) % rank_count();
    int theirs = rpc(other, [] { return passed; }).get();
    CHECK_EQUAL(theirs, round);
    barrier();
  }
}

void broadcast_from_every_root() {
  for (rank_t root = 0; root < rank_count(); ++root) {
    CHECK_EQUAL(broadcast(rank_me() * 10 + 3, root), root * 10 + 3);
    CHECK_EQUAL(broadcast(inline_string<30>("from " + std::to_string(rank_me())), root).str(),
                "from " + std::to_string(root));
    std::array<long, 4000> large;
    large.fill(rank_me());
    CHECK_EQUAL(broadcast(large, root)[3999], root);
  }
  CHECK_EQUAL(broadcast(rank_me()), 0);
  CHECK_THROWS(error, broadcast(1, rank_count()));
  CHECK_THROWS(error, broadcast(1, -1));
}

/// x -> a x + b. Composition is associative and not commutative.
struct affine {
  std::uint64_t a, b;
};

void reduce_combines_in_rank_order() {
  CHECK_EQUAL(reduce(rank_me() + 1, std::plus<>{}), rank_count() * (rank_count() + 1) / 2);
  CHECK_EQUAL(reduce(rank_me(), [](int a, int b) { return a > b ? a : b; }), rank_count() - 1);
  CHECK_EQUAL(reduce(rank_me(), [](int a, int b) { return a < b ? a : b; }), 0);
  CHECK_EQUAL(reduce(rank_me() == 0, std::logical_or<>{}), true);
  auto compose = [](affine f, affine g) { return affine{g.a * f.a, g.a * f.b + g.b}; };
  affine mine{static_cast<std::uint64_t>(rank_me()) * 2 + 3,
              static_cast<std::uint64_t>(rank_me()) + 1};
  affine all = reduce(mine, compose);
  affine expected{3, 1};
  for (rank_t r = 1; r < rank_count(); ++r) {
    expected = compose(
        expected, affine{static_cast<std::uint64_t>(r) * 2 + 3, static_cast<std::uint64_t>(r) + 1});
  }
  CHECK_EQUAL(all.a, expected.a);
  CHECK_EQUAL(all.b, expected.b);
  // Strings end to end: the order is plain to see.
  auto text = reduce(inline_string<200>(std::to_string(rank_me()) + ";"),
                     [](const inline_string<200>& x, const inline_string<200>& y) {
                       return inline_string<200>(x.str() + y.str());
                     });
  std::string in_order;
  for (rank_t r = 0; r < rank_count(); ++r) in_order += std::to_string(r) + ";";
  CHECK_EQUAL(text.str(), in_order);
}

void gather_to_every_root() {
  for (rank_t root = 0; root < rank_count(); ++root) {
    auto all = gather(rank_me() * 7, root);
    if (rank_me() != root) {
      CHECK(all.empty());
      continue;
    }
    CHECK_EQUAL(all.size(), static_cast<std::size_t>(rank_count()));
    for (rank_t r = 0; r < rank_count(); ++r) CHECK_EQUAL(all[static_cast<std::size_t>(r)], r * 7);
  }
  CHECK_THROWS(error, gather(1, rank_count()));
}

void all_gather_in_order() {
  auto all = all_gather(inline_string<9>("r" + std::to_string(rank_me())));
  CHECK_EQUAL(all.size(), static_cast<std::size_t>(rank_count()));
  for (rank_t r = 0; r < rank_count(); ++r) {
    CHECK_EQUAL(all[static_cast<std::size_t>(r)].str(), "r" + std::to_string(r));
  }
  struct large {
    std::array<int, 3000> v;
  };
  large mine;
  mine.v.fill(rank_me());
  auto larges = all_gather(mine);
  for (rank_t r = 0; r < rank_count(); ++r)
    CHECK_EQUAL(larges[static_cast<std::size_t>(r)].v[2999], r);
}

void one_behind_the_other_without_a_barrier() {
  long sum = 0;
  for (int i = 0; i < 200; ++i) {
    rank_t root = i % rank_count();
    int b = broadcast(rank_me() + i, root);
    CHECK_EQUAL(b, root + i);
    sum += reduce(1L, std::plus<>{});
    auto g = gather(i + rank_me(), root);
    if (rank_me() == root) CHECK_EQUAL(g.back(), i + rank_count() - 1);
    if (i % 10 == 0) barrier();
    CHECK_EQUAL(all_gather(rank_me())[static_cast<std::size_t>(root)], root);
  }
  CHECK_EQUAL(sum, 200L * rank_count());
}

void other_fibers_run_meanwhile() {
  // The late rank needs the others' handlers and fibers while they wait in the barrier.
  static int served;
  served = 0;
  barrier();
  if (rank_me() == rank_count() - 1) {
    for (int i = 0; i < 50; ++i) {
      for (rank_t r = 0; r < rank_count(); ++r) {
        rpc(r, [] {
          yield();
          ++served;
        }).get();
      }
    }
  }
  barrier();
  CHECK_EQUAL(served, 50);
}

void from_another_fiber_of_the_rank() {
  int total = rpc(rank_me(), [] {
                barrier();
                return reduce(1, std::plus<>{});
              }).get();
  CHECK_EQUAL(total, rank_count());
}

void messages_are_counted_apart() {
  auto before = counters_now();
  for (int i = 0; i < 10; ++i) barrier();
  auto used = counters_now() - before;
  CHECK_EQUAL(used.messages(), 0);
  if (rank_count() > 1) CHECK(used.collective_messages > 0);
  long all = reduce(static_cast<long>(used.collective_messages), std::plus<>{});
  // Where ranks share cores, up once and down once for every rank but the first; with a core each,
  // every rank tells those 1, 2, 4, ... behind it. Which of these, only the setting tells.
  const char* cores = std::getenv("SOJOURN_CORES");
  if (cores == nullptr) return;
  long steps = 0;
  while (1L << steps < rank_count()) ++steps;
  const bool crowded = std::atoi(cores) < rank_count();
  CHECK_EQUAL(all, 10L * (crowded ? 2 * (rank_count() - 1) : steps * rank_count()));
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    check::claim("a barrier holds until all are there", a_barrier_holds_until_all_are_there);
    check::claim("broadcast from every root", broadcast_from_every_root);
    check::claim("reduce combines in rank order", reduce_combines_in_rank_order);
    check::claim("gather to every root", gather_to_every_root);
    check::claim("all_gather is in rank order", all_gather_in_order);
    check::claim("one behind the other without a barrier", one_behind_the_other_without_a_barrier);
    check::claim("other fibers run meanwhile", other_fibers_run_meanwhile);
    check::claim("from another fiber of the rank", from_another_fiber_of_the_rank);
    check::claim("collective messages are counted apart", messages_are_counted_apart);
    return check::verdict();
  });
}
