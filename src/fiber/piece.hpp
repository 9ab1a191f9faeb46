// SPDX-License-Identifier: Apache-2.0
// Pieces: parts of a stack, each with a descriptor that lies off the stack and says where the bytes
// are. cut.hpp says how they are cut. At an address only one computation can be in place; all
// others there are images. A piece that runs is in place as a whole, and so are the older frames
// that it refers to. This floor knows nothing of messages.
//
// *Older* frames are the callers, at higher addresses; *younger* ones the callees, at lower.
//
//   low(slot)                 sp                       in_place_from             hi
//      | guard | free ........ | ... bytes in the image ... | ... bytes in place ... | older
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "fiber/fp_control.hpp"
#include "memory/stack_slots.hpp"
#include "sojourn/detail/mark.hpp"
#include "sojourn/detail/resumed.hpp"
#include "sojourn/detail/running.hpp"
#include "sojourn/detail/waiters.hpp"

namespace sojourn::detail {

inline constexpr int no_rank = -1;

/// What a suspended piece that is not ready waits for. It tells the runtime whether it may wake the
/// piece early, to send it to another rank, where the piece waits again.
enum class wait_cause : std::uint8_t {
  none,    ///< It is ready, or waits for something that only this rank can provide.
  ticket,  ///< The result of the ticket `waits_for`.
  timer,   ///< A time.
};

/// What a piece knows of its links (fork_links.hpp) while it is suspended.
struct own_links {
  std::uint64_t youngest = 0;   ///< fork_link_state::youngest
  std::uint64_t by_tables = 0;  ///< forks_by_tables()
};

struct stay_reason;
struct thread_extra;
class file_writer;
class file_reader;

struct piece : fiber_view, referrer {
  // Where it is.
  std::uint64_t sp = 0;             ///< Youngest byte; the resume address lies there.
  std::uint64_t hi = 0;             ///< One past the oldest byte.
  std::uint64_t in_place_from = 0;  ///< Bytes from here to hi are in place, those below imaged.
  std::uint32_t slot = 0;
  bool keeps_slot = false;  ///< The oldest piece of a fiber of this rank: its end frees the slot.

  // What it is.
  const void* base = nullptr;     ///< Address of the mark it began under; compared, never read.
  ticket_id result = 0;           ///< Takes what its base mark's inner function returns; for a
                                  ///< handler that blocked, the answer to the call.
  bool pinned = false;            ///< Never leaves this rank.
  bool shares_stack = false;      ///< The next handler runs in its slot once it has blocked.
  bool by_reference = false;      ///< Its frames refer to those of `refers_to`.
  bool restored = false;          ///< It comes from a checkpoint, and has not been let go on yet.
  bool has_forks = false;         ///< Forks may be open in it whose marks are only in the tables.
  child_result returns;           ///< For a child whose mark was only in the tables, and …
  std::uint64_t called_from = 0;  ///< … the address it would have returned to; 0 for others.
  bool runs_frozen = false;       ///< It does work of the runtime, even while fibers are frozen.

  // The thread it is part of (the floor above): known by the ticket of its result.
  ticket_id thread = 0;
  std::uint32_t moves = 0;        ///< How often its base has moved.
  int departs_to = no_rank;       ///< It leaves for this rank when its turn comes.
  piece* next_thread = nullptr;   ///< In the table of threads that are here.
  thread_extra* extra = nullptr;  ///< The thread_extra that few threads have.
  bool is_thread_base() const { return thread != 0 && thread == result; }

  int called_by = no_rank;  ///< Rank whose call the handler of this fiber answers: for reports.

  // Its state while suspended; the running piece's is in `running`.
  resumed word = resumed::not_yet;       ///< What it is told when it goes on.
  const stay_reason* refused = nullptr;  ///< If it is told `stayed`: why this thread has stayed.
  mark* youngest = nullptr;
  own_links links;
  hold* holds = nullptr;
  exception_globals exceptions = {};
  mutex_state* mutexes = nullptr;  ///< Mutexes that it holds, the latest first.
  unsigned static_inits = 0;
  std::uint32_t methods = 0;           ///< Methods opened since its youngest mark (mark::methods).
  bool marks_hold_exceptions = false;  ///< An open mark has saved exceptions. Set at suspension.
  bool marks_hold_methods =
      false;                     ///< Methods were open where a mark was opened. Set at suspension.
  bool has_pinned_fork = false;  ///< An open mark is a pinned fork's. Set at suspension.
  fp_control fp = {};

  // Ties.
  referrer* referrers = nullptr;  ///< By-reference children of this piece, the lowest first: those
                                  ///< that go with the younger side of a cut come first.
  piece* next_in_slot = nullptr;  ///< List of stack_slot::in_place.
  piece* next_ready = nullptr;    ///< In the ready queue, or the queue `waits_on`.
  std::byte* image = nullptr;
  std::size_t image_capacity = 0;

  std::uint64_t since = 0;  ///< ticks() when it began to wait (wait_clock.hpp).
  wait_cause waits = wait_cause::none;
  std::uint32_t timer = 0;      ///< Its place in the heap of timers; 0: it has none.
  ticket_id waits_for = 0;      ///< A ticket of this rank.
  waiters* waits_on = nullptr;  ///< The object of this rank whose queue it is in.

