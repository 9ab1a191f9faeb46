// SPDX-License-Identifier: Apache-2.0
// Being heard while a rank computes. Other ranks that wait for an answer about shared memory ring:
// they interrupt this one by a signal (neighbours::interrupt). If the signal has interrupted the
// program's own code, the handler may answer, for then the runtime is in no middle of anything.
// Nothing says so beforehand, which would cost every call something: the handler finds out by the
// frames of the interrupted stack.
//
// The program's code may be interrupted in a function of a library, malloc() for one, so nothing
// that is done in the handler uses such a function with a state of its own: memory comes from the
// runtime's pool. Where the frames do not prove that it is the program's code, the handler does
// nothing: whoever rang rings again.
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

/// Whether the interrupted instruction is one of the program's file, and no memory is allocated
/// there but by the C library's functions. Requires: as interrupts_user_code().
bool is_in_program_without_malloc(const void* context);

/// Rings at ranks while fibers of this one wait for answers: first after a while, then less and
/// less often, until nobody waits or all others sleep.
class ringer {
 public:
  explicit ringer(const tick_clock& clock);

  /// A message was sent to a rank, which may have to answer.
  void sent(int rank) {
    was_sent_[rank] = true;
    was_asked_ = true;
  }

  void begin_wait();
  void end_wait();
  /// Rings if it is time. To be called now and then by a fiber that waits and lets no other run, so
  /// that no timer is looked at.
  void look();

 private:
  static void on_alarm();
  bool ring_at(bool all);

  const tick_clock& clock_;
  int waiting_ = 0;  ///< Fibers.
  bool is_set_ = false;
  std::uint64_t since_ns_ = 0;  ///< Somebody has waited all the time.
  std::uint64_t again_after_ns_ = 0;
  bool rang_ = false;
  bool was_asked_ = false;  ///< A question was sent since the pauses began to become longer.
  bool* was_sent_;          ///< By rank: since somebody began to wait.
};

}  // namespace sojourn::detail::pages
