// SPDX-License-Identifier: Apache-2.0
// What a rank does for an object that it has.
#include <algorithm>

#include "object/coherence/rank_objects.hpp"
#include "object/coherence/rules.hpp"

namespace sojourn::detail::coherence {

/// True when the call may run now. Otherwise it waits here for copies to be given up, or was sent
/// to home to wait for the end of a move, so that calls which write do not hold up the move for
/// ever.
bool rank_objects::begins(object_id object, entry& e, const call& c, may_defer defer,
                          std::uint8_t hops) {
  if (!c.writes) return true;
  if (e.has_order() && defer == may_defer::yes && is_kept(rule::writes_behind_orders)) {
    message m{.what = kind::run, .object = object, .about = c};
    m.hops = hops;
    if (c.name.rank == me_) note_sent(e, c.name, by_.home_of(object));
    if (is_home(object)) {
      directory_of(object).queue.push_back(m);
    } else {
      ++m.hops;
      by_.send(by_.home_of(object), m);
    }
    return false;
  }
  if (e.copies.empty() && e.writers.empty() && e.unacknowledged.empty()) return true;
  if (c.name.rank == me_) note_sent(e, c.name, me_);
  e.writers.push_back(c);
  if (e.unacknowledged.empty()) invalidate(object, e, nobody);
  if (!is_kept(rule::wait_for_acknowledgements)) {
    e.unacknowledged.clear();
    e.copies.clear();
  }
  if (can_go_on(object)) by_.go_on_later(object);
  return false;
}

/// Runs a call that may run: one of this rank when its turn comes.
void rank_objects::run(object_id object, entry& e, const call& c) {
  if (c.name.rank == me_) {
    if (is_awaited(e, c.name)) promise(object, e, c.name, woken::on_object);
  } else {
    by_.run(object, c);
  }
}

void rank_objects::serve(object_id object, entry& e, const message& m) {
  if (m.what == kind::hand || m.what == kind::kill) return serve_order(object, e, m);
  const call& c = m.about;
  if (by_.has_ended(c.name.rank)) return;
  if (m.what == kind::run) {
    if (begins(object, e, c, may_defer::yes, m.hops)) run(object, e, c);
  } else if (m.what == kind::refresh) {
    if (c.name.rank == me_) {
      if (is_awaited(e, c.name)) wake(object, c.name, woken::refreshed);
    } else {
      by_.send(c.name.rank, {.what = kind::bytes, .object = object, .about = {.name = c.name}});
    }
  } else {
    serve_copy(object, e, m);
  }
}

void rank_objects::serve_copy(object_id object, entry& e, const message& m) {
  const call& c = m.about;
  const int asker = c.name.rank;
  if (asker == me_) {
    e.asks_for_copy = {};
    wake_joined(object, e, woken::again);
    return run(object, e, c);
  }
  const bool write_waits = !e.writers.empty() || !e.unacknowledged.empty() || e.has_order();
  if ((write_waits && is_kept(rule::no_copy_before_write)) || e.promised != 0 ||
      (by_.methods_in(object) == in_progress::writing && is_kept(rule::no_copy_in_write)))
    return run(object, e, c);
  e.copies.remove_if([&](const copy_given& given) { return given.rank == asker; });
  e.copies.push_back({asker, c.name});
  by_.send(asker, {.what = kind::grant, .object = object, .about = {.name = c.name}});
}

void rank_objects::serve_order(object_id object, entry& e, const message& m) {
  if (e.has_order()) return by_.refuse(m, "is an order behind one that is not carried out");
  if (m.about.name.rank == me_ && is_awaited(e, m.about.name)) note_sent(e, m.about.name, me_);
  e.order.push_back(m);
  if (may_carry_out(e)) carry_out(object, e);
}

/// Asks the ranks that have copies, but for one, to give them up.
void rank_objects::invalidate(object_id object, entry& e, int all_but) {
  for (const copy_given& c : e.copies) {
    if (c.rank != all_but) e.unacknowledged.push_back(c.rank);
  }
  if (!is_kept(rule::invalidate_all) && !e.unacknowledged.empty()) {
    const int forgotten = e.unacknowledged.back();
    e.unacknowledged.pop_back();
    e.copies.remove_if([&](const copy_given& c) { return c.rank == forgotten; });
  }
  for (const copy_given& c : e.copies) {
    if (c.rank == all_but) continue;
    by_.send(c.rank, {.what = kind::invalidate, .object = object, .about = {.name = c.to}});
  }
}

/// A write can go on that waited for copies to be given up, or else an order be carried out.
bool rank_objects::may_carry_out(const entry& e) const {
  if (e.has != holds::object || !e.unacknowledged.empty()) return false;
  return !e.writers.empty() ||
         (e.has_order() && (e.promised == 0 || !is_kept(rule::use_object_first)));
}

void rank_objects::carry_out(object_id object, entry& e) {
  if (!e.writers.empty()) {
    if (!e.copies.empty()) return invalidate(object, e, nobody);
    const call c = e.writers.front();
    e.writers.pop_front();
    return run(object, e, c);
  }
  if (by_.methods_in(object) != in_progress::nothing && is_kept(rule::refuse_during_methods))
    return refuse_order(object, e);
  const int spared = e.order.front().what == kind::kill ? nobody : e.order.front().rank;
  const bool others_have_copies = std::any_of(
      e.copies.begin(), e.copies.end(), [&](const copy_given& c) { return c.rank != spared; });
  if (others_have_copies && is_kept(rule::move_takes_copies_back))
    return invalidate(object, e, spared);
  if (spared != nobody && by_.has_ended(spared)) return refuse_order(object, e);
  hand_over(object, e);
}

void rank_objects::hand_over(object_id object, entry& e) {
  const message order = e.order.front();
  e.order.clear();
  e.has = holds::nothing;
  e.copies.clear();
  if (order.what == kind::kill) {
    by_.destroy(object);
    answer(object, order.about, kind::result, outcome::done);
    if (is_home(object)) return home_told(object, outcome::destroyed);
    return by_.send(by_.home_of(object),
                    {.what = kind::moved, .object = object, .how = outcome::destroyed});
  }
  const int home = by_.home_of(object);
  const message news{.what = kind::moved, .object = object, .how = outcome::done};
  const auto tell_home = [&] {
    if (order.rank == home) return;  // the object itself tells it
    if (home == me_) {
      home_told(object, outcome::done);
    } else {
      by_.send(home, news);
    }
  };
  const bool object_first = is_kept(rule::object_before_news);
  if (!object_first) tell_home();
  by_.send(order.rank, {.what = kind::object, .object = object, .about = order.about});
  by_.note_place(object, order.rank);
  by_.forget_object(object);
  if (object_first) tell_home();
}

/// The order is not carried out. The call that came with it runs here.
void rank_objects::refuse_order(object_id object, entry& e) {
  const message order = e.order.front();
  e.order.clear();
  if (!is_kept(rule::refused_move_keeps_copy))
    e.copies.remove_if([&](const copy_given& c) { return c.rank == order.rank; });
  if (is_home(object)) {
    home_told(object, outcome::refused);
  } else {
    by_.send(by_.home_of(object), {.what = kind::moved, .object = object, .how = outcome::refused});
  }
  const call& c = order.about;
  if (!c.name || by_.has_ended(c.name.rank)) return;
  if (order.what == kind::kill) return answer(object, c, kind::result, outcome::refused);
  if (begins(object, e, c, may_defer::no, 0)) run(object, e, c);
}

}  // namespace sojourn::detail::coherence
