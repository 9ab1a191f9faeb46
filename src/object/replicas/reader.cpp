// SPDX-License-Identifier: Apache-2.0
#include "object/replicas/reader.hpp"

#include <algorithm>
#include <utility>

#include "object/replicas/rules.hpp"

namespace sojourn::detail::replicas {

using until = waiting_call::until;

void reader::subscribe() {
  ++state_.latest;
  state_.asks = true;
  by_.send({.what = kind::subscribe, .of = state_.latest});
}

next reader::read(std::uint64_t call) {
  if (state_.here != 0) return next::go_on;
  if (state_.is_ended) return next::ended;
  if (state_.is_lost) return next::lost;
  state_.waiting.push_back({call, until::here});
  if (!state_.asks) subscribe();
  return next::wait;
}

next reader::refresh(std::uint64_t call) {
  if (state_.is_ended) return next::ended;
  if (state_.is_lost) return next::lost;
  if (!is_kept(rule::refresh_asks)) return next::go_on;
  const bool has_asked = state_.asks && is_kept(rule::refresh_joins_nothing);
  if (state_.here == 0 && !has_asked) return read(call);  // what comes is the newest
  state_.waiting.push_back({call, until::refreshed});
  by_.send({.what = kind::refresh, .of = state_.latest, .number = state_.here, .call = call});
  return next::wait;
}

/// What a subscription that is on its way will bring may be older.
bool reader::is_seen(version number) const {
  if (!is_kept(rule::see_own_update)) return true;
  return state_.here >= number || (state_.here == 0 && !state_.asks);
}

next reader::see(std::uint64_t call, version number) {
  if (is_seen(number)) return next::go_on;
  if (state_.is_lost) return next::lost;
  state_.waiting.push_back({call, until::newer, number});
  return next::wait;
}

void reader::drop() {
  if (state_.here == 0 || state_.asks) return;
  state_.here = 0;
  by_.forget();
  wake_satisfied();
}

void reader::install(version number) {
  if (number <= state_.here && is_kept(rule::newer_alone)) return;
  if (state_.is_ended && is_kept(rule::end_is_final)) return;
  state_.here = number;
  by_.install(number);
}

void reader::end() {
  state_.is_ended = true;
  if (std::exchange(state_.here, 0) != 0) by_.forget();
  wake_all(woken::ended);
}

void reader::arrive(const message& m) {
  switch (m.what) {
    case kind::push: {
      // It may have passed the answer to the subscription, which is older then.
      const bool is_awaited = state_.asks && state_.latest == m.of;
      const bool is_taken = state_.here != 0 || is_awaited;
      if (state_.here != 0 || (is_awaited && is_kept(rule::push_before_answer))) install(m.number);
      by_.send({.what = kind::pushed,
                .how = is_taken ? outcome::done : outcome::dropped,
                .of = m.of,
                .number = m.number});
      return wake_satisfied();
    }
    case kind::ended:
      return end();
    case kind::subscribed:
      if (!state_.asks || state_.latest != m.of)
        return by_.refuse(m, "answers a subscription that nobody has asked for");
      state_.asks = false;
      if (m.how == outcome::destroyed) return end();
      install(m.number);
      return wake_satisfied();
    case kind::refreshed: {
      const auto asked = std::find_if(
          state_.waiting.begin(), state_.waiting.end(),
          [&](const waiting_call& w) { return w.call == m.call && w.what == until::refreshed; });
      if (asked == state_.waiting.end()) return;  // the object has ended meanwhile
      state_.waiting.erase(asked);
      if (m.how == outcome::destroyed) {
        by_.wake(m.call, woken::ended);
        return end();
      }
      // Asked for before the version was dropped, it may be older than what was read since.
      const bool is_its_own = m.of == state_.latest || !is_kept(rule::refreshed_of_its_own);
      if (m.brings && is_its_own && (state_.here != 0 || state_.asks)) install(m.number);
      by_.wake(m.call, woken::here);
      return wake_satisfied();
    }
    default:
      return by_.refuse(m, "is for a writer");
  }
}

void reader::note_end_of_writer() {
  state_.is_lost = true;
  state_.asks = false;
  if (is_kept(rule::readers_hear_of_dead_writer)) wake_all(woken::lost);
}

void reader::wake_satisfied() {
  std::erase_if(state_.waiting, [&](const waiting_call& w) {
    const bool is_so = (w.what == until::here && state_.here != 0) ||
                       (w.what == until::newer && is_seen(w.number));
    if (is_so) by_.wake(w.call, woken::here);
    return is_so;
  });
}

void reader::wake_all(woken how) {
  for (const waiting_call& w : std::exchange(state_.waiting, {})) by_.wake(w.call, how);
}

}  // namespace sojourn::detail::replicas
