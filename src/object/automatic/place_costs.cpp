// SPDX-License-Identifier: Apache-2.0
#include "object/automatic/place_costs.hpp"

#include <algorithm>
#include <limits>

namespace sojourn::detail {

namespace {

using way = place_costs::way;

constexpr std::uint32_t never = std::numeric_limits<std::uint32_t>::max();
/// Short programs, and places that are seldom used, are left alone.
constexpr std::uint32_t calls_before_trials = 32;
constexpr std::uint32_t calls_between_first_trials = 4;
constexpr std::uint32_t longest_wait = 9;  ///< 2048 calls.
constexpr std::uint32_t enough_trials = 3;
/// A trial counts half as much after so many more, about.
constexpr double memory = 7.0 / 8;
/// Another way is taken when it costs so much less: a change of ways costs something, too.
constexpr double clearly_less = 0.9;
/// When the way that is taken costs so much more than when it was chosen, the program does
/// something else now, and the others are tried again.
constexpr double clearly_more = 1.5;

}  // namespace

place_costs::place_costs(bool can_migrate, bool can_bring) : until_next_(calls_before_trials) {
  other(way::migrate).is_possible = can_migrate;
  other(way::bring).is_possible = can_bring;
  // Not in the same call; and the one that is seen by others comes second.
  other(way::migrate).until_trial = calls_before_trials;
  other(way::bring).until_trial = calls_before_trials + calls_between_first_trials / 2;
}

double place_costs::cost_of(way of) const {
  if (of == way::rpc) return 1;
  const alternative& a = other(of);
  return a.trials == 0 ? -1 : a.cost / a.calls;
}

double place_costs::calls_a_trial(way of) const {
  if (of == way::rpc) return 1;
  const alternative& a = other(of);
  return a.trials == 0 ? 1 : a.calls / a.weight;
}

bool place_costs::should_bring() const {
  const double cost = cost_of(way::bring);
  return now_ == way::bring || (cost >= 0 && cost < cost_of(now_) * clearly_less);
}

std::uint32_t place_costs::interval_of(way of) const {
  const alternative& a = other(of);
  if (!a.is_possible) return never;
  // Nothing is told of some trials, which are the more seldom for that.
  if (a.trials < enough_trials)
    return calls_between_first_trials << std::min(a.begun, longest_wait);
  if (of == now_) return 64;
  const double ratio = cost_of(of) / cost_of(now_);
  return ratio < 1.3 ? 32 : ratio < 2.5 ? 128 : 512;
}

void place_costs::plan() {
  until_next_ = never;
  for (const alternative& a : others_) {
    if (a.is_possible) until_next_ = std::min(until_next_, a.until_trial);
  }
  until_next_ = std::max(until_next_, 1u);
}

way place_costs::next(std::uint32_t passed) {
  way taken = now_;
  for (const way each : {way::migrate, way::bring}) {
    alternative& a = other(each);
    if (!a.is_possible) continue;
    a.until_trial -= std::min(a.until_trial, passed);
    if (a.until_trial != 0 || taken != now_) continue;
    taken = each;
    ++a.begun;
    a.until_trial = interval_of(each);
  }
  plan();
  return taken;
}

void place_costs::learn(way of, double cost, double calls) {
  alternative& a = other(of);
  a.cost = a.cost * memory + cost;
  a.calls = a.calls * memory + std::clamp(calls, 1.0, most_calls);
  a.weight = a.weight * memory + 1;
  if (a.trials != never) ++a.trials;
  choose();
}

void place_costs::choose() {
  way best = way::rpc;
  for (const way each : {way::migrate, way::bring}) {
    const alternative& a = other(each);
    if (a.is_possible && a.trials >= enough_trials && cost_of(each) < cost_of(best)) best = each;
  }
  const double cost_now = cost_of(now_);
  if (best != now_ && cost_of(best) < cost_now * clearly_less) {
    now_ = best;
    ++changes_;
    chosen_at_ = cost_of(best);
    for (const way each : {way::migrate, way::bring})
      other(each).until_trial = std::min(other(each).until_trial, interval_of(each));
  } else if (cost_now > chosen_at_ * clearly_more) {
    chosen_at_ = cost_now;
    for (alternative& a : others_)
      a.until_trial = std::min(a.until_trial, calls_between_first_trials);
  } else {
    chosen_at_ = std::min(chosen_at_, cost_now);
  }
}

}  // namespace sojourn::detail
