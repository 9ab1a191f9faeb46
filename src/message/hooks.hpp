// SPDX-License-Identifier: Apache-2.0
// What the floors above do for the dispatcher.
#pragma once

#include <cstddef>
#include <cstdint>

#include "message/runtime_message.hpp"

namespace sojourn::detail {

struct arrival;
enum class message_class : std::uint8_t;

/// Finish scopes: a message takes weight from its scope along, and the receiver adds that weight to
/// its own part of the scope.
struct scope_wire {
  /// Suspends while this rank has no weight, or the scope's window is full.
  scope_ticket (*take)(void* scope);
  /// Takes back what take() gave for a message that was not sent.
  void (*put_back)(const scope_ticket& unsent);
  /// The same, of calls that were made, and are dropped because `rank` has ended: the finish fails.
  void (*drop)(const scope_ticket& unsent, int rank);
  std::uint64_t (*available)(
      void* scope);  ///< How much take() would give without suspending; 0: nothing.
  void* (*give)(const arrival& message, const scope_ticket& ticket);
  /// Suspends until the running fiber's scope, if it has one, has weight to give; not until its
  /// window has room. The fiber may be on another rank afterwards.
  void (*gather)();
};

/// Each member is filled in once, by the floor that it belongs to, before main begins. `scopes`,
/// `place_of_reply` and `tell` are called on any stack, `interrupted` in a signal handler, all
/// others on the scheduler's stack.
struct dispatcher_hooks {
  scope_wire scopes;  ///< rpc
  /// The place for the payload of a long reply, which has begun to come (transport::reply_place).
  /// (rpc)
  std::byte* (*place_of_reply)(int source, std::uint16_t handler, std::uint16_t flags,
                               std::uint64_t ticket, std::size_t bytes) =
      [](int, std::uint16_t, std::uint16_t, std::uint64_t, std::size_t) -> std::byte* {
    return nullptr;
  };
  /// To be called before a message is sent that lets a fiber go on: sends what must arrive before
  /// it. Returns false when there is no room for that now (never for messages of the reply class).
  /// Only after share_memory(). Any stack. (shared)
  bool (*tell)(int to, message_class way);
  /// Fails what waits for a rank that has ended. Called once for each such rank. (job)
  void (*fail_waits)(int rank) = [](int) {};
  /// Called around each sleep of this rank (transport::wait). (observe)
  void (*around_sleep)(bool falls_asleep) = [](bool) {};
  /// Called when this rank has had nothing to do for about a microsecond, and when it has something
  /// to do again. May send messages, also when the rank is about to sleep. (migrate)
  void (*when_idle)(bool idle) = [](bool) {};
  /// Called once a round of the loop, from call_each_round() on; returns how much it did. `idle`:
  /// there was nothing else to do. (migrate)
  int (*each_round)(bool idle) = [](bool) { return 0; };
  /// Called once in this round or the next, after call_next_round(). (observe)
  void (*next_round)(bool idle) = [](bool) {};
  /// Called in the handler of the signal with which other ranks interrupt this one
  /// (neighbours::interrupt), on the worker thread. Any code may have been interrupted. `context`:
  /// the handler's third argument. Async-signal-safe. (shared)
  void (*interrupted)(const void* context) = [](const void*) {};
};
extern dispatcher_hooks on_dispatch;

}  // namespace sojourn::detail
