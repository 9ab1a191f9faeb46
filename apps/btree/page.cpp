// SPDX-License-Identifier: Apache-2.0
#include "btree/page.hpp"

#include <algorithm>

#include "btree/btree.hpp"

namespace apps {

using sojourn::global_ptr;
using sojourn::via;

template <class Key, class Item>
page<Key, Item>::page(int level, int fanout, const Key& low, std::optional<Key> high,
                      global_ptr<page> right)
    : level_(level),
      fanout_(static_cast<std::size_t>(fanout)),
      low_(low),
      high_(high),
      right_(right) {
  keys_.reserve(fanout_);
  items_.reserve(fanout_);
}

template <class Key, class Item>
std::size_t page<Key, Item>::position(const Key& key) const {
  return static_cast<std::size_t>(std::ranges::lower_bound(keys_, key) - keys_.begin());
}

template <class Key, class Item>
auto page<Key, Item>::find(const Key& key) const -> found {
  if (!covers(key)) return {.right = right_};
  const std::size_t i = position(key);
  if (i == keys_.size() || keys_[i] != key) return {};
  return {.right = nullptr, .present = true, .item = items_[i]};
}

template <class Key, class Item>
auto page<Key, Item>::route(const Key& key) const -> found {
  if (!covers(key)) return {.right = right_};
  const auto after = std::ranges::upper_bound(keys_, key) - keys_.begin();
  if (after == 0) return {};
  return {.right = nullptr, .present = true, .item = items_[static_cast<std::size_t>(after) - 1]};
}

template <class Key, class Item>
auto page<Key, Item>::put(const Key& key, const Item& item) -> changed {
  if (!covers(key)) return {outcome::right, right_};
  if (splitting_) return {outcome::busy, nullptr};
  const std::size_t i = position(key);
  if (i < keys_.size() && keys_[i] == key) {
    items_[i] = item;
    return {outcome::present, nullptr};
  }
  if (keys_.size() == fanout_) return {outcome::full, nullptr};
  const auto offset = static_cast<std::ptrdiff_t>(i);
  keys_.insert(keys_.begin() + offset, key);
  items_.insert(items_.begin() + offset, item);
  return {outcome::absent, nullptr};
}

template <class Key, class Item>
auto page<Key, Item>::erase(const Key& key) -> changed {
  if (!covers(key)) return {outcome::right, right_};
  if (splitting_) return {outcome::busy, nullptr};
  const std::size_t i = position(key);
  if (i == keys_.size() || keys_[i] != key) return {outcome::absent, nullptr};
  const auto offset = static_cast<std::ptrdiff_t>(i);
  keys_.erase(keys_.begin() + offset);
  items_.erase(items_.begin() + offset);
  return {outcome::present, nullptr};
}

template <class Key, class Item>
auto page<Key, Item>::split(sojourn::rank_t where) -> sprout {
  if (splitting_ || keys_.size() < fanout_) return {};  // Somebody else has seen to it.

  // From here to the last line this fiber waits now and then, and others call this page's methods:
  // splitting_ keeps its entries as they are, and comes off whatever happens. Nor may the calls
  // below take these frames along to the sibling's rank, whatever policy they are given.
  const sojourn::stay here;
  struct guard {
    bool& splitting;
    explicit guard(bool& flag) : splitting(flag) { splitting = true; }
    ~guard() { splitting = false; }
  } busy(splitting_);

  const std::size_t half = keys_.size() / 2;
  const Key middle = keys_[half];
  const auto sibling =
      sojourn::make<page>(where, level_, static_cast<int>(fanout_), middle, high_, right_);
  for (std::size_t begin = half; begin < keys_.size(); begin += batch<Key, Item>::capacity) {
    sibling.template call<&page::append>(via::rpc, entries_from(begin, keys_.size()));
  }

  // The step that others see: before it they find all entries here, after it through the link.
  keys_.resize(half);
  items_.resize(half);
  high_ = middle;
  right_ = sibling;
  return {sibling, level_, middle};
}

template <class Key, class Item>
void page<Key, Item>::append(const batch<Key, Item>& entries) {
  keys_.insert(keys_.end(), entries.keys.begin(), entries.keys.begin() + entries.count);
  items_.insert(items_.end(), entries.items.begin(), entries.items.begin() + entries.count);
}

template <class Key, class Item>
batch<Key, Item> page<Key, Item>::entries_from(std::size_t begin, std::size_t limit) const {
  batch<Key, Item> entries;
  const std::size_t count = std::min({keys_.size() - begin, limit, entries.capacity});
  std::copy_n(keys_.begin() + static_cast<std::ptrdiff_t>(begin), count, entries.keys.begin());
  std::copy_n(items_.begin() + static_cast<std::ptrdiff_t>(begin), count, entries.items.begin());
  entries.count = static_cast<std::uint32_t>(count);
  return entries;
}

template <class Key, class Item>
auto page<Key, Item>::read(const Key& from, bool inclusive, std::size_t limit) const -> run {
  std::size_t begin = position(from);
  if (!inclusive && begin < keys_.size() && keys_[begin] == from) ++begin;
  run r{.entries = entries_from(begin, limit), .more = false, .right = right_};
  r.more = begin + r.entries.count < keys_.size();
  return r;
}

template <class Key, class Item>
auto page<Key, Item>::describe() const -> description {
  const bool in_order =
      std::ranges::adjacent_find(keys_, [](const Key& a, const Key& b) { return a >= b; }) ==
      keys_.end();
  const bool in_range =
      keys_.empty() || (keys_.front() >= low_ && (!high_ || keys_.back() < *high_));
  return {.level = level_,
          .size = static_cast<std::uint32_t>(keys_.size()),
          .low = low_,
          .high = high_,
          .right = right_,
          .valid = in_order && in_range && keys_.size() <= fanout_ && !splitting_ &&
                   keys_.size() == items_.size() && high_.has_value() == bool(right_)};
}

template class page<text_key, text_value>;
template class page<text_key, child<text_key, text_value>>;
template class page<std::uint64_t, std::uint64_t>;
template class page<std::uint64_t, child<std::uint64_t, std::uint64_t>>;

}  // namespace apps
