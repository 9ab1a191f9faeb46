// SPDX-License-Identifier: Apache-2.0
// How a child ends that was cut off its caller by a mark in the tables: its return address is
// child_finish (switch_*.S), which calls this.
#include <cxxabi.h>
#include <unwind.h>

#include <exception>

#include "fiber/fork_handler.hpp"
#include "fiber/hooks.hpp"
#include "fiber/scheduler.hpp"
#include "fiber/thrown.hpp"
#include "sojourn/detail/thrown.hpp"

namespace sojourn::detail {

namespace {

/// Ends the running piece, a child that was cut off its caller and has returned `word` or `real`.
[[noreturn]] void child_ends_by(std::uint64_t word, std::uint64_t real) {
  const piece* p = running_piece();
  on_fiber.result.value(p->result, p->returns.is_real ? &real : &word, p->returns.bytes);
  finish_piece();
}

void child_throws(_Unwind_Exception* exception) {
  if (const std::type_info* type = thrown_type(exception)) note_passing(*type, exception + 1);
}

[[noreturn]] void child_ends_by_exception(void* exception) {
  const ticket_id result = running_result();
  abi::__cxa_begin_catch(exception);
  {
    const std::exception_ptr thrown = caught_past();
    abi::__cxa_end_catch();
    on_fiber.result.exception(result, thrown);
  }
  finish_piece();
}

}  // namespace

}  // namespace sojourn::detail

extern "C" {
[[gnu::used, noreturn]] void sojourn_child_returned(std::uint64_t word, std::uint64_t real) {
  sojourn::detail::child_ends_by(word, real);
}
[[gnu::used, noreturn]] void sojourn_child_caught(void* exception) {
  sojourn::detail::child_ends_by_exception(exception);
}
extern const char sojourn_child_threw[];
/// Catches every exception that leaves a child that was cut off its caller.
[[gnu::used]] _Unwind_Reason_Code sojourn_child_personality(int, _Unwind_Action actions,
                                                            _Unwind_Exception_Class,
                                                            _Unwind_Exception* exception,
                                                            _Unwind_Context* context) {
  if ((actions & _UA_SEARCH_PHASE) != 0) {
    sojourn::detail::child_throws(exception);
    return _URC_HANDLER_FOUND;
  }
  _Unwind_SetGR(context, 0, reinterpret_cast<_Unwind_Word>(exception));
  _Unwind_SetIP(context, reinterpret_cast<_Unwind_Word>(sojourn_child_threw));
  return _URC_INSTALL_CONTEXT;
}
}
