// SPDX-License-Identifier: Apache-2.0
// The processes that a launcher of the site (srun, mpirun, mpiexec) has started together with this
// one, and the one thing that they need of it: each tells all others a word.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace sojourn::detail {

/// Destroyed, it has nothing to do with the launcher any more, and has left no thread behind.
class started_together {
 public:
  virtual ~started_together() = default;

  virtual int number() const = 0;  ///< Of this process, from 0.
  virtual int count() const = 0;   ///< At least 2.

  /// Tells the others `word`, waits until all have told theirs, and returns those of the processes
  /// with the numbers in `wanted`. `word` has 1 to word_max characters, and none of them is white.
  /// Throws sojourn::error.
  virtual std::vector<std::string> exchange(const std::string& word,
                                            const std::vector<int>& wanted) = 0;

  static constexpr std::size_t word_max = 1000;
};

/// By PMIx, which OpenMPI's mpirun and `srun --mpi=pmix` have, and libpmix; null where no such
/// launcher has started this process, or started it alone. Throws sojourn::error.
std::unique_ptr<started_together> started_by_pmix();

/// By version 1 of PMI's wire protocol, which MPICH's mpiexec.hydra and `srun --mpi=pmi2` have.
std::unique_ptr<started_together> started_by_pmi();

/// Whichever there is. Throws sojourn::error where this process is one of several of a launcher
/// that gives them no way to find each other, for they would be as many jobs of one rank.
std::unique_ptr<started_together> launcher_of_this_process();

}  // namespace sojourn::detail
