// SPDX-License-Identifier: Apache-2.0
// What the floors above do for fibers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>

#include "sojourn/detail/mark.hpp"
#include "sojourn/detail/ticket.hpp"

namespace sojourn::detail {

struct piece;

/// Told when a piece begins or stops counting in a finish scope. (rpc)
struct scope_hooks {
  void (*joined)(void* scope) = [](void*) {};
  void (*left)(void* scope) = [](void*) {};
};

/// Threads that move. (migrate)
struct thread_hooks {
  /// Sends away a ready piece that `departs_to` another rank. False: the piece runs here after all.
  bool (*departs)(piece* p) = [](piece*) { return false; };
  /// Called when a thread's base has become a fiber of this rank, and when it no longer is one.
  void (*here)(piece* p) = [](piece*) {};
  void (*gone)(piece* p) = [](piece*) {};
};

/// Copies of objects, in which methods may be suspended. (object)
struct copy_hooks {
  /// There is such a copy that is no longer as the object is.
  bool any_is_old = false;
  /// Makes the copies in which methods of `p` are suspended, a ready piece, as their objects are.
  /// True when that takes time: `p` becomes ready again afterwards.
  bool (*refresh)(piece* p) = [](piece*) { return false; };
};

/// Children that leave for ranks that have nothing to do. (migrate)
struct fork_hooks {
  /// Called at a fork that looks closer (at_fork), on the stack of the fiber that forks. `kind`:
  /// that of the child's mark. Returns true when the child is to leave.
  bool (*forks)(mark_kind kind) = [](mark_kind) { return false; };
  /// These do the work of leave_as_child() and left_child_ends().
  std::uint64_t (*leaves)() = [] { return std::uint64_t{0}; };
  void (*ends)(std::uint64_t began) = [](std::uint64_t) {};
  /// Called when a fiber gives its turn while a rank has nothing to do. True when the fiber need
  /// not give its turn any more.
  bool (*gives_turn)() = [] { return false; };
};

/// Sends what a computation has returned or thrown to its ticket, which may be on another rank.
/// (rpc)
struct result_hooks {
  void (*value)(ticket_id id, const void* bytes, std::size_t size) = [](ticket_id, const void*,
                                                                        std::size_t) {};
  void (*exception)(ticket_id id, const std::exception_ptr& exception) =
      [](ticket_id, const std::exception_ptr&) {};
};

/// Told of a result that comes for a ticket that was dropped. (rpc)
struct dropped_hooks {
  /// The result is an exception. `dropped_at`: the address of the code that dropped the ticket,
  /// which ticket::notify_context keeps in checked mode.
  void (*exception)(const void* bytes, std::size_t size,
                    std::uint64_t dropped_at) = [](const void*, std::size_t, std::uint64_t) {};
  /// The result is of the kind outcome::kept.
  void (*kept)(const void* bytes, std::size_t size) = [](const void*, std::size_t) {};
};

/// Each member is filled in once, by the floor that it belongs to, before main begins.
struct fiber_hooks {
  scope_hooks scope;
  thread_hooks thread;
  copy_hooks copies;
  fork_hooks fork;
  result_hooks result;
  dropped_hooks dropped;
  /// A handler's stack becomes the fiber `p`. (message)
  void (*made)(piece* p) = [](piece*) {};
  /// Code that runs in no fiber wants to wait: the program ends after this call. (message)
  void (*waits_outside)() = [] {};
};
extern fiber_hooks on_fiber;

}  // namespace sojourn::detail
