// SPDX-License-Identifier: Apache-2.0
// A rank that computes answers questions about shared memory: each claim hangs if it does not.
// What the rank computes meanwhile stays right.
#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <sojourn/sojourn.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "check.hpp"

namespace {

using namespace sojourn;

constexpr std::size_t page = 4096;

/// The same address on all ranks: allocated on one.
template <class T>
T* alloc_on(rank_t rank, std::size_t count) {
  std::uintptr_t at = 0;
  if (rank_me() == rank) at = reinterpret_cast<std::uintptr_t>(shared::alloc<T>(count));
  return reinterpret_cast<T*>(broadcast(at, rank));
}

shared::mutex lock;
shared::mutex sums_lock;

rank_t last() { return rank_count() - 1; }

/// Rank 0 takes `lock`, which the last rank has released, and stores to `flag`. The last rank
/// computes meanwhile with `load(i)`, i = 0, 1, ..., and looks at the flag between two loads: it
/// holds the page, and sees the store when it has given the page away and fetches it again.
template <class Load>
void computes_until_told(Load&& load) {
  for (int round = 0; round < 3; ++round) {
    auto* flag = alloc_on<long>(0, page / sizeof(long));
    if (rank_me() == last()) {
      lock.lock();
      flag[1] = 7;
      lock.unlock();
    }
    shared::barrier();
    if (rank_me() == last()) {
      lock.lock();
      flag[2] = 8;
      lock.unlock();
    }
    // Nobody answers rank 0's lock or its page but the last rank, which computes.
    static std::atomic<bool> told;
    told.store(false);
    sojourn::barrier();
    if (rank_me() == last()) {
      rpc_ff(0, [] { told.store(true); });
      for (int i = 0; !told.load(); ++i) load(i);
    }
    if (rank_me() == 0) {
      lock.lock();
      CHECK(flag[1] == 7 && flag[2] == 8);
      flag[0] = 9;
      lock.unlock();
    }
    shared::barrier();
    CHECK(flag[0] == 9);
    shared::barrier();
  }
}

}  // namespace

int main(int argc, char** argv) { return sojourn::run(argc, argv, [] { return check::verdict(); }); }
