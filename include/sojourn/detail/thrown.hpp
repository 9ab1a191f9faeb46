// SPDX-License-Identifier: Apache-2.0
// Where an exception was thrown that leaves what the program gave the runtime to call: the body of
// a thread, a remote call, a child. Once it is caught its frames are gone, and whoever is told that
// nobody takes it can name them only when they were noted before.
#pragma once

#include <exception>

namespace sojourn::detail {

/// Nobody throws one. The C++ runtime looks for a handler before it takes any frame away, and asks
/// each `catch` on its way whether it fits; that of a const thrown_past& says no, and notes the
/// frames (src/rpc/thrown.cpp, which has the typeinfo). It stands before a `catch (...)`, in which
/// caught_past() is called.
class thrown_past {
 public:
  virtual ~thrown_past();
};

/// In the catch block: the exception, and what was noted is from now on known of it.
std::exception_ptr caught_past();

}  // namespace sojourn::detail
