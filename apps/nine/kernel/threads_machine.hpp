// SPDX-License-Identifier: Apache-2.0
// The machine that is made of the threads of one process, whose memory is shared by nature.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "nine/kernel/machine.hpp"

namespace apps::nine {

class threads_machine final : public machine {
 public:
  struct allocation {
    std::string name;
    std::span<std::byte> bytes;
  };

  /// Requires: threads > 0.
  explicit threads_machine(int threads);
  threads_machine(const threads_machine&) = delete;
  threads_machine& operator=(const threads_machine&) = delete;
  ~threads_machine() override;

  /// All that has been allocated, in order.
  std::span<const allocation> allocations() const { return allocations_; }

  int threads() const override { return threads_; }
  /// Throws std::system_error when there is no memory.
  void* allocate(std::size_t bytes, const char* name) override;
  void barrier(int thread) override;
  void lock(int thread, int number) override;
  void unlock(int thread, int number) override;
  double sum(int thread, double mine) override;
  double greatest(int thread, double mine) override;

 private:
  /// What a thread gives to a reduction, in a cache line of its own. Reductions use two places in
  /// turn, so that a thread can give to the next one while others still read this one. A place is
  /// used again only when all threads have come to the next reduction, and so have read it.
  struct alignas(64) contribution {
    std::array<double, 2> value{};
    std::size_t turn = 0;
  };
  /// Returns which of the two places holds what all have given.
  std::size_t give(int thread, double mine);

  int threads_;
  int looks_;  // how often a thread looks at a barrier before it sleeps
  std::vector<allocation> allocations_;
  std::vector<contribution> contributions_;
  std::array<std::mutex, locks_max> locks_;
  alignas(64) std::atomic<int> arrived_ = 0;
  alignas(64) std::atomic<int> epoch_ = 0;
};

/// Prepares and runs the application on threads of its own, and returns when they have ended. The
/// results are in the memory of the machine, and last as long as it does.
void run_on_threads(application& program, threads_machine& m);

}  // namespace apps::nine
