// SPDX-License-Identifier: Apache-2.0
// The trees of the Unbalanced Tree Search benchmark. Nobody stores them: a node is a hash, and the
// hash of that and a number is a child's, so any rank can go on from any node. How many children it
// has, its own hash says, so that the size of a part cannot be told without searching it.
// Source: Olivier, Huan, Liu, Prins, Dinan, Sadayappan and Tseng, "UTS: An Unbalanced Tree Search
// Benchmark" (LCPC 2006); SHA-1: RFC 3174.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace apps::uts {

/// A plain value: it travels.
struct node {
  std::array<std::uint32_t, 5> hash;  ///< SHA-1, as big-endian words.
  std::int32_t depth;                 ///< 0: the root.
};

enum class shape : std::uint8_t {
  geometric,  ///< Each node above `depth_limit` has `branching` children on average.
  binomial,   ///< Each but the root has `children` with probability `q`, none otherwise.
};

/// What is counted of a tree.
struct tally {
  std::uint64_t nodes = 0;
  std::uint64_t leaves = 0;
  std::int32_t depth = 0;  ///< Of the deepest node.

  tally& operator+=(const tally& other);
  friend tally operator+(tally a, const tally& b) { return a += b; }
  friend bool operator==(const tally&, const tally&) = default;
};

/// A plain value: it travels.
struct tree {
  shape kind = shape::geometric;
  std::uint32_t seed = 0;
  double branching = 4;  ///< Of the root, and of a geometric tree's nodes.
  std::int32_t depth_limit = 0;
  double q = 0;
  std::int32_t children = 0;

  node root() const;
  int child_count(const node& n) const;
  static node child(const node& n, int number);

  /// No node has more. Requires: branching is that of a published tree.
  static constexpr int children_max = 2000;
};

/// One whose size is published with the benchmark.
struct published_tree {
  const char* name;
  uts::tree tree;
  uts::tally size;
};
std::span<const published_tree> published_trees();
/// Null when there is none of that name.
const published_tree* find_tree(std::string_view name);

}  // namespace apps::uts
