// SPDX-License-Identifier: Apache-2.0
#include "shared/wait_counts.hpp"

namespace sojourn::detail::pages {

/// Notes what the other fibers do at the moment at which one begins to wait.
void wait_counts::classify(std::uint64_t what, bool others_ready) {
  if (others_ready) {
    ++counts_.switches_useful;
    return;
  }
  std::size_t beside_it = is_alone_ && alone_ == what ? 1 : 0;
  if (!is_alone_ && waiting_ != 0) {
    const auto same = waiting_for_.find(what);
    beside_it = same == waiting_for_.end() ? 0 : same->second;
  }
  if (waiting_ != 0 && at_barrier_ == waiting_)
    ++counts_.switches_tail;
  else if (waiting_ != 0 && beside_it == waiting_)
    ++counts_.switches_same_page;
  else
    ++counts_.switches_idle;
}

void wait_counts::begin(kind k, std::uint64_t what, bool others_ready, std::uint64_t now) {
  classify(what, others_ready);
  if (waiting_++ == 0) {
    is_alone_ = true;
    alone_ = what;
  } else {
    if (is_alone_) ++waiting_for_[alone_];
    is_alone_ = false;
    ++waiting_for_[what];
  }
  switch (k) {
    case kind::page:
      ++counts_.page_waits;
      break;
    case kind::lock:
      ++counts_.lock_waits;
      break;
    case kind::barrier:
      ++counts_.barrier_waits;
      ++at_barrier_;
      break;
    case kind::event:
      ++counts_.event_waits;
      break;
  }
  if (others_ready) return;
  idle_ = true;
  idle_since_ = now;
}

void wait_counts::over(kind k, std::uint64_t what) {
  --waiting_;
  if (k == kind::barrier) --at_barrier_;
  if (is_alone_) {
    is_alone_ = false;
    return;
  }
  const auto at = waiting_for_.find(what);
  if (--at->second == 0) waiting_for_.erase(at);
}

void wait_counts::end(kind k, std::uint64_t now) {
  if (!idle_) return;
  idle_ = false;
  const std::uint64_t ns = now > idle_since_ ? now - idle_since_ : 0;
  (k == kind::page      ? counts_.page_idle_ns
   : k == kind::lock    ? counts_.lock_idle_ns
   : k == kind::barrier ? counts_.barrier_idle_ns
                        : counts_.event_idle_ns) += ns;
}

}  // namespace sojourn::detail::pages
