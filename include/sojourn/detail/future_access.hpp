// SPDX-License-Identifier: Apache-2.0
// How the runtime makes futures of tickets, and finds the ticket of a future.
#pragma once

#include "sojourn/detail/ticket.hpp"

namespace sojourn::detail {

struct future_access {
  template <class Future>
  static Future of_ticket(ticket_id ticket) {
    return Future::of_ticket(ticket);
  }
  /// A future of a child that refers to frames of the caller.
  template <class Future>
  static Future of_child(ticket_id ticket) {
    return Future::of_child(ticket);
  }
  /// Null when the future holds its value. Errors: as future::get().
  template <class Future>
  static ticket_id* ticket_of(Future& f) {
    return f.to_wait_for();
  }
};

}  // namespace sojourn::detail
