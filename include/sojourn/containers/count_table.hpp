// SPDX-License-Identifier: Apache-2.0
// The counts of one rank, of which dist_counter is made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <limits>
#include <utility>
#include <vector>

#include "sojourn/containers/hash_table.hpp"
#include "sojourn/containers/large_pages.hpp"
#include "sojourn/errors.hpp"

namespace sojourn::containers {

/// Keys with counts. Keys and counts lie in the places that the hash says, with linear probing, so
/// that to count is to wait for memory once, where a hash_table, whose elements stay where they
/// are, waits twice. Here they move when the table grows. At most 5/8 of the places are taken.
template <class K, class Hash = std::hash<K>>
class count_table {
 public:
  using value_type = std::pair<K, long>;

  static std::uint64_t hash_of(const K& key) { return spread_bits(Hash()(key)); }

  std::size_t size() const { return count_; }

  /// Adds to the count of a key, which begins at 0. `hash` is hash_of(key).
  [[gnu::always_inline]] inline void add(const K& key, std::uint64_t hash, long times) {
    value_type& place = place_of(key, hash);
    if (place.second == free) [[unlikely]]
      return add_new(place, key, hash, times);
    place.second += times;
  }
  /// 0 when it was never counted.
  long count(const K& key) const {
    const value_type& place = place_of(key, hash_of(key));
    return place.second == free ? 0 : place.second;
  }
  void clear() {
    places_ = places(fewest_places, {K(), free});
    mask_ = places_.size() - 1;
    count_ = 0;
    ++changes_;
  }

  // What with_look_ahead (items.hpp) asks for.
  [[gnu::always_inline]] inline void prefetch(std::uint64_t hash) const {
    __builtin_prefetch(&places_[hash & mask_], 1);
  }
  void prefetch_element(std::uint64_t) const {}

  /// Goes over keys and counts. Errors: sojourn::error when keys have been added to a full table
  /// meanwhile, so that it has grown.
  class iterator {
   public:
    using value_type = count_table::value_type;
    using difference_type = std::ptrdiff_t;
    using reference = const value_type&;
    using pointer = const value_type*;
    using iterator_category = std::forward_iterator_tag;

    iterator() = default;
    explicit iterator(const count_table& table) : table_(&table), changes_(table.changes_) {
      skip_free();
    }
    reference operator*() const { return places()[at_]; }
    pointer operator->() const { return &**this; }
    iterator& operator++() {
      ++at_;
      skip_free();
      return *this;
    }
    iterator operator++(int) {
      const iterator before = *this;
      ++*this;
      return before;
    }
    friend bool operator==(const iterator& a, const iterator& b) {
      const bool a_ended = a.has_ended();
      return a_ended == b.has_ended() && (a_ended || a.at_ == b.at_);
    }

   private:
    const auto& places() const {
      if (table_->changes_ != changes_) [[unlikely]]
        throw error(
            "the keys of a dist_counter have moved since a loop over them began, because keys were "
            "added or all were cleared: loop when the finish that counts has ended");
      return table_->places_;
    }
    bool has_ended() const { return table_ == nullptr || at_ == table_->places_.size(); }
    void skip_free() {
      while (at_ < places().size() && places()[at_].second == free) ++at_;
    }

    const count_table* table_ = nullptr;
    std::size_t at_ = 0;
    unsigned changes_ = 0;
  };

 private:
  static constexpr std::size_t fewest_places = 16;
  /// The count of a place without a key: no program counts so many.
  static constexpr long free = std::numeric_limits<long>::min();
  using places = std::vector<value_type, large_page_allocator<value_type>>;

  /// Where the key is, or else would be.
  [[gnu::always_inline]] inline const value_type& place_of(const K& key, std::uint64_t hash) const {
    for (std::size_t at = hash & mask_;; at = (at + 1) & mask_) {
      const value_type& place = places_[at];
      // A free place holds K(), which may be the key: then it is where that would be.
      if (place.first == key || place.second == free) return place;
    }
  }
  [[gnu::always_inline]] inline value_type& place_of(const K& key, std::uint64_t hash) {
    return const_cast<value_type&>(std::as_const(*this).place_of(key, hash));
  }
  [[gnu::noinline]] void add_new(value_type& place, const K& key, std::uint64_t hash, long times) {
    if ((count_ + 1) * 8 > places_.size() * 5) {
      places before(places_.size() * 2, {K(), free});
      before.swap(places_);
      mask_ = places_.size() - 1;
      ++changes_;
      for (value_type& p : before)
        if (p.second != free) place_of(p.first, hash_of(p.first)) = std::move(p);
      place_of(key, hash) = {key, times};
    } else {
      place = {key, times};
    }
    ++count_;
  }

  places places_ = places(fewest_places, {K(), free});  ///< As many as a power of two.
  std::size_t mask_ = fewest_places - 1;
  std::size_t count_ = 0;
  unsigned changes_ = 0;  ///< How often keys have moved.
};

}  // namespace sojourn::containers
