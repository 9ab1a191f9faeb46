// SPDX-License-Identifier: Apache-2.0
#include "rpc/results.hpp"

#include <vector>

#include "fiber/hooks.hpp"
#include "fiber/result_memory.hpp"
#include "fiber/thrown.hpp"
#include "message/dispatcher.hpp"
#include "message/inbound.hpp"
#include "rpc/dropped_results.hpp"
#include "rpc/exceptions.hpp"
#include "sojourn/counters.hpp"
#include "sojourn/detail/marshalled.hpp"

namespace sojourn::detail {

namespace {

void answered(ticket* t) {
  if (t->asked < 0) return;
  answered_by(t->asked);
  t->asked = -1;
}

constexpr const char* detached_thread = "a detached thread";
bool is_of_detached_thread(const ticket* t) {
  return t->taken_by == taker::nobody && t->thread_at >= 0;
}

void complete(ticket_id id, const void* bytes, std::size_t size, outcome how) {
  ticket* t = find_ticket(id);
  if (t == nullptr) return;
  answered(t);
  if (how == outcome::exception && is_of_detached_thread(t)) [[unlikely]] {
    nobody_takes(decoded(bytes, size), detached_thread);
  }
  complete_ticket(t, bytes, size, how);
}

outcome outcome_of(std::uint16_t flags) {
  if (flags & flag_exception) return outcome::exception;
  return flags & flag_kept ? outcome::kept : outcome::value;
}

void on_result(arrival& a) {
  ticket_id id = a.ticket;
  complete(id, a.payload, a.bytes, outcome_of(a.flags));
  wire().consume(a);
}

/// The place for the payload of a reply that has begun to come from another host.
std::byte* place_of_result(int source, std::uint16_t handler, std::uint16_t flags, ticket_id id,
                           std::size_t bytes) {
  if (handler != static_cast<std::uint16_t>(runtime_message::result) || flags != 0) return nullptr;
  ticket* t = find_ticket(id);
  return t != nullptr && t->asked == source ? begin_to_fill(t, bytes) : nullptr;
}

/// The room for a result that begin_result() has last given in a message.
std::byte* result_in_message = nullptr;

}  // namespace

void attach_results() {
  on_message(runtime_message::result, on_result);
  on_dispatch.place_of_reply = place_of_result;
  on_fiber.result = {send_result, send_exception};
}

void send_result(ticket_id id, const void* bytes, std::size_t size) {
  if (home_of(id) == job.me) return complete(id, bytes, size, outcome::value);
  send_reply(home_of(id), runtime_message::result, 0, id, bytes, size);
}

std::byte* begin_result(ticket_id id, std::size_t bytes) {
  if (home_of(id) != job.me) {
    // Not in a message, because writing a result that lies in shared memory may suspend.
    if (shares_memory()) return results.take(bytes);
    return result_in_message = reserve_reply(home_of(id), runtime_message::result, bytes);
  }
  ticket* t = find_ticket(id);
  if (t == nullptr || t->taken_by == taker::nobody) {
    complete(id, nullptr, 0, outcome::value);
    return nullptr;
  }
  return results.take(bytes);
}

void commit_result(ticket_id id, std::byte* room, std::size_t bytes, bool is_kept) {
  outcome how = is_kept ? outcome::kept : outcome::value;
  if (home_of(id) != job.me) {
    if (room == result_in_message)
      return commit_reply(home_of(id), runtime_message::result, flags_of(how), id);
    send_reply(home_of(id), runtime_message::result, flags_of(how), id, room, bytes);
    return results.give_back(room, bytes);
  }
  ticket* t = find_ticket(id);
  answered(t);
  complete_ticket_with(t, room, bytes, how);
}

void send_exception(ticket_id id, const std::exception_ptr& exception) {
  ++counts.exceptions_sent;
  if (home_of(id) != job.me) {
    encoded_exception e;
    encode_for(home_of(id), exception, e);
    return send_reply(home_of(id), runtime_message::result, flag_exception, id, &e, e.bytes());
  }
  // The exception may be of any type: the object stays in this process, where its ticket is.
  ticket* t = find_ticket(id);
  if (t == nullptr) return;
  answered(t);
  if (is_of_detached_thread(t)) nobody_takes(exception, detached_thread);
  if (t->taken_by == taker::nobody && t->has == outcome::none && checked()) {
    name_dropped(exception, reinterpret_cast<std::uint64_t>(t->notify_context));
  }
  complete_ticket_thrown(t, exception);
}

void fail_answers_of(int rank) {
  struct search {
    int rank;
    std::vector<ticket_id> found;
  } of{rank, {}};
  each_open_ticket(
      [](const ticket& t, void* context) {
        auto* s = static_cast<search*>(context);
        bool is_there = t.asked == s->rank || t.thread_at == s->rank;
        if (t.has == outcome::none && is_there) s->found.push_back(t.id);
      },
      &of);
  for (const ticket_id id : of.found) {
    const ticket* t = find_ticket(id);
    if (t == nullptr || t->taken_by == taker::nobody) continue;
    try {
      throw_rank_lost(rank, t->thread_at == rank ? "a thread" : "an answer");
    } catch (...) {
      send_exception(id, std::current_exception());
    }
  }
}

}  // namespace sojourn::detail
