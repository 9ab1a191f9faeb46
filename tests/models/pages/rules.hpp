// SPDX-License-Identifier: Apache-2.0
// The three protocols that keep the pages of shared memory consistent between ranks: their rules,
// and which of them the model can break, one at a time, to see that somebody notices.
//
// The words that the rules use. Each rank has copies of some pages, and protects them so that a
// load or a store that the protocol must know of faults. What the threads of a rank store between
// two releases is an *interval*. Its *record* says which pages were stored to; a *notice* tells
// another rank of the record. A *twin* is a copy of a page as it was before the first store of an
// interval, and a *diff* is what differs from it afterwards. The *known* vector of a rank says up
// to which interval it knows of each rank. The *has* vector of a page says up to which interval the
// modifications of each rank are in the copy. A copy is *valid* if it lacks no interval that its
// rank knows of. The *keeper* of a page is the rank to ask for all of it. An *epoch* is the time
// between two barriers.
//
// lmw: lazy release consistency, several writers of a page at a time, diffs.
// Intervals:
//   L1   The first store to a page in an interval makes the diff of an earlier interval, if there
//        is still a twin of that, and then a new twin; so each diff belongs to one interval.
//   L2   A rank closes its interval before a lock or a thread leaves it and before it arrives at a
//        barrier. It then records which pages were stored to, and protects them.
//   L3   A rank also closes its interval before it takes in notices, because its stores so far did
//        not happen after what the notices tell of.
//   L4   A copy that lacks an interval of which a notice tells becomes stale. If it has a twin, the
//        diff is made before diffs of other ranks are applied.
//   L5   Intervals belong to a rank and not to a thread. A record may therefore tell of what
//        another thread has only half done, and which nobody may read yet.
// Faults:
//   L6   There is one fetch of a page at a time: of the whole page if there is no copy, and else of
//        the diffs that are lacking, from the first of them on.
//   L7   A page is opened when no known interval is lacking, including those that came to be known
//        during the fetch. All diffs are then applied at once, in an order that extends the order
//        in which their intervals happened.
//   L8   When a whole page comes, the rank also applies those of its own diffs that the page lacks.
//   L9   Threads that have waited execute their instruction again, and may fault again.
// Serving:
//   L10  Of a page that is open for stores the twin is served.
//   L11  An exclusive page is protected before it is first served; from then on it has all that its
//        rank knows of.
//   L12  A request for diffs that are gone is answered with the page. One for many diffs may be,
//        but only if the page has all that the copy of the asker has.
//   L13  A page that has come and waits for diffs does not have the modifications of its own rank
//        yet, which are applied with those (L8). It may be served meanwhile, but is not said to
//        have them, and does not take the place of diffs.
// Barriers:
//   X1   A message from a later epoch waits until its receiver has left the barrier, too.
//   X2   A page that only one rank has stored to in an epoch becomes exclusive there, if its copy
//        is valid. The other ranks drop their copies, and what is on its way to them. The record
//        may say that other ranks read the page: then it stays shared.
//   X3   A rank that so drops modifications newer than the barrier fetches the page again before it
//        arrives at the next barrier.
//   X4   A page that nobody has touched goes to the first rank that stores to it, as its own.
//   X5   A page that is stored to in two intervals may stay writable from then on: it sticks. At
//        each close it is compared with its twin to find out whether it has changed.
// The collection of diffs, at a barrier:
//   G1   The last writer of each page in the last epoch in which anybody stored to it becomes its
//        keeper, and makes its copy valid. The other ranks drop copies that are not valid. (The
//        writer of the last interval since the last collection is another one if the page was
//        exclusive in between: it has dropped its copy, and would fetch it from itself.)
//   G2   A rank reports "done" when no fetch is in progress, and begins none until it hears "go".
//   G3   At "go", the diffs and the twins of all intervals before the barrier are thrown away.
//
// lsw: lazy release consistency, one writer of a page at a time, whole pages.
//   S1   Only the owner of the token of a page stores to it. When it closes an interval in which it
//        did, the version of the page counts up, and the page is protected.
//   S2   The version also counts up when the token leaves within such an interval. The notices of
//        the interval name this version, although the page is gone.
//   S3   A copy of a page that is being stored to bears the last version that was closed.
//   S4   A copy older than a known notice is not used, not even when it has only just come.
//   S5   Requests go to the home of the page, and from there to the rank that last asked for the
//        token. A rank has one request for a page on its way at a time.
//   S6   A page that has come is used once before it may leave.
//
// seq: sequential consistency, also of programs with races.
//   Q1   The home of a page serves one request at a time. Whether data must be sent is decided when
//        a request is served. A rank has one request for a page on its way at a time. A writer
//        waits until all other copies are gone.
//   Q2   A rank confirms a request, so that home can serve the next one, after it has used the page
//        once.
//   Q3   An instruction that needs several pages takes them in ascending order, and holds those it
//        has until it is done. Holds are counted by thread.
//
// What orders threads, under all protocols:
//   K1   A lock is a token, and its manager knows which rank asked for it last. The rank that has
//        the token takes the lock again without a message.
//   K2   Whoever releases sends notices to whoever acquires. A thread that moves to another rank
//        releases where it leaves and acquires where it goes on.
//   K3   A rank arrives at a barrier, with a count of threads, when all threads that are there have
//        arrived, and at once if there are none. It arrives again when more threads come.
//   K4   Threads that take no part in barriers may do anything at any time.
//   K5   An arrival bears the records of its own rank alone. The manager of barriers takes all in
//        when all have arrived: no interval comes to be known before one that happened before it.
//   K6   A rank that has arrived may go on closing intervals, by K4, and ranks that arrive later
//        may know of them. Then the manager asks these for all records that they knew of when they
//        arrived, before it lets anybody depart.
//   K7   A departure may go from rank to rank. It bears what any of those lacks to whom it goes.
//   T1   Threads of a rank that want a lock stand in a queue of the rank, which asks for the lock
//        once.
//   T2   A lock passes between threads of the same rank without notices.
//   T3   A page that is being fetched is not open for stores.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace page_model {

