// SPDX-License-Identifier: Apache-2.0
// Which member sends to which in a collective operation, as numbers alone.
//
// Contributions go along a tree of fan-out 16 whose subtrees are ranges of members, so that values
// are combined in the order of the members. A wide tree suits more ranks than cores: the ranks of a
// core are scheduled once to go up and once to come down, whatever their number. Where each rank
// has a core, a barrier has no tree: a rank tells those 1, 2, 4, ... after it, one after the
// other, and waits for those as far before it (dissemination; Hensgen, Finkel and Manber, 1988). On
// two ranks both messages are then on their way at once; in a tree one would go up first, and then
// one down.
#pragma once

#include "fiber/piece.hpp"

namespace sojourn::detail {

/// n modulo count, for numbers that are less than one round away.
inline int around(int n, int count) { return n < 0 ? n + count : n < count ? n : n - count; }

/// A power of two, so that no step divides.
inline constexpr long fan_out_of_tree = 16;

/// True for places that have children `step` apart.
inline bool has_children_apart(int place, long step) {
  return (place & (step * fan_out_of_tree - 1)) == 0;
}

/// The parent of a place in the tree, whose top is place 0. Requires: it is not the top.
inline int parent_in_tree(int place) {
  long step = 1;
  while (has_children_apart(place, step)) step *= fan_out_of_tree;
  return static_cast<int>(place & ~(step * fan_out_of_tree - 1));
}

/// The children of a place, one after the other, in the order of their subtrees.
class children_in_tree {
 public:
  /// The one that comes now, or no_rank.
  int now(int parent, int count) {
    for (; step_ < count && has_children_apart(parent, step_); step_ *= fan_out_of_tree, i_ = 1) {
      const long child = parent + i_ * step_;
      if (i_ < fan_out_of_tree && child < count) return static_cast<int>(child);
    }
    return no_rank;
  }
  void next() { ++i_; }

 private:
  long step_ = 1;
  long i_ = 1;
};

/// The steps of a barrier without a tree.
class meeting {
 public:
  bool is_over(int count) const { return step_ >= count; }
  /// The member that is told in this step, and the one that is waited for.
  int told(int me, int count) const { return around(me + static_cast<int>(step_), count); }
  int awaited(int me, int count) const { return around(me - static_cast<int>(step_), count); }
  void next() { step_ *= 2; }

 private:
  long step_ = 1;
};

}  // namespace sojourn::detail
