// SPDX-License-Identifier: Apache-2.0
// What the root of a tree says, and on request the level below it, for each rank to keep a copy of
// (sojourn::replicated). Source: Hsieh, Wang and Weihl, §4.2, whose root is replicated.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "btree/child.hpp"

namespace apps {

/// The pages of a few levels, each under its least key. An old copy is good, too: pages neither
/// leave nor are joined, and their links lead on to those that were split from them since.
template <class Key, class Value>
class upper_levels {
 public:
  /// Keeps what is at the highest `most` levels below the root.
  explicit upper_levels(int most = 0) : most_(static_cast<std::size_t>(most)) {}

  /// Whether a page at this level would be kept.
  bool keeps(int level) const {
    return level > highest_ || level > highest_ - static_cast<int>(most_);
  }
  /// Notes a page that has been entered one level above `level`. The first of a level makes it the
  /// highest: the tree has grown.
  void enter(int level, const Key& low, const child<Key, Value>& page) {
    if (!keeps(level)) return;
    for (; highest_ < level; ++highest_) levels_.insert(levels_.begin(), pages{});
    if (levels_.size() > most_) levels_.resize(most_);
    if (!keeps(level)) return;
    pages& all = levels_[static_cast<std::size_t>(highest_ - level)];
    const auto at = std::upper_bound(all.begin(), all.end(), low, is_before);
    if (at == all.begin() || std::prev(at)->low != low) all.insert(at, {low, page});
  }

  /// The lowest page kept, at `level` or above, that covers the key or lies to the left of the one
  /// that does. No page when there is none.
  root_page<Key, Value> start(const Key& key, int level) const {
    const int lowest = highest_ - static_cast<int>(levels_.size()) + 1;
    for (int l = std::max(level, lowest); l <= highest_; ++l) {
      const pages& all = levels_[static_cast<std::size_t>(highest_ - l)];
      const auto after = std::upper_bound(all.begin(), all.end(), key, is_before);
      if (after != all.begin()) return {std::prev(after)->page, l};
    }
    return {};
  }

  template <class Archive>
  void serialize(Archive& ar) {
    ar(most_, highest_, levels_);
  }

 private:
  struct entry {
    Key low;
    child<Key, Value> page;
  };
  using pages = std::vector<entry>;
  static bool is_before(const Key& key, const entry& e) { return key < e.low; }

  std::size_t most_;
  int highest_ = -1;
  std::vector<pages> levels_;  ///< The highest first.
};

}  // namespace apps
