// SPDX-License-Identifier: Apache-2.0
// Calls that this rank makes.
#include <algorithm>

#include "object/coherence/rank_objects.hpp"
#include "object/coherence/rules.hpp"

namespace sojourn::detail::coherence {

bool rank_objects::is_quiet(object_id object) const {
  const entry* const e = known_.entries.find(object);
  if (e == nullptr) return is_usual_here(object);
  return e->has == holds::object && e->copies.empty() && e->writers.empty() &&
         e->unacknowledged.empty() && !e->has_order();
}

next rank_objects::access(object_id object, const call& c, ask how) {
  if (is_quiet(object)) return next::run_on_object;
  if (home_has_ended(object)) return next::lost;
  entry& e = at(object);
  if (e.is_lost) return next::lost;
  if (e.has == holds::object) {
    const bool runs = begins(object, e, c, may_defer::yes, 0);
    tidy(object);
    return runs ? next::run_on_object : next::wait;
  }
  if (how == ask::for_copy && !c.writes) {
    if (e.has == holds::copy) return next::run_on_copy;
    if (e.asks_for_copy) {
      e.joined.push_back(c.name);
    } else {
      e.asks_for_copy = c.name;
      send_asking(object, kind::copy, c);
    }
  } else if (how != ask::to_run && !e.asks_for_object) {
    e.asks_for_object = c.name;
    send_home(object, {.what = kind::take, .object = object, .about = c});
  } else {
    send_asking(object, kind::run, c);
  }
  tidy(object);
  return next::wait;
}

next rank_objects::begin_here(object_id object, const call& c) {
  entry& e = at(object);
  const bool runs = begins(object, e, c, may_defer::no, 0);
  tidy(object);
  return runs ? next::run_on_object : next::wait;
}

next rank_objects::destroy(object_id object, const call& c) {
  if (home_has_ended(object)) return next::lost;
  send_home(object, {.what = kind::destroy, .object = object, .about = c});
  tidy(object);
  return next::wait;
}

bool rank_objects::resume_on_copy(object_id object, const call& c) {
  entry& e = at(object);
  if (e.has != holds::nothing || home_has_ended(object)) return true;
  send_asking(object, kind::refresh, c);
  return false;
}

void rank_objects::begin(object_id object) {
  entry& e = at(object);
  --e.promised;
  if (can_go_on(object)) by_.go_on_later(object);
  tidy(object);
}

void rank_objects::ended(object_id object, const call_name& c) {
  entry& e = at(object);
  forget_sent(e, c);
  if (e.asks_for_object == c) e.asks_for_object = {};
  if (e.asks_for_copy == c) {
    e.asks_for_copy = {};
    wake_joined(object, e, woken::again);
    // The invalidation may have been held for this request.
    if (can_go_on(object)) by_.go_on_later(object);
  }
  tidy(object);
}

bool rank_objects::evict(object_id object) {
  entry* const e = &at(object);
  const bool may = e->has == holds::copy && e->promised == 0 && e->is_invalidated_by == nobody;
  if (may) {
    e->has = holds::nothing;
    by_.forget_copy(object);
  }
  tidy(object);
  return may;
}

void rank_objects::send_asking(object_id object, kind what, const call& c) {
  message m{.what = what, .object = object, .about = c};
  if (is_home(object)) {
    note_sent(at(object), c.name, me_, what == kind::refresh);
    return home_request(m);
  }
  const int to = by_.guess(object);
  m.hops = 1;
  note_sent(at(object), c.name, to, what == kind::refresh);
  by_.send(to, m);
}

void rank_objects::send_home(object_id object, message m) {
  const int home = by_.home_of(object);
  note_sent(at(object), m.about.name, home);
  if (home == me_) {
    home_request(m);
  } else {
    by_.send(home, m);
  }
}

bool rank_objects::is_awaited(const entry& e, const call_name& c) {
  return std::any_of(e.sent.begin(), e.sent.end(), [&](const call_sent& s) { return s.name == c; });
}

void rank_objects::note_sent(entry& e, const call_name& c, int to, bool refreshes) {
  forget_sent(e, c);
  e.sent.push_back({c, to, refreshes});
}

void rank_objects::forget_sent(entry& e, const call_name& c) {
  e.sent.remove_if([&](const call_sent& s) { return s.name == c; });
}

/// The call does not wait for another rank any more.
void rank_objects::wake(object_id object, const call_name& c, woken how) {
  entry& e = at(object);
  forget_sent(e, c);
  if (e.asks_for_object == c) e.asks_for_object = {};
  if (e.asks_for_copy == c) {
    e.asks_for_copy = {};
    wake_joined(object, e, woken::again);
  }
  by_.wake(object, c, how);
}

void rank_objects::wake_joined(object_id object, entry& e, woken how) {
  for (const call_name& c : e.joined) {
    if (how == woken::on_copy) ++e.promised;
    by_.wake(object, c, how);
  }
  e.joined.clear();
}

void rank_objects::promise(object_id object, entry& e, const call_name& c, woken how) {
  ++e.promised;
  wake(object, c, how);
}

bool rank_objects::must_hold_invalidation(const entry& e) const {
  if (e.promised != 0 && is_kept(rule::use_copy_first)) return true;
  if (!is_kept(rule::hold_for_that_grant_alone)) return static_cast<bool>(e.asks_for_copy);
  return is_kept(rule::hold_for_its_grant) && e.asks_for_copy && e.asks_for_copy == e.invalidated;
}

void rank_objects::give_copy_up(object_id object, entry& e) {
  const int owner = e.is_invalidated_by;
  e.is_invalidated_by = nobody;
  e.invalidated = {};
  if (e.has == holds::copy) {
    e.has = holds::nothing;
    by_.forget_copy(object);
  }
  by_.send(owner, {.what = kind::acknowledged, .object = object});
}

void rank_objects::take_grant(object_id object, entry& e, const message& m) {
  // Only a death makes a caller give up before its answer comes.
  if (e.asks_for_copy != m.about.name) return;
  if (e.has == holds::object) return by_.refuse(m, "brings a copy of an object that is here");
  e.has = holds::copy;
  e.asks_for_copy = {};
  promise(object, e, m.about.name, woken::on_copy);
  wake_joined(object, e, woken::on_copy);
}

void rank_objects::take_object(object_id object, entry& e, const message& m) {
  if (e.has == holds::object || e.is_invalidated_by != nobody)
    return by_.refuse(m, "brings an object that cannot come here");
  e.has = holds::object;
  if (is_home(object)) {
    directory& d = directory_of(object);
    d.owner = me_;
    d.moves_to = nobody;
  }
  if (is_awaited(e, m.about.name)) promise(object, e, m.about.name, woken::on_object);
  if (can_go_on(object)) by_.go_on_later(object);
}

void rank_objects::end_of_call(object_id object, const call_name& c, outcome how) {
  switch (how) {
    case outcome::done:
      return wake(object, c, woken::ended);
    case outcome::refused:
      return wake(object, c, woken::refused);
    case outcome::destroyed:
      return wake(object, c, woken::destroyed);
    case outcome::lost:
      return wake(object, c, woken::lost);
  }
}

}  // namespace sojourn::detail::coherence
