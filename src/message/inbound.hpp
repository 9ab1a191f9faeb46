// SPDX-License-Identifier: Apache-2.0
// Receiving: the tables of handlers, and running them on messages.
#pragma once

#include <cstddef>
#include <cstdint>

#include "message/message_reader.hpp"
#include "message/runtime_message.hpp"
#include "sojourn/detail/wire.hpp"
#include "transport/transport.hpp"

namespace sojourn::detail {

using runtime_handler = void (*)(arrival& message);
/// Sets the handler of messages of a kind, which have at least `least` bytes: a shorter one ends
/// the rank with a report and never reaches the handler.
void on_message(runtime_message kind, runtime_handler handler, std::size_t least = 0);

/// Registers a handler that is given the first bytes of a message; `deliver` has checked that they
/// are there.
template <class Head, void (*Handle)(arrival&, const Head&)>
void on_message(runtime_message kind) {
  on_message(kind, [](arrival& a) { Handle(a, head_of<Head>(a)); }, sizeof(Head));
}

/// Requires: the dispatcher is not attached yet.
void on_request(fixed_handler which, request_handler handler, bool may_migrate);

/// The index of the handler that runs on `message`, which has arrived and is not consumed.
std::uint16_t handler_of(const request& message);
/// True when messages of `bytes` bytes to `handler` start threads (thread.hpp).
bool starts_thread(std::uint16_t handler, std::size_t bytes);
/// Runs, in the handler of a message, the handler of one that came in it.
void run_contained(std::uint16_t handler, request& message);
/// From now on handlers that never wait have stacks of their own all the same: methods that change
/// an object may have to wait for its copies.
void let_all_handlers_wait(bool yes);

/// Runs a handler on a kept message, as if it had just arrived; the handler must not call
/// consume(). Takes over the caller's count in `scope`; releases it when the handler ends.
/// Scheduler's stack.
void run_kept(std::uint16_t handler, const request& message, void* scope);

}  // namespace sojourn::detail
