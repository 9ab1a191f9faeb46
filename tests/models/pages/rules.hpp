// SPDX-License-Identifier: Apache-2.0
// The three protocols that keep the pages of ranks consistent, their rules, and which of these the
// model can break, one at a time, to see that breaking it is noticed.
//
// Words. A rank has a copy of some pages, and protects them so that the loads and stores it must
// know of fault. What a rank's threads store between two releases is an *interval*; its *record*
// says which pages were stored to, and a *notice* of it tells another rank so. A *twin* is a copy
// of a page as it was before the interval's first store, a *diff* what has changed since. A rank's
// *known* vector says up to which interval it knows of each other rank; a page's *has* vector up to
// which interval the modifications of each rank are in the copy. A copy is *valid* when it lacks
// nothing that its rank knows of. An *epoch* is what lies between two barriers.
//
// Several writers at a time, diffs (`lmw`). Intervals:
//   L1   The first store to a page in an interval makes the diff of an earlier interval's twin,
//        and then the twin of this one, so that a diff belongs to one interval.
//   L2   A rank closes its interval before a lock leaves, a thread leaves, and a barrier: it
//        records which pages were stored to, and protects them.
//   L3   It does the same before it takes in notices, because its own stores came before what those
//        tell of.
//   L4   A page that a notice names becomes stale where the copy lacks the interval; its twin
//        becomes a diff before other ranks' diffs are applied.
//   L5   Intervals belong to a rank, not to a thread: what another thread has half done is in the
//        record, too, and nobody may read it yet.
// Faults:
//   L6   There is one fetch of a page at a time, of the whole page where there is no copy, and else
//        of the diffs from the first interval that is lacking.
//   L7   The page is opened when nothing known is lacking, also of what came to be known meanwhile;
//        then all diffs are applied at once, in an order that extends "happens before".
//   L8   On a whole page that comes the rank also applies those of its own diffs that the page
//   lacks. L9   Threads that waited execute their instruction again, and may fault again.
// Serving:
//   L10  A page that is open for stores is served as its twin.
//   L11  An exclusive page is protected before it is served the first time, and has from then on
//        what its rank knows of.
//   L12  Diffs that are gone, or long, are answered with the page; with long ones, only if that
//   page
//        has all that the asker's copy has.
// Barriers:
//   X1   A message from a later epoch waits until its receiver has left the barrier, too.
//   X2   A page that one rank alone has stored to in an epoch becomes exclusive there: the others
//        drop their copies and what is on its way to them.
//   X3   A rank that dropped modifications newer than the barrier fetches the page again before it
//        arrives at the next one.
//   X4   A page that nobody has touched goes to the first rank that stores to it, as its own.
//   X5   A page that is stored to in two intervals running may stay writable; then a comparison
//   with
//        the twin at each close tells whether it has changed.
// Collection of diffs:
//   G1   At a barrier the keeper of each page, which is its last writer, makes its copy valid;
//   others
//        drop copies that are not valid.
//   G2   A rank reports "done" when it fetches nothing, and fetches nothing until it hears "go".
//   G3   At "go" the diffs and twins of intervals up to the barrier are thrown away.
//
// One owner at a time, whole pages (`lsw`):
//   S1   A page is stored to by the owner of its token alone; at the close of an interval its
//   version
//        counts up, and it is protected.
//   S2   The version also counts up when the token of a page that was stored to leaves within an
//        interval, and the interval's notices name that version, though the page is gone.
//   S3   A copy of a page that is being stored to bears the last version that was closed.
//   S4   A copy that is older than a known notice is not used, nor when it only just arrives.
//   S5   Requests go to the page's home, and on to the rank that last asked for the token; a rank
//        asks for a page once at a time.
//   S6   A page that came is used once before it may leave.
//
// Sequential consistency, also for programs with races (`seq`):
//   Q1   The page's home serves one request at a time; when it serves one it decides whether data
//        has to be sent; a rank asks for a page once at a time; and a writer waits until all other
//        copies are gone.
//   Q2   A request is confirmed, so that home serves the next, after the page was used once.
//   Q3   An instruction on several pages takes them in ascending order, and holds those that it has
//        until it is done; holds are counted by thread.
//
// What orders threads, under all protocols:
//   K1   A lock is a token; its manager knows who asked for it last. Whoever has it may take it
//   again
//        without a message.
//   K2   Who releases sends notices to who acquires. A thread that moves to another rank does both.
//   K3   A rank arrives at a barrier with a count of threads when all that are there have arrived,
//   a
//        rank without threads at once; it arrives again when more come.
//   K4   Threads that take no part in barriers may do anything at any time.
//   T1   Threads of a rank that want one lock wait in a queue of the rank, which asks for it once.
//   T2   Handing a lock to a thread of the same rank needs no notices.
//   T3   A page is not open for stores while it is being fetched.
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

/// What the model can leave out. The paragraphs are those above.
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
  /// L7. A page is opened only when no known interval is lacking, also of those that came to be
  /// known during the fetch.
  fetch_until_nothing_lacks,
  /// L7. Diffs are applied in an order that extends "happens before".
  apply_in_order,
  /// L8. A rank applies its own diffs, too, where a whole page that it fetched lacks them.
  apply_own_diffs_too,
  /// L10. A page that is open for stores is served as its twin.
  serve_the_twin,
  /// L11. An exclusive page is protected when it is first served.
  protect_when_first_served,
  /// L12. Diffs that are there are answered with the page only if it has all that the asker has.
  page_only_if_it_has_all,
  /// X1. Messages from a later epoch wait until this rank has left the barrier.
  hold_later_epochs,
  /// X2. Ranks drop their copies of a page that becomes exclusive elsewhere.
  drop_at_exclusive,
  /// X2. What such a rank had asked for is thrown away when it comes.
  drop_fetches_in_flight,
  /// X2. Only a valid copy becomes exclusive.
  exclusive_only_if_valid,
  /// X3. A copy that was dropped with modifications newer than the barrier is fetched again before
  /// the next arrival.
  refetch_before_arrival,
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
  /// S5, Q1. A rank asks for a page once at a time.
  one_request_per_page,
  /// S6, Q2. A page that came is used once before it may leave.
  use_before_leaving,
  /// Q1. A writer waits until all other copies are gone.
  count_acknowledgements,
  /// Q1. Home decides whether a writer needs data when it serves the request, by who has copies
  /// then.
  decide_data_at_home,
  /// Q3. An instruction on two pages takes the lower one first, and holds it.
  hold_in_order,
  /// Q3. Holds are counted by thread: one thread that is done does not end another's.
  hold_by_thread,
  /// K2. A thread that moves to another rank brings its rank's notices along.
  move_with_notices,
};

struct rule_description {
  rule which;
  const char* name;
  const char* paragraphs;
  bool lmw, lsw, seq;  ///< Whether the protocol has this rule.

  bool belongs_to(protocol p) const;
};

inline constexpr int rules = 30;
extern const std::array<rule_description, rules> all_rules;

std::optional<rule> rule_named(std::string_view name);

}  // namespace page_model
