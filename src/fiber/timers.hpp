// SPDX-License-Identifier: Apache-2.0
// Pieces that wait for a time, the earliest first: a heap in the runtime's own memory, so that no
// address of malloc'd memory is left on the stacks that it is used from. Whoever runs the loop of
// the rank asks the clock and wakes those whose time has come.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sojourn/waiting/sleep.hpp"

namespace sojourn::detail {

struct piece;
class file_writer;
class file_reader;

/// When the next timer is due (now_ns()), or never_ns: all that the rank's loop must look at.
extern std::uint64_t next_timer_ns;

/// To be called by an action: `p`, suspended and without a timer, becomes ready at `deadline_ns`.
/// Of two timers for the same time, the one that was set first wakes its piece first.
void set_timer(piece* p, std::uint64_t deadline_ns);
/// Removes the timer of `p`; true when it had one. A sleeper then waits for nothing until somebody
/// resumes it, here or on another rank; if its time has not come by then, it goes to sleep again.
bool cancel_timer(piece* p);
/// When the timer of `p` is due, or never_ns when it has none.
std::uint64_t timer_of(const piece* p);

/// The piece whose timer is due first, when that is at `now` or before; else null.
piece* first_due(std::uint64_t now);

/// Has wake_due() (sleep.hpp) call `ring` once, at `at_ns` or later. A rank has one such alarm:
/// setting it again replaces it.
void set_alarm(std::uint64_t at_ns, void (*ring)());
/// Rings the alarm if its time is `now` or before.
void ring_if_due(std::uint64_t now);

/// save_timers writes all timers; load_timers sets them again in the run that goes on from there.
void save_timers(file_writer& to);
void load_timers(file_reader& from);

/// How many pieces have a timer.
std::size_t timers_set();

}  // namespace sojourn::detail
