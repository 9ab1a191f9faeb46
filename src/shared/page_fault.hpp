// SPDX-License-Identifier: Apache-2.0
// From a fault in the program's view to the stack of the fiber that faulted. The signal handler
// only finds out what has happened. It then leaves for the fiber's own stack, below the frames of
// the faulting code, where the runtime may do all that it may do in any call: suspend the fiber,
// for example. Afterwards the faulting instruction is executed again, with all registers as they
// were. fault_frame.hpp tells how.
//
// A fault of code that cannot wait ends the rank with a sentence.
#pragma once

#include <cstdint>

namespace sojourn::detail::pages {

struct page_fault_hooks {
  /// Called on the stack of the running fiber, which may suspend in it. `store`: the instruction
  /// wants to store, as far as the processor tells. `registers`: a number that is the same whenever
  /// an instruction faults again without having run, and most likely different otherwise. `code`:
  /// the address of the instruction. Returns when the instruction is to be executed again. Must not
  /// throw. While it runs, the fiber neither leaves its rank nor is cut at a mark: it waits as a
  /// whole.
  void (*on_page_fault)(std::uint64_t address, bool store, std::uint64_t registers,
                        std::uint64_t code);
  /// Whether the program may use this address of its view at all. Called in a signal handler.
  bool (*is_allocated)(std::uint64_t address);
};

/// From now on faults in the program's view are told to `hooks`. Requires: called on the worker
/// thread, after map_region. Throws sojourn::error.
void attach_page_faults(const page_fault_hooks& hooks);
/// Ends what attach_page_faults() began.
void detach_page_faults();

}  // namespace sojourn::detail::pages
