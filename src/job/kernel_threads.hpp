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

/// As in /proc/PID/stat: 'R' for one that runs or waits for a core; '?' for none.
char state_of(thread_id id);

/// True for one that the kernel has sleep.
inline bool sleeps_in_kernel(char state) { return state == 'S' || state == 'D'; }
/// By SIGSTOP or a debugger.
inline bool is_stopped(char state) { return state == 'T' || state == 't'; }

/// True when the process's control group, or one around it, is frozen.
bool is_frozen(std::int32_t process);

/// True when the system call that the thread sleeps in goes on behind a signal handler as if
/// nothing had been (signal(7), SA_RESTART). Not all that do are listed, but what programs block
/// in.
bool restarts_when_interrupted(thread_id id);

/// "" for none; another one each time that the thread falls asleep.
std::string sleep_of(thread_id id);

/// Of a core: grows while the thread runs. All zero where the kernel does not tell.
struct core_use {
  std::chrono::nanoseconds ran{};
  long turns = 0;  ///< Times that it was given one.
};
core_use core_use_of(thread_id id);

}  // namespace sojourn::detail
