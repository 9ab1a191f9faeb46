// SPDX-License-Identifier: Apache-2.0
// Active messages as the templates see them: room in the ring to a rank, which is filled in place
// and committed; and a table of handlers, which messages name by index.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>

#include "sojourn/detail/ticket.hpp"

namespace sojourn::detail {

struct arrival;

/// A request as its handler sees it. Valid until consume(): a handler that may block copies what
/// it needs first, so that a blocked handler never holds up the messages behind it.
struct request {
  const std::byte* payload;
  std::uint32_t bytes;
  int source;
  ticket_id ticket;               ///< Where the answer goes; 0 when none is wanted.
  const arrival* from = nullptr;  ///< What arrived. Valid until the handler suspends.

  /// Frees the message's room. Called once, by the handler, before it suspends.
  void consume();
};

using request_handler = void (*)(request& message);

/// Adds a handler; only before main, so that all ranks of one program have the same table.
/// `may_migrate`: what the handler calls may leave this rank, together with the handler's frames.
/// `promises`: the compiler's name for what the handler calls, if that never waits; the handler
/// then runs on the dispatcher's stack. `keeps`: if not 0, the handler's messages have at least so
/// many bytes, may be kept for later, and may meanwhile be handed to other ranks (balance.hpp).
std::uint16_t register_request_handler(request_handler handler, bool may_migrate,
                                       const char* promises = nullptr, std::size_t keeps = 0);

/// Room for a request's payload, 16-byte aligned. No suspension between this and commit_request.
/// Suspends when there is no room or too many of this rank's requests to `to` are unanswered.
struct outgoing {
  std::byte* payload;
  ticket_id ticket;
};
outgoing begin_request(int to, std::size_t payload_bytes, bool answered);
void commit_request(int to, std::uint16_t handler, ticket_id ticket);

/// Called when an exception has left a call that nobody waits for: the exception goes to the
/// surrounding finish, or ends the job.
void one_way_failed(const std::exception_ptr& failure);

/// Refuses a message that is shorter than what it must hold: tells both ends. Consumes the message.
void refuse_request(request& message, std::size_t needed);

/// Why a handler must not wait.
enum class promise_of_handler : std::uint8_t {
  view,        ///< It reads its arguments in a message that it has not consumed.
  nonblocking  ///< It has no stack of its own, or is one of a run of calls.
};
/// Called before and after such a handler. `called`: the compiler's name for what it calls.
void begin_promise(promise_of_handler what, const char* called);
void end_promise();
/// The same for a block of code.
class handler_promise {
 public:
  handler_promise(promise_of_handler what, const char* called) { begin_promise(what, called); }
  ~handler_promise() { end_promise(); }
  handler_promise(const handler_promise&) = delete;
  handler_promise& operator=(const handler_promise&) = delete;
};

/// The index of a function in the table of functions that the linker built; and the function of an
/// index, which is checked against the table's bounds. No address from a message is ever called.
std::uint32_t function_index(void (*function)());
void (*function_at(std::uint32_t index))();

}  // namespace sojourn::detail
