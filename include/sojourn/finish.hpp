// SPDX-License-Identifier: Apache-2.0
// Waiting for everything that was started, wherever it went.
//
// Returns when all calls that were begun inside have run (docs/examples/aggregation.cpp):
//
//     finish([&] {
//       aggregated here;
//       for (unsigned i = 0; i < 100'000; ++i) {
//         const unsigned value = i * 2654435761u >> 8;
//         rpc_ff(static_cast<rank_t>(value % ranks), count, value / ranks % 1000);
//       }
//     });
//
// finish_all is the same for all ranks together: when it returns, nothing of what any of them
// began is left anywhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>

#include "sojourn/calls/aggregate.hpp"
#include "sojourn/detail/running.hpp"
#include "sojourn/team.hpp"
#include "sojourn/waiting/window.hpp"

namespace sojourn {

namespace detail {

/// An open finish; lies in the frame that called it, which stays on its rank meanwhile.
struct finish_frame : hold {
  void* scope;
};
inline constexpr std::size_t no_window = SIZE_MAX;
void finish_begin(finish_frame& frame, std::size_t in_flight = no_window);
/// Waits; rethrows `failure`, else the first exception that an rpc_ff inside ended with.
void finish_end(finish_frame& frame, const std::exception_ptr& failure);
/// The same of a finish that the members of a team open together.
void finish_all_begin(finish_frame& frame, const team& members);
void finish_all_end(finish_frame& frame, const std::exception_ptr& failure, const team& members);

/// What body() throws.
template <class Body>
std::exception_ptr failure_of(Body& body) {
  try {
    body();
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

}  // namespace detail

/// Names the innermost finish or finish_all that is open where something runs: what is begun there
/// is waited for by it. Two are equal when they are of the same one, also on different ranks. But
/// where a finish has a window, each call that its body begins has a name of its own.
class finish_scope {
 public:
  /// Of none.
  constexpr finish_scope() = default;
  /// Of what calls this. Never suspends.
  static finish_scope innermost() {
    finish_scope here;
    if (detail::running_fiber != nullptr && detail::running_fiber->scope != nullptr)
      here.id_ = static_cast<const detail::scope_view*>(detail::running_fiber->scope)->id;
    return here;
  }
  /// True in the body of a finish with a window. Requires: innermost() has just returned this.
  bool has_window() const {
    return id_ != 0 &&
           static_cast<const detail::scope_view*>(detail::running_fiber->scope)->is_window;
  }
  constexpr explicit operator bool() const { return id_ != 0; }
  friend constexpr bool operator==(finish_scope, finish_scope) = default;

 private:
  std::uint64_t id_ = 0;
};

/// Calls body() and returns when it and every rpc, rpc_ff, async, then, fork and spawn started
/// inside it, and by those in turn, on every rank, has finished. Then rethrows what body() threw,
/// else the first exception that left an rpc_ff inside. Calls of finish nest. It does not wait for
/// collective operations that were begun inside (collectives.hpp), which end when other ranks do
/// their part: these have futures. Suspends. The frames that call it stay on their rank while it is
/// open.
template <class Body>
void finish(Body&& body) {
  detail::finish_frame frame;
  detail::finish_begin(frame);
  detail::finish_end(frame, detail::failure_of(body));
}

/// As finish(body), with at most `how.in_flight` of the calls that the body begins under way at a
/// time: the body waits before it begins another one. A call (rpc, rpc_ff, ff, async, spawn, an
/// activation that leaves) is under way until it and all that it began in turn has finished, on
/// whatever rank. These calls are not bundled. A fork that stays on this rank is not counted, but
/// the calls that it begins are; par_for has a window of its own. An activation that would migrate
/// while the window is full stays, and its access is an rpc, which waits.
///
/// Idle ranks take over none of the body's forks, only those of its calls. A call that waits for
/// another call of the body, or for what the body holds, may wait for ever.
/// Costs: one more message for each call, sent back when it is over. Also throws: sojourn::error
/// when `how.in_flight` is 0, before the body is called.
///
///     finish({.in_flight = 1024}, [&] {
///       for (const key k : starts) table.ff_visit(k, walk);
///     });
template <class Body>
void finish(const window& how, Body&& body) {
  detail::finish_frame frame;
  detail::finish_begin(frame, how.in_flight);
  detail::finish_end(frame, detail::failure_of(body));
}

/// Collective among `members`: calls body() on each of them and returns when everything is over
/// that any member's body started, and what that started in turn, on whatever rank (finish() lists
/// what that is). So when it returns, no such call changes anything any more, here or elsewhere.
/// Calls without an answer are bundled meanwhile, as `how` says, also those that handlers make on
/// members that only wait. Rethrows on each member what its own body threw; else, on all members,
/// the first exception that left an rpc_ff inside or a body elsewhere. Calls nest with each other
/// and with finish. Suspends. The frames that call it stay on their rank while it is open.
/// Costs: two broadcasts, and a message to member 0 for each rank that took part.
/// Errors: rank_lost when a rank has ended; as all collective operations.
/// Source: the barrier of YGM; one finish scope for all members (src/rpc/scopes.cpp).
template <class Body>
void finish_all(Body&& body, const team& members = team::world(), const aggregation& how = {}) {
  const aggregated until_all_is_done(how);
  detail::finish_frame frame;
  detail::finish_all_begin(frame, members);
  detail::finish_all_end(frame, detail::failure_of(body), members);
}

}  // namespace sojourn
