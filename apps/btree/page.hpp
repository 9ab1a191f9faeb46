// SPDX-License-Identifier: Apache-2.0
// The nodes of the B-link tree.
#pragma once

#include <sojourn/sojourn.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace apps {

/// Some keys and their items, in order, on their way from one rank to another.
template <class Key, class Item, std::size_t Capacity = 16>
struct batch {
  static constexpr std::size_t capacity = Capacity;

  std::uint32_t count = 0;
  std::array<Key, capacity> keys{};
  std::array<Item, capacity> items{};
};

/// A B-link node: up to `fanout` keys in order, each with an item. A leaf's items are the values of
/// the tree, a branch's items are pages one level down, each under the least key it may hold.
///
/// A page covers the keys from `low` up to, not including, `high`; what lies beyond is found
/// through `right`. So whoever arrives late, after a split, is told to go right: this one link is
/// what lets readers and writers work side by side without locks (Lehman and Yao, 1981).
///
/// An ordinary class. All methods but split() run through without suspending, so each is one atomic
/// step. The entries lie in the page, which so is copied as one piece, via::cache.
template <class Key, class Item>
class page {
 public:
  static constexpr int fanout_max = 128;
  /// The entries that move when a page is split.
  using half = batch<Key, Item, fanout_max / 2>;

  /// A page of a tree whose pages hold at most `fanout` keys. Level 0 are the leaves.
  /// Requires: 2 <= fanout <= fanout_max.
  page(int level, int fanout, const Key& low, std::optional<Key> high,
       sojourn::global_ptr<page> right);
  page(int level, int fanout, const half& entries, std::optional<Key> high,
       sojourn::global_ptr<page> right);

  /// What a lookup finds. When `right` is set the key is not covered any more: go there.
  struct found {
    sojourn::global_ptr<page> right;
    bool present = false;
    Item item{};
  };
  /// The item of exactly this key.
  found find(const Key& key) const;
  /// The item of the last key that is not above `key`: in a branch, the page to go down to.
  found route(const Key& key) const;

  enum class outcome : std::uint8_t {
    absent,   ///< Done; the key was not there before.
    present,  ///< Done; the key was there before.
    right,    ///< Nothing done: the key is not covered any more, go right.
    full,     ///< Nothing done: the page has no room, split() it.
    busy      ///< Nothing done: the page is being split, and waits for rank `where`.
  };
  struct changed {
    outcome what = outcome::absent;
    sojourn::rank_t where = 0;
    sojourn::global_ptr<page> right{};
  };
  /// Inserts the entry, or gives the key the new item.
  changed put(const Key& key, const Item& item);
  /// Removes the key. Pages are never joined, nor freed when empty (as in Lehman and Yao).
  changed erase(const Key& key);

  /// A page that a split made, to be entered one level up.
  struct sprout {
    sojourn::global_ptr<page> made;  ///< Null: there was no need to split.
    int level = 0;
    Key low{};
  };
  /// If the page is full, moves the upper half of its entries to a new page on rank `where`.
  /// Meanwhile readers go on, and writers find it busy. Suspends.
  sprout split(sojourn::rank_t where);

  struct run {
    batch<Key, Item> entries;
    bool more = false;                ///< This page has further ones after them.
    sojourn::global_ptr<page> right;  ///< The next page; null at the end.
  };
  /// The first entries with keys above `from` (or at it, when `inclusive`), at most `limit` and as
  /// many as a batch holds. None when `from` is not covered any more.
  run read(const Key& from, bool inclusive, std::size_t limit) const;

  /// All about a page but its entries.
  struct description {
    int level = 0;
    std::uint32_t size = 0;
    Key low{};
    std::optional<Key> high;
    sojourn::global_ptr<page> right;
    bool valid = false;  ///< In order, within [low, high), no more than the fan-out.
  };
  description describe() const;

 private:
  bool covers(const Key& key) const { return !high_ || key < *high_; }
  bool splitting() const { return splitting_to_ >= 0; }
  std::span<Key> keys() { return {keys_.data(), size_}; }
  std::span<const Key> keys() const { return {keys_.data(), size_}; }
  std::span<Item> items() { return {items_.data(), size_}; }
  std::span<const Item> items() const { return {items_.data(), size_}; }
  /// Index of the first key not below `key`.
  std::size_t position(const Key& key) const;
  /// Up to `limit` entries, and no more than fit into the batch. Requires: begin <= size_.
  template <class Batch>
  Batch entries_from(std::size_t begin, std::size_t limit) const;
  /// Whether a change of the key's entry has to wait or to go elsewhere, and why.
  std::optional<changed> refuse(const Key& key) const;

  int level_;
  std::size_t fanout_;
  std::size_t size_ = 0;
  sojourn::rank_t splitting_to_ = -1;  ///< Where the new page is being made; -1: no split goes on.
  Key low_;
  std::optional<Key> high_;  ///< Without one the page is the last of its level.
  sojourn::global_ptr<page> right_;
  std::array<Key, fanout_max> keys_;  ///< The first size_ of them.
  std::array<Item, fanout_max> items_;
};

}  // namespace apps
