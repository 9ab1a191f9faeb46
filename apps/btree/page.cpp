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
      right_(right),
      keys_{},
      items_{} {}

template <class Key, class Item>
page<Key, Item>::page(int level, int fanout, const half& entries, std::optional<Key> high,
                      global_ptr<page> right)
    : page(level, fanout, entries.keys[0], high, right) {
  size_ = entries.count;
  std::copy_n(entries.keys.begin(), size_, keys().begin());
  std::copy_n(entries.items.begin(), size_, items().begin());
}

template <class Key, class Item>
std::size_t page<Key, Item>::position(const Key& key) const {
  return static_cast<std::size_t>(std::ranges::lower_bound(keys(), key) - keys().begin());
}

template <class Key, class Item>
auto page<Key, Item>::find(const Key& key) const -> found {
  if (!covers(key)) return {.right = right_};
  const std::size_t i = position(key);
  if (i == size_ || keys()[i] != key) return {};
  return {.right = nullptr, .present = true, .item = items()[i]};
}

template <class Key, class Item>
auto page<Key, Item>::route(const Key& key) const -> found {
  if (!covers(key)) return {.right = right_};
  const auto after = std::ranges::upper_bound(keys(), key) - keys().begin();
  if (after == 0) return {};
  return {.right = nullptr, .present = true, .item = items()[static_cast<std::size_t>(after) - 1]};
}

template <class Key, class Item>
auto page<Key, Item>::refuse(const Key& key) const -> std::optional<changed> {
  if (!covers(key)) return changed{.what = outcome::right, .right = right_};
  if (splitting()) return changed{.what = outcome::busy, .where = splitting_to_};
  return std::nullopt;
}

template <class Key, class Item>
auto page<Key, Item>::put(const Key& key, const Item& item) -> changed {
  if (const auto refused = refuse(key)) return *refused;
  const std::size_t i = position(key);
  if (i < size_ && keys()[i] == key) {
    items()[i] = item;
    return {.what = outcome::present};
  }
  if (size_ == fanout_) return {.what = outcome::full};
  ++size_;
  std::shift_right(keys().begin() + i, keys().end(), 1);
  std::shift_right(items().begin() + i, items().end(), 1);
  keys()[i] = key;
  items()[i] = item;
  return {.what = outcome::absent};
}

template <class Key, class Item>
auto page<Key, Item>::erase(const Key& key) -> changed {
  if (const auto refused = refuse(key)) return *refused;
  const std::size_t i = position(key);
  if (i == size_ || keys()[i] != key) return {.what = outcome::absent};
  std::shift_left(keys().begin() + i, keys().end(), 1);
  std::shift_left(items().begin() + i, items().end(), 1);
  --size_;
  return {.what = outcome::present};
}

template <class Key, class Item>
auto page<Key, Item>::split(sojourn::rank_t where) -> sprout {
  if (splitting() || size_ < fanout_) return {};  // Somebody else has seen to it.

  // While the new page is made this fiber waits, and others call this page's methods: until then
  // its entries stay as they are. The flag comes off whatever happens. Nor may the call below take
  // these frames along, whatever policy it is given: `this` is an object of this rank.
  const sojourn::stay here;
  struct splitting_flag {
    sojourn::rank_t& to;
    ~splitting_flag() { to = -1; }
  } flag{splitting_to_};
  splitting_to_ = where;

  const std::size_t middle = size_ / 2;
  const Key low = keys()[middle];
  const auto right = sojourn::make<page>(where, level_, static_cast<int>(fanout_),
                                         entries_from<half>(middle, size_), high_, right_);

  // The step that others see: before it they find all entries here, after it through the link.
  size_ = middle;
  high_ = low;
  right_ = right;
  return {.made = right, .level = level_, .low = low};
}

template <class Key, class Item>
template <class Batch>
Batch page<Key, Item>::entries_from(std::size_t begin, std::size_t limit) const {
  Batch entries;
  const std::size_t count = std::min({size_ - begin, limit, Batch::capacity});
  std::copy_n(keys().begin() + begin, count, entries.keys.begin());
  std::copy_n(items().begin() + begin, count, entries.items.begin());
  entries.count = static_cast<std::uint32_t>(count);
  return entries;
}

template <class Key, class Item>
auto page<Key, Item>::read(const Key& from, bool inclusive, std::size_t limit) const -> run {
  std::size_t begin = position(from);
  if (!inclusive && begin < size_ && keys()[begin] == from) ++begin;
  run r{.entries = entries_from<batch<Key, Item>>(begin, limit), .more = false, .right = right_};
  r.more = begin + r.entries.count < size_;
  return r;
}

template <class Key, class Item>
auto page<Key, Item>::describe() const -> description {
  const bool in_order = std::ranges::adjacent_find(keys(), [](const Key& a, const Key& b) {
                          return a >= b;
                        }) == keys().end();
  const bool in_range =
      size_ == 0 || (keys().front() >= low_ && (!high_ || keys().back() < *high_));
  return {.level = level_,
          .size = static_cast<std::uint32_t>(size_),
          .low = low_,
          .high = high_,
          .right = right_,
          .valid = in_order && in_range && size_ <= fanout_ && !splitting() &&
                   high_.has_value() == bool(right_)};
}

static_assert(sojourn::travels<page<text_key, child<text_key, text_value>>>,
              "a page is copied as bytes");

template class page<text_key, text_value>;
template class page<text_key, child<text_key, text_value>>;
template class page<std::uint64_t, std::uint64_t>;
template class page<std::uint64_t, child<std::uint64_t, std::uint64_t>>;

}  // namespace apps
