// SPDX-License-Identifier: Apache-2.0
// How the pages of a tree name each other.
#pragma once

#include <sojourn/sojourn.hpp>

#include "btree/page.hpp"

namespace apps {

template <class Key, class Value>
struct child;
template <class Key, class Value>
using leaf_page = page<Key, Value>;
template <class Key, class Value>
using branch_page = page<Key, child<Key, Value>>;

/// A page at any level: one of the two is set.
template <class Key, class Value>
struct child {
  sojourn::global_ptr<leaf_page<Key, Value>> leaf;
  sojourn::global_ptr<branch_page<Key, Value>> branch;

  child() = default;
  child(sojourn::global_ptr<leaf_page<Key, Value>> p) : leaf(p) {}
  child(sojourn::global_ptr<branch_page<Key, Value>> p) : branch(p) {}
  explicit operator bool() const { return leaf || branch; }
  friend bool operator==(const child&, const child&) = default;
};

/// A page where a search begins, such as the only page of the tree's highest level.
template <class Key, class Value>
struct root_page {
  child<Key, Value> page;
  int level = 0;
};

}  // namespace apps
