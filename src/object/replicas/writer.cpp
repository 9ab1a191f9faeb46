// SPDX-License-Identifier: Apache-2.0
#include "object/replicas/writer.hpp"

#include <algorithm>
#include <utility>

#include "object/replicas/rules.hpp"

namespace sojourn::detail::replicas {

subscriber* writer::find(int rank) {
  const auto known = std::find_if(state_.subscribers.begin(), state_.subscribers.end(),
                                  [&](const subscriber& s) { return s.rank == rank; });
  return known == state_.subscribers.end() ? nullptr : &*known;
}

void writer::forget(int rank) {
  std::erase_if(state_.subscribers, [&](const subscriber& s) { return s.rank == rank; });
  wake_satisfied();
}

void writer::push_to(subscriber& s) {
  if (s.in_flight != 0 && is_kept(rule::one_push_at_a_time)) return;
  if (s.acknowledged >= state_.newest) return;
  s.in_flight = state_.newest;
  by_.send(s.rank, {.what = kind::push, .brings = true, .of = s.of, .number = state_.newest});
}

version writer::publish() {
  ++state_.newest;
  for (subscriber& s : state_.subscribers) push_to(s);
  return state_.newest;
}

bool writer::are_near(version number, version behind) const {
  return std::all_of(
      state_.subscribers.begin(), state_.subscribers.end(),
      [&](const subscriber& s) { return number <= behind || s.acknowledged >= number - behind; });
}

bool writer::is_near(std::uint64_t call, version number, version behind) {
  if (are_near(number, behind) || !is_kept(rule::wait_for_bound)) return true;
  state_.waiting.push_back({call, number, behind});
  return false;
}

void writer::wake_satisfied() {
  std::erase_if(state_.waiting, [&](const waiting_update& u) {
    const bool is_so = are_near(u.number, u.behind);
    if (is_so) by_.wake(u.call);
    return is_so;
  });
}

void writer::end() {
  state_.is_ended = true;
  for (const subscriber& s : std::exchange(state_.subscribers, {}))
    by_.send(s.rank, {.what = kind::ended, .of = s.of});
  wake_satisfied();
}

void writer::arrive(int from, const message& m) {
  switch (m.what) {
    case kind::subscribe: {
      message answer{.what = kind::subscribed, .brings = true, .of = m.of, .number = state_.newest};
      if (state_.is_ended) {
        answer.how = outcome::destroyed;
        answer.brings = false;
        return by_.send(from, answer);
      }
      subscriber* s = find(from);
      if (s == nullptr) {
        state_.subscribers.push_back({from, m.of});
        s = &state_.subscribers.back();
      }
      *s = {from, m.of, 0, state_.newest};
      by_.send(from, answer);
      return wake_satisfied();
    }
    case kind::refresh:
      return by_.send(from, {.what = kind::refreshed,
                             .how = state_.is_ended ? outcome::destroyed : outcome::done,
                             .brings = !state_.is_ended && state_.newest > m.number,
                             .of = m.of,
                             .number = state_.newest,
                             .call = m.call});
    case kind::pushed: {
      subscriber* const s = find(from);
      if (s == nullptr) return;  // it has ended, or the object has
      const bool is_its_own = s->of == m.of;
      if (m.how == outcome::dropped) {
        if (!is_its_own && is_kept(rule::drop_of_its_own)) return;
        if (is_kept(rule::drop_is_heard)) return forget(from);
        s->in_flight = 0;
        return;
      }
      if (!is_its_own && is_kept(rule::answer_of_its_own)) return;
      s->in_flight = 0;
      s->acknowledged = std::max(s->acknowledged, m.number);
      if (is_kept(rule::push_afterwards)) push_to(*s);
      return wake_satisfied();
    }
    default:
      return;
  }
}

void writer::note_end_of(int rank) {
  if (is_kept(rule::dead_are_forgotten)) forget(rank);
}

}  // namespace sojourn::detail::replicas
