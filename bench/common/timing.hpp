// SPDX-License-Identifier: Apache-2.0
//
// How every batch is timed, on our side and on the peers' alike. Knows nothing of Sojourn, so that
// the peers can share it.
#pragma once

#include <sched.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace bench {

inline std::uint64_t clock_ns() {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                        std::chrono::steady_clock::now().time_since_epoch())
                                        .count());
}

/// One commanded measurement: `repeats` timed batches of `iterations` operations of `bytes` bytes.
struct batch_plan {
  std::uint64_t iterations = 2000;
  std::uint64_t repeats = 5;
  std::uint64_t bytes = 64;

  /// Untimed operations before the first batch: enough to wake the other side, fill the caches and
  /// let the spinning core leave whatever idle state it was in.
  std::uint64_t warm_up() const { return iterations / 4 + 100; }
};

/// Runs `operations(n)`, which performs n operations, once to warm up and then once a batch.
/// Returns the nanoseconds an operation took, one figure a batch.
template <class Operations>
std::vector<double> time_batches(const batch_plan& plan, Operations operations) {
  operations(plan.warm_up());
  std::vector<double> nanoseconds;
  nanoseconds.reserve(plan.repeats);
  for (std::uint64_t repeat = 0; repeat < plan.repeats; ++repeat) {
    const std::uint64_t start = clock_ns();
    operations(plan.iterations);
    nanoseconds.push_back(static_cast<double>(clock_ns() - start) /
                          static_cast<double>(plan.iterations));
  }
  return nanoseconds;
}

/// Puts the calling process on one core. Returns false when the core does not exist or is not ours.
inline bool pin_to_cpu(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  return sched_setaffinity(0, sizeof set, &set) == 0;
}

/// Keeps the compiler from dropping or hoisting accesses to the buffer behind `pointer`.
inline void touch(const void* pointer) { asm volatile("" : : "r"(pointer) : "memory"); }

}  // namespace bench
