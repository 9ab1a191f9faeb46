// SPDX-License-Identifier: Apache-2.0
// The pieces whose turn comes next, and those whose turn has come but that must not run yet. The
// scheduler runs the ready pieces in *rounds*, and looks for messages between them. A piece that
// gives its turn runs in the next round: one that does so again and again must not keep messages
// waiting.
#pragma once

#include "fiber/piece.hpp"
#include "sojourn/detail/tasks.hpp"

namespace sojourn::detail {

/// The first of the ready pieces, which are linked by next_ready.
extern piece* first_ready;
inline bool anything_ready() { return first_ready != nullptr; }

/// The rest of the state of the queue.
struct ready_queue_state {
  piece* last = nullptr;  ///< The last of all ready pieces; not valid while there are none.
  piece* round_last =
      nullptr;              ///< The last piece that runs in this round; null: the round is over.
  bool round_ends = false;  ///< The round is to end early, because messages come first.
  bool (*stands)(const piece* p) = nullptr;  ///< The function that freeze() was called with.
};
extern ready_queue_state ready_queue;

/// Queues a suspended piece, behind all that are ready or before them; it is told `word`.
void make_ready(piece* p, resumed word);
void make_ready_first(piece* p, resumed word);
/// The same as make_ready, but `p` runs in the next round.
inline void make_ready_next_round(piece* p, resumed word) {
  p->word = word;
  p->next_ready = nullptr;
  if (first_ready == nullptr) {
    first_ready = p;
  } else {
    ready_queue.last->next_ready = p;
  }
  ready_queue.last = p;
}

/// Begins a round, in which all pieces run that are ready now or become ready meanwhile, except
/// those that give their turn.
inline void begin_round() {
  ready_queue.round_last = first_ready != nullptr ? ready_queue.last : nullptr;
  ready_queue.round_ends = false;
}
inline bool round_is_over() { return ready_queue.round_last == nullptr || ready_queue.round_ends; }
/// Requires: anything_ready().
inline piece* take_ready() {
  piece* p = first_ready;
  first_ready = p->next_ready;
  if (p == ready_queue.round_last) ready_queue.round_last = nullptr;
  return p;
}

/// True while another rank reads a slot in which place(p) would put frames: the slot of `p`, or one
/// of frames that `p` refers to. (If a child has a stack of its own, the frames of its caller lie
/// in another slot.)
inline bool must_not_be_placed(const piece* p) {
  for (; p != nullptr; p = p->refers_to) {
    if (slots[p->slot].being_read != 0) [[unlikely]]
      return true;
  }
  return false;
}
/// Pieces whose turn came while they must not be placed; linked by next_ready.
extern piece* first_shut_out;
/// Tasks whose turn came while the frames that they refer to must not be placed.
extern task_queue shut_out_tasks;
/// Adds a piece, or a task, to these.
[[gnu::cold]] void shut_out(piece* p);
[[gnu::cold]] void shut_out(task* t);
/// A reader of the slot has finished. After the last reader, the pieces and tasks that were shut
/// out because of it are ready again.
void slot_was_read(std::uint32_t slot);

/// From now on a ready piece for which stands(p) is true is set aside instead of run; the pieces
/// set aside keep their order. Null: none are set aside any more.
void freeze(bool (*stands)(const piece* p));
/// Ends freeze(): the pieces set aside become ready, behind those that are ready already.
void thaw();
inline bool is_frozen(const piece* p) {
  return ready_queue.stands != nullptr && ready_queue.stands(p);
}
/// The first of the pieces set aside, which are linked by next_ready.
piece* first_standing();
/// Sets a piece aside. Also used for a piece from a checkpoint, which was set aside in the earlier
/// run.
[[gnu::cold]] void set_aside(piece* p);

}  // namespace sojourn::detail
