// SPDX-License-Identifier: Apache-2.0
#include "rpc/collective_steps.hpp"

#include <utility>

#include "message/dispatcher.hpp"
#include "rpc/exceptions.hpp"
#include "sojourn/detail/running.hpp"
#include "sojourn/detail/thrown.hpp"

namespace sojourn::detail {

int collective_steps::real(int place) const {
  return plan_.shape == collective_shape::down ? around(place + plan_.root, count_) : place;
}

void collective_steps::fail(const std::exception_ptr& failure) {
  failure_ = failure;
  failure_bytes_ = encoded(failure);
}

/// Calls a function of the values, unless the operation has failed.
template <class Do>
void collective_steps::guarded(Do what) {
  if (failure_ != nullptr) return;
  std::exception_ptr failure;
  try {
    what();
  } catch (const thrown_past&) {
    failure = caught_past();
  } catch (...) {
    failure = caught_past();
  }
  if (failure != nullptr) fail(failure);
}

bool collective_steps::takes(int member, value_bytes& bytes) {
  contribution* c = find_contribution(open_, member);
  if (c == nullptr) return false;
  if (c->failed() && failure_ == nullptr) [[unlikely]] {
    failure_bytes_ = std::move(c->bytes);
    failure_ = decoded(failure_bytes_.data(), failure_bytes_.size());
  } else {
    bytes = std::move(c->bytes);
  }
  remove_contribution(open_, c);
  return true;
}

void collective_steps::send(int member) {
  byte_span bytes;
  guarded([&] { bytes = values_.down(member); });
  if (failure_ != nullptr) bytes = failure_bytes_;
  send_to_member(open_, member, bytes, failure_ != nullptr);
}

void collective_steps::send_up(int member) {
  byte_span bytes;
  guarded([&] { bytes = values_.up(); });
  if (failure_ != nullptr) bytes = failure_bytes_;
  send_to_member(open_, member, bytes, failure_ != nullptr);
}

bool collective_steps::advance() {
  const bool to_root = plan_.shape == collective_shape::up_to_root;
  for (;;) {
    switch (phase_) {
      case phase::children: {
        if (const int child = child_.now(place_, count_); child != no_rank) {
          value_bytes theirs;
          if (!takes(child, theirs)) return false;
          guarded([&] { values_.absorb(child, std::move(theirs)); });
          child_.next();
          break;
        }
        child_ = {};
        if (place_ != 0) send_up(parent_in_tree(place_));
        if (to_root) {
          if (place_ == 0 && plan_.root != 0) send_up(plan_.root);
          phase_ = place_ != 0 && place_ == plan_.root ? phase::root : phase::done;
        } else {
          phase_ = place_ != 0 ? phase::parent : phase::spread;
        }
        break;
      }
      case phase::root:
      case phase::parent: {
        value_bytes from_above;
        const int sender = phase_ == phase::root ? 0 : real(parent_in_tree(place_));
        if (!takes(sender, from_above)) return false;
        guarded([&] { values_.take(std::move(from_above)); });
        phase_ = phase_ == phase::root ? phase::done : phase::spread;
        break;
      }
      case phase::spread:
        for (int child; (child = child_.now(place_, count_)) != no_rank; child_.next()) {
          send(real(child));
        }
        phase_ = phase::done;
        break;
      case phase::meet:
        if (!meets()) return false;
        phase_ = phase::done;
        break;
      case phase::exchange:
        if (!exchanges()) return false;
        phase_ = phase::done;
        break;
      case phase::done:
        return true;
    }
  }
}

bool collective_steps::meets() {
  const int me = open_.among->me;
  for (; !meeting_.is_over(count_); meeting_.next()) {
    if (!std::exchange(sent_, true)) send_to_member(open_, meeting_.told(me, count_), {}, false);
    contribution* c = find_contribution(open_, meeting_.awaited(me, count_));
    if (c == nullptr) return false;
    remove_contribution(open_, c);
    sent_ = false;
  }
  return true;
}

bool collective_steps::exchanges() {
  const int me = open_.among->me;
  if (!std::exchange(sent_, true)) {
    // Each rank begins with the rank after it, so that not all send to the same rank at once.
    for (int i = 1; i < count_; ++i) send(around(me + i, count_));
  }
  for (; step_ < count_; ++step_) {
    const int from = around(me - step_, count_);
    value_bytes theirs;
    if (!takes(from, theirs)) return false;
    guarded([&] { values_.absorb(from, std::move(theirs)); });
  }
  return true;
}

}  // namespace sojourn::detail
