// SPDX-License-Identifier: Apache-2.0
#include "object/coherence/rank_objects.hpp"

#include "object/coherence/rules.hpp"

namespace sojourn::detail::coherence {

entry& rank_objects::at(object_id object) {
  const auto [e, is_new] = known_.entries.find_or_add(object);
  if (is_new && is_usual_here(object)) e.has = holds::object;
  return e;
}

/// The object was made here, and is here unless more is known of it.
bool rank_objects::is_usual_here(object_id object) const {
  if (!is_home(object)) return false;
  const directory* const d = known_.directories.find(object);
  return d == nullptr || (d->owner == me_ && !d->is_destroyed);
}

directory& rank_objects::directory_of(object_id object) {
  const auto [d, is_new] = known_.directories.find_or_add(object);
  if (is_new) d.owner = me_;
  return d;
}

void rank_objects::tidy(object_id object) {
  if (const directory* const d = known_.directories.find(object);
      d != nullptr && d->owner == me_ && d->moves_to == nobody && !d->is_destroyed && !d->is_lost &&
      d->queue.empty())
    known_.directories.erase(object);
  const entry* const known = known_.entries.find(object);
  if (known == nullptr) return;
  const entry& e = *known;
  const bool is_idle = e.promised == 0 && e.copies.empty() && e.unacknowledged.empty() &&
                       e.writers.empty() && !e.has_order() && !e.asks_for_copy &&
                       !e.asks_for_object && e.joined.empty() && e.sent.empty() &&
                       e.is_invalidated_by == nobody && e.is_asked_about == nobody && !e.is_lost &&
                       e.held.empty();
  if (is_idle && e.has == (is_usual_here(object) ? holds::object : holds::nothing))
    known_.entries.erase(object);
}

bool rank_objects::has_object(object_id object) const {
  if (const entry* e = known_.entries.find(object)) return e->has == holds::object;
  return is_usual_here(object);
}

int rank_objects::owner_as_home_knows(object_id object) const {
  const directory* const d = known_.directories.find(object);
  return d == nullptr ? me_ : d->owner;
}

bool rank_objects::has_copy(object_id object) const {
  const entry* e = known_.entries.find(object);
  return e != nullptr && e->has == holds::copy;
}

void rank_objects::arrive(int from, const message& m) {
  const object_id object = m.object;
  entry& e = at(object);
  switch (m.what) {
    case kind::run:
    case kind::copy:
    case kind::refresh:
      if (e.has == holds::object) {
        serve(object, e, m);
      } else if (m.is_sure && is_kept(rule::hold_what_home_sent)) {
        if (!e.is_lost) e.held.push_back(m);
      } else if (is_home(object)) {
        home_request(m);
      } else {
        message on = m;
        on.is_sure = false;
        ++on.hops;
        by_.send(by_.home_of(object), on);
      }
      break;
    case kind::take:
    case kind::destroy:
    case kind::give:
      home_request(m);
      break;
    case kind::hand:
    case kind::kill:
      if (e.has == holds::object && (e.held.empty() || !is_kept(rule::orders_behind_held))) {
        serve(object, e, m);
      } else {
        e.held.push_back(m);
      }
      break;
    case kind::invalidate:
      if (e.has == holds::object || e.is_invalidated_by != nobody)
        return by_.refuse(m, "takes back a copy that cannot be here");
      e.invalidated = m.about.name;
      e.is_invalidated_by = from;
      if (!must_hold_invalidation(e)) give_copy_up(object, e);
      break;
    case kind::acknowledged:
      e.unacknowledged.remove(from);
      e.copies.remove_if([&](const copy_given& c) { return c.rank == from; });
      if (can_go_on(object)) by_.go_on_later(object);
      break;
    case kind::moved:
      home_told(object, m.how);
      break;
    case kind::grant:
      take_grant(object, e, m);
      break;
    case kind::object:
      by_.note_place(object, me_);
      take_object(object, e, m);
      break;
    case kind::bytes:
      if (is_awaited(e, m.about.name)) wake(object, m.about.name, woken::refreshed);
      break;
    case kind::result:
      if (is_awaited(e, m.about.name)) end_of_call(object, m.about.name, m.how);
      break;
    case kind::lost:
      hear_of_loss(object);
      break;
    case kind::query:
      e.is_asked_about = m.rank;
      if (can_go_on(object)) by_.go_on_later(object);
      break;
    case kind::have: {
      directory& d = directory_of(object);
      if (d.moves_to == nobody) return by_.refuse(m, "answers a question that home has not asked");
      if (m.how != outcome::done) {
        lose(object);
      } else {
        d.owner = d.moves_to;
        d.moves_to = nobody;
        by_.go_on_later(object);
      }
      break;
    }
  }
  tidy(object);
}

bool rank_objects::can_go_on(object_id object) const {
  if (const entry* e = known_.entries.find(object)) {
    if (may_carry_out(*e) || (e->has == holds::object && !e->held.empty())) return true;
    if (e->is_invalidated_by != nobody && !must_hold_invalidation(*e)) return true;
    // Only then has all arrived that the rank sent.
    if (e->is_asked_about != nobody && by_.has_ended(e->is_asked_about)) return true;
  }
  const directory* const d = known_.directories.find(object);
  return d != nullptr && d->moves_to == nobody && !d->queue.empty();
}

void rank_objects::go_on(object_id object) {
  // One of each kind, so that none of them waits for ever.
  entry& e = at(object);
  if (e.is_asked_about != nobody && by_.has_ended(e.is_asked_about)) {
    e.is_asked_about = nobody;
    message m{.what = kind::have, .object = object};
    m.how = e.has == holds::object ? outcome::done : outcome::refused;
    by_.send(by_.home_of(object), m);
  }
  if (e.is_invalidated_by != nobody && !must_hold_invalidation(e)) give_copy_up(object, e);
  if (may_carry_out(e)) carry_out(object, e);
  // A call that has run may have changed everything.
  if (entry& now = at(object); now.has == holds::object && !now.held.empty()) {
    const message m = now.held.front();
    now.held.pop_front();
    serve(object, now, m);
  }
  if (directory* const d = known_.directories.find(object);
      d != nullptr && d->moves_to == nobody && !d->queue.empty()) {
    const message m = d->queue.front();
    d->queue.pop_front();
    home_serve(m);
  }
  if (can_go_on(object)) by_.go_on_later(object);
  tidy(object);
}

}  // namespace sojourn::detail::coherence
