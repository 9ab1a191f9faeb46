// SPDX-License-Identifier: Apache-2.0
// Forks: the caller goes on when the callee first blocks. The thinnest use of marks that makes one:
// it tells what happened, and lets a test say where the mark lies.
#pragma once

#include <type_traits>
#include <utility>

#include "settings.hpp"
#include "sojourn/detail/activation.hpp"
#include "sojourn/detail/ticket.hpp"
#include "sojourn/future.hpp"

namespace cut_rules {

template <sojourn::detail::mark_kind Kind, class R, class Frame>
[[gnu::always_inline]] inline sojourn::future<R> run_fork(Frame& frame) {
  using namespace sojourn::detail;
  const std::uint64_t returned = frame.run_under(Kind);
  if (frame.events & mark::threw) {
    ticket_id ticket = ticket_open();
    send_exception(ticket, frame.failure.value);
    frame.failure.value.~exception_ptr();
    frame.events &= static_cast<std::uint8_t>(~mark::threw);
    frame.settle();
    return sojourn::future<R>::of_ticket(ticket);
  }
  if (frame.events != 0 && !frame.settle()) {
    happened(is_by_reference(Kind) ? event::fork_by_reference_went_on : event::fork_went_on);
    return sojourn::future<R>::of_ticket(frame.ticket);
  }
  happened(event::fork_returned);
  frame.keep(returned);
  return sojourn::future<R>::of_value(std::move(frame.result.value));
}

/// Not inlined: forks of one frame have their marks at one address, which siblings' children then
/// share as their base.
template <sojourn::detail::mark_kind Kind, class F, class... A>
[[gnu::noinline]] auto fork(F fn, A... arguments)
    -> sojourn::future<std::invoke_result_t<F, A...>> {
  using namespace sojourn::detail;
  using R = std::invoke_result_t<F, A...>;
  marked_frame<R, F, A...> frame(fn, arguments...);
  return run_fork<Kind, R>(frame);
}
/// `fn` and its arguments by value: the child may leave this rank.
template <class F, class... A>
auto fork_by_value(F fn, A... arguments) {
  return fork<sojourn::detail::mark_kind::fork>(fn, arguments...);
}

/// `fn` may refer to the frames of its caller; `room`, where the mark is, must outlive the child.
template <class F>
[[gnu::always_inline]] inline auto fork_by_reference(F fn, void* room) {
  using R = std::invoke_result_t<F>;
  auto* frame = ::new (room) sojourn::detail::marked_frame<R, F>(fn);
  return run_fork<sojourn::detail::mark_kind::fork_by_reference, R>(*frame);
}

}  // namespace cut_rules
