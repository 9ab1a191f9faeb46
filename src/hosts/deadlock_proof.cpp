// SPDX-License-Identifier: Apache-2.0
#include "hosts/deadlock_proof.hpp"

#include <algorithm>

namespace sojourn::detail {

deadlock_proof::outcome deadlock_proof::hear(std::size_t which, std::uint64_t question,
                                             const std::optional<watch_area::rest>& rest) {
  // The answer to a question that is no longer asked tells of a time that has passed.
  if (question != 0 && question != question_) return {};
  host& h = hosts_[which];
  const bool is_as_before = rest.has_value() && h.rest == rest;
  h.rest = rest;
  if (question == 0 || !is_as_before) return ask();
  h.still_rests = true;
  if (!std::all_of(hosts_.begin(), hosts_.end(), [](const host& one) { return one.still_rests; }))
    return {};
  question_ = 0;
  return {.is_proven = true};
}

/// Begins anew with what is known now.
deadlock_proof::outcome deadlock_proof::ask() {
  question_ = 0;
  std::uint64_t in_flight = 0;
  for (host& h : hosts_) {
    if (!h.rest) return {};
    in_flight += h.rest->sent - h.rest->received;
    h.still_rests = false;
  }
  if (in_flight != 0) return {};
  question_ = ++last_question_;
  return {.question = question_};
}

}  // namespace sojourn::detail
