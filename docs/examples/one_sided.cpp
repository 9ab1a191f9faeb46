// SPDX-License-Identifier: Apache-2.0
// One-sided access: atomic words, and copies that are begun now and waited for later.
#include <array>
#include <cstdio>
#include <numeric>
#include <sojourn/sojourn.hpp>
#include <span>
#include <vector>

using namespace sojourn;

/// Each rank takes numbers until none is left; nobody hands them out.
void take_turns() {
  using counter = global_atomic<int>;
  auto next = broadcast(rank_me() == 0 ? make<counter>(0, counter(0)) : global_ptr<counter>());
  int taken = 0;
  while (atomic_fetch_add(next, 1) < 100) ++taken;
  const int all = reduce(taken, [](int a, int b) { return a + b; });
  if (rank_me() == 0) std::printf("%d numbers were taken\n", all);
}

/// The values of another rank, while this one computes.
void read_ahead() {
  const rank_t other = (rank_me() + 1) % rank_count();
  auto there = make_array<double>(other, 1000);
  std::vector<double> values(1000, 0.5);

  completions done;
  put(std::span<double>(values), there, done);
  // … whatever needs neither `there` nor changes `values` …
  done.wait();

  std::vector<double> first(500);
  double last = 0;
  get(there, std::span<double>(first), done);
  load(there + 999, last, done);
  // … whatever needs neither `first` nor `last` …
  done.wait();
  const double sum = std::accumulate(first.begin(), first.end(), last);
  if (rank_me() == 0) std::printf("%.1f\n", sum);
  destroy_array(there, 1000);
}

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    take_turns();
    read_ahead();
  });
}
