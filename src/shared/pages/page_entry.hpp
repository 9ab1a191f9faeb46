// SPDX-License-Identifier: Apache-2.0
// What a rank knows of a page: an entry of its table, in the shape of the page's protocol. Zeros
// mean that nothing has happened to the page yet.
#pragma once

#include <cstddef>
#include <cstdint>

#include "shared/pages/interval_log.hpp"
#include "shared/pages/page.hpp"
#include "shared/pages/page_message.hpp"

namespace sojourn::detail::pages {

/// What all protocols keep of a page.
struct page_state {
  static constexpr std::uint8_t for_load = 1;
  static constexpr std::uint8_t for_store = 2;

  access may;           ///< What the state allows.
  access shown;         ///< What protection allows: the same between two calls of the protocols.
  bool changes;         ///< In the list of pages whose protection changes.
  bool known;           ///< The protocol has filled in its part of the entry.
  std::uint8_t wanted;  ///< for_load, for_store: fibers wait.
  access pinned;        ///< What pins need: it allows no less, and does not leave.
};

struct page_history;
struct page_fetch;

/// The states of a page under lmw, which draws them.
enum class lmw_state : std::uint8_t {
  none,
  closed,
  open,
  guessed,
  sticking,
  sticking_for_pin,
  exclusive,
  untouched
};
constexpr bool is_open(lmw_state state) {
  return state >= lmw_state::open && state <= lmw_state::sticking_for_pin;
}
constexpr bool is_exclusive(lmw_state state) { return state >= lmw_state::exclusive; }

/// See lmw.
struct lmw_page : page_state {
  bool has_copy() const { return state != lmw_state::none && !useless; }
  bool is_exclusive() const { return pages::is_exclusive(state); }
  bool is_open() const { return pages::is_open(state); }
  bool sticks() const {
    return state == lmw_state::sticking || state == lmw_state::sticking_for_pin;
  }
  /// Whether comparing tells, at each close, if the page was stored to. Of other open pages a fault
  /// has told it.
  bool is_compared() const { return sticks() || state == lmw_state::guessed; }
  bool is_being_fetched() const { return fetch != nullptr; }

  lmw_state state;  ///< Changed by lmw::enter alone.
  bool useless;     ///< A barrier has made the copy useless, and the page is still open because it
                    ///< is pinned for stores.
  bool outdated;    ///< A barrier has made useless what is being fetched.
  bool must;        ///< To be fetched before this rank arrives at a barrier again.
  bool lacks_pinned;  ///< Pinned, and being brought up to date.
  bool deferred;      ///< To be asked for when the collection has ended.
  bool follows;       ///< A barrier has made a copy useless that fibers had wanted: a fault on the
                      ///< page before this one brings this page, too.
  bool lost;      ///< Since a barrier, a notice has come of a page that the program could use, or
                  ///< that was being fetched.
  bool on_trial;  ///< Brought because it follows, and left closed: a fault will tell that it is
                  ///< wanted.
  bool is_listed_open;     ///< In the list of pages that may be open.
  bool pulled;             ///< Being fetched because it follows, as soon as a barrier was left.
  std::uint8_t readers;    ///< How often others have asked for it since a barrier listed it last.
  std::uint8_t brought;    ///< How often it was brought because it follows.
  std::uint8_t unchanged;  ///< While it is compared: closes running that found no change.
  bool several_writers;    ///< In epoch `seen`.
  bool has_readers;        ///< In epoch `seen`, as its writer says: it stays shared.
  std::uint8_t dense;      ///< For so many more lists, this rank's diffs of it are taken to be
                           ///< longer than dense_diff_bytes, as the last one was.
  std::uint16_t keeper;    ///< Whom to ask for the whole page.
  std::uint16_t writer;   ///< In epoch `seen`: who has listed it in the interval of greatest order.
  std::uint16_t missing;  ///< Replies to what is being fetched.
  interval written;       ///< The number of the writer's interval.
  std::uint32_t seen;     ///< The epoch in which a barrier listed it last.
  interval twin_of;       ///< The closed interval at whose beginning the twin was made; else 0.
  interval listed;        ///< The last interval of this rank that lists it.
  interval thrown;        ///< This rank's diffs up to this interval are gone.
  std::byte* twin;
  page_history* history;  ///< Null: no rank is known to have listed it since the last collection,
                          ///< and there is no copy that was ever shared.
  page_fetch* fetch;      ///< Null: nothing is being fetched.
};

struct waiting_readers;

/// See lsw.
struct lsw_page : page_state {
  bool copy;
  bool owns;
  bool open;                 ///< Stored to in the open interval, though it may have left since.
  bool used;                 ///< A fiber has used it since it came: it may leave.
  bool has_next;             ///< `next` waits for it.
  std::uint8_t asked;        ///< Requests that are not answered.
  std::uint16_t held;        ///< Instructions on several pages that hold it.
  std::uint16_t next;        ///< The rank that gets the page next.
  std::uint16_t last;        ///< At its home: who asked for it to store last.
  std::uint32_t version;     ///< Of the copy.
  std::uint32_t needed;      ///< A version that this rank knows of: an older copy is of no use.
  std::uint32_t left_with;   ///< The version with which it left in the open interval.
  waiting_readers* readers;  ///< Ranks that wait for a copy; or null.
};

struct seq_home;

/// See seq.
struct seq_page : page_state {
  access asked;            ///< What this rank has asked home for.
  bool allowed;            ///< Home allows it.
  bool has_data;           ///< The bytes are here.
  bool confirms;           ///< Home waits until the page has been used.
  bool postponed;          ///< `late` came while the page was held.
  page_message late;       ///< A forward, or an invalidation.
  std::uint16_t late_for;  ///< The rank that it names.
  std::uint16_t held;      ///< Instructions on several pages that hold it.
  std::uint16_t acknowledged;
  std::uint16_t acknowledgements;  ///< How many must come, as home says when it allows the access.
  seq_home* home;  ///< At its home: who has it, and who waits. Null while nobody has asked.
};

union page_entry {
  page_state common;
  lmw_page lmw;
  lsw_page lsw;
  seq_page seq;
};
static_assert(sizeof(page_entry) <= 96);

}  // namespace sojourn::detail::pages
