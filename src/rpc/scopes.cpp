// SPDX-License-Identifier: Apache-2.0
#include "rpc/scopes.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <exception>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "fiber/hooks.hpp"
#include "fiber/scheduler.hpp"
#include "fiber/thrown.hpp"
#include "fiber/ticket_table.hpp"
#include "message/dispatcher.hpp"
#include "message/inbound.hpp"
#include "message/losses.hpp"
#include "message/message_reader.hpp"
#include "rpc/exceptions.hpp"
#include "rpc/scope_weight.hpp"
#include "sojourn/calls/aggregate.hpp"
#include "sojourn/collectives.hpp"
#include "sojourn/errors.hpp"
#include "sojourn/finish.hpp"

namespace sojourn::detail {

namespace {

struct account;

/// The window of a finish that bounds how many of the calls that its body began are under way. Each
/// of these calls has a scope of its own, whose home this rank is. So the rank learns when the call
/// and all that it began are over, by the weight that comes back.
struct open_window {
  std::size_t in_flight;  ///< So many calls at most.
  std::size_t calls = 0;  ///< How many are under way.
  int lost_rank = -1;     ///< A rank has ended: calls that were under way may never be over.
  std::deque<ticket_id> waiting;  ///< Completed one by one, each time a call is over.

  bool is_full() const { return calls >= in_flight; }
};

/// This rank's part of a scope. `id` is a ticket at home, completed when the scope is over.
struct account : scope_view {
  explicit account(ticket_id its_id)
      : scope_view{its_id, false}, weight(home_of(its_id) == job.me) {}

  scope_weight weight;
  std::uint64_t running = 0;  ///< How many computations of the scope are on this rank.
  /// Null except for a finish with a window, at its home.
  std::unique_ptr<open_window> limit;
  /// The finish with a window of which this is one call; null for all other scopes, and away from
  /// home. It counts the call as a computation, and so stays until the call is over.
  account* part_of = nullptr;

