// SPDX-License-Identifier: Apache-2.0
// Links: they say where the forks of the running piece are whose children were called by way of one
// (sojourn/detail/fork_site.hpp). Each such fork has its mark in the tables like any other fork,
// and a walk finds it; a link only saves the walk, if it is known to be the youngest mark. The
// links of a piece form a list, the youngest first. The list contains only frames of the piece, and
// may end early: what is older than its last link is not known.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "fiber/piece.hpp"
#include "sojourn/detail/counts.hpp"
#include "sojourn/detail/fork_site.hpp"

namespace sojourn::detail {

/// How many forks without links, with marks in the tables, the running piece has begun. While this
/// number stays the same as it was when the youngest link was made, no such fork can be younger
/// than that link.
inline std::uint64_t forks_by_tables() { return counts.forks - sojourn_fork_links.others; }

/// Lies at the older end of the child's frames. Written by sojourn_call_linked.
struct fork_link {
  fork_site* site;
  // Negated, because frames with links may leave their rank, and words that look like addresses
  // would keep them.
  std::uint64_t forked;  ///< forks_by_tables() when the link was made.
  std::uint64_t outer;   ///< The address of the next older link (see fork_link_state::youngest).
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

/// The links of a piece that has come from another rank: none, with a number that none of its old
/// links was made with.
own_links links_of_arrival();
/// To be called when a piece begins, or goes on.
inline void begin_links(const own_links& own) {
  sojourn_fork_links = {own.youngest, counts.forks - own.by_tables};
}
inline own_links links_of_running() { return {sojourn_fork_links.youngest, forks_by_tables()}; }

/// What became of the forks of a site on this rank.
struct fork_site_use {
  std::uint64_t site;  ///< Its address, the same on all ranks that run a program.
  std::uint64_t code;  ///< The return address of its first fork.
  std::uint64_t forks;
  std::uint64_t blocked;
  std::uint64_t bytes_cut;  ///< How many bytes the frames of the blocked children had.
  bool is_linked;           ///< Its forks use links now.
};
/// All sites that have forked here, those with the most forks first; none unless SOJOURN_STATS is
/// on.
std::vector<fork_site_use> fork_site_uses();

/// The sites of all forks on this rank.
struct fork_sites {
  fork_site* latest;          ///< The first in the list of sites that have forked.
  std::uint64_t all_counted;  ///< Not 0: forks are counted also without links.
};

}  // namespace sojourn::detail

extern "C" sojourn::detail::fork_sites sojourn_fork_sites;

namespace sojourn::detail {

/// How a child was cut off. Either it has blocked: the number of bytes of its frames, and whether a
/// link has told where its mark is. Or its frames leave for another rank.
using cut_of_child = std::uint64_t;
inline constexpr cut_of_child left_for_elsewhere = 0;
// Flags that are added to the number of bytes, which is a multiple of 8.
inline constexpr cut_of_child found_by_link = 1;
inline constexpr cut_of_child link_in_vain = 2;  ///< The child has a link, which did not help.
/// Notes how a child was cut off. To be called when the handler of its fork is about to begin.
void note_cut(cut_of_child how);
/// The link of the youngest fork of the running piece `p`, when that is known without a walk and is
/// the youngest mark of all; else null. Requires: called below the frames of `p`.
fork_link* youngest_link(const piece* p);
/// The link of the fork whose mark, in the tables, is at `mark_at`; null when it has none.
/// Requires: the younger frames, from `sp` on, are in place.
const fork_link* link_of(std::uint64_t mark_at, std::uint64_t sp);
/// boundaries::end_of_next for the fork of `link`, when that is known without a walk; else 0.
std::uint64_t end_of_next(const piece* p, const fork_link* link);
/// True when the running piece is known to have no fork in the tables that is older than this
/// link's.
bool is_oldest(const fork_link* link);

}  // namespace sojourn::detail
