// SPDX-License-Identifier: Apache-2.0
// Being heard while a rank computes. Other ranks that wait for an answer about shared memory ring:
// they interrupt this rank by a signal (neighbours::interrupt). If the signal interrupts the
// program's own code, its handler may answer, because the runtime is then in the middle of nothing.
// No flag tells whether it is, because setting one would cost time in every call: the handler finds
// out by looking at the frames of the interrupted stack.
//
// The program's code may be interrupted in a function of a library, such as malloc(). So nothing
// that the handler does uses a library function that has a state of its own: memory comes from the
// runtime's pool. If the frames do not prove that the program's code was interrupted, the handler
// does nothing, and the rank that rang rings again.
#pragma once

#include <cstdint>

#include "base/clock.hpp"

namespace sojourn::detail::pages {

/// Learns where the runtime's functions lie, from the program's file. Without a table of symbols
/// there, interrupts_user_code() is never true. Not for signal handlers.
void prepare_doorbell();

/// Whether a signal has interrupted the program's own code, on the stack of the running fiber.
/// Requires: called in the signal's handler, on the worker thread. `context`: its third argument.
bool interrupts_user_code(const void* context);

/// Whether the interrupted instruction lies in the program's file, and the program allocates memory
/// by the C library's functions alone. Requires: as interrupts_user_code().
bool is_in_program_without_malloc(const void* context);

/// Rings at ranks while fibers of this one wait for answers: first after a while, then less and
/// less often, until nobody waits or all others sleep.
class ringer {
 public:
  explicit ringer(const tick_clock& clock);

  /// Notes that a message was sent to a rank, which may have to answer it.
  void sent(int rank) {
    was_sent_[rank] = true;
    was_asked_ = true;
  }

  void begin_wait();
  void end_wait();
  /// Rings if it is time. To be called now and then by a fiber that waits and lets no other fiber
  /// run, because nobody looks at timers meanwhile.
  void look();

 private:
  static void on_alarm();
  bool ring_at(bool all);

  const tick_clock& clock_;
  int waiting_ = 0;  ///< How many fibers wait.
  bool is_set_ = false;
  std::uint64_t since_ns_ = 0;  ///< When the current pause between two rings began.
  std::uint64_t again_after_ns_ = 0;
  bool rang_ = false;
  bool was_asked_ = false;  ///< A question was sent since begin_wait() was called last.
  bool* was_sent_;  ///< By rank: whether a message was sent to it since fibers began to wait.
};

}  // namespace sojourn::detail::pages
