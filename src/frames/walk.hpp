// SPDX-License-Identifier: Apache-2.0
// Walking a stack by the unwinder of the C++ runtime, from the youngest frame to the oldest. A
// visitor is called for each frame. (Cutting walks by tables of its own, unwind_tables.hpp, which
// tell where frames have saved registers.)
#pragma once

#include <unwind.h>

#include <cstdint>

#include "frames/interrupted.hpp"

namespace sojourn::detail {

/// A frame as a walk meets it.
struct walked_frame {
  /// An address in its function: the instruction that was interrupted, or one inside the call that
  /// it makes. (The address after a call may belong to the next line or function.)
  std::uint64_t code;
  std::uint64_t low;  ///< Its youngest byte: the canonical frame address of its callee.
  _Unwind_Context* context;

  /// The frame's value of a register that calls preserve, by DWARF's number.
  std::uint64_t value_of(int register_number) const {
    return _Unwind_GetGR(context, register_number);
  }
};

/// The frame with which a walk begins.
struct walk_start {
  std::uint64_t pc = 0;  ///< Where the frame goes on; younger frames are left out. 0: the frame of
                         ///< the function that walks.
  bool is_call = false;  ///< `pc` is the address after a call, and not of an instruction that was
                         ///< interrupted.
};

/// Returns false to end the walk.
using frame_visitor = bool (*)(const walked_frame& frame, void* data);

/// Calls visit(frame, data) for each frame. Async-signal-safe after prepare_walks().
void walk_frames(const walk_start& start, frame_visitor visit, void* data);
/// The same with any callable.
template <class Visitor>
[[gnu::always_inline]] inline void walk_frames(const walk_start& start, Visitor&& visit) {
  walk_frames(
      start,
      [](const walked_frame& frame, void* data) { return (*static_cast<Visitor*>(data))(frame); },
      &visit);
}

/// The same for code that a signal may have interrupted between two instructions which the
/// unwinder's tables do not tell apart, such as those by which an exception leaves the unwinder.
/// The walk may then follow a word that is no address; it ends there, and this returns false.
/// Requires: start.pc is not 0.
bool walk_frames_carefully(const walk_start& start, frame_visitor visit, void* data);

/// Walks, carefully, a stack that does not run: from the call with which its youngest frame goes on
/// at `from`. To be called on another stack.
bool walk_frames_from(const code_position& from, frame_visitor visit, void* data);
/// Calls fn(argument) so that an unwinder, started in it, finds `from` as its caller (walk_*.S).
extern "C" void sojourn_call_as_if_from(const code_position* from, void (*fn)(void*),
                                        void* argument);

/// Makes the unwinder allocate now whatever it keeps, so that later walks allocate nothing.
void prepare_walks();

}  // namespace sojourn::detail
