// SPDX-License-Identifier: Apache-2.0
// A dictionary spread over all ranks: a B-link tree whose pages lie on any rank, used by any number
// of fibers on every rank at the same time.
//
// Each operation is written once, as an ordinary function; the policy it is given says whether it
// calls the pages where they lie or goes there itself. Sources: Lehman and Yao, "Efficient locking
// for concurrent operations on B-trees" (TODS 1981); Wang's simplification of it for distributed
// memory, as in Hsieh, Wang and Weihl, §4.2. Erasing and scanning go beyond the paper.
#pragma once

#include <sojourn/sojourn.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "btree/child.hpp"
#include "btree/page.hpp"
#include "btree/upper_levels.hpp"

namespace apps {

/// Keys and values for texts. The tree is compiled for these and for 64-bit integers (btree.cpp).
using text_key = sojourn::inline_string<47>;
using text_value = sojourn::inline_string<23>;

template <class Key, class Value>
using replicated_levels = sojourn::replicated<upper_levels<Key, Value>>;

/// The one fixed object of a tree: knows the root, and what each rank has a copy of.
template <class Key, class Value>
class anchor {
 public:
  explicit anchor(root_page<Key, Value> root, replicated_levels<Key, Value> upper)
      : root_(root), upper_(upper) {}
  root_page<Key, Value> root() const { return root_; }
  struct knowledge {
    root_page<Key, Value> root;
    replicated_levels<Key, Value> upper;  ///< Names none where nothing is replicated.
  };
  knowledge all() const { return {root_, upper_}; }
  /// True when `above` became the root; false when the tree has grown to that level already.
  bool raise(root_page<Key, Value> above);

 private:
  root_page<Key, Value> root_;
  replicated_levels<Key, Value> upper_;
};

/// Which rank gets a new page.
enum class layout : std::uint8_t {
  random,  ///< Any, as in the paper.
  subtree  ///< The rank of the page it was split from, so that whole subtrees lie together.
};

struct btree_options {
  int fanout = 100;  ///< Most keys of a leaf, most children of a branch; 2 … 128.
  layout placement = layout::random;
  /// How many levels of pages, from the root down, each rank has a copy of; none in the tree of the
  /// paper, or its root.
  int replicated = 0;
};

/// The tree. A plain value: it travels, and every copy means the same tree.
///
/// `Key{}` must be the least key (the empty text, 0). Any number of operations may run at once;
/// each put, erase and lookup takes effect at one moment, a scan sees each batch of entries at one
/// moment. Each operation is an activation of its own. To put several into one activation, for
/// instance to move on from where a lookup ended, use the functions below instead. All of them
/// suspend.
template <class Key, class Value>
class btree {
 public:
  btree() = default;

  /// An empty tree. For layout::subtree, `boundaries` are the keys, in order, at which the next
  /// rank's part begins: rank_count() - 1 of them. One rank calls it and hands the tree to the
  /// others. Suspends.
  static btree create(const btree_options& options, const std::vector<Key>& boundaries = {});
  /// Requires: nobody uses it any more. Suspends.
  void destroy() const;

  /// Inserts the key or gives it a new value; true when the key is new.
  bool insert(const Key& key, const Value& value, sojourn::via how) const;
  std::optional<Value> lookup(const Key& key, sojourn::via how) const;
  /// True when the key was there.
  bool erase(const Key& key, sojourn::via how) const;
  /// The first entries, at most `limit`, whose keys are not below `from`.
  std::vector<std::pair<Key, Value>> scan(const Key& from, std::size_t limit,
                                          sojourn::via how) const;

  /// The root as the anchor knows it now.
  root_page<Key, Value> root() const;
  int fanout() const { return fanout_; }

  /// For the operations. Where a page split from one on rank `now` goes; `key` makes the random
  /// choice.
  sojourn::rank_t place_for_split(sojourn::rank_t now, const Key& key) const;
  sojourn::global_ptr<anchor<Key, Value>> the_anchor() const { return anchor_; }

 private:
  sojourn::global_ptr<anchor<Key, Value>> anchor_;
  std::int32_t fanout_ = 0;
  layout placement_ = layout::random;
};

/// The operations as functions, to be called in an activation: their references are to what lies in
/// its own frames, such as its arguments.
template <class Key, class Value>
bool insert_entry(const btree<Key, Value>& tree, const Key& key, const Value& value,
                  sojourn::via how);
template <class Key, class Value>
std::optional<Value> lookup_key(const btree<Key, Value>& tree, const Key& key, sojourn::via how);
template <class Key, class Value>
bool erase_key(const btree<Key, Value>& tree, const Key& key, sojourn::via how);

/// Where a scan has got to; `leaf` is null at its beginning.
template <class Key, class Value>
struct scan_position {
  sojourn::global_ptr<leaf_page<Key, Value>> leaf;
  Key from{};
  bool inclusive = true;
};
template <class Key, class Value>
struct scan_result {
  batch<Key, Value> entries;
  scan_position<Key, Value> next;
  bool end = false;
};
/// The next few entries, at most `limit`.
template <class Key, class Value>
scan_result<Key, Value> scan_some(const btree<Key, Value>& tree, scan_position<Key, Value> position,
                                  std::size_t limit, sojourn::via how);

}  // namespace apps
