// SPDX-License-Identifier: Apache-2.0
// How a signal handler leaves for the stack of the code that it has interrupted. All registers are
// saved there, below that code's frames; later they are restored, and the instruction is executed
// again. There are two ways:
//
//   push  the interrupted context is changed as if the instruction had been a call, and the handler
//         returns; the called function saves the registers
//   take  the registers that the kernel has saved are copied, and the handler is left by a jump.
//         Nothing else needs to be restored: the signal blocks no signals (base/faults.hpp), and
//         the kernel sees by the stack pointer that the signal stack is free. This saves a system
//         call.
//
// A handler must never switch to another stack while its own frame is on the signal stack: the next
// signal would overwrite it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sojourn::detail::pages {

enum class way_to_stack : std::uint8_t { push, take };

/// Chooses the way: take, where it works, or what SOJOURN_SHARED_FAULTS (push or take) says.
/// Throws sojourn::error when this processor or the variable does not allow it.
void prepare_fault_frames();
/// Throws sojourn::error if the handlers of faults find stale values in registers, as under
/// valgrind, unless valgrind was told otherwise. Requires: prepare_fault_frames has been called.
void require_registers_of_faults();

/// A number made of the address of the interrupted instruction and of all general registers.
/// `context`: the third argument of a signal handler.
std::uint64_t interrupted_registers(const void* context);
/// How many bytes below the interrupted code's stack pointer call_on_interrupted_stack() needs for
/// what it saves.
std::size_t fault_frame_bytes(const void* context);

/// Has sojourn_page_fault(address, store) called on the interrupted stack. Requires: called by a
/// signal handler that runs on another stack and blocks no signals. If this returns, the handler
/// must return at once. (It may leave the handler by a jump instead.)
void call_on_interrupted_stack(void* context, std::uint64_t address, bool store);

}  // namespace sojourn::detail::pages

/// Defined in page_fault.cpp: what is called on the interrupted stack.
extern "C" void sojourn_page_fault(std::uint64_t address, bool store) noexcept;
