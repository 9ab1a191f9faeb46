// SPDX-License-Identifier: Apache-2.0
// Children that run in place until they block.
#include <sojourn/sojourn.hpp>

#include <cstdio>
#include <numeric>
#include <vector>

using namespace sojourn;

// Neither says that it may block; one does.
long length_of(long word) {
  return rpc(static_cast<rank_t>(word % rank_count()), [](long w) { return w % 7; }, word).get();
}

long fibonacci(long n) {
  if (n < 2) return n;
  auto older = fork(fibonacci, n - 1);
  const long younger = fibonacci(n - 2);
  return older.get() + younger;
}

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    if (rank_me() != 0) return;  // and helps with the tree below
    auto first = fork(length_of, 15L);
    auto second = fork(length_of, 16L);  // the first may still wait
    std::printf("%ld and %ld\n", first.get(), second.get());

    std::vector<long> lengths(100);
    par_for(0, 100, [&](int i) { lengths[static_cast<std::size_t>(i)] = length_of(i); });
    const long sum = par_reduce(0, 100, 0L, [](int i) { return length_of(i); }, std::plus<>{});
    // At most eight at a time.
    par_for(0, 100, [&](int i) { lengths[static_cast<std::size_t>(i)] = length_of(i); },
            {.in_flight = 8});
    std::printf("%ld, twice: %s\n", sum,
                sum == std::accumulate(lengths.begin(), lengths.end(), 0L) ? "yes" : "no");
    std::printf("%ld\n", fibonacci(24));
  });
}
