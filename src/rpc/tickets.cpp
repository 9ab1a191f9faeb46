// SPDX-License-Identifier: Apache-2.0
#include "rpc/tickets.hpp"

#include <algorithm>
#include <cstring>

#include "base/check.hpp"
#include "base/copy_short.hpp"
#include "fiber/scheduler.hpp"
#include "fiber/ticket_waits.hpp"
#include "message/dispatcher.hpp"
#include "message/inbound.hpp"
#include "message/message_reader.hpp"
#include "rpc/exceptions.hpp"
#include "rpc/results.hpp"
#include "sojourn/counters.hpp"
#include "sojourn/detail/marshalled.hpp"
#include "sojourn/detail/tasks.hpp"

namespace sojourn::detail {

// ---- Forwarding ---------------------------------------------------------------------------------

namespace {

/// Says that the result of `id`, a ticket of this rank, is to be sent on to `to`, a ticket of
/// another rank.
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

}  // namespace

void attach_forwarding() {
  on_message<ticket_id, on_forward_result>(runtime_message::forward_result);
}

void forward_result(ticket_id id, ticket_id to) {
  ticket_on_ready(id, forward_now, new forwarding{id, to});
}

ticket_id forwarded_to(const ticket& t) {
  return t.notify == forward_now ? static_cast<const forwarding*>(t.notify_context)->to : 0;
}

void ticket_adopt(ticket_id& id) {
  if (home_of(id) == job.me) return;
  int home = home_of(id);
  ticket_id mine = open_answer(home);
  send_reply(home, runtime_message::forward_result, 0, id, &mine, sizeof mine);
  id = mine;
}

// ---- Waiting and taking -------------------------------------------------------------------------

namespace {

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

[[noreturn, gnu::noinline]] void refuse_result(ticket* t, std::size_t expected) {
  ++counts.messages_refused;
  std::uint32_t bytes = t->bytes;
  free_ticket(t);
  throw malformed_message(format("a result has %u bytes instead of %zu", bytes, expected));
}

/// Suspends until `id` has its result. Afterwards `id` is a ticket of this rank.
[[gnu::always_inline]] inline ticket* wait_for_result(ticket_id& id) {
  for (;;) {
    if (home_of(id) != job.me) [[unlikely]]
      ticket_adopt(id);
    ticket* t = find_ticket(id);
    SOJOURN_CHECK(t != nullptr, "this result was already taken: a future is read once");
    while (t->has == outcome::none && t->asked >= 0 && take_reply_in_place(t->asked)) {
    }
    if (t->has != outcome::none) return t;
    // The fiber may be woken before the result is here, and may then be on another rank.
    wait_for(t);
  }
}

/// Waits without leaving the stack, so that the result may be copied straight to `into`. Returns
/// true if it was; the ticket is then free.
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

[[gnu::always_inline]] inline void take(ticket_id id, void* into, std::size_t bytes) {
  ticket* t = wait_for_result(id);
  if (is_exception(t->has)) [[unlikely]]
    rethrow_and_free(t);
  if (t->bytes != bytes) [[unlikely]]
    refuse_result(t, bytes);
  copy_short(into, t->data(), bytes);
  free_ticket(t);
}

/// Suspends until the result of `id` has landed, and returns null; or until something else has come
/// instead, and returns the ticket that holds it.
ticket* wait_for_landing(ticket_id id) {
  for (;;) {
    SOJOURN_CHECK(home_of(id) == job.me, "a fiber has left the rank that it reads memory for");
    ticket* t = find_ticket(id);
    while (t != nullptr && t->has == outcome::none && t->asked >= 0 &&
           take_reply_in_place(t->asked))
      t = find_ticket(id);
    if (t == nullptr || t->has != outcome::none) return t;
    // The fiber may be woken before the result has landed.
    wait_for(t);
  }
}

}  // namespace

bool ticket_ready(ticket_id& id) {
  ticket_adopt(id);
  ticket* t = find_ticket(id);
  return t != nullptr && t->has != outcome::none;
}

void ticket_wait(ticket_id& id) { wait_for_result(id); }

void ticket_take(ticket_id id, void* into, std::size_t bytes) {
  if (bytes > ticket::inline_bytes && landed_in_place(id, into, bytes)) return;
  take(id, into, bytes);
}

std::uint64_t ticket_take_word(ticket_id id, std::size_t bytes) {
  std::uint64_t word = 0;
  take(id, &word, bytes);
  return word;
}

held_result ticket_hold(ticket_id id) {
  ticket* t = wait_for_result(id);
  if (is_exception(t->has)) [[unlikely]]
    rethrow_and_free(t);
  return {t->data(), t->bytes, t};
}

void ticket_release(const held_result& result) { free_ticket(static_cast<ticket*>(result.ticket)); }

void ticket_on_ready(ticket_id id, void (*notify)(void*), void* context) {
  ticket* t = find_ticket(id);
  SOJOURN_CHECK(t != nullptr && !has_reader(*t),
                "two fibers wait for the same future: only one may");
  if (t->has != outcome::none) return notify(context);
  t->notify = notify;
  t->notify_context = context;
}

void land_in_place(ticket_id id, void* into, std::size_t bytes) {
  land_result(find_ticket(id), {.into = into, .bytes = bytes, .stays = true});
}

void wait_landed(ticket_id id, std::size_t bytes) {
  ticket* t = wait_for_landing(id);
  if (t == nullptr) return;
  if (is_exception(t->has)) rethrow_and_free(t);
  refuse_result(t, bytes);
}

void settle_landing(ticket_id id) {
  if (wait_for_landing(id) != nullptr) ticket_drop(id);
}

}  // namespace sojourn::detail
