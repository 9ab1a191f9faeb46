// SPDX-License-Identifier: Apache-2.0
// Plain pointers to memory that all ranks share: docs/shared_memory.md.
#include <sojourn/sojourn.hpp>

#include <cstdint>
#include <cstdio>
#include <mutex>
#include <span>

using namespace sojourn;

struct total {
  shared::mutex mutex;
  double sum;
};

void relax(std::span<double> from, std::span<double> to, total* change) {
  const std::size_t all = from.size() - 2;
  shared::run_threads(2, [=](int thread) {  // two threads on each rank
    const auto threads = static_cast<std::size_t>(shared::threads());
    const std::size_t first = 1 + all * static_cast<std::size_t>(thread) / threads;
    const std::size_t end = 1 + all * static_cast<std::size_t>(thread + 1) / threads;
    double mine = 0;
    for (std::size_t i = first; i < end; ++i) {
      to[i] = (from[i - 1] + from[i + 1]) / 2;  // plain loads and stores
      mine += to[i] - from[i];
    }
    {
      const std::lock_guard lock(change->mutex);
      change->sum += mine;
    }
    shared::barrier();  // all of `to` can be loaded from here on
  });
}

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    constexpr std::size_t points = 1002;
    // One rank allocates, and tells the others the address.
    std::uintptr_t at[3] = {};
    if (rank_me() == 0) {
      at[0] = reinterpret_cast<std::uintptr_t>(shared::alloc<double>(points));
      at[1] = reinterpret_cast<std::uintptr_t>(shared::alloc<double>(points));
      at[2] = reinterpret_cast<std::uintptr_t>(shared::allocate(sizeof(total)));
    }
    for (std::uintptr_t& a : at) a = broadcast(a);
    const std::span from(reinterpret_cast<double*>(at[0]), points);
    const std::span to(reinterpret_cast<double*>(at[1]), points);
    auto* change = reinterpret_cast<total*>(at[2]);
    if (rank_me() == 0) from[0] = from[points - 1] = 1000;  // seen by all threads of run_threads()
    relax(from, to, change);
    if (rank_me() == 0) std::printf("%g %g %g\n", to[1], to[500], change->sum);
    barrier();
  });
}
