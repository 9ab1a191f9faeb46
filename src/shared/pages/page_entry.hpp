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

  access may;    ///< What the page's state allows the program.
  access shown;  ///< What the page's protection allows; equal to `may` between two calls of the
                 ///< protocols.
  bool changes;  ///< In the list of pages whose protection changes.
  bool known;    ///< The protocol has filled in its part of the entry.
  std::uint8_t wanted;  ///< for_load and for_store: fibers wait for such an access.
  access pinned;        ///< The access that pins need: the page allows no less, and does not leave.
};

struct page_history;
struct page_fetch;

/// The states of a page under lmw; lmw.hpp draws them.
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
  /// Whether the page must be compared at each close to find out if it was stored to. (Another open
  /// page was opened by a store.)
  bool is_compared() const { return sticks() || state == lmw_state::guessed; }
  bool is_being_fetched() const { return fetch != nullptr; }

  lmw_state state;  ///< Changed by lmw::enter alone.
  bool useless;     ///< A barrier has made the copy useless, and the page is still open because it
                    ///< is pinned for stores.
  bool outdated;    ///< What is being fetched is useless, because a barrier came meanwhile.
  bool must;        ///< To be fetched before this rank arrives at a barrier again.
  bool lacks_pinned;  ///< Pinned, and being brought up to date.
  bool deferred;      ///< To be asked for when the collection has ended.
  bool follows;       ///< A barrier has made a copy useless that fibers had wanted: a fault on the
                      ///< page before this one brings this page, too.
  bool lost;  ///< Since the last barrier, a notice of the page has come while the program could use
              ///< the page, or while it was being fetched.
  bool on_trial;  ///< Brought because it follows, and left closed: a fault will show whether it is
                  ///< wanted.
  bool is_listed_open;  ///< In the list of pages that may be open.
  bool pulled;          ///< Being fetched because it follows, as soon as a barrier was left.
  std::uint8_t
      readers;  ///< How often other ranks have asked for it since a barrier listed it last.
  std::uint8_t brought;  ///< How often it was brought because it follows.
  std::uint8_t
      unchanged;         ///< How many closes in a row, while it is compared, have found no change.
  bool several_writers;  ///< Whether several ranks listed it in epoch `seen`.
  bool has_readers;    ///< Whether a writer of epoch `seen` says that others read it: then it stays
                       ///< shared.
  std::uint8_t dense;  ///< The next so many times that this rank lists the page, it expects a diff
                       ///< longer than dense_diff_bytes, as the last one was.
  std::uint16_t keeper;  ///< Whom to ask for the whole page.
  std::uint16_t
      writer;  ///< The rank that listed it in epoch `seen`, in the interval of greatest order.
  std::uint16_t missing;  ///< How many replies have not come of those that are being fetched.
  interval written;       ///< The number of the writer's interval.
  std::uint32_t seen;     ///< The epoch in which a barrier listed it last.
  interval twin_of;       ///< The closed interval at whose beginning the twin was made; else 0.
  interval listed;        ///< The last interval of this rank that lists it.
  interval thrown;        ///< This rank's diffs up to this interval are gone.
  std::byte* twin;
  page_history* history;  ///< Null: since the last collection no rank is known to have listed the
                          ///< page, and this rank has no copy that was ever shared.
  page_fetch* fetch;      ///< Null: nothing is being fetched.
};

struct waiting_readers;

/// See lsw.
struct lsw_page : page_state {
  bool copy;
  bool owns;
  bool open;                 ///< Stored to in the open interval, though it may have left since.
  bool used;                 ///< A fiber has used it since it came: it may leave.
  bool has_next;             ///< The rank `next` waits for it.
  std::uint8_t asked;        ///< How many requests for it are not answered.
  std::uint16_t held;        ///< How many instructions that need several pages hold it.
  std::uint16_t next;        ///< The rank that gets the page next.
  std::uint16_t last;        ///< At its home: the rank that asked last to store to it.
  std::uint32_t version;     ///< The version of the copy.
  std::uint32_t needed;      ///< A version that this rank knows of: an older copy is of no use.
  std::uint32_t left_with;   ///< The version with which it left this rank in the open interval.
  waiting_readers* readers;  ///< Ranks that wait for a copy; or null.
};

struct seq_home;

/// See seq.
struct seq_page : page_state {
  access asked;       ///< The access for which this rank has asked the home.
  bool allowed;       ///< The home has allowed that access.
  bool has_data;      ///< The bytes are here.
  bool confirms;      ///< The home waits for word that the page was used.
  bool postponed;     ///< The message `late` came while the page was held or pinned, and waits.
  page_message late;  ///< A forward, or an invalidation.
  std::uint16_t late_for;  ///< The rank that this message names.
  std::uint16_t held;      ///< How many instructions that need several pages hold it.
  std::uint16_t acknowledged;
  std::uint16_t
      acknowledgements;  ///< How many must come; the home says so when it allows the access.
  seq_home* home;  ///< At its home: which ranks have it, and which wait. Null until somebody asks.
};

union page_entry {
  page_state common;
  lmw_page lmw;
  lsw_page lsw;
  seq_page seq;
};
static_assert(sizeof(page_entry) <= 96);

}  // namespace sojourn::detail::pages
