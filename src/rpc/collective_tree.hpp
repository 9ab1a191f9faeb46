// SPDX-License-Identifier: Apache-2.0
// Which member sends to which in a collective operation, as numbers alone.
//
// Contributions go along a tree of fan-out 16 whose subtrees are ranges of members, so that values
// are combined in the order of the members. A wide tree suits jobs with more ranks than cores: each
// core schedules its ranks once on the way up and once on the way down, however many they are. If
// each rank has a core, a barrier has no tree: a rank tells the ranks 1, 2, 4, ... after it, one
// after the other, and waits for those as far before it (dissemination; Hensgen, Finkel and Manber,
// 1988). Between two ranks both messages are then on their way at once; in a tree, one would go up
// first, and then one down.
#pragma once

#include "fiber/piece.hpp"

namespace sojourn::detail {

/// n modulo count. Requires: -count <= n < 2 * count.
inline int around(int n, int count) { return n < 0 ? n + count : n < count ? n : n - count; }

/// A power of two, so that no step needs a division.
inline constexpr long fan_out_of_tree = 16;

/// True for places whose children, or some of them, are `step` apart.
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
  /// The present child, or no_rank after the last one.
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
  /// The member that `me` tells in this step, and the one that it waits for.
  int told(int me, int count) const { return around(me + static_cast<int>(step_), count); }
  int awaited(int me, int count) const { return around(me - static_cast<int>(step_), count); }
  void next() { step_ *= 2; }

 private:
  long step_ = 1;
};

}  // namespace sojourn::detail
