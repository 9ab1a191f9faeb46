// SPDX-License-Identifier: Apache-2.0
// What a rank does for the objects that were made there, and when ranks end.
#include <utility>

#include "object/coherence/rank_objects.hpp"
#include "object/coherence/rules.hpp"

namespace sojourn::detail::coherence {

void rank_objects::home_request(const message& m) {
  const object_id object = m.object;
  const bool is_move = m.what == kind::take || m.what == kind::destroy || m.what == kind::give;
  entry& e = at(object);
  if (!is_move && e.has == holds::object) return serve(object, e, m);
  directory& d = directory_of(object);
  const bool moves = d.moves_to != nobody;
  if ((moves && (is_move || is_kept(rule::home_queues_in_move))) || !d.queue.empty()) {
    d.queue.push_back(m);
    return;
  }
  home_serve(m);
}

/// No move is under way.
void rank_objects::home_serve(const message& m) {
  const object_id object = m.object;
  directory& d = directory_of(object);
  if (m.about.name && by_.has_ended(m.about.name.rank)) return;
  if (d.is_destroyed) return home_lacks(m, outcome::destroyed);
  if (d.is_lost) return home_lacks(m, outcome::lost);
  if (m.what == kind::give) {
    if (d.owner != m.rank || d.owner == me_) return;
    d.moves_to = me_;
    return by_.send(d.owner, {.what = kind::hand, .object = object, .rank = me_});
  }
  if (m.what == kind::take || m.what == kind::destroy) return home_serve_move(d, m);
  entry& e = at(object);
  if (e.has == holds::object) return serve(object, e, m);
  message on = m;
  on.is_sure = true;
  ++on.hops;
  by_.send(d.owner, on);
}

void rank_objects::home_serve_move(directory& d, const message& m) {
  const object_id object = m.object;
  const int asker = m.about.name.rank;
  if (m.what == kind::take && d.owner == asker) {
    // It came to the asker while this request was in the queue.
    if (asker != me_) {
      message on = m;
      on.what = kind::run;
      on.is_sure = true;
      ++on.hops;
      return by_.send(asker, on);
    }
    entry& e = at(object);
    e.asks_for_object = {};
    if (begins(object, e, m.about, may_defer::no, 0)) run(object, e, m.about);
    return;
  }
  message order{.what = m.what == kind::take ? kind::hand : kind::kill,
                .object = object,
                .about = m.about,
                .rank = asker};
  d.moves_to = asker;
  if (d.owner == me_) return serve(object, at(object), order);
  by_.send(d.owner, order);
}

/// A request for an object that there is no more.
void rank_objects::home_lacks(const message& m, outcome why) {
  if (m.what == kind::give) return;
  answer(m.object, m.about, m.what == kind::refresh ? kind::bytes : kind::result, why);
}

void rank_objects::answer(object_id object, const call& c, kind what, outcome how) {
  const message m{.what = what, .object = object, .about = {.name = c.name}, .how = how};
  if (c.name.rank != me_) return by_.send(c.name.rank, m);
  if (!is_awaited(at(object), c.name)) return;
  if (what == kind::bytes) return wake(object, c.name, woken::refreshed);
  end_of_call(object, c.name, how);
}

void rank_objects::home_told(object_id object, outcome how) {
  directory& d = directory_of(object);
  if (d.moves_to == nobody)
    return by_.refuse({.what = kind::moved, .object = object},
                      "tells of a move that home has not ordered");
  if (how == outcome::done) d.owner = d.moves_to;
  if (how == outcome::destroyed) d.is_destroyed = true;
  d.moves_to = nobody;
  if (by_.has_ended(d.owner) && !d.is_destroyed) lose(object);
  if (can_go_on(object)) by_.go_on_later(object);
}

void rank_objects::give_back(object_id object) {
  if (is_home(object) || !has_object(object) || home_has_ended(object)) return;
  by_.send(by_.home_of(object), {.what = kind::give, .object = object, .rank = me_});
}

/// The object is gone with a rank that has ended.
void rank_objects::lose(object_id object) {
  directory& d = directory_of(object);
  d.is_lost = true;
  d.moves_to = nobody;
  for (int rank = 0; rank < by_.ranks(); ++rank) {
    if (rank != me_ && !by_.has_ended(rank)) by_.send(rank, {.what = kind::lost, .object = object});
  }
  hear_of_loss(object);
  if (can_go_on(object)) by_.go_on_later(object);
}

void rank_objects::hear_of_loss(object_id object) {
  entry& e = at(object);
  if (e.has == holds::object)
    return by_.refuse({.what = kind::lost, .object = object},
                      "says that an object is lost that is here");
  e.is_lost = true;
  e.held.clear();
  e.is_invalidated_by = nobody;
  e.invalidated = {};
  if (e.has == holds::copy && e.promised == 0) {
    e.has = holds::nothing;
    by_.forget_copy(object);
  }
  for (const call_sent& s : std::exchange(e.sent, {}))
    wake(object, s.name, s.refreshes ? woken::refreshed : woken::lost);
}

void rank_objects::note_end_of(int rank) {
  std::vector<object_id> all;
  known_.entries.each([&](object_id object, const entry&) { all.push_back(object); });
  known_.directories.each([&](object_id object, const directory&) {
    if (known_.entries.find(object) == nullptr) all.push_back(object);
  });
  for (const object_id object : all) {
    entry& e = at(object);
    if (is_kept(rule::dead_give_up)) e.unacknowledged.remove(rank);
    e.copies.remove_if([&](const copy_given& c) { return c.rank == rank; });
    if (e.is_invalidated_by == rank) {
      e.is_invalidated_by = nobody;
      e.invalidated = {};
    }
    if (const directory* const known = known_.directories.find(object)) {
      const directory& d = *known;
      if (d.owner == rank && !d.is_destroyed && !d.is_lost) {
        const bool comes_here = d.moves_to == me_;  // what the owner had sent is here
        if (d.moves_to == nobody || d.moves_to == rank || comes_here ||
            !is_kept(rule::home_asks_receiver)) {
          lose(object);
        } else {
          by_.send(d.moves_to, {.what = kind::query, .object = object, .rank = rank});
        }
      }
    }
    const bool home_ended = by_.home_of(object) == rank;
    if (home_ended) {
      e.held.clear();
      // Nobody would ever take the copy back; and an access must find out that the object is lost.
      if (e.has == holds::copy) {
        e.has = holds::nothing;
        by_.forget_copy(object);
      }
    }
    std::vector<call_sent> ends;
    e.sent.remove_if([&](const call_sent& s) {
      const bool is_over = s.to != me_ && (home_ended || s.to == rank);
      if (is_over) ends.push_back(s);
      return is_over;
    });
    for (const call_sent& s : ends)
      wake(object, s.name, s.refreshes ? woken::refreshed : woken::lost);
    if (can_go_on(object)) by_.go_on_later(object);
    tidy(object);
  }
}

}  // namespace sojourn::detail::coherence
