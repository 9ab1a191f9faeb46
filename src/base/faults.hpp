// SPDX-License-Identifier: Apache-2.0
// What happens when an instruction accesses memory that does not allow it (SIGSEGV, SIGBUS). If the
// thread is making an attempt (survives_faults), the attempt ends. Otherwise the handler that is
// registered for the address is called. A fault that no handler repairs is reported.
//
// While a handler runs, no lock is held and no signal is blocked for it. So it may fault in the
// range of another handler, and it need not return: it may leave the signal stack by a jump.
#pragma once

#include <signal.h>

#include <cstddef>
#include <cstdint>

namespace sojourn::detail {

enum class fault_access { unknown, read, write };

struct page_fault {
  std::uint64_t address;
  fault_access access;
  void* context;  ///< The ucontext_t of the instruction. If the handler changes it, the thread goes
                  ///< on with that.
};

/// Returns true when the fault is repaired: the instruction is executed again then. Called in the
/// thread that faulted, on its signal stack if it has one, so it must be async-signal-safe. `errno`
/// is kept.
using fault_handler = bool (*)(const page_fault& fault, void* data);

inline constexpr std::size_t fault_ranges_max = 16;

/// From now on `handler` is called for faults at the addresses from `low` up to `high`. Returns
/// false when the range overlaps a registered one, or when fault_ranges_max are registered. A
/// handler of these signals that the program has installed, earlier or later, is called for all
/// other faults.
bool add_fault_range(std::uint64_t low, std::uint64_t high, fault_handler handler, void* data);

/// The handler of the range that begins at `low` is no longer called; calls of it in other threads
/// may still be going on. Requires: there is such a range.
void remove_fault_range(std::uint64_t low);

/// Faults that no handler repairs go to `reporter`, and these signals when a process has sent them.
/// `reporter` is a handler as for sigaction(); it must end the process for a fault. If the program
/// has installed a handler, this one is called instead.
void report_other_faults(void (*reporter)(int signal, siginfo_t* info, void* context));

/// Calls `attempt`, which may fault anywhere. A fault ends it at once, without destructors and
/// without a call of another handler, and this returns false. Requires: report_other_faults or
/// add_fault_range has been called (otherwise a fault ends the process as usual); `attempt` neither
/// suspends nor throws. Async-signal-safe.
bool survives_faults(void (*attempt)(void*), void* argument);

/// Whether the instruction that a fault has interrupted was about to write, as far as the processor
/// tells. `context`: the third argument of the signal's handler.
fault_access access_of(const void* context);

}  // namespace sojourn::detail
