// SPDX-License-Identifier: Apache-2.0
// Open marks as those see them who look for where a stack may be cut: one after the other, from the
// youngest on. Some lie in the older frame, a chain of mark::outer (mark.hpp). Of a fork nothing
// lies anywhere: its mark is the entry of its call in the exception tables, where a handler for
// cut_child says that the call is one, and is found by leaving frame after frame (unwind_tables).
#pragma once

#include <unwind.h>

#include <cstddef>
#include <cstdint>
#include <typeinfo>

#include "fiber/unwind_tables.hpp"
#include "sojourn/detail/mark.hpp"
#include "sojourn/detail/ticket.hpp"

namespace sojourn::detail {

struct piece;

/// An open mark.
struct boundary {
  /// Where it lies: names it, and tells which of two of a stack is older (higher). 0: there is
  /// none.
  std::uint64_t at = 0;
  std::uint64_t end = 0;  ///< One past the younger frames.
  mark_kind kind = mark_kind::activation;
  mark* open = nullptr;  ///< In the older frame; null of one that is in the tables alone.

  // Of one in the tables.
  child_result returns;       ///< How the child returns its result.
  frame_at_call older;        ///< The frame that forked.
  std::uint64_t landing = 0;  ///< Its handler …
  std::int32_t selector = 0;  ///< … and the handler's number.

  explicit operator bool() const { return at != 0; }
};

/// Of a mark that lies in the older frame.
boundary boundary_of(mark* m);

/// Goes through the open marks of one piece, the youngest first.
class boundaries {
 public:
  /// Of a piece that has just been suspended, and is in place (frames_are_in_place); or of the
  /// running one, made resumable at `sp`.
  explicit boundaries(const piece* p);
  boundaries(const piece* p, std::uint64_t sp);

  explicit operator bool() const { return static_cast<bool>(now_); }
  /// True at the end, when there was no mark, and no frame either that tables say nothing of.
  bool knows_of_none() const { return !now_ && knows_; }
  const boundary& operator*() const { return now_; }
  const boundary* operator->() const { return &now_; }
  boundaries& operator++() {
    advance();
    return *this;
  }
  /// Where the next older mark ends the younger frames; the largest address without one. What this
  /// goes through has come to its end then.
  std::uint64_t end_of_next();

 private:
  void begin(mark* youngest, bool has_forks);
  void advance();
  void take_mark();

  std::uint64_t hi_;
  mark* next_mark_ = nullptr;
  std::uint64_t walks_to_ = 0;  ///< The next mark of the chain or `hi_`; 0 when all is left.
  frame_at_call frame_;
  bool knows_ = true;  ///< All tables were there.
  boundary now_;
};

/// Goes on to the youngest open fork, if any.
inline const boundary& go_to_fork(boundaries& each) {
  while (each && !is_fork(each->kind)) ++each;
  return *each;
}
/// The same of what `each` goes through, for once.
inline boundary youngest_fork(boundaries each) { return go_to_fork(each); }
/// boundaries::end_of_next of `b`.
std::uint64_t end_of_outer(boundaries each, const boundary& b);

/// What was thrown, as long as this is its first throw; it lies behind `exception`. Null otherwise.
const std::type_info* thrown_type(const _Unwind_Exception* exception);

/// What the older side of a mark in the tables goes on with: in its handler.
struct handler_entry {
  std::array<std::uint64_t, preserved_registers> registers;
  std::uint64_t sp;
  std::uint64_t landing;
  std::uint64_t selector;
};
/// Divides younger frames, which end at `b`, a mark in the tables, from the older ones: from then
/// on they hold no values of registers that are the older side's, and return to child_finish.
handler_entry separate(const boundary& b);
/// That of the cut which gave `result`, as a handler's argument; to be entered at once.
[[noreturn]] void enter_handler(const handler_entry& entry, ticket_id result);
/// The same as a context, of so many bytes, for the scheduler to resume; it lies below entry.sp.
inline constexpr std::size_t handler_context_bytes = (preserved_registers + 6) * 8;
void write_handler_context(void* to, const boundary& b, const handler_entry& entry,
                           ticket_id result);
/// True when all bytes of a suspended piece are in place but those of such a context.
bool frames_are_in_place(const piece* p);

}  // namespace sojourn::detail
