// SPDX-License-Identifier: Apache-2.0
// What happens when an instruction accesses memory that does not allow it (SIGSEGV, SIGBUS). If the
// thread is making an attempt (survives_faults), the attempt ends. Otherwise the handler that is
// registered for the address is called. A fault that no handler repairs is reported.
//
// Nothing is held while a handler runs, and no signal is blocked for it. So it may itself fault in
// the range of another handler, and it need not return: it may leave the signal stack by a jump.
#pragma once

#include <signal.h>

#include <cstddef>
#include <cstdint>

namespace sojourn::detail {

enum class fault_access { unknown, read, write };

struct page_fault {
  std::uint64_t address;
  fault_access access;
  void* context;  ///< The ucontext_t of the instruction: it goes on with what is written there.
};

/// True: the fault is repaired, and the instruction is executed again. Called in the thread that
/// faulted, on its signal stack if it has one; async-signal-safe. `errno` is kept.
using fault_handler = bool (*)(const page_fault& fault, void* data);

inline constexpr std::size_t fault_ranges_max = 16;

/// From now on `handler` is called for faults at the addresses from `low` up to `high`. False when
/// the range overlaps one that has a handler, or when fault_ranges_max have one. A handler of these
/// signals that the program has installed, before or since, is called for all other faults.
bool add_fault_range(std::uint64_t low, std::uint64_t high, fault_handler handler, void* data);

/// The handler of the range that begins at `low` is no longer called; calls of it in other threads
/// may still be going on. Requires: there is such a range.
void remove_fault_range(std::uint64_t low);

/// Faults that no handler repairs, and these signals when a process has sent them, go to
/// `reporter`, a handler as for sigaction(), which ends the process for a fault. A program that has
/// installed its own handler keeps it.
void report_other_faults(void (*reporter)(int signal, siginfo_t* info, void* context));

/// Calls `attempt`, which may fault anywhere: it is then left where it did, without destructors,
/// and the result is false. No other handler is asked. Requires: report_other_faults or
/// add_fault_range has been called, or else a fault ends the process as usual; `attempt` neither
/// suspends nor throws. Async-signal-safe.
bool survives_faults(void (*attempt)(void*), void* argument);

/// Whether the instruction that a fault has interrupted was about to write, as far as the processor
/// tells. `context`: the third argument of the signal's handler.
fault_access access_of(const void* context);

}  // namespace sojourn::detail
