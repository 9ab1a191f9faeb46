// SPDX-License-Identifier: Apache-2.0
// Links: where the running piece's forks are whose children were called by way of one
// (sojourn/detail/fork_site.hpp). Each such fork has its mark in the tables like any other, and a
// walk finds it; a link only saves the walk, while it is known to be the youngest mark. The links
// of a piece form a list, the youngest first, as far as it is known: each of its frames lies in the
// piece, and what is older than the last is not known.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "fiber/piece.hpp"
#include "sojourn/detail/counts.hpp"
#include "sojourn/detail/fork_site.hpp"

namespace sojourn::detail {

/// How many forks without links the running piece has begun with marks in the tables: as long as
/// that stays as it is, no mark of such a fork can be younger than the youngest link.
inline std::uint64_t forks_by_tables() { return counts.forks - sojourn_fork_links.others; }

/// In the child's frames, at their older end. Written by sojourn_call_linked.
struct fork_link {
  fork_site* site;
  // These are negated: frames with links may leave, and words that look like addresses keep them.
  std::uint64_t forked;  ///< forks_by_tables() when it was made.
  std::uint64_t outer;   ///< The next older link, as fork_link_state has the youngest.
  /// The older side's values of r15, r14, r13, r12, rbx, rbp.
  std::uint64_t registers[6];
  std::uint64_t pc;  ///< The return address.

  /// The address of the mark, as the tables have it: one past the child's frames.
  std::uint64_t at() const { return reinterpret_cast<std::uint64_t>(this + 1); }
  std::uint64_t by_tables() const { return -forked; }
  fork_link* older() const { return reinterpret_cast<fork_link*>(-outer); }
};
inline fork_link* youngest_known_link() {
  return reinterpret_cast<fork_link*>(-sojourn_fork_links.youngest);
}

/// Of a piece that comes from another rank: a number that none of its links was made with.
own_links links_of_arrival();
/// A piece begins, or goes on.
inline void begin_links(const own_links& own) {
  sojourn_fork_links = {own.youngest, counts.forks - own.by_tables};
}
inline own_links links_of_running() { return {sojourn_fork_links.youngest, forks_by_tables()}; }

/// What became of the forks of a site on this rank.
struct fork_site_use {
  std::uint64_t site;  ///< Its address, the same on all ranks that run a program.
  std::uint64_t code;  ///< Where it forked first: a return address.
  std::uint64_t forks;
  std::uint64_t blocked;
  std::uint64_t bytes_cut;  ///< Of the frames of those that blocked.
  bool is_linked;           ///< Its forks go by way of links now.
};
/// Of all sites that have forked here, those with the most forks first; none unless SOJOURN_STATS
/// is on.
std::vector<fork_site_use> fork_site_uses();

/// Of all pieces.
struct fork_sites {
  fork_site* latest;          ///< Those that have forked; a list.
  std::uint64_t all_counted;  ///< Not 0: forks are counted also without links.
};

}  // namespace sojourn::detail

extern "C" sojourn::detail::fork_sites sojourn_fork_sites;

namespace sojourn::detail {

/// How a child was cut off: because it has blocked, with so many bytes of frames, and whether a
/// link has told where; or because its frames leave for another rank.
using cut_of_child = std::uint64_t;
inline constexpr cut_of_child left_for_elsewhere = 0;
// Added to the bytes, a multiple of 8.
inline constexpr cut_of_child found_by_link = 1;
inline constexpr cut_of_child link_in_vain = 2;  ///< It has a link that does not tell.
/// The handler of the fork that was cut off so is about to begin.
void note_cut(cut_of_child how);
/// The link of the youngest fork of the running piece `p`, when that is known without a walk and is
/// the youngest mark of all; else null. Requires: called below the frames of `p`.
fork_link* youngest_link(const piece* p);
/// The link of the fork whose mark, in the tables, is at `mark_at`; null when it has none.
/// Requires: the younger frames, from `sp` on, are in place.
const fork_link* link_of(std::uint64_t mark_at, std::uint64_t sp);
/// boundaries::end_of_next for the fork of `link`, when that is known without a walk; else 0.
std::uint64_t end_of_next(const piece* p, const fork_link* link);
/// True when it is known that the running piece has no fork in the tables older than that.
bool is_oldest(const fork_link* link);

}  // namespace sojourn::detail
