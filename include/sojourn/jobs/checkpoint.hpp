// SPDX-License-Identifier: Apache-2.0
// Checkpoints: all threads of a job, with what they wait for, their heaps and the global heap, in
// files from which a later job goes on (`sojourn run --restore`). main is not saved: it runs again,
// and finds the threads by the root value that it gave to checkpoint(). (docs/checkpoint.md)
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <typeinfo>

#include "sojourn/calls/travels.hpp"
#include "sojourn/detail/result.hpp"
#include "sojourn/errors.hpp"

namespace sojourn {

/// Why no checkpoint was written.
enum class checkpoint_refusal : std::uint8_t {
  none,
  not_main,       ///< Called by another fiber, or by main in an activation, fork, finish or stay.
  part_of_main,   ///< A fork or an activation that main began has not ended, or main holds a
                  ///< mutex of the global heap.
  in_finish,      ///< A finish is open.
  in_collective,  ///< A thread has begun a collective operation that has not ended.
  handles_exception,  ///< A thread is in a catch block.
  initialises,        ///< A thread is initialising a static variable.
  stays,              ///< A thread has a `stay`, so it needs something of its process.
  waits_outside,      ///< A thread waits for, or holds, an object that is not saved: a mutex in a
                      ///< variable of the program, a dist_object, a result of more than 512 KiB.
  continues,          ///< A function that was given to future::then has not run yet.
  not_written,        ///< The files could not be written.
  several_programs,   ///< The ranks do not all run the same program.
  shared_memory,      ///< A shared::mutex is held, or it or the shared::barrier() is waited for.
};

/// Thrown by checkpoint() on every rank. Nothing was written then, an older checkpoint of that name
/// is unchanged, and the job goes on.
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
/// it. At the last moment it replaces an older checkpoint of that name in one step: whatever ends
/// the job meanwhile, one of the two is complete.
///
/// It saves all threads and other fibers but main's: those that are ready, asleep, or wait for
/// results, for threads, or for a sojourn::mutex, semaphore, … in the global heap, in a thread's
/// heap or in a thread's frames. It saves thread_heap()s and the global heap. It saves
/// shared memory (sojourn/shared.hpp), too. It does not save variables in static storage, memory
/// from malloc and new, or open files.
///
/// main calls it on every rank, like the collectives. Threads stand still meanwhile; calls that are
/// on their way run first. Suspends. Errors: checkpoint_error.
inline void checkpoint(const std::string& path) { detail::checkpoint_now(path, {"", nullptr, 0}); }

/// The same, with a root value for each rank, by which main finds its threads and objects:
/// restored_root() gives it back.
template <class Root>
void checkpoint(const std::string& path, const Root& root) {
  static_assert(travels<Root>,
                "sojourn: the root of a checkpoint is a value that travels: thread, global_ptr, "
                "numbers, and structs of them");
  detail::checkpoint_now(path, {typeid(Root).name(), &root, sizeof(Root)});
}

/// True when this job goes on from a checkpoint; main then does not start its threads again. The
/// restored threads go on at main's first barrier(), or at its end.
bool restored();

/// The root value that this rank gave to checkpoint(). Requires: restored(). Never suspends.
/// Errors: sojourn::error when that was a value of another type, or none.
template <class Root>
Root restored_root() {
  static_assert(travels<Root>);
  detail::room<Root> room;
  detail::read_restored_root(typeid(Root).name(), &room.value, sizeof(Root));
  return room.value;
}

}  // namespace sojourn