  /// True when nothing can leave in this scope before take() has waited.
  bool is_exhausted() const { return limit != nullptr ? limit->is_full() : weight.is_exhausted(); }
};

std::unordered_map<ticket_id, account*> accounts;

void settle(account* a);

account* new_account() {
  auto* a = new account(ticket_open());
  accounts[a->id] = a;
  return a;
}

/// A call in a window begins: its own scope.
account* begin_call(account* whole) {
  account* call = new_account();
  call->part_of = whole;
  ++whole->running;
  ++whole->limit->calls;
  return call;
}

/// It is over, with all that it began. `call` is gone when this returns.
void end_call(account* call) {
  account* const whole = call->part_of;
  free_ticket(find_ticket(call->id));
  accounts.erase(call->id);
  delete call;
  open_window& limit = *whole->limit;
  --limit.calls;
  if (!limit.waiting.empty()) {
    send_result(limit.waiting.front(), nullptr, 0);
    limit.waiting.pop_front();
  }
  --whole->running;
  settle(whole);
}

/// Suspends until a call in the window is over.
void wait_for_a_call(open_window& limit) {
  if (limit.lost_rank >= 0) throw_rank_lost(limit.lost_rank, "a finish");
  const ticket_id over = ticket_open();
  limit.waiting.push_back(over);
  ticket_take(over, nullptr, 0);
}

void settle(account* a) {
  if (a->running > 0) return;
  if (a->weight.at_home()) {
    if (a->part_of != nullptr) {
      if (!a->weight.is_out()) end_call(a);
      return;
    }
    // If the ticket has an exception already, that stays.
    if (ticket* t = find_ticket(a->id); !a->weight.is_out() && t != nullptr) {
      complete_ticket(t, nullptr, 0);
    }
    return;
  }
  const std::uint64_t all = a->weight.take_all();
  send_reply(home_of(a->id), runtime_message::scope_returns, 0, a->id, &all, sizeof all);
  accounts.erase(a->id);
  delete a;
}

void joined(void* scope) { ++static_cast<account*>(scope)->running; }

void left(void* scope) {
  auto* a = static_cast<account*>(scope);
  --a->running;
  settle(a);
}

std::uint64_t available(void* scope) {
  const auto* a = static_cast<account*>(scope);
  // What leaves a finish with a window takes the weight of a new scope along.
  return a->is_exhausted() ? 0 : a->weight.available();
}

account* of_running_fiber() { return static_cast<account*>(running_piece()->scope); }

void gather() {
  for (;;) {
    const account* wanting = of_running_fiber();
    // A window is waited for in take() alone: of those that wait for the same place, only one is
    // woken, and it has to use the place.
    if (wanting == nullptr || wanting->limit != nullptr || !wanting->is_exhausted()) return;
    ticket_id answer = ticket_open();
    send_reply(home_of(wanting->id), runtime_message::scope_wants, 0, wanting->id, &answer,
               sizeof answer);
    std::uint64_t more;
    ticket_take(answer, &more, sizeof more);
    // Looked up again: a thread may have been moved meanwhile, also to the scope's home.
    of_running_fiber()->weight.add(more);
  }
}

scope_ticket take(void* scope) {
  auto* a = static_cast<account*>(scope);
  while (a->is_exhausted()) {
    if (a->limit != nullptr) {
      wait_for_a_call(*a->limit);
    } else {
      gather();
    }
    a = of_running_fiber();
  }
  if (a->limit != nullptr) a = begin_call(a);
  return {a->id, a->weight.take()};
}

void put_back(const scope_ticket& unsent) {
  const auto found = accounts.find(unsent.scope);
  SOJOURN_CHECK(found != accounts.end(), "weight comes back to a finish scope that is not open");
  found->second->weight.add(unsent.weight);
  settle(found->second);
}

account* mine(const arrival& message, ticket_id id) {
  auto found = accounts.find(id);
  if (found == accounts.end() || !found->second->weight.at_home()) [[unlikely]]
    refuse_arrival(message, "names a finish scope that is not open here");
  return found->second;
}

/// Takes back weight that was minted here.
void take_back(const arrival& message, account* a, std::uint64_t weight) {
  if (!a->weight.add(weight)) [[unlikely]]
    refuse_arrival(message, "returns more of a finish scope's weight than was given away");
}

void* give(const arrival& message, const scope_ticket& ticket) {
  if (home_of(ticket.scope) == job.me) {
    account* a = mine(message, ticket.scope);
    take_back(message, a, ticket.weight);
    ++a->running;
    return a;
  }
  account*& a = accounts[checked_ticket(message, ticket.scope)];
  if (a == nullptr) a = new account(ticket.scope);
  a->weight.add(ticket.weight);
  ++a->running;
  return a;
}

void on_returns(arrival& message, const std::uint64_t& weight) {
  account* a = mine(message, message.ticket);
  take_back(message, a, weight);
  wire().consume(message);
  settle(a);
}

void on_wants(arrival& message, const ticket_id& wanted) {
  const ticket_id answer = checked_ticket(message, wanted);
  account* a = mine(message, message.ticket);
  wire().consume(message);
  const std::uint64_t more = a->weight.take();
  send_result(answer, &more, sizeof more);
}

std::unordered_map<ticket_id, std::exception_ptr> failures;

/// The first one counts.
void fail(const account* a, const std::exception_ptr& failure) {
  if (a->part_of != nullptr) a = a->part_of;
  failures.emplace(a->id, failure);
}

void on_failed(arrival& message) {
  const std::exception_ptr failure = decoded(message.payload, message.bytes);
  ticket_id id = message.ticket;
  wire().consume(message);
  // Without an account it was given up, because a rank had ended.
  if (const auto a = accounts.find(id); a != accounts.end()) fail(a->second, failure);
}

}  // namespace

namespace {

/// Nobody knows what is still to come of this scope.
void give_up(ticket_id id, int rank) {
  try {
    throw_rank_lost(rank, "a finish");
  } catch (...) {
    send_exception(id, std::current_exception());
  }
}

}  // namespace

bool is_finish(ticket_id ticket) {
  auto found = accounts.find(ticket);
  return found != accounts.end() && found->second->weight.at_home();
}

bool finish_is_open() { return !accounts.empty(); }

ticket_id finish_of(const void* scope) {
  if (scope == nullptr) return 0;
  const auto* a = static_cast<const account*>(scope);
  return a->part_of != nullptr ? a->part_of->id : a->id;
}

void fail_finishes(int rank) {
  std::vector<ticket_id> open;
  for (const auto& [id, a] : accounts) {
    // Fails every scope whose weight is out, because nobody knows which ranks hold it.
    if (!a->weight.is_out()) continue;
    account* const whole = a->part_of != nullptr ? a->part_of : a;
    const bool is_told = whole->limit != nullptr && whole->limit->lost_rank >= 0;
    const ticket* t = find_ticket(whole->id);
    if (!is_told && t != nullptr && t->has == outcome::none) open.push_back(whole->id);
    if (whole->limit != nullptr && !is_told) {
      whole->limit->lost_rank = rank;
      for (const ticket_id waiting : std::exchange(whole->limit->waiting, {}))
        give_up(waiting, rank);
    }
  }
  for (const ticket_id id : open) give_up(id, rank);
}

namespace {

/// `a` gets to know of an exception that nobody else takes.
void report(const account* a, const std::exception_ptr& failure) {
  if (a->weight.at_home()) return fail(a, failure);
  encoded_exception e;
  encode_for(home_of(a->id), failure, e);
  // This message goes the same way as the weight that this computation gives back later, and so
  // arrives before it.
  send_reply(home_of(a->id), runtime_message::scope_failed, 0, a->id, &e, e.bytes());
}

void drop(const scope_ticket& unsent, int rank) {
  if (const auto found = accounts.find(unsent.scope); found != accounts.end()) {
    try {
      throw_rank_lost(rank, "a bundled call");
    } catch (...) {
      report(found->second, std::current_exception());
    }
  }
  put_back(unsent);
}

}  // namespace

void attach_scopes() {
  on_fiber.scope = {joined, left};
  on_dispatch.scopes = {take, put_back, drop, available, give, gather};
  on_message<std::uint64_t, on_returns>(runtime_message::scope_returns);
  on_message<ticket_id, on_wants>(runtime_message::scope_wants);
  on_message(runtime_message::scope_failed, on_failed);
}

namespace {

account* open_account() {
  account* a = new_account();
  a->running = 1;
  return a;
}

/// From now on the running fiber, which counts in `a` already, begins computations of its scope.
void enter(finish_frame& frame, account* a) {
  piece* const p = running_piece();
  frame.outer = running.holds;
  running.holds = &frame;
  frame.what = hold::kind::finish;
  frame.of = p->scope;
  frame.scope = a;
  p->scope = a;
}

/// The body has ended. `a` is gone when this returns, unless this rank is the scope's home.
void leave_scope(const finish_frame& frame, account* a) {
  // Not the piece that opened the scope: a fork inside the scope may have been cut, so another
  // piece may run here now.
  running_piece()->scope = frame.of;
  flush();  // the scope waits for bundled calls, too
  left(a);
}

/// Suspends until the scope is over, whose home this rank is. Returns the first exception that
/// nobody else took; or else rank_lost, when a rank has ended, and nobody knows what was to come.
std::exception_ptr wait_for_end(account* a) {
  const ticket_id id = a->id;
  std::exception_ptr inside;
  try {
    ticket_take(id, nullptr, 0);
    accounts.erase(id);
    delete a;
  } catch (const rank_lost&) {
    // The account stays, because computations of the scope may still end and send their weight
    // back.
    inside = std::current_exception();
  }
  if (const auto found = failures.find(id); found != failures.end()) {
    inside = found->second;
    failures.erase(found);
  }
  return inside;
}

void rethrow_first(const std::exception_ptr& failure, const std::exception_ptr& inside) {
  if (failure != nullptr) std::rethrow_exception(failure);
  if (inside != nullptr) std::rethrow_exception(inside);
}

}  // namespace

void one_way_failed(const std::exception_ptr& failure) {
  const piece* p = running_piece();
  void* scope = p != nullptr ? p->scope : nullptr;
  if (scope == nullptr) nobody_takes(failure, "a one-way call (rpc_ff) outside of any finish");
  report(static_cast<const account*>(scope), failure);
}

void refuse_bundle_in_other_finish() {
  throw error(
      "a bundle is used in another finish than the one in which it was made, which would not wait "
      "for its calls: make it inside of the finish that is to wait for them");
}

void finish_begin(finish_frame& frame, std::size_t in_flight) {
  if (in_flight < 1) refuse_window();
  if (running_piece() == nullptr) [[unlikely]]
    waits_outside_fiber();
  account* const a = open_account();
  if (in_flight != no_window) {
    a->limit = std::make_unique<open_window>(in_flight);
    a->is_window = true;
  }
  enter(frame, a);
}

void finish_end(finish_frame& frame, const std::exception_ptr& failure) {
  refuse_wait_of_forked_child();
  auto* a = static_cast<account*>(frame.scope);
  leave_scope(frame, a);
  const std::exception_ptr inside = wait_for_end(a);
  running.holds = frame.outer;
  rethrow_first(failure, inside);
}

// ---- One scope for all members of a team --------------------------------------------------------

namespace {

constexpr rank_t first_member = 0;  // the scope's home

/// What the others need to take part. The weight is for each of them.
struct shared_scope {
  ticket_id id;
  std::uint64_t weight;
};

/// This rank's part of a scope that another one has opened. Computations of it may have come here
/// already.
account* join(const shared_scope& scope) {
  account*& a = accounts[scope.id];
  if (a == nullptr) a = new account(scope.id);
  a->weight.add(scope.weight);
  ++a->running;
  return a;
}

}  // namespace

void finish_all_begin(finish_frame& frame, const team& members) {
  if (running_piece() == nullptr) [[unlikely]]
    waits_outside_fiber();
  if (members.rank_me() != first_member)
    return enter(frame, join(broadcast(shared_scope{}, first_member, members)));
  account* const a = open_account();
  shared_scope scope{a->id, 0};
  for (rank_t other = 1; other < members.rank_count(); ++other) scope.weight = a->weight.take();
  for (rank_t other = 1; other < members.rank_count(); ++other) {
    // Its weight will not come back, and fail_finishes() has been there already.
    if (is_lost(members[other])) {
      give_up(a->id, members[other]);
      break;
    }
  }
  try {
    (void)broadcast(scope, first_member, members);
  } catch (...) {
    left(a);
    throw;
  }
  enter(frame, a);
}

void finish_all_end(finish_frame& frame, const std::exception_ptr& failure, const team& members) {
  refuse_wait_of_forked_child();
  auto* a = static_cast<account*>(frame.scope);
  const bool is_first = members.rank_me() == first_member;
  if (failure != nullptr) report(a, failure);  // before this rank's weight goes back
  leave_scope(frame, a);
  std::exception_ptr inside;
  try {
    // Also when a rank has ended, which need not be a member: the others wait for this.
    if (is_first) inside = wait_for_end(a);
    if (broadcast(inside != nullptr, first_member, members)) {
      std::vector<std::byte> what;
      if (is_first) what = encoded(inside);
      what = broadcast(std::move(what), first_member, members);
      if (!is_first) inside = decoded(what.data(), what.size());
    }
  } catch (...) {
    if (inside == nullptr) inside = std::current_exception();
  }
  running.holds = frame.outer;
  rethrow_first(failure, inside);
}

}  // namespace sojourn::detail
