// SPDX-License-Identifier: Apache-2.0
#include "sojourn/detail/mark.hpp"

#include "fiber/fp_control.hpp"
#include "fiber/piece.hpp"
#include "fiber/rules.hpp"
#include "fiber/stack_copy.hpp"
#include "sojourn/detail/running.hpp"

namespace sojourn::detail {

void resumed_after_cut() { confirm_switch(); }

void handler_goes_on(std::uint32_t fp) {
  confirm_switch();
  const fp_control now = read_fp();
  const fp_control then = fp_with_word(fp, now);
  if (then != now) [[unlikely]]
    write_fp(then);
}

void save_for_caller(mark& m) {
  if (method_depth(m) != 0) {
    set_method_depth(0);
    m.events |= mark::saved_methods;
  }
  if (!is_kept(rule::exceptions_at_marks) ||
      (running.exceptions->caught == nullptr && running.exceptions->uncaught == 0)) {
    return;
  }
  m.caught = running.exceptions->caught;
  m.uncaught = running.exceptions->uncaught;
  *running.exceptions = {};
  m.events |= mark::saved_exceptions;
}

void restore_for_caller(mark& m) {
  if ((m.events & mark::saved_methods) != 0) set_method_depth(method_depth(m));
  if ((m.events & mark::saved_exceptions) != 0) *running.exceptions = {m.caught, m.uncaught};
  m.events &= static_cast<std::uint8_t>(~(mark::saved_exceptions | mark::saved_methods));
}

}  // namespace sojourn::detail
