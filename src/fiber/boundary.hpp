// SPDX-License-Identifier: Apache-2.0
// Iterates over the open marks of a stack, the youngest first, to find where the stack may be cut.
// A mark may lie in the older frame, in a chain linked by mark::outer (mark.hpp). The mark of a
// fork is usually only the entry of its call in the exception tables, which names a handler for
// cut_child; it is found by walking the frames (unwind_tables.hpp).
#pragma once

#include <cstddef>
#include <cstdint>

#include "frames/unwind_tables.hpp"
#include "sojourn/detail/mark.hpp"
#include "sojourn/detail/ticket.hpp"

namespace sojourn::detail {

struct piece;
struct fork_link;

/// An open mark.
struct boundary {
  /// The mark's address, which identifies it. Of two marks of a stack, the one at the higher
  /// address is the older. 0: no mark.
  std::uint64_t at = 0;
  std::uint64_t end = 0;  ///< One past the younger frames; equals `at` for a mark in the tables.
  mark_kind kind = mark_kind::activation;
  mark* open = nullptr;  ///< In the older frame; null when the mark is only in the tables.

  // Only for a mark in the tables.
  child_result returns;       ///< How the child returns its result.
  frame_at_call older;        ///< The frame that forked.
  std::uint64_t landing = 0;  ///< Its handler …
  std::int32_t selector = 0;  ///< … and the handler's number.

  explicit operator bool() const { return at != 0; }
};

/// The boundary of a mark that lies in the older frame, and of the fork that a link leads to.
boundary boundary_of(mark* m);
boundary boundary_of(fork_link* link);

/// Goes through the open marks of one piece, the youngest first.
class boundaries {
 public:
  /// For a piece that has just been suspended and is in place (frames_are_in_place), or for the
  /// running piece, made resumable at `sp`.
  explicit boundaries(const piece* p);
  boundaries(const piece* p, std::uint64_t sp);
  /// The same, but only for the marks below `hi`.
  boundaries(std::uint64_t sp, std::uint64_t hi);

  explicit operator bool() const { return static_cast<bool>(now_); }
  /// True when the iteration has found that there is no older mark. False also after a frame
  /// without tables, because a mark may have been overlooked there.
  bool knows_of_none() const { return is_last_ && knows_; }
  const boundary& operator*() const { return now_; }
  const boundary* operator->() const { return &now_; }
  boundaries& operator++() {
    advance();
    return *this;
  }
  /// Where the frames younger than the next older mark end; the largest address when there is none.
  /// After this call, only the present mark and knows_of_none() may be asked for.
  std::uint64_t end_of_next();

 private:
  void begin(mark* youngest, bool has_forks);
  void advance();
  void take_call(const unwind_row& row);
  void take_mark();

  std::uint64_t hi_;
  mark* next_mark_ = nullptr;
  std::uint64_t walks_to_ = 0;  ///< Frames are walked up to the next mark or `hi_`; 0: no further.
  stack_walk walk_;
  bool knows_ = true;  ///< No frame without tables was met.
  bool is_last_ = false;
  boundary now_;
};

/// Goes on to the youngest open fork, if any.
inline const boundary& go_to_fork(boundaries& each) {
  while (each && !is_fork(each->kind)) ++each;
  return *each;
}
/// The same, but leaves the caller's iteration where it is.
inline boundary youngest_fork(boundaries each) { return go_to_fork(each); }
/// boundaries::end_of_next where the iteration has come to `b`.
std::uint64_t end_of_outer(boundaries each, const boundary& b);

/// True when all bytes of a suspended piece are in place, except perhaps those of a context with
/// which a fork's handler goes on.
bool frames_are_in_place(const piece* p);

}  // namespace sojourn::detail
