// SPDX-License-Identifier: Apache-2.0
// Does a tree hold what it should, and is it built as it should be?
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "btree/btree.hpp"

namespace apps {

/// The pages of a tree, and what is wrong with them.
struct tree_shape {
  std::vector<std::uint64_t> pages_at;  ///< Pages at each level, the leaves first.
  std::vector<std::uint64_t> pages_on;  ///< Pages on each rank.
  std::uint64_t keys = 0;
  std::string wrong;  ///< The first fault found, in words; empty when there is none.

  std::size_t height() const { return pages_at.size(); }
  std::uint64_t pages() const;
};

/// Walks every level of the tree and checks that each page is in order and within its bounds, that
/// the pages of a level join without gap or overlap, and that the children a level lists are
/// exactly the pages of the level below. One rank calls it, while nobody changes the tree.
/// Suspends.
template <class Key, class Value>
tree_shape inspect(const btree<Key, Value>& tree);

/// Compares the entries of the tree with those of the model; empty when they are equal, otherwise
/// the first difference in words. One rank calls it, while nobody changes the tree. Suspends.
template <class Key, class Value>
std::string compare(const btree<Key, Value>& tree, const std::map<Key, Value>& model);

}  // namespace apps
