// SPDX-License-Identifier: Apache-2.0
// Operations that all ranks take part in: docs/collectives.md.
#include <sojourn/sojourn.hpp>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

using namespace sojourn;

// Each rank knows how many of its lines it writes; the prefix says at which line it begins.
int first_line(int lines) { return exclusive_scan(lines, 0, std::plus<>{}); }

using counts = std::map<std::string, int>;

counts of_all_ranks(const counts& mine) {
  return reduce(mine, [](counts a, const counts& b) {
    for (const auto& [word, times] : b) a[word] += times;
    return a;
  });
}

// Every rank has numbers that belong to others, as many as it happens to have.
std::vector<int> sorted_by_rank(const std::vector<int>& numbers) {
  std::vector<std::vector<int>> to_each(static_cast<std::size_t>(rank_count()));
  for (const int n : numbers) to_each[static_cast<std::size_t>(n % rank_count())].push_back(n);
  std::vector<int> mine;
  for (const auto& from_one : all_to_all(std::move(to_each))) {
    mine.insert(mine.end(), from_one.begin(), from_one.end());
  }
  std::ranges::sort(mine);
  return mine;
}

double step(double x) { return x / 2; }

// The largest change is summed up while the next step is computed already.
int steps_until_still(double x) {
  const auto larger = [](double a, double b) { return std::max(a, b); };
  future<double> change = reduce_async(x, larger);
  for (int steps = 0;; ++steps) {
    const double next = step(x);
    future<double> next_change = reduce_async(x - next, larger);
    if (change.get() < 0.01) {
      (void)next_change.get();
      return steps;
    }
    change = std::move(next_change);
    x = next;
  }
}

int sum_of_row(int value, int columns) {
  const team row = team::world().split(rank_me() / columns);
  return reduce(value, std::plus<>{}, row);
}

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    const int first = first_line(rank_me() + 1);
    const counts words = of_all_ranks({{"rank", 1}, {rank_me() % 2 == 0 ? "even" : "odd", 1}});
    const auto mine = sorted_by_rank({rank_me(), 10, 11, 12, 13});
    const int steps = steps_until_still(1.0 + rank_me());
    const int row = sum_of_row(rank_me(), 2);
    if (rank_me() != rank_count() - 1) return;
    std::printf("begins at line %d\n", first);
    for (const auto& [word, times] : words) std::printf("%s: %d\n", word.c_str(), times);
    std::printf("%zu numbers, the largest %d\n", mine.size(), mine.back());
    std::printf("still after %d steps\n", steps);
    std::printf("its row adds up to %d\n", row);
  });
}
