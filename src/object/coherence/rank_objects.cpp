// SPDX-License-Identifier: Apache-2.0
#include "object/coherence/rank_objects.hpp"

#include "object/coherence/rules.hpp"

namespace sojourn::detail::coherence {

entry& rank_objects::at(object_id object) {
  const auto [where, is_new] = known_.entries.try_emplace(object);
  if (is_new && is_home(object)) {
    const auto d = known_.directories.find(object);
    if (d == known_.directories.end() || (d->second.owner == me_ && !d->second.is_destroyed))
      where->second.has = holds::object;
  }
  return where->second;
}

const entry* rank_objects::find(object_id object) const {
  const auto where = known_.entries.find(object);
  return where == known_.entries.end() ? nullptr : &where->second;
}

directory& rank_objects::directory_of(object_id object) {
  const auto [where, is_new] = known_.directories.try_emplace(object);
  if (is_new) where->second.owner = me_;
  return where->second;
}

void rank_objects::tidy(object_id object) {
  const auto d = known_.directories.find(object);
  bool is_usual = is_home(object);
  if (d != known_.directories.end()) {
    const directory& known = d->second;
    if (known.owner == me_ && known.moves_to == nobody && !known.is_destroyed && !known.is_lost &&
        known.queue.empty()) {
      known_.directories.erase(d);
    } else {
      is_usual = is_usual && known.owner == me_ && !known.is_destroyed;
    }
  }
  const auto where = known_.entries.find(object);
  if (where == known_.entries.end()) return;
  const entry& e = where->second;
  const bool is_idle = e.promised == 0 && e.copies.empty() && e.unacknowledged.empty() &&
                       e.writers.empty() && !e.has_order && !e.asks_for_copy &&
                       !e.asks_for_object && e.joined.empty() && e.sent.empty() &&
                       e.is_invalidated_by == nobody && e.is_asked_about == nobody && !e.is_lost &&
                       e.held.empty();
  if (is_idle && e.has == (is_usual ? holds::object : holds::nothing)) known_.entries.erase(where);
}

bool rank_objects::has_object(object_id object) const {
  if (const entry* e = find(object)) return e->has == holds::object;
  if (!is_home(object)) return false;
  const auto d = known_.directories.find(object);
  return d == known_.directories.end() || (d->second.owner == me_ && !d->second.is_destroyed);
}

bool rank_objects::has_copy(object_id object) const {
  const entry* e = find(object);
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
      e.invalidation = m;
      e.is_invalidated_by = from;
      if (!must_hold_invalidation(e)) give_copy_up(object, e);
      break;
    case kind::acknowledged:
      std::erase(e.unacknowledged, from);
      std::erase_if(e.copies, [&](const copy_given& c) { return c.rank == from; });
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
  if (const entry* e = find(object)) {
    if (may_carry_out(*e) || (e->has == holds::object && !e->held.empty())) return true;
    if (e->is_invalidated_by != nobody && !must_hold_invalidation(*e)) return true;
    // Only then has all arrived that the rank sent.
    if (e->is_asked_about != nobody && by_.has_ended(e->is_asked_about)) return true;
  }
  const auto d = known_.directories.find(object);
  return d != known_.directories.end() && d->second.moves_to == nobody && !d->second.queue.empty();
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
    now.held.erase(now.held.begin());
    serve(object, now, m);
  }
  if (const auto d = known_.directories.find(object);
      d != known_.directories.end() && d->second.moves_to == nobody && !d->second.queue.empty()) {
    const message m = d->second.queue.front();
    d->second.queue.erase(d->second.queue.begin());
    home_serve(m);
  }
  if (can_go_on(object)) by_.go_on_later(object);
  tidy(object);
}

}  // namespace sojourn::detail::coherence
