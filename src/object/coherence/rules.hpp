// SPDX-License-Identifier: Apache-2.0
// The rules on which coherent copies and moving objects rest. Each is asked for by name where it is
// kept, so that a build of the tests can break one at a time and see that something notices.
#pragma once

#include <cstdint>

namespace sojourn::detail::coherence {

enum class rule : std::uint8_t {
  wait_for_acknowledgements,  ///< A write waits until all copies are given up.
  invalidate_all,             ///< No copy is forgotten then.
  hold_for_its_grant,  ///< An invalidation that has passed the copy which it is about is held
                       ///< until the copy has come.
  hold_for_that_grant_alone,  ///< It is held for that request for a copy, and for no other one.
  use_copy_first,             ///< A copy that came is used once before it is given up.
  use_object_first,           ///< An object that came is used once before it leaves.
  refuse_during_methods,      ///< An object does not leave while a method is suspended in it.
  no_copy_in_write,           ///< No copies are given while a method that writes is suspended.
  no_copy_before_write,     ///< No copies are given while a write waits for copies to be given up.
  move_takes_copies_back,   ///< An object leaves when all copies have been given up.
  refused_move_keeps_copy,  ///< When a move is refused, the copy of the rank that asked for the
                            ///< move, which was spared, is not forgotten.
  hold_what_home_sent,      ///< Who waits for an object keeps what home sent, and does not send it
                            ///< back.
  orders_behind_held,       ///< An order to hand over does not pass what home sent before it.
  writes_behind_orders,     ///< Calls that write do not overtake an order to hand over.
  home_queues_in_move,      ///< While an object moves, home queues calls.
  object_before_news,       ///< Home hears of a move when the object has been sent.
  home_asks_receiver,  ///< When an owner dies during a move, home asks the rank that the object was
                       ///< on its way to.
  dead_give_up,        ///< Nobody waits for a dead rank to give up its copy.
  count_
};

#ifdef SOJOURN_BREAKS_RULES
inline rule broken = rule::count_;
inline bool is_kept(rule r) { return r != broken; }
#else
constexpr bool is_kept(rule) { return true; }
#endif

}  // namespace sojourn::detail::coherence