enum class protocol : std::uint8_t { lmw, lsw, seq };
inline constexpr std::array all_protocols{protocol::lmw, protocol::lsw, protocol::seq};

const char* name_of(protocol p);
std::optional<protocol> protocol_named(std::string_view name);

/// The rules that the model can break. Each names its paragraph above.
enum class rule : std::uint8_t {
  /// L1. The diff of an earlier interval is made before a new twin is.
  one_diff_per_interval,
  /// L2, S1. Pages are protected again when their interval is closed.
  protect_at_close,
  /// L3. The open interval is closed before notices are taken in.
  close_before_notices,
  /// L4. A rank makes its own diff of a page before it applies those of others.
  flush_before_applying,
  /// L6. A request names the first interval that is lacking, not the last that the copy has.
  ask_from_first_lacking,
  /// L7. A page is opened only when no known interval is lacking, including those that came to be
  /// known during the fetch.
  fetch_until_nothing_lacks,
  /// L7. Diffs are applied in an order that extends the order in which their intervals happened.
  apply_in_order,
  /// L8. A rank also applies its own diffs that a whole page lacks when that comes.
  apply_own_diffs_too,
  /// L10. Of a page that is open for stores the twin is served.
  serve_the_twin,
  /// L11. An exclusive page is protected when it is first served.
  protect_when_first_served,
  /// L12. A request for diffs that are there is answered with the page only if that has all that
  /// the asker's copy has.
  page_only_if_it_has_all,
  /// L13. A page is said to have the modifications of its own rank only if it has.
  page_has_own,
  /// X1. Messages from a later epoch wait until this rank has left the barrier.
  hold_later_epochs,
  /// X2. Whether others read a page the record says, to all ranks alike.
  agree_on_readers,
  /// X2. Ranks drop their copies of a page that becomes exclusive elsewhere.
  drop_at_exclusive,
  /// X2. What these ranks had asked for is thrown away when it comes.
  drop_fetches_in_flight,
  /// X2. Only a valid copy becomes exclusive.
  exclusive_only_if_valid,
  /// X3. A copy that was dropped with modifications newer than the barrier is fetched again before
  /// the next arrival.
  refetch_before_arrival,
  /// G1. A page is kept where it was stored to last in the last epoch in which anybody did.
  keep_where_last_written,
  /// G1. Copies that are not valid are dropped at a collection.
  drop_at_collection,
  /// G2. "Done" waits for the fetches of all threads.
  wait_for_fetches_before_done,
  /// G2. No fetch begins between "done" and "go".
  no_fetch_after_done,
  /// S2. A page that was stored to and lost before the interval was closed is in its notices.
  notice_lost_pages,
  /// S2. The version counts up when a page that was stored to leaves within an interval.
  count_at_transfer,
  /// S3. A copy of a page that is being stored to bears the last closed version.
  stamp_closed_version,
  /// S4. A copy that arrives older than a known notice is fetched again.
  check_version_on_arrival,
  /// S5, Q1. A rank has one request for a page on its way at a time.
  one_request_per_page,
  /// S6, Q2. A page that came is used once before it may leave.
  use_before_leaving,
  /// Q1. A writer waits until all other copies are gone.
  count_acknowledgements,
  /// Q1. Home decides whether a writer needs data when it serves the request, not when it comes.
  decide_data_at_home,
  /// Q3. An instruction on two pages takes the lower one first, and holds it.
  hold_in_order,
  /// Q3. Holds are counted by thread: one thread that is done does not end another's.
  hold_by_thread,
  /// K2. A thread that moves to another rank brings its rank's notices along.
  move_with_notices,
  /// K6. The manager asks for records that have not come with arrivals of their own ranks.
  ask_for_what_others_know,
};

struct rule_description {
  rule which;
  const char* name;
  const char* paragraphs;
  unsigned protocols;  ///< Bit i is set if protocol i has the rule.

  bool belongs_to(protocol p) const;
};

inline constexpr int rules = 34;
extern const std::array<rule_description, rules> all_rules;

std::optional<rule> rule_named(std::string_view name);

}  // namespace page_model
