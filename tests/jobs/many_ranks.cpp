// SPDX-License-Identifier: Apache-2.0
// Jobs of more ranks than a word has bits, than a collective operation has children, and than a
// segment has room for long rings.
#include <functional>
#include <numeric>
#include <vector>

#include "check.hpp"

using namespace sojourn;

namespace {

long n() { return rank_count(); }

void collectives_of_all_levels() {
  for (int round = 0; round < 2; ++round) {
    CHECK_EQUAL(reduce(static_cast<long>(rank_me()) + 1, std::plus<>{}), n() * (n() + 1) / 2);
    // Values are combined in the order of the ranks, over all levels of the tree.
    const auto later = [](long a, long b) { return a < b ? b : -1L; };
    CHECK_EQUAL(reduce(static_cast<long>(rank_me()), later), n() - 1);
    // Of each level: the first rank, one below it, and the last.
    for (const int root : {0, 1, 17, 256, rank_count() - 1}) {
      if (root >= rank_count()) continue;
      CHECK_EQUAL(broadcast(rank_me() == root ? 1000 + root : 0, root), 1000 + root);
    }
    const std::vector<int> all = gather(rank_me());
    CHECK_EQUAL(all.size(), static_cast<std::size_t>(rank_me() == 0 ? n() : 0));
    for (std::size_t i = 0; i < all.size(); ++i) CHECK_EQUAL(all[i], static_cast<int>(i));
  }
}

void calls_to_far_ranks() {
  // Strides that meet each rank's neighbours, and the other end of the job.
  for (const int stride : {1, 63, 64, 65, 255, 257}) {
    const int to = (rank_me() + stride) % rank_count();
    CHECK_EQUAL(rpc(to, [](int x) { return x + rank_me(); }, 7).get(), 7 + to);
  }
}

/// Many to one: its rings are small, and its answers go everywhere.
int arrived = 0;
void all_call_one() {
  arrived = 0;
  barrier();
  finish([] {
    for (int i = 0; i < 20; ++i) rpc_ff(rank_count() - 1, [] { ++arrived; });
  });
  barrier();
  if (rank_me() == rank_count() - 1) CHECK_EQUAL(arrived, 20 * n());
}

void long_messages_pass_small_rings() {
  std::vector<int> values(20'000);
  std::iota(values.begin(), values.end(), rank_me());
  const auto sum = [](std::vector<int> v) { return std::accumulate(v.begin(), v.end(), 0L); };
  const int to = (rank_me() + 1) % rank_count();
  CHECK_EQUAL(rpc(to, sum, values).get(), std::accumulate(values.begin(), values.end(), 0L));
}

void an_activation_visits_ranks() {
  if (rank_me() != 0) return;
  const int from = rank_me();
  const int visited = activate(
      [](int) {
        int count = 0;
        for (rank_t r = 0; r < rank_count(); r += 1 + rank_count() / 10) {
          migrate_to(r);
          count += rank_me() == r;
        }
        return count;
      },
      0);
  CHECK_EQUAL(rank_me(), from);
  CHECK_EQUAL(visited, static_cast<int>((n() + n() / 10) / (1 + n() / 10)));
}

long fibonacci(long k) {
  if (k < 2) return k;
  auto older = fork(fibonacci, k - 1);
  const long younger = fibonacci(k - 2);
  return older.get() + younger;
}
/// All other ranks have nothing to do: more of them than one word of hungry ranks has bits.
void a_tree_with_all_others_hungry() {
  barrier();
  const counters before = counters_now();
  barrier();
  if (rank_me() == 0) CHECK_EQUAL(fibonacci(18), 2584);
  barrier();
  const auto forks = reduce(counters_now().forks - before.forks, std::plus<>{});
  CHECK_EQUAL(forks, 4180u);
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    using check::claim;
    claim("collectives of all levels", collectives_of_all_levels);
    claim("calls to far ranks", calls_to_far_ranks);
    claim("all call one", all_call_one);
    claim("long messages pass small rings", long_messages_pass_small_rings);
    claim("an activation visits ranks", an_activation_visits_ranks);
    claim("a tree with all others hungry", a_tree_with_all_others_hungry);
    return check::verdict();
  });
}
