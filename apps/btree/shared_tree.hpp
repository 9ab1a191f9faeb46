// SPDX-License-Identifier: Apache-2.0
// The B-link tree in shared memory, of 64-bit integers, as one would write it for threads: whoever
// changes a node locks it; whoever reads it takes no lock, and reads again when the node's version
// tells that it changed meanwhile. That needs memory in which all ranks see stores in one order:
// shared::protocol::seq. A node has a page, which stays on each rank that reads it until it
// changes.
#pragma once

#include <sojourn/shared.hpp>
#include <sojourn/sojourn.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "btree/btree.hpp"
#include "btree/check.hpp"

namespace apps {

/// A plain value: it travels, and every copy means the same tree. Any number of operations may run
/// at once. They suspend. The operations take a policy, as those of btree do, which says nothing
/// here.
class shared_tree {
 public:
  using key = std::uint64_t;
  using value = std::uint64_t;

  shared_tree() = default;
  /// An empty tree; a node has 120 entries at most. One rank calls it and hands the tree to the
  /// others.
  static shared_tree create(const btree_options& options, const std::vector<key>& boundaries = {});
  /// Requires: nobody uses it any more.
  void destroy() const;

  /// Inserts the key or gives it a new value; true when the key is new.
  bool insert(key k, value v, sojourn::via how) const;
  std::optional<value> lookup(key k, sojourn::via how) const;
  /// The first entries, at most `limit`, whose keys are not below `from`.
  std::vector<std::pair<key, value>> scan(key from, std::size_t limit, sojourn::via how) const;

  /// How many nodes this rank has looked into since the job began.
  static std::uint64_t visits_here();

 private:
  friend tree_shape inspect(const shared_tree& tree);
  struct node;
  struct anchor;
  struct found;

  node* descend(key k, int level) const;
  bool put(node* at, key k, std::uint64_t item) const;
  node* root_at(int level) const;

  sojourn::shared::pointer<anchor> anchor_;
};

/// As those of btree.
tree_shape inspect(const shared_tree& tree);
std::string compare(const shared_tree& tree, const std::map<std::uint64_t, std::uint64_t>& model);

}  // namespace apps
