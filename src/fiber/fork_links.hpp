// SPDX-License-Identifier: Apache-2.0
// Links: where the running piece's forks are whose children were called by way of one
// (sojourn/detail/fork_site.hpp). Each such fork has its mark in the tables like any other, and a
// walk finds it; a link only saves the walk, while it is known to be the youngest mark. The links of
// a piece form a list, the youngest first, as far as it is known: each of its frames lies in the
// piece, and what is older than the last is not known.
#pragma once

#include <cstddef>
#include <cstdint>

#include "fiber/boundary.hpp"
#include "sojourn/detail/counts.hpp"
#include "sojourn/detail/fork_site.hpp"

namespace sojourn::detail {

/// In the child's frames, at their older end. Written by sojourn_call_linked.
struct fork_link {
  fork_site* site;
  std::uint64_t by_tables;  ///< fork_links::by_tables() when it was made.
  fork_link* older;
  /// The older side's values of r15, r14, r13, r12, rbx, rbp.
  std::uint64_t registers[6];
  std::uint64_t pc;  ///< The return address.

  /// The address of the mark, as the tables have it: one past the child's frames.
  std::uint64_t at() const { return reinterpret_cast<std::uint64_t>(this + 1); }
};

/// Of the running piece.
struct fork_links {
  fork_link* youngest;
  std::uint64_t linked;  ///< Forks by way of links, and those of other pieces.

  /// How many forks without links this piece has begun: as long as that stays as it is, no mark of
  /// such a fork can be younger than the youngest link.
  std::uint64_t by_tables() const { return counts.forks - linked; }
  /// A piece begins, or goes on that had begun so many.
  void begin(fork_link* from, std::uint64_t by_tables) {
    youngest = from;
    linked = counts.forks - by_tables;
  }
};
/// What a piece from another rank has begun: none of its links matches.
inline constexpr std::uint64_t not_comparable = std::uint64_t{1} << 62;

}  // namespace sojourn::detail

extern "C" sojourn::detail::fork_links sojourn_fork_links;

namespace sojourn::detail {

/// A child with so many bytes of frames is about to be cut off.
void note_cut(std::uint64_t bytes);
/// The link of the youngest fork of the running piece `p`, when that is known without a walk and is
/// the youngest mark of all; else null. Requires: called below the frames of `p`.
fork_link* youngest_link(const piece* p);
/// The boundary of its fork.
boundary boundary_of(fork_link* link);
/// boundaries::end_of_next for that fork, when that is known without a walk; else 0.
std::uint64_t end_of_next(const piece* p, const fork_link* link);
/// True when it is known that the running piece has no fork in the tables older than that.
bool is_oldest(const fork_link* link);

}  // namespace sojourn::detail