  // Scratch of place().
  std::uint64_t stamp = 0;
  std::uint64_t needed_from = 0;

  std::size_t bytes() const { return hi - sp; }
  bool is_in_place() const { return in_place_from == sp; }
};

/// The pool of cleared descriptors, linked by next_ready.
extern piece* free_pieces;
/// Adds descriptors to the pool, which is empty.
void more_pieces();
extern std::size_t pieces_in_use;
/// Takes a cleared descriptor from the pool, and gives one back.
inline piece* new_piece() {
  ++pieces_in_use;
  if (free_pieces == nullptr) [[unlikely]]
    more_pieces();
  piece* p = free_pieces;
  free_pieces = p->next_ready;
  p->next_ready = nullptr;
  return p;
}
void free_piece(piece* p);
/// Ends the rank when the frames of a suspended `p` do not lie on the stack of its slot: they
/// cannot be copied.
void check_is_on_its_stack(const piece* p);
/// Calls visit(p, context) for each descriptor that is not in the pool. For reports: takes time.
/// Async-signal-safe: descriptors are never given back.
void each_piece(void (*visit)(piece* p, void* context), void* context);

/// Writes the descriptors of the pieces in `list`, and their bytes; `more` writes what the floor
/// above has of each. load_pieces brings the descriptors back in another run of the program, at the
/// addresses that they had, so that pointers to them stay right. Throws sojourn::error. Requires:
/// no piece has been made in that run.
void save_pieces(file_writer& to, const std::vector<piece*>& list,
                 void (*more)(const piece* p, file_writer& to));
void load_pieces(file_reader& from, void (*more)(piece* p, file_reader& from));

/// The sentinel that stands first in the list of an unguarded slot (stack_slots.hpp). It covers the
/// whole slot, so that nothing runs there without place_with_images or clear_slot, which check the
/// canary.
piece* new_watch();

/// Records that bytes of `p`, which has just left its stack, are in place.
void enlist(piece* p);
inline void add_suspended(piece* p) {
  if (slots[p->slot].in_place != p) enlist(p);
}
/// Record that bytes of `p` are in place, in a slot that has nothing below them; and that none are
/// any more.
void add_in_place(piece* p);
void drop_in_place(piece* p);

/// True when no piece except `but` has bytes in place below `hi` in the slot: frames that end at
/// `hi` may run there.
inline bool is_clear_below(std::uint32_t slot, std::uint64_t hi, const piece* but = nullptr) {
  for (const piece* q = slots[slot].in_place; q != nullptr; q = q->next_in_slot) {
    if (q != but && q->in_place_from < hi) return false;
  }
  return true;
}

/// Brings `p` and the frames it refers to in place; whatever lies where `p` may run becomes an
/// image first. Never call it on a stack in that slot.
void place_with_images(piece* p);
inline void place(piece* p) {
  if (p->is_in_place() && p->refers_to == nullptr && is_clear_below(p->slot, p->hi, p)) [[likely]] {
    return;
  }
  place_with_images(p);
}
/// Gives `p` memory for an image of so many bytes. Throws std::bad_alloc.
void get_image(piece* p, std::size_t bytes);
/// Makes an image of a piece that is wholly in place but in no slot's list. May be called on any
/// stack.
void make_image(piece* p);
/// Has `p` own room for an image of all its bytes.
inline void make_room_for_image(piece* p) {
  if (p->image_capacity < p->bytes()) [[unlikely]]
    get_image(p, p->bytes());
}
/// Makes images of everything in place below `hi` in a slot.
void clear_slot(std::uint32_t slot, std::uint64_t hi);
/// Copies the bytes of `p`, wherever they are, to `to`.
void copy_out(const piece* p, std::byte* to);
/// Room for the bytes of `p`, a new piece: in place if nothing else lies there, otherwise in an
/// image.
std::byte* room_for(piece* p);
/// Gives `p` its bytes, which have arrived at `from`.
void copy_in(piece* p, const std::byte* from);

/// Notes that `child` refers to frames of `parent`, and ends that.
void add_referrer(piece* parent, referrer* child);
void drop_referrer(referrer* child);
/// Makes `to` refer, in place of `from`, to the frames that `from` referred to.
void hand_over_referrer(referrer* from, referrer* to);

/// Not 0 when a piece may be suspended in a method: set by every such piece, and cleared by whoever
/// has looked and found none.
extern std::uint32_t methods_were_suspended;

/// Notes in `p` what the gate must know of its mark `m`, because marks cannot be read in an image.
inline void note_mark(const mark& m, piece& p) {
  if ((m.events & mark::saved_exceptions) != 0) p.marks_hold_exceptions = true;
  if (const std::uint32_t methods = method_depth(m); methods != 0) {
    p.marks_hold_methods = true;
    methods_were_suspended = methods;
  }
  if (m.kind == mark_kind::fork_pinned) p.has_pinned_fork = true;
}

}  // namespace sojourn::detail
