// SPDX-License-Identifier: Apache-2.0
// A rank gets no more memory, and needs some for what it has stored to shared memory.
#include <sys/resource.h>

#include <cstdint>
#include <sojourn/sojourn.hpp>

int main(int argc, char** argv) {
  using namespace sojourn;
  return run(argc, argv, [] {
    constexpr std::size_t words = std::size_t{16 << 20} / sizeof(long);
    std::uintptr_t at = 0;
    if (rank_me() == 0) at = reinterpret_cast<std::uintptr_t>(shared::alloc<long>(words));
    auto* const all = reinterpret_cast<long*>(broadcast(at, 0));
    // Everybody has loaded it, so who stores to it keeps what was there before.
    if (rank_me() == 0) {
      for (std::size_t i = 0; i < words; i += 512) all[i] = 1;
    }
    shared::barrier();
    long sum = 0;
    for (std::size_t i = 0; i < words; i += 512) sum += all[i];
    shared::barrier();
    if (rank_me() == 0) {
      const rlimit none{0, 0};
      setrlimit(RLIMIT_DATA, &none);
      for (std::size_t i = 0; i < words; i += 512) all[i] = sum;
    }
    shared::barrier();
  });
}
