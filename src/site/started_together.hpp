// SPDX-License-Identifier: Apache-2.0
// The processes that a launcher of the site (srun, mpirun, mpiexec) has started together with this
// one. They need one thing of the launcher: that each can tell all others a word.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace sojourn::detail {

/// The destructor ends all dealings with the launcher, and leaves no thread behind.
class started_together {
 public:
  virtual ~started_together() = default;

  virtual int number() const = 0;  ///< The number of this process, from 0.
  virtual int count() const = 0;   ///< At least 2.

  /// Tells the others `word`, waits until all have told theirs, and returns the words of the
  /// processes with the numbers in `wanted`. `word` must have 1 to word_max characters, none of
  /// them white space. Throws sojourn::error.
  virtual std::vector<std::string> exchange(const std::string& word,
                                            const std::vector<int>& wanted) = 0;

  static constexpr std::size_t word_max = 1000;
};

/// Uses PMIx, which OpenMPI's mpirun and `srun --mpi=pmix` have, and libpmix. Null when no such
/// launcher has started this process, or has started it alone. Throws sojourn::error.
std::unique_ptr<started_together> started_by_pmix();

/// Uses version 1 of PMI's wire protocol, which MPICH's mpiexec.hydra and `srun --mpi=pmi2` have.
/// Null as above.
std::unique_ptr<started_together> started_by_pmi();

/// Uses whichever of the two there is. Throws sojourn::error when this process is one of several of
/// a launcher that gives them no way to find each other: they would otherwise be as many jobs of
/// one rank.
std::unique_ptr<started_together> launcher_of_this_process();

}  // namespace sojourn::detail
