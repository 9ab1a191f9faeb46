// SPDX-License-Identifier: Apache-2.0
// The machine of the nine applications made of the ranks of a job: memory, locks and barriers are
// those of sojourn/shared.hpp.
#pragma once

#include <cstddef>

#include "nine/kernel/machine.hpp"
#include "sojourn/shared.hpp"

namespace apps::nine {

class shared_machine final : public machine {
 public:
  /// Requires: called by the main fibers of all ranks, with the same number.
  explicit shared_machine(int threads_of_rank);
  shared_machine(const shared_machine&) = delete;
  shared_machine& operator=(const shared_machine&) = delete;

  int threads() const override;
  /// Collective. Rank 0 allocates, and tells the others where.
  void* allocate(std::size_t bytes, const char* name) override;
  void barrier(int thread) override;
  void lock(int thread, int number) override;
  void unlock(int thread, int number) override;
  double sum(int thread, double mine) override;
  double greatest(int thread, double mine) override;

 private:
  struct padded_lock {
    alignas(64) sojourn::shared::mutex mutex;
  };

  const int threads_of_rank_;
  padded_lock* locks_;
};

/// Prepares and runs the application on `m`, in its threads. Collective.
void run_on_ranks(application& program, shared_machine& m, int threads_of_rank);

}  // namespace apps::nine
