// SPDX-License-Identifier: Apache-2.0
#include "message/message_reader.hpp"

#include "base/check.hpp"
#include "sojourn/counters.hpp"

namespace sojourn::detail {

namespace {

/// What the report of a malformed message calls this kind of message.
const char* name_of(std::uint16_t handler) {
  if (handler >= static_cast<std::uint16_t>(runtime_message::count_)) return "call";
  switch (static_cast<runtime_message>(handler)) {
    case runtime_message::result:
      return "result";
    case runtime_message::piece:
      return "piece of a stack";
    case runtime_message::piece_to_read:
      return "piece of a stack that is to be read";
    case runtime_message::piece_part:
      return "part of a piece of a stack";
    case runtime_message::extent_returns:
      return "returned extent of a thread's heap";
    case runtime_message::forward_result:
      return "request to forward a result";
    case runtime_message::drop_ticket:
      return "notice that a ticket was dropped";
    case runtime_message::collective:
      return "contribution to a collective operation";
    case runtime_message::scope_returns:
      return "finish scope's weight";
    case runtime_message::scope_failed:
      return "finish scope's exception";
    case runtime_message::scope_wants:
      return "request for more of a finish scope's weight";
    case runtime_message::bulk_put:
      return "put";
    case runtime_message::bulk_get:
      return "get";
    case runtime_message::stop_asked:
      return "question to a stop source";
    case runtime_message::stop_told:
      return "stop source's answer";
    case runtime_message::check_copy:
      return "notice of a copy";
    case runtime_message::thread_ask:
      return "request that a thread move";
    case runtime_message::thread_moved:
      return "notice that a thread has moved";
    case runtime_message::thread_query:
      return "question about a thread";
    case runtime_message::thread_stale:
      return "answer about a thread";
    case runtime_message::steal_ask:
      return "request for threads";
    case runtime_message::steal_nothing:
      return "notice that there are no threads to give";
    case runtime_message::load_told:
      return "rank's load";
    case runtime_message::threads_handed:
      return "batch of threads";
    case runtime_message::kept_read:
      return "request for kept values";
    case runtime_message::kept_ended:
      return "notice that kept values are no longer needed";
    case runtime_message::entry_told:
      return "answer with the entry of a name";
    case runtime_message::hunger:
      return "notice of a rank that has nothing to do";
    case runtime_message::forks_here:
      return "notice about forks";
    case runtime_message::shared_memory:
      return "message about shared memory";
    case runtime_message::count_:
      break;
  }
  return "message";
}

}  // namespace

void refuse_arrival(const arrival& a, const char* why) {
  ++counts.messages_refused;
  die("a malformed message from rank %d: a %s of %zu bytes %s (it does not come from this program, "
      "or memory that ranks share was overwritten)",
      a.source, name_of(a.handler), a.bytes, why);
}

}  // namespace sojourn::detail
