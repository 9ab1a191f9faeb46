// SPDX-License-Identifier: Apache-2.0
// Signals that the runtime handles whatever the program does with them: SIGSEGV and SIGBUS, by
// which shared memory learns of accesses. The program's calls of sigaction() and signal() for them,
// and those of the libraries that it loads, come here: what they install is kept, told when they
// ask for it, and carried out for the signals that are not the runtime's. So a crash handler may be
// installed at any time, and none has to know of Sojourn. Nor can the program block these signals:
// the system would end the process at an access to shared memory. (Under the address sanitizer,
// which takes these functions for itself, a handler that the program installs later takes the
// signal over, and what the program blocks is blocked.)
#pragma once

#include <signal.h>

namespace sojourn::detail {

using signal_handler = void (*)(int signal, siginfo_t* info, void* context);

/// From now on `handler` gets `signal`, on the signal stack and with no signal blocked. Without
/// `also_of_program` not where the program has a handler by now. False then, or when the system
/// refuses it; true also when it was owned before.
bool own_signal(int signal, signal_handler handler, bool also_of_program);

/// What the program wants to be done with an owned signal.
enum class program_wants { nothing, ignores, handles };
struct program_action {
  program_wants wants;
  struct sigaction how;  ///< When it handles the signal.
};
/// Tells it because the signal has come: a handler that is to be called once is forgotten.
program_action take_program_action(int signal);

/// Calls the program's handler as the system would. Signals that its flags ask for are blocked from
/// then on: the system unblocks them when the caller, which is a handler itself, returns.
void call_program_handler(const struct sigaction& how, int signal, siginfo_t* info, void* context);

/// The system does what it does by default with `signal` from now on. Async-signal-safe.
void disown_signal(int signal);

}  // namespace sojourn::detail
