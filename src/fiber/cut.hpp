// SPDX-License-Identifier: Apache-2.0
// Cutting a piece in two at an open mark (docs/internals/cutting.md).
#pragma once

#include <cstdint>

#include "fiber/boundary.hpp"
#include "fiber/fork_handler.hpp"
#include "fiber/fork_links.hpp"
#include "fiber/fp_control.hpp"
#include "fiber/piece.hpp"

namespace sojourn::detail {

/// Cuts the suspended `older` at its open mark `b`. The younger part becomes a new piece, whose
/// result goes to a new ticket. The mark, or the handler of the older side, receives this ticket,
/// and the handler also receives `how_cut`, a cut_of_child (fork_links.hpp). Requires: the frames
/// of `older` are in place. Takes constant time unless `older` has by-reference children, mutexes,
/// or marks that have saved something.
piece* cut(piece* older, const boundary& b, std::uint64_t how_cut = 0);
/// The part of cut() that is the same for a suspended and for a running piece: makes the new piece,
/// whose youngest byte is at `sp`, and its ties. `outer`: end_of_outer, when the younger side
/// refers to the older one. `holds`: on entry the youngest hold of both sides; on return that of
/// the older side.
piece* divide(piece* older, const boundary& b, std::uint64_t outer, std::uint64_t sp, hold*& holds);
/// Gives the older side of `b`, a mark in the tables, a context that resumes it in its handler. The
/// younger frames lie where the context belongs, so the context is made in the image.
void give_handler_context(piece* older, const boundary& b, const handler_entry& entry,
                          ticket_id result);
/// True when the frames that the by-reference `child` uses are younger than its parent's open mark
/// `b`. (The mark it began under may be gone: the frame that made it may have returned.)
inline bool refers_below(const referrer* child, const boundary& b) {
  return child->refers_under <= b.end;
}
/// The first mark older than `b` in the chain of `p`, or null. `youngest`: where the chain begins.
inline mark* older_mark(const piece* p, const boundary& b, mark* youngest) {
  mark* m = b.open != nullptr ? b.open->outer : youngest;
  while (m != nullptr && reinterpret_cast<std::uint64_t>(m) <= b.at) m = m->outer;
  return reinterpret_cast<std::uint64_t>(m) < p->hi ? m : nullptr;
}
/// How many methods were open when `b` was opened, counted from the next older mark.
inline std::uint32_t methods_at(const boundary& b) {
  return b.open != nullptr ? method_depth(*b.open) : 0;
}

/// The floating-point control bits of the older side of `b`, when those of the younger side are
/// `now`. If the mark is in the tables, returns `now`: the fork's handler restores the older side's
/// bits.
inline fp_control fp_of_mark(const boundary& b, fp_control now) {
  return b.open != nullptr ? fp_with_word(b.open->fp, now) : now;
}

/// The cut_of_child of a child that has blocked and was found by a walk. `by_tables`: the piece's
/// forks_by_tables() then.
inline cut_of_child cut_after_walk(const boundary& b, std::uint64_t sp, std::uint64_t by_tables) {
  const fork_link* link = b.open == nullptr ? link_of(b.at, sp) : nullptr;
  const bool in_vain = link != nullptr && link->by_tables() != by_tables;
  return (b.end - sp) | (in_vain ? link_in_vain : 0);
}

}  // namespace sojourn::detail
