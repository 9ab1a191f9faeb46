// SPDX-License-Identifier: Apache-2.0
// The rules that cutting stacks and putting them back rest on. Each is asked for by name where it
// is kept, so that tests/cut_rules can break one at a time and see that random programs notice.
// Only sources ask, no headers: a program of these tests has them compiled once more.
#pragma once

#include <cstdint>

namespace sojourn::detail {

enum class rule : std::uint8_t {
  evict_before_run,      ///< What lies where a piece may run becomes an image first. Otherwise the
                         ///< piece overwrites it.
  ancestors_in_place,    ///< The frames that a by-reference child refers to are in place while it
                         ///< runs. Otherwise it reads and writes what lies there instead.
  exceptions_at_marks,   ///< A mark keeps the exceptions of the frames that opened it. Otherwise
                         ///< its child takes them for its own, and along when it is cut off.
  exceptions_per_piece,  ///< Each piece has exceptions of its own. Otherwise a catch block ends
                         ///< the one that another piece handles.
  ticket_per_cut,        ///< A result is known by a ticket that its cut has drawn. An address is
                         ///< not enough: other marks lie there later, and on other ranks.
  gate,                  ///< Frames that handle an exception, or throw one, stay on their rank.
                         ///< Otherwise the exception stays behind, and nobody there handles it.
  by_reference_stays,    ///< Frames that a by-reference child refers to stay on their rank.
                         ///< Otherwise it reads and writes what lies there later.
  count_
};

#ifdef SOJOURN_BREAKS_RULES
inline rule broken_rule = rule::count_;
inline bool is_kept(rule r) { return r != broken_rule; }
#else
constexpr bool is_kept(rule) { return true; }
#endif

}  // namespace sojourn::detail
