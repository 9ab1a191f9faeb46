// SPDX-License-Identifier: Apache-2.0
// What the kernel tells of a thread of another process: whether it runs, sleeps or is held, and how
// much of a core it has had.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace sojourn::detail {

struct thread_id {
  std::int32_t process;
  std::int32_t thread;
};

/// As in /proc/PID/stat: 'R' when the thread runs or waits for a core; '?' when there is none.
char state_of(thread_id id);

/// True when the thread sleeps in the kernel.
inline bool sleeps_in_kernel(char state) { return state == 'S' || state == 'D'; }
/// True when SIGSTOP or a debugger has stopped the thread.
inline bool is_stopped(char state) { return state == 'T' || state == 't'; }

/// True when the process's control group, or one around it, is frozen.
bool is_frozen(std::int32_t process);

/// True when the system call that the thread sleeps in goes on after a signal handler as if nothing
/// had happened (signal(7), SA_RESTART). Knows not all such calls, but those in which programs
/// block.
bool restarts_when_interrupted(thread_id id);

/// Tells sleeps of the thread in the kernel apart: another text each time that it falls asleep, ""
/// while it does not sleep.
std::string sleep_of(thread_id id);

/// What a thread has had of a core; grows while it runs. All zero where the kernel does not tell.
struct core_use {
  std::chrono::nanoseconds ran{};
  long turns = 0;  ///< How often it was given a core.
};
core_use core_use_of(thread_id id);

}  // namespace sojourn::detail
