// SPDX-License-Identifier: Apache-2.0
// Tickets as the whole job sees them: results that come from other ranks, and results that are
// asked for away from home. A ticket never moves; a fiber that has moved asks the ticket's home to
// forward the result, once. So each result has one authority, and nothing is chased.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "base/check.hpp"
#include "base/checked.hpp"
#include "base/copy_short.hpp"
#include "fiber/hooks.hpp"
#include "fiber/result_memory.hpp"
#include "fiber/scheduler.hpp"
#include "fiber/ticket_waits.hpp"
#include "frames/function_name.hpp"
#include "frames/stack_frames.hpp"
#include "message/dispatcher.hpp"
#include "message/inbound.hpp"
#include "message/message_reader.hpp"
#include "message/programs.hpp"
#include "rpc/exceptions.hpp"
#include "rpc/rpc.hpp"
#include "rpc/thrown.hpp"
#include "sojourn/counters.hpp"
#include "sojourn/detail/marshalled.hpp"
#include "sojourn/detail/tasks.hpp"

namespace sojourn::detail {

namespace {

/// An exception that came as bytes.
std::exception_ptr decoded(const void* bytes, std::size_t size) {
  try {
    rethrow(bytes, size);
  } catch (...) {
    return std::current_exception();
  }
}

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
std::uint16_t flags_of(outcome how) {
  if (how == outcome::exception) return flag_exception;
  return how == outcome::kept ? flag_kept : std::uint16_t{0};
}

void on_result(arrival& a) {
  ticket_id id = a.ticket;
  complete(id, a.payload, a.bytes, outcome_of(a.flags));
  wire().consume(a);
}

/// Where the payload of a reply belongs that has begun to come from another host.
std::byte* place_of_result(int source, std::uint16_t handler, std::uint16_t flags, ticket_id id,
                           std::size_t bytes) {
  if (handler != static_cast<std::uint16_t>(runtime_message::result) || flags != 0) return nullptr;
  ticket* t = find_ticket(id);
  return t != nullptr && t->asked == source ? begin_to_fill(t, bytes) : nullptr;
}

/// The result of `id`, a ticket of this rank, is to go on to `to`, a ticket of another rank.
struct forwarding {
  ticket_id id;
  ticket_id to;
};

void forward_now(void* context) {
  auto* f = static_cast<forwarding*>(context);
  ticket* t = find_ticket(f->id);
  if (t->has == outcome::thrown) {
    send_exception(f->to, thrown_of(*t));
  } else {
    send_reply(home_of(f->to), runtime_message::result, flags_of(t->has), f->to, t->data(),
               t->bytes);
  }
  free_ticket(t);
  delete f;
}

void on_forward_result(arrival& a, const ticket_id& asked) {
  const ticket_id to = checked_ticket(a, asked);
  ticket_id id = a.ticket;
  wire().consume(a);
  if (find_ticket(id) == nullptr) {
    send_exception(
        to, std::make_exception_ptr(error(
                format("rank %d no longer has this result: its future was already read", job.me))));
    return;
  }
  forward_result(id, to);
}

/// Warns, once for each function, that it dropped a future whose call had failed, without looking.
void name_dropped(const std::exception_ptr& exception, std::uint64_t dropped_at) {
  std::string function = function_name(dropped_at);
  static std::set<std::string> named;
  if (dropped_at == 0 || is_excused(function) || !named.insert(function).second) return;
  std::fprintf(stderr,
               "sojourn: rank %d: warning: `%s` dropped the future of a call that threw %s; call "
               "get() to receive the exception (docs/pitfalls.md)\n",
               job.me, function.c_str(), text_of(exception).c_str());
}
void name_dropped_exception(const void* bytes, std::size_t size, std::uint64_t dropped_at) {
  name_dropped(decoded(bytes, size), dropped_at);
}

void drop_here(ticket_id id, std::uint64_t dropped_at) {
  ticket* t = find_ticket(id);
  if (t == nullptr) return;
  if (t->has == outcome::none) {
    t->taken_by = taker::nobody;
    t->notify_context = reinterpret_cast<void*>(dropped_at);
    return;
  }
  if (t->has == outcome::exception && checked()) {
    name_dropped_exception(t->data(), t->bytes, dropped_at);
  }
  if (t->has == outcome::thrown && checked()) name_dropped(thrown_of(*t), dropped_at);
  if (t->has == outcome::kept) drop_kept_result(t->data(), t->bytes);
  free_ticket(t);
}

/// In checked mode the message holds the address of the code that dropped the future.
void on_drop_ticket(arrival& a) {
  ticket_id id = a.ticket;
  std::uint64_t dropped_at = 0;
  if (a.bytes == sizeof dropped_at) std::memcpy(&dropped_at, a.payload, sizeof dropped_at);
  wire().consume(a);
  drop_here(id, dropped_at);
}

bool is_exception(outcome how) { return how == outcome::exception || how == outcome::thrown; }

[[noreturn]] void rethrow_and_free(ticket* t) {
  if (t->has == outcome::thrown) {
    std::exception_ptr thrown = thrown_of(*t);
    free_ticket(t);
    std::rethrow_exception(std::move(thrown));
  }
  encoded_exception copy;
  std::size_t size = t->bytes;
  std::memcpy(&copy, t->data(), std::min(size, sizeof copy));
  free_ticket(t);
  rethrow(&copy, size);
}

}  // namespace

namespace {
[[noreturn, gnu::noinline]] void refuse_result(ticket* t, std::size_t expected) {
  ++counts.messages_refused;
  std::uint32_t bytes = t->bytes;
  free_ticket(t);
  throw malformed_message(format("a result has %u bytes instead of %zu", bytes, expected));
}
}  // namespace

ticket_id forwarded_to(const ticket& t) {
  return t.notify == forward_now ? static_cast<const forwarding*>(t.notify_context)->to : 0;
}

void attach_rpc() {
  on_message(runtime_message::result, on_result);
  on_message<ticket_id, on_forward_result>(runtime_message::forward_result);
  on_message(runtime_message::drop_ticket, on_drop_ticket);
  on_dispatch.place_of_reply = place_of_result;
  on_fiber.dropped.kept = drop_kept_result;
  if (checked()) on_fiber.dropped.exception = name_dropped_exception;
}

bool ticket_ready(ticket_id& id) {
  ticket_adopt(id);
  ticket* t = find_ticket(id);
  return t != nullptr && t->has != outcome::none;
}

void ticket_adopt(ticket_id& id) {
  if (home_of(id) == job.me) return;
  int home = home_of(id);
  ticket_id mine = open_answer(home);
  send_reply(home, runtime_message::forward_result, 0, id, &mine, sizeof mine);
  id = mine;
}

namespace {

/// Suspends until `id` has its result; `id` is a ticket of this rank then.
[[gnu::always_inline]] inline ticket* wait_for_result(ticket_id& id) {
  for (;;) {
    if (home_of(id) != job.me) [[unlikely]]
      ticket_adopt(id);
    ticket* t = find_ticket(id);
    SOJOURN_CHECK(t != nullptr, "this result was already taken: a future is read once");
    while (t->has == outcome::none && t->asked >= 0 && take_reply_in_place(t->asked)) {
    }
    if (t->has != outcome::none) return t;
    // The fiber may be woken early, and be on another rank then.
    wait_for(t);
  }
}

}  // namespace

void ticket_wait(ticket_id& id) { wait_for_result(id); }

namespace {

/// Waits without leaving the stack, so that the result may be copied straight to `into`. True when
/// it was: then the ticket is free.
[[gnu::noinline]] bool landed_in_place(ticket_id& id, void* into, std::size_t bytes) {
  ticket_adopt(id);
  ticket* t = find_ticket(id);
  if (t == nullptr || t->has != outcome::none || t->asked < 0) return false;
  bool is_here = false;
  land_result(t, {.into = into,
                  .bytes = bytes,
                  .landed = [](void* here) { *static_cast<bool*>(here) = true; },
                  .context = &is_here});
  while (!is_here && t->has == outcome::none && take_reply_in_place(t->asked)) {
  }
  if (!is_here) t->taken_by = taker::asker;
  return is_here;
}

}  // namespace

namespace {

[[gnu::always_inline]] inline void take(ticket_id id, void* into, std::size_t bytes) {
  ticket* t = wait_for_result(id);
  if (is_exception(t->has)) [[unlikely]]
    rethrow_and_free(t);
  if (t->bytes != bytes) [[unlikely]]
    refuse_result(t, bytes);
  copy_short(into, t->data(), bytes);
  free_ticket(t);
}

}  // namespace

void land_in_place(ticket_id id, void* into, std::size_t bytes) {
  land_result(find_ticket(id), {.into = into, .bytes = bytes, .stays = true});
}

namespace {

/// Suspends until `id` has landed, and is null then, or has what came instead.
ticket* wait_for_landing(ticket_id id) {
  for (;;) {
    SOJOURN_CHECK(home_of(id) == job.me, "a fiber has left the rank that it reads memory for");
    ticket* t = find_ticket(id);
    while (t != nullptr && t->has == outcome::none && t->asked >= 0 &&
           take_reply_in_place(t->asked))
      t = find_ticket(id);
    if (t == nullptr || t->has != outcome::none) return t;
    // The fiber may be woken early.
    wait_for(t);
  }
}

}  // namespace

void wait_landed(ticket_id id, std::size_t bytes) {
  ticket* t = wait_for_landing(id);
  if (t == nullptr) return;
  if (is_exception(t->has)) rethrow_and_free(t);
  refuse_result(t, bytes);
}

void settle_landing(ticket_id id) {
  if (wait_for_landing(id) != nullptr) ticket_drop(id);
}

void ticket_take(ticket_id id, void* into, std::size_t bytes) {
  if (bytes > ticket::inline_bytes && landed_in_place(id, into, bytes)) return;
  take(id, into, bytes);
}

std::uint64_t ticket_take_word(ticket_id id, std::size_t bytes) {
  std::uint64_t word = 0;
  take(id, &word, bytes);
  return word;
}

void ticket_drop(ticket_id id) {
  std::uint64_t here = 0;
  if (checked() && running_piece() != nullptr && !runs_other_program(home_of(id))) [[unlikely]]
    here = user_code(running_piece()->hi);
  if (home_of(id) == job.me) return drop_here(id, here);
  send_reply(home_of(id), runtime_message::drop_ticket, 0, id, &here, here != 0 ? sizeof here : 0);
}

void forward_result(ticket_id id, ticket_id to) {
  ticket_on_ready(id, forward_now, new forwarding{id, to});
}

void ticket_on_ready(ticket_id id, void (*notify)(void*), void* context) {
  ticket* t = find_ticket(id);
  SOJOURN_CHECK(t != nullptr && !has_reader(*t),
                "two fibers wait for the same future: only one may");
  if (t->has != outcome::none) return notify(context);
  t->notify = notify;
  t->notify_context = context;
}

void send_result(ticket_id id, const void* bytes, std::size_t size) {
  if (home_of(id) == job.me) return complete(id, bytes, size, outcome::value);
  send_reply(home_of(id), runtime_message::result, 0, id, bytes, size);
}

namespace {
/// The last room for a result that is in a message.
std::byte* result_in_message = nullptr;
}  // namespace

std::byte* begin_result(ticket_id id, std::size_t bytes) {
  if (home_of(id) != job.me) {
    // Writing a result that lies in shared memory may suspend.
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

held_result ticket_hold(ticket_id id) {
  ticket* t = wait_for_result(id);
  if (is_exception(t->has)) [[unlikely]]
    rethrow_and_free(t);
  return {t->data(), t->bytes, t};
}

void ticket_release(const held_result& result) { free_ticket(static_cast<ticket*>(result.ticket)); }

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

void send_exception(ticket_id id, const std::exception_ptr& exception) {
  ++counts.exceptions_sent;
  if (home_of(id) != job.me) {
    encoded_exception e;
    encode(exception, e);
    if (runs_other_program(home_of(id))) e.from_size = 0;  // it has other code at those addresses
    return send_reply(home_of(id), runtime_message::result, flag_exception, id, &e, e.bytes());
  }
  // An exception of any type: the object is in this process, as its ticket is.
  ticket* t = find_ticket(id);
  if (t == nullptr) return;
  answered(t);
  if (is_of_detached_thread(t)) nobody_takes(exception, detached_thread);
  if (t->taken_by == taker::nobody && t->has == outcome::none && checked()) {
    name_dropped(exception, reinterpret_cast<std::uint64_t>(t->notify_context));
  }
  complete_ticket_thrown(t, exception);
}

std::vector<std::byte> encoded(const std::exception_ptr& exception) {
  encoded_exception e;
  encode(exception, e);
  if (several_programs) e.from_size = 0;  // others may have other code at those addresses
  const auto* bytes = reinterpret_cast<const std::byte*>(&e);
  return {bytes, bytes + e.bytes()};
}

}  // namespace sojourn::detail
