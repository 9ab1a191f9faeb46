// SPDX-License-Identifier: Apache-2.0
// What the floors above do for fibers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <typeinfo>

#include "sojourn/detail/mark.hpp"

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
  /// A thread's base is now a fiber of this rank; and no longer is.
  void (*here)(piece* p) = [](piece*) {};
  void (*gone)(piece* p) = [](piece*) {};
};

/// Children that leave for ranks that have nothing to do. (migrate)
struct fork_hooks {
  /// Called at a fork that looks closer (at_fork), on the stack of the fiber that forks. True when
  /// the child, which has that kind, is to leave.
  bool (*forks)(mark_kind kind) = [](mark_kind) { return false; };
  /// These do the work of leave_as_child() and left_child_ends().
  std::uint64_t (*leaves)() = [] { return std::uint64_t{0}; };
  void (*ends)(std::uint64_t began) = [](std::uint64_t) {};
  /// Called when a fiber gives its turn while a rank has nothing to do. True when the fiber need
  /// not give its turn any more.
  bool (*gives_turn)() = [] { return false; };
};

/// Told of a result that comes for a ticket that was dropped. (rpc)
struct dropped_hooks {
  /// An exception. `dropped_at`: the code that dropped the ticket, which ticket::notify_context
  /// keeps in checked mode.
  void (*exception)(const void* bytes, std::size_t size,
                    std::uint64_t dropped_at) = [](const void*, std::size_t, std::uint64_t) {};
  /// A result of the kind outcome::kept.
  void (*kept)(const void* bytes, std::size_t size) = [](const void*, std::size_t) {};
};

/// Each member is filled in once, by the floor that it belongs to, before main begins.
struct fiber_hooks {
  scope_hooks scope;
  thread_hooks thread;
  fork_hooks fork;
  dropped_hooks dropped;
  /// A handler's stack becomes the fiber `p`. (message)
  void (*made)(piece* p) = [](piece*) {};
  /// An exception leaves a child that was cut off its caller; no frame of the child is gone yet.
  /// (rpc)
  void (*child_throws)(const std::type_info& type, void* object) = [](const std::type_info&,
                                                                      void*) {};
  /// Code that runs in no fiber wants to wait: the program ends after this call. (message)
  void (*waits_outside)() = [] {};
};
extern fiber_hooks on_fiber;

}  // namespace sojourn::detail
