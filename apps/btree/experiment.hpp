// SPDX-License-Identifier: Apache-2.0
// A tree filled from a set of records, workloads run on it, everything checked.
#pragma once

#include <sojourn/sojourn.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "btree/btree.hpp"
#include "btree/check.hpp"
#include "btree/shared_tree.hpp"
#include "btree/workload.hpp"
#include "common/measure.hpp"

namespace apps {

struct run_options {
  int requesters = 16;               ///< In the whole job, spread over the ranks.
  std::uint64_t operations = 20000;  ///< Of all requesters together.
  std::uint64_t think_cycles = 0;    ///< Between two requests of one requester.
  sojourn::via how = sojourn::via::migrate;
};

/// The same on every rank.
struct run_result {
  figures measured;
  std::string wrong;  ///< The first wrong answer or fault of the tree; empty when there is none.
};

/// A tree and what it should hold. All methods are collective: each rank makes one experiment of
/// the same records and calls the same methods in the same order. They suspend. `Tree` is btree, or
/// shared_tree, whose hits are visits of nodes that did not have to fetch a page.
template <class Key, class Value, class Tree = btree<Key, Value>>
class experiment {
 public:
  /// An empty tree. Requires: distinct keys, at least one.
  experiment(std::vector<Key> keys, const btree_options& options);
  experiment(const experiment&) = delete;
  experiment& operator=(const experiment&) = delete;

  /// Inserts all records; options.operations does not matter.
  run_result load(const run_options& options);
  /// Requires: load() was called.
  run_result run(const workload& what, const run_options& options);
  /// Of the tree as it is now, on rank 0; elsewhere empty.
  tree_shape shape() const;
  void destroy();

 private:
  /// Compares the tree with the model. Returns `wrong`, or what is wrong with the tree.
  std::string check(std::string wrong) const;
  /// Makes the request and checks the answer. Returns what is wrong with it.
  std::string perform(const request<Key, Value>& r, sojourn::via how, histogram& latencies) const;
  std::string check_scan(const request<Key, Value>& r,
                         const std::vector<std::pair<Key, Value>>& entries) const;

  dataset<Key> data_;
  Tree tree_;
  std::map<Key, Value> model_;  ///< On rank 0.
  std::uint64_t runs_ = 0;
};

}  // namespace apps
