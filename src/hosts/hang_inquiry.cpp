// SPDX-License-Identifier: Apache-2.0
#include "hosts/hang_inquiry.hpp"

#include <utility>

namespace sojourn::detail {

namespace {

// An agent gives its ranks at most 10 s to say what they wait for.
constexpr std::chrono::milliseconds patience{12'000};

}  // namespace

hang_inquiry::hang_inquiry(std::vector<int> ranks, otherwise when_untold)
    : when_untold_(std::move(when_untold)) {
  for (int n : ranks) {
    hosts_.push_back({.ranks = n});
    ranks_in_all_ += n;
  }
}

bool hang_inquiry::hear_standstill(std::size_t host, bool some_wait) {
  hosts_[host].stands_still = some_wait;
  if (standstill_told_) return false;
  bool waits_somewhere = false;
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    if (!hosts_[i].stands_still && !has_finished(i)) return false;
    waits_somewhere |= hosts_[i].stands_still.value_or(false);
  }
  // When nobody waits, each rank computes for itself.
  return standstill_told_ = waits_somewhere;
}

void hang_inquiry::hear_going_on(std::size_t host) {
  hosts_[host].stands_still.reset();
  standstill_told_ = false;
}

bool hang_inquiry::begin(const std::string& why, bool proven, time now) {
  const bool is_asked = asked_.has_value();
  if (!is_asked || proven) asked_ = hang_view{.why = why, .proven = proven, .ranks = {}};
  if (is_asked) return false;
  deadline_ = now + patience;
  for (of_host& h : hosts_) h.waits.clear();
  return true;
}

void hang_inquiry::hear_waits(std::size_t host, std::vector<rank_view> ranks) {
  hosts_[host].waits = std::move(ranks);
}

bool hang_inquiry::is_complete() const {
  if (!asked_) return false;
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    if (hosts_[i].waits.empty() && !has_finished(i)) return false;
  }
  return true;
}

hang_view hang_inquiry::end() {
  deadline_.reset();
  hang_view view = *std::exchange(asked_, std::nullopt);
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    const of_host& h = hosts_[i];
    for (std::size_t n = 0; n < static_cast<std::size_t>(h.ranks); ++n) {
      rank_view rank;
      if (n < h.waits.size()) rank = h.waits[n];
      // An agent that has not answered in time has not heard from its ranks either.
      if (h.waits.empty()) rank.condition = when_untold_(i);
      make_sound(rank.report, ranks_in_all_);
      view.ranks.push_back(std::move(rank));
    }
  }
  return view;
}

}  // namespace sojourn::detail
