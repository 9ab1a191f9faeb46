// SPDX-License-Identifier: Apache-2.0
// Notes where an exception was thrown if it leaves code that the runtime called for the program:
// the body of a thread, a remote call, a child. Once the exception is caught, the frames it left
// are gone. A report that nobody takes it can name these frames only if they were noted before.
#pragma once

#include <exception>

namespace sojourn::detail {

/// Nobody throws this. The C++ runtime looks for a handler before it removes any frame, and asks
/// each `catch` on its way if it fits. A `catch` of a const thrown_past& answers no, and notes the
/// frames (src/fiber/thrown.cpp, which has the typeinfo). It must stand before a `catch (...)` that
/// calls caught_past().
class thrown_past {
 public:
  virtual ~thrown_past();
};

/// Call it in the catch block. Returns the exception, to which the noted frames now belong.
std::exception_ptr caught_past();

}  // namespace sojourn::detail
