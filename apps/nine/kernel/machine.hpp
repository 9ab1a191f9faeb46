// SPDX-License-Identifier: Apache-2.0
// The shared-memory machine that the nine applications are written for: threads that share plain
// memory, barriers, locks and reductions. The same compiled kernels run on threads of one process
// and on the shared memory of many ranks.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace apps::nine {

class machine {
 public:
  static constexpr int locks_max = 1024;

  virtual ~machine() = default;

  /// How many threads run the application, numbered from 0. Neighbours in number share a rank.
  virtual int threads() const = 0;

  /// Zeroed memory that all threads share, page-aligned, until the machine ends. Called before the
  /// threads start, on each rank alike: all ranks make the same calls in the same order, and get
  /// the same addresses. `name` is told in reports.
  virtual void* allocate(std::size_t bytes, const char* name) = 0;
  template <class T>
  std::span<T> array(std::size_t count, const char* name) {
    return {static_cast<T*>(allocate(count * sizeof(T), name)), count};
  }

  // The rest is called by the threads.

  /// Returns when all threads have called it; what they stored before it can be loaded after it.
  virtual void barrier(int thread) = 0;
  /// `number` is at least 0 and less than locks_max.
  virtual void lock(int thread, int number) = 0;
  virtual void unlock(int thread, int number) = 0;
  /// The sum, or the greatest, of what all threads give; a barrier, too. The same bits on all
  /// threads, and in every run with the same number of threads.
  virtual double sum(int thread, double mine) = 0;
  virtual double greatest(int thread, double mine) = 0;
};

/// One of the nine. Its members are private to each rank and must not change while threads run:
/// what threads tell each other lies in memory of machine::allocate.
class application {
 public:
  virtual ~application() = default;
  /// Allocates what the threads share. Before they start, on each rank alike.
  virtual void prepare(machine& m) = 0;
  /// What one thread does, from making its part of the input on.
  virtual void run(machine& m, int thread) = 0;
  /// After all threads have ended, on one of them: computes the same with a serial reference, which
  /// is written independently of run(), and says what differs from the results in shared memory, by
  /// how much and where; empty when all is within the tolerance.
  virtual std::string check() const = 0;
  /// A number made of all results, for comparing runs: the same for any number of threads, up to
  /// rounding where sums are taken in another order.
  virtual double checksum() const = 0;
};

enum class problem_size { small, paper };  ///< For tests; and that of Table 1 of the paper.

struct application_entry {
  const char* name;
  const char* what;         ///< One line for --help.
  const char* small_input;  ///< Such as "64 x 64 x 64, 2 iterations".
  const char* paper_input;
  std::unique_ptr<application> (*make)(problem_size size);
};

/// All nine, in the order of the paper's Table 1.
std::span<const application_entry> applications();
/// Null when there is none of that name.
const application_entry* find_application(std::string_view name);

}  // namespace apps::nine
