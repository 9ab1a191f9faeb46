// SPDX-License-Identifier: Apache-2.0
#include "shared/pages/events.hpp"

#include <algorithm>

#include "shared/pages/rules.hpp"

namespace sojourn::detail::pages {

namespace {

/// Whether a question is a release: a fiber that acquires later can load what the asker has stored
/// before.
bool releases(question what) {
  switch (what) {
    case question::store:
    case question::exchange:
    case question::compare:
    case question::add:
    case question::bit_and:
    case question::bit_or:
    case question::bit_xor:
    case question::arrive:
      return true;
    default:
      // A notification orders nothing: the mutex does that guards the condition.
      return false;
  }
}

bool acquires(question what) {
  switch (what) {
    case question::load:
    case question::await:
      return true;
    default:
      return releases(what) && what != question::store;
  }
}

std::uint64_t new_value(const event_question& q, std::uint64_t old) {
  switch (q.what) {
    case question::store:
    case question::exchange:
      return q.first;
    case question::compare:
      return old == q.first ? q.second : old;
    case question::add:
      return old + q.first;
    case question::bit_and:
      return old & q.first;
    case question::bit_or:
      return old | q.first;
    case question::bit_xor:
      return old ^ q.first;
    default:
      return old;
  }
}

/// No job has so many fibers.
constexpr std::uint64_t most_fibers = 1u << 30;

}  // namespace

events::events(exchange& x, barriers& b)
    : x_(x), barriers_(b), objects_(x.host.memory()), asked_(x.host.memory()) {}

std::uint32_t events::next_number() {
  do ++last_number_;
  while (asked_.contains(last_number_));
  return last_number_;
}

event_answer events::ask(const event_question& q, waiter fiber) {
  const std::uint32_t number = next_number();
  const int to = home(q.object, q.what);
  if (to == x_.me) {
    // Set before any answer goes out, because the open interval may hold stores of this fiber.
    if (releases(q.what)) released_here_ = true;
    ++x_.counts->events_local;
    const event_answer a = serve({x_.me, number, acquires(q.what)}, q);
    if (a.is != event_answer::kind::waits) return a;
    if (!given_up_) {
      asked_.emplace(number, fiber);
      return a;
    }
    of(q.object).waiting.pop_back();
    return {event_answer::kind::lost};
  }
  if (given_up_) return {event_answer::kind::lost};
  asked_.emplace(number, fiber);
  send_question(q, number);
  return {event_answer::kind::asked};
}

void events::send_question(const event_question& q, std::uint32_t number) {
  const int to = home(q.object, q.what);
  ++x_.counts->events_remote;
  if (releases(q.what) && holds(rule::release_at_question)) {
    x_.close();
    x_.tell(to);
  }
  message_writer& out = x_.begin({.what = page_message::event_question,
                                  .flag = static_cast<std::uint8_t>(q.what),
                                  .number = number,
                                  .first = q.bytes});
  out.put(q.object);
  out.put(q.first);
  out.put(q.second);
  x_.send(to);
}

// --- at home

event_answer events::serve(const asker& who, const event_question& q) {
  constexpr event_answer waits{event_answer::kind::waits};
  if (q.what == question::join || q.what == question::leave) {
    if (q.what == question::join)
      barriers_.joined(static_cast<std::uint32_t>(q.first));
    else
      barriers_.left();
    return {event_answer::kind::done};
  }
  kept_object& o = of(q.object);
  switch (q.what) {
    case question::await:
      if (o.value != 0) return {event_answer::kind::done};
      o.waiting.push_back(who);
      return waits;
    case question::listen:
      o.waiting.push_back(who);
      return waits;
    case question::arrive:
      if (o.waiting.empty()) {
        o.value = q.first;
        o.said = 0;
      }
      if (o.value != q.first) return {event_answer::kind::refused, o.value};
      o.said |= q.second;
      if (o.waiting.size() + 1 < q.first) {
        o.waiting.push_back(who);
        return waits;
      }
      o.value = 0;
      wake(o, o.waiting.size(), o.said);
      return {event_answer::kind::done, o.said};
    case question::notify_one:
      wake(o, std::min<std::size_t>(1, o.waiting.size()));
      return {event_answer::kind::done};
    case question::notify_all:
      wake(o, o.waiting.size());
      return {event_answer::kind::done};
    default: {
      const std::uint64_t old = o.value;
      const std::uint64_t all = ~std::uint64_t{0} >> (64 - 8 * q.bytes);
      o.value = new_value(q, old) & all;
      if (o.value != 0) wake(o, o.waiting.size());
      return {event_answer::kind::done, old};
    }
  }
}

/// Answers the `count` fibers that have waited longest.
void events::wake(kept_object& o, std::size_t count, std::uint64_t value) {
  if (count == 0) return;
  const std::pmr::vector<asker> first(
      o.waiting.begin(), o.waiting.begin() + static_cast<std::ptrdiff_t>(count), x_.host.memory());
  o.waiting.erase(o.waiting.begin(), o.waiting.begin() + static_cast<std::ptrdiff_t>(count));
  for (const asker& who : first) answer(who, {event_answer::kind::done, value});
}

void events::answer(const asker& who, const event_answer& a) {
  if (who.rank == x_.me) {
    const auto at = asked_.find(who.number);
    if (at == asked_.end()) return;  // given up
    const waiter fiber = at->second;
    asked_.erase(at);
    return x_.host.answered(fiber, a);
  }
  if (who.acquires && a.is == event_answer::kind::done) {
    if (released_here_ && holds(rule::close_after_own_release)) x_.close();
    released_here_ = false;
    if (holds(rule::acquire_at_answer)) x_.tell(who.rank);
  }
  message_writer& out = x_.begin({.what = page_message::event_answer,
                                  .flag = static_cast<std::uint8_t>(a.is),
                                  .number = who.number});
  out.put(a.value);
  x_.send(who.rank);
}

bool events::forget(object_number begin, object_number end) {
  const auto first = objects_.lower_bound(begin);
  const auto last = objects_.lower_bound(end);
  if (std::any_of(first, last, [](const auto& o) { return !o.second.waiting.empty(); }))
    return false;
  objects_.erase(first, last);
  return true;
}

void events::check(const page_message_reader& from, const event_question& q) const {
  from.require(q.what < question::count_, "asks what nobody can answer about an object");
  from.require(home(q.object, q.what) == x_.me, "asks about an object that another rank keeps");
  from.require(q.bytes >= 1 && q.bytes <= 8, "asks about a value that is no word");
  if (q.what == question::arrive || q.what == question::join)
    from.require(q.first >= 1 && q.first <= most_fibers, "names more fibers than there can be");
  if (q.what == question::join || q.what == question::leave)
    from.require(barriers_.somebody_is_missing(),
                 "joins or leaves a barrier at which all have arrived");
}

// --- messages

void events::receive(page_message_reader& from, const message_head& head) {
  switch (head.what) {
    case page_message::event_question: {
      event_question q{.what = static_cast<question>(head.flag), .bytes = head.first};
      q.object = from.take<object_number>();
      q.first = from.take<std::uint64_t>();
      q.second = from.take<std::uint64_t>();
      check(from, q);
      const asker who{from.from(), head.number, acquires(q.what)};
      return answer(who, serve(who, q));
    }
    case page_message::event_answer: {
      const auto is = static_cast<event_answer::kind>(head.flag);
      from.require(is <= event_answer::kind::refused, "answers what nobody can say");
      const event_answer a{is, from.take<std::uint64_t>()};
      const auto at = asked_.find(head.number);
      if (at == asked_.end() && given_up_) return;
      from.require(at != asked_.end(), "answers what nobody has asked");
      const waiter fiber = at->second;
      if (is != event_answer::kind::waits) asked_.erase(at);
      return x_.host.answered(fiber, a);
    }
    default:
      from.refuse("is no message of events");
  }
}

}  // namespace sojourn::detail::pages
