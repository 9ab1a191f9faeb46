// SPDX-License-Identifier: Apache-2.0
// Signals that the runtime handles whatever the program does with them: SIGSEGV and SIGBUS, by
// which shared memory learns of accesses. When the program, or a library that it loads, calls
// sigaction() or signal() for them, the call comes here. The handler that it installs is kept,
// returned when it is asked for, and called for signals that are not the runtime's. So a crash
// handler may be installed at any time, and none has to know of Sojourn. The program cannot block
// these signals either, because the system would end the process at an access to shared memory.
// (The address sanitizer replaces these functions by its own. With it, a handler that the program
// installs later replaces the runtime's, and the program can block the signals.)
#pragma once

#include <signal.h>

namespace sojourn::detail {

using signal_handler = void (*)(int signal, siginfo_t* info, void* context);

/// From now on `handler` gets `signal`, on the signal stack and with no signal blocked. Returns
/// false when the system refuses this, or when the program has a handler by now and
/// `also_of_program` is false. Returns true when the signal was owned before.
bool own_signal(int signal, signal_handler handler, bool also_of_program);

/// What the program wants to happen when an owned signal comes.
enum class program_wants { nothing, ignores, handles };
struct program_action {
  program_wants wants;
  struct sigaction how;  ///< The program's handler, if it handles the signal.
};
/// To be called when the signal has come: forgets a handler that is to be called only once.
program_action take_program_action(int signal);

/// Calls the program's handler as the system would. Blocks the signals that `how` asks for. The
/// system unblocks them when the caller, which is a handler itself, returns.
void call_program_handler(const struct sigaction& how, int signal, siginfo_t* info, void* context);

/// From now on the system does with `signal` what it does by default. Async-signal-safe.
void disown_signal(int signal);

}  // namespace sojourn::detail
