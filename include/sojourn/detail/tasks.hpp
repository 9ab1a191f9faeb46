// SPDX-License-Identifier: Apache-2.0
// Work for the dispatcher of this rank: run like a message handler, on its stack, and made a fiber
// only when it blocks.
#pragma once

#include <type_traits>
#include <utility>

#include "sojourn/detail/ticket.hpp"

namespace sojourn::detail {

/// The running fiber's finish scope, or null; it counts one computation more, which post_task runs.
void* join_scope();
/// Runs fn(context) soon on this rank, as the computation that join_scope() counted.
void post_task(void (*fn)(void*), void* context, void* scope);
/// The same, before all that were posted so far.
void post_task_first(void (*fn)(void*), void* context, void* scope);

/// Makes `id` a ticket that is at home on this rank, asking its home to forward when it is not.
void ticket_adopt(ticket_id& id);

/// fn(f.get()), or f.get(), fn() when there is no value.
template <class F, class Future>
decltype(auto) call_with(F& fn, Future& f) {
  if constexpr (std::is_void_v<typename Future::value_type>) {
    f.get();
    return fn();
  } else {
    return fn(f.get());
  }
}

}  // namespace sojourn::detail
