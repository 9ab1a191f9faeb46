// SPDX-License-Identifier: Apache-2.0
// Checkpoints: all threads of a job, with what they wait for, their heaps and the global heap, in
// files from which a later job goes on (`sojourn run --restore`). main is not among them: it runs
// again, and finds them by what it gave along. (docs/checkpoint.md)
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <typeinfo>

#include "sojourn/detail/result.hpp"
#include "sojourn/errors.hpp"
#include "sojourn/travels.hpp"

namespace sojourn {

/// Why no checkpoint was written.
enum class checkpoint_refusal : std::uint8_t {
  none,
  not_main,           ///< It is main that calls, outside of any activation, fork, finish or stay.
  part_of_main,       ///< A fork or an activation that main began has not ended, or main holds a
                      ///< mutex of the global heap.
  in_finish,          ///< A finish is open.
  handles_exception,  ///< A thread is in a catch block.
  initialises,        ///< A thread is initialising a static variable.
  stays,              ///< A thread has a `stay`: something of its process.
  waits_outside,      ///< A thread waits for, or holds, an object that is not saved.
  continues,          ///< The continuation of a future waits.
  not_written,        ///< The files could not be written.
  several_programs,   ///< The ranks do not all run the same program.
};

/// Thrown by checkpoint() on every rank: nothing was written then, an older checkpoint of that name
/// is as it was, and the job goes on.
class checkpoint_error : public error {
 public:
  checkpoint_error(checkpoint_refusal why, const std::string& what) : error(what), why_(why) {}
  checkpoint_refusal why() const { return why_; }

 private:
  checkpoint_refusal why_;
};

namespace detail {
struct root_bytes {
  const char* type;
  const void* bytes;
  std::size_t size;
};
void checkpoint_now(const std::string& path, const root_bytes& root);
void read_restored_root(const char* type, void* into, std::size_t size);
}  // namespace detail

/// Writes a checkpoint of the job: the file `path`, as rank 0 names it, and one file a rank beside
/// it. It takes the place of an older one of that name at the last moment, in one step: whatever
/// ends the job meanwhile, one of the two is whole.
///
/// Saved are all threads and other fibers but main's, ready, asleep, or waiting for results, for
/// threads, or for a sojourn::mutex, semaphore, … in the global heap, in a thread's heap or in a
/// thread's frames; thread_heap()s; the global heap. Not saved are variables in static storage,
/// what malloc and new gave, open files.
///
/// Called by main on every rank, like the collectives. Threads stand still meanwhile; calls that
/// are on their way are carried out first. Suspends. Errors: checkpoint_error.
inline void checkpoint(const std::string& path) { detail::checkpoint_now(path, {"", nullptr, 0}); }

/// The same, with a value of each rank for main to find its threads and objects by:
/// restored_root() gives it back.
template <class Root>
void checkpoint(const std::string& path, const Root& root) {
  static_assert(travels<Root>,
                "sojourn: the root of a checkpoint is a value that travels: thread, global_ptr, "
                "numbers, and structs of them");
  detail::checkpoint_now(path, {typeid(Root).name(), &root, sizeof(Root)});
}

/// True when this job goes on from a checkpoint: what threads did before, main does not do again.
/// They go on at main's first barrier(), or at its end.
bool restored();

/// What this rank gave to checkpoint(). Requires: restored(). Suspends: no. Errors: sojourn::error
/// when that was a value of another type, or none.
template <class Root>
Root restored_root() {
  static_assert(travels<Root>);
  detail::room<Root> room;
  detail::read_restored_root(typeid(Root).name(), &room.value, sizeof(Root));
  return room.value;
}

}  // namespace sojourn
