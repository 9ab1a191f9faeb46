// SPDX-License-Identifier: Apache-2.0
// The rules on which replicated objects rest. Each is asked for by name where it is kept, so that a
// build of the tests can break one at a time and see that something notices.
#pragma once

#include <cstdint>

namespace sojourn::detail::replicas {

enum class rule : std::uint8_t {
  newer_alone,         ///< A rank replaces its version by a newer one only.
  push_afterwards,     ///< A version that came while a push was unanswered is pushed afterwards.
  one_push_at_a_time,  ///< A subscriber has at most one push that it has not answered.
  drop_of_its_own,     ///< "I have dropped it" ends the subscription that it names, and no other.
  answer_of_its_own,   ///< An answer to a push counts for the subscription that it names alone.
  drop_is_heard,       ///< A subscriber that has dropped its version is pushed to no more.
  push_before_answer,  ///< A push that has passed the answer to its subscription is installed.
  wait_for_bound,      ///< An update with a bound waits until the subscribers are within it.
  see_own_update,      ///< An update ends when its rank sees it.
  refresh_asks,        ///< refresh() asks the writer.
  refresh_joins_nothing,        ///< It does not wait for a subscription that is on its way instead.
  refreshed_of_its_own,         ///< What it brings is installed for the subscription that asked.
  end_is_final,                 ///< Nothing is installed after the object's end.
  dead_are_forgotten,           ///< Nobody waits for a subscriber that has ended.
  readers_hear_of_dead_writer,  ///< Who waits for a writer that has ended is told.
  count_
};

#ifdef SOJOURN_BREAKS_RULES
inline rule broken = rule::count_;
inline bool is_kept(rule r) { return r != broken; }
#else
constexpr bool is_kept(rule) { return true; }
#endif

}  // namespace sojourn::detail::replicas
