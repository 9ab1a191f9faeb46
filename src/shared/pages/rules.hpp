// SPDX-License-Identifier: Apache-2.0
// The rules that the protocols of the shared region rest on. Each is asked for by name where it is
// kept, so that a build of the tests can break one at a time and see that random programs notice.
#pragma once

#include <cstdint>

namespace sojourn::detail::pages {

enum class rule : std::uint8_t {
  serve_the_twin,             ///< A page that is open is served as its twin.
  close_before_learning,      ///< The open interval is closed before notices are taken in.
  diff_before_applying,       ///< The own diff is made before other ranks' diffs are applied.
  diff_an_interval,           ///< A store in a new interval makes the diff of the old one first.
  apply_in_order,             ///< Diffs are applied in an order that extends "happened before".
  fetch_until_nothing_lacks,  ///< A page opens only when it lacks no known modification, even one
                              ///< that became known while others were fetched.
  apply_own_too,              ///< A rank that fetched a whole page applies its own diffs that the
                              ///< page lacks.
  hold_later_epochs,          ///< Messages from behind a barrier wait until it is left here.
  agree_on_readers,           ///< All ranks believe the record whether others read a page.
  drop_at_exclusive,          ///< Ranks drop their copies of a page that becomes exclusive.
  drop_fetches_in_flight,   ///< When a page becomes exclusive, fetches of it that are under way are
                            ///< thrown away when they come.
  protect_at_share,         ///< An exclusive page is protected when it is first served.
  exclusive_only_if_valid,  ///< Only a valid copy becomes exclusive.
  no_fetch_after_done,      ///< No fetch begins between "done" and "go" of a collection.
  wait_for_fetches_before_done,  ///< "Done" waits for the fetches of all fibers.
  protect_at_close,              ///< Pages are protected again when their interval is closed.
  drop_at_collection,            ///< Invalid copies are dropped at a collection.
  fetch_before_arrival,    ///< A copy that was dropped with modifications newer than the barrier is
                           ///< fetched again before the next arrival.
  ask_from_first_lacking,  ///< A request names the first interval that is lacking, not the last one
                           ///< that the copy has.
  page_has_all,       ///< Diffs are answered with a page only if it has all that the asker has.
  page_has_own,       ///< A page is said to have this rank's modifications only if it has them.
  move_with_notices,  ///< A fiber that moves to another rank brings its notices along.
  ask_for_what_others_know,  ///< Rank 0 asks for intervals that a rank has closed after its
                             ///< arrival, if ranks that arrive later know them.
  depart_by_news,       ///< A rank that is told something from behind a barrier leaves that barrier
                        ///< first.
  release_at_question,  ///< A rank that releases to an object first tells the object's home what is
                        ///< new.
  acquire_at_answer,    ///< The home of an object tells those who acquire what is new.
  close_after_own_release,  ///< The home closes its own interval after a release of its own fiber.
  listen_before_unlock,  ///< A fiber that waits for a condition unlocks only when the home knows of
                         ///< it.
  join_before_arrival,  ///< A fiber that has another one take part in the barrier arrives only when
                        ///< rank 0 knows of it.
  notice_lost_pages,  ///< lsw: A page that was stored to and left before its interval was closed is
                      ///< in the notice.
  count_at_transfer,  ///< lsw: The version counts up when a page leaves that was stored to in the
                      ///< open interval.
  stamp_closed,  ///< lsw: A copy of a page that is being stored to bears the last closed version.
  check_version_on_arrival,  ///< lsw: A copy older than a known notice is asked for again.
  use_before_leaving,        ///< lsw, seq: A page that came is used once before it leaves.
  one_fetch_a_page,          ///< lsw, seq: A rank has one request for a page at a time.
  count_acknowledgements,    ///< seq: A rank that wants to store waits until all other copies are
                             ///< gone.
  data_by_copyset_at_home,  ///< seq: Whether data are needed is decided when home serves a request.
  hold_a_thread,   ///< lsw, seq: Holds are counted; a fiber that is done ends only its own.
  ordered_hold,    ///< lsw, seq: An instruction on several pages takes them in ascending order, and
                   ///< holds the lower ones.
  pinned_stays,    ///< A pinned page allows what was asked for, and does not leave.
  refresh_pinned,  ///< lmw: No fiber runs while a pinned page lacks known modifications.
  pinned_sticks,   ///< lmw: A page that is pinned for stores is compared at each close.
  stick_at_share,  ///< lmw: A pinned page that was exclusive is compared in the same way, once it
                   ///< was served.
  keep_pinned_stores,  ///< lmw: What comes for a page that is pinned for stores does not overwrite
                       ///< what was stored meanwhile.
  pinned_stays_dirty,  ///< lsw: A page that is pinned for stores is listed at each close.
  count_
};

#ifdef SOJOURN_BREAKS_RULES
inline rule broken = rule::count_;
inline bool holds(rule r) { return r != broken; }
#else
constexpr bool holds(rule) { return true; }
#endif

}  // namespace sojourn::detail::pages
