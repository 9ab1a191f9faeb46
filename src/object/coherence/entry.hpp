// SPDX-License-Identifier: Apache-2.0
// What a rank knows of one object.
#pragma once

#include <cstdint>

#include "object/coherence/few.hpp"
#include "object/coherence/message.hpp"
#include "object/coherence/object_table.hpp"
#include "object/coherence/seldom.hpp"

namespace sojourn::detail::coherence {

enum class holds : std::uint8_t { nothing, copy, object };

/// A copy that the owner has given out.
struct copy_given {
  int rank;
  call_name to;  ///< The call that it was given to last.
  friend bool operator==(const copy_given&, const copy_given&) = default;
};

/// A call of this rank that waits, and the rank for whose answer it waits: this one when it waits
/// here for copies to be given up, or when home sent it on from here.
struct call_sent {
  call_name name;
  int to;
  bool refreshes;  ///< Its method is suspended on a copy, and waits for bytes.
  friend bool operator==(const call_sent&, const call_sent&) = default;
};

struct entry {
  holds has = holds::nothing;
  /// Calls of this rank that were told that they go on here, and have not begun.
  unsigned promised = 0;

  // Of a rank that has the object.
  few<copy_given> copies;
  seldom<int> unacknowledged;  ///< Ranks that were asked to give up their copies.
  seldom<call> writers;        ///< They wait for that.
  seldom<message> order;       ///< None, or a hand or kill that is not carried out yet.

  // Of a rank that accesses it.
  call_name asks_for_copy;
  call_name asks_for_object;
  seldom<call_name> joined;  ///< Calls that wait for the copy, too.
  few<call_sent> sent;
  /// If somebody, a copy is to be given up, and cannot be yet: the one that was for this call.
  int is_invalidated_by = nobody;
  call_name invalidated;
  /// Home asks whether the object came from this rank, which has ended.
  int is_asked_about = nobody;
  bool is_lost = false;

  /// What waits here for the object, in the order in which it came.
  seldom<message> held;

  bool has_order() const { return !order.empty(); }
};

/// What home knows of one object.
struct directory {
  int owner = nobody;
  int moves_to = nobody;  ///< Somebody: an order is not carried out yet.
  bool is_destroyed = false;
  bool is_lost = false;
  seldom<message> queue;  ///< What waits for the end of the move.
};

/// All that a rank knows of objects that have copies, move or have moved.
struct known_objects {
  object_table<entry> entries;
  object_table<directory> directories;  ///< Of objects that were made here.
};

}  // namespace sojourn::detail::coherence
