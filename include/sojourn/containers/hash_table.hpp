// SPDX-License-Identifier: Apache-2.0
// The hash table of one rank, of which the distributed containers are made.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

#include "sojourn/containers/large_pages.hpp"
#include "sojourn/errors.hpp"

namespace sojourn::containers {

/// Spreads what a hash tells over all 64 bits: std::hash of an integer is the integer. The upper
/// half chooses the rank of a key, the lower half its place there. Source: the finalizer of
/// MurmurHash3 (Austin Appleby, public domain).
constexpr std::uint64_t spread_bits(std::uint64_t hash) {
  hash = (hash ^ hash >> 33) * 0xff51afd7ed558ccdU;
  hash = (hash ^ hash >> 33) * 0xc4ceb9fe1a85ec53U;
  return hash ^ hash >> 33;
}

/// Keys and values on one rank. Elements stay where they are until they are erased: references to
/// them, and iterators, survive everything else. They lie in the order in which they came, except
/// that new ones fill the gaps of erased ones. At most 4 billion elements.
///
/// An index of places with linear probing, 8 bytes a place, is at most 5/8 full; the elements lie
/// in chunks, each of which has room for as many as all before it.
template <class K, class V, class Hash = std::hash<K>>
class hash_table {
 public:
  using value_type = std::pair<const K, V>;

  hash_table() = default;
  hash_table(const hash_table&) = delete;
  hash_table& operator=(const hash_table&) = delete;
  ~hash_table() {
    clear();
    for (unsigned chunk = 0; chunk < chunks_.size(); ++chunk)
      large_page_allocator<value_type>().deallocate(chunks_[chunk], elements_in(chunk));
  }

  static std::uint64_t hash_of(const K& key) { return spread_bits(Hash()(key)); }

  std::size_t size() const { return count_; }
  bool empty() const { return count_ == 0; }

  /// Null when there is none. `hash` is hash_of(key).
  value_type* find(const K& key, std::uint64_t hash) const {
    if (places_.empty()) return nullptr;
    const auto tag = static_cast<std::uint32_t>(hash);
    for (std::size_t at = tag & mask();; at = (at + 1) & mask()) {
      const place& p = places_[at];
      if (p.number == 0) return nullptr;
      if (p.tag == tag) {
        value_type* const element = element_at(p.number - 1);
        if (element->first == key) return element;
      }
    }
  }
  value_type* find(const K& key) const { return find(key, hash_of(key)); }

  /// The element of the key, which is made as {key, V(arguments…)} if there is none; and whether it
  /// was made.
  template <class... A>
  std::pair<value_type*, bool> find_or_make(const K& key, std::uint64_t hash, A&&... arguments) {
    if (value_type* const there = find(key, hash)) return {there, false};
    if ((count_ + 1) * 8 > places_.size() * 5) grow();
    const std::uint32_t number = number_of_gap();
    value_type* const element = element_at(number);
    ::new (static_cast<void*>(element))
        value_type(std::piecewise_construct, std::forward_as_tuple(key),
                   std::forward_as_tuple(std::forward<A>(arguments)...));
    take_gap(number);
    put(static_cast<std::uint32_t>(hash), number + 1);
    ++count_;
    return {element, true};
  }

  /// False when there is none.
  bool erase(const K& key, std::uint64_t hash) {
    if (places_.empty()) return false;
    const auto tag = static_cast<std::uint32_t>(hash);
    for (std::size_t at = tag & mask();; at = (at + 1) & mask()) {
      const place p = places_[at];
      if (p.number == 0) return false;
      if (p.tag == tag && element_at(p.number - 1)->first == key) {
        gaps_.push_back(p.number - 1);  // which may throw
        close_gap(at);
        give_back(p.number - 1);
        return true;
      }
    }
  }
  void clear() {
    for (std::uint32_t number = 0; number < end_; ++number)
      if (is_there(number)) element_at(number)->~value_type();
    there_.clear();
    gaps_.clear();
    places_.clear();
    end_ = 0;
    count_ = 0;
  }

  /// Have the memory fetched in which find() looks first, and, some time later, second. (Inlined,
  /// because gcc leaves out calls of functions that only prefetch.)
  [[gnu::always_inline]] inline void prefetch(std::uint64_t hash) const {
    if (!places_.empty()) __builtin_prefetch(&places_[static_cast<std::uint32_t>(hash) & mask()]);
  }
  [[gnu::always_inline]] inline void prefetch_element(std::uint64_t hash) const {
    if (places_.empty()) return;
    const place& p = places_[static_cast<std::uint32_t>(hash) & mask()];
    if (p.number != 0) __builtin_prefetch(element_at(p.number - 1), 1);
  }

  /// Goes over the elements, also those that are added meanwhile, unless they fill a gap behind.
  /// Errors: sojourn::error when it is at an element that was erased, and whose gap is still there.
  template <class Value>
  class iterator_over {
   public:
    using value_type = hash_table::value_type;
    using difference_type = std::ptrdiff_t;
    using reference = Value&;
    using pointer = Value*;
    using iterator_category = std::forward_iterator_tag;

    iterator_over() = default;
    iterator_over(const hash_table* table, std::uint32_t number) : table_(table), number_(number) {
      skip_gaps();
    }
    reference operator*() const {
      if (!table_->is_there(number_)) [[unlikely]]
        throw error("an iterator of a hash table is used after its element was erased");
      return *table_->element_at(number_);
    }
    pointer operator->() const { return &**this; }
    iterator_over& operator++() {
      ++number_;
      skip_gaps();
      return *this;
    }
    iterator_over operator++(int) {
      const iterator_over before = *this;
      ++*this;
      return before;
    }
    friend bool operator==(const iterator_over& a, const iterator_over& b) {
      const bool a_ended = a.has_ended();
      return a_ended == b.has_ended() && (a_ended || a.number_ == b.number_);
    }

   private:
    bool has_ended() const { return table_ == nullptr || number_ >= table_->end_; }
    void skip_gaps() {
      while (!has_ended() && !table_->is_there(number_)) ++number_;
    }

    const hash_table* table_ = nullptr;
    std::uint32_t number_ = 0;
  };
  using iterator = iterator_over<value_type>;
  using const_iterator = iterator_over<const value_type>;

  iterator begin() { return {this, 0}; }
  iterator end() { return {}; }
  const_iterator begin() const { return {this, 0}; }
  const_iterator end() const { return {}; }

 private:
  /// Where the search for a key looks: at the place that the hash says, and then at those behind.
  struct place {
    std::uint32_t tag;     ///< The lower half of the hash.
    std::uint32_t number;  ///< Of the element, plus 1; 0: the place is free.
  };
  using places = std::vector<place, large_page_allocator<place>>;
  static constexpr std::size_t fewest_places = 16;
  static constexpr std::uint32_t in_first_chunk = 8;  ///< A power of two.

  std::size_t mask() const { return places_.size() - 1; }

  // Chunk c has elements from 8·2^c - 8 on, 8·2^c of them.
  static std::size_t elements_in(unsigned chunk) { return std::size_t{in_first_chunk} << chunk; }
  static unsigned chunk_of(std::uint64_t shifted) {
    return static_cast<unsigned>(std::bit_width(shifted) - std::bit_width(in_first_chunk));
  }
  value_type* element_at(std::uint32_t number) const {
    const std::uint64_t shifted = std::uint64_t{number} + in_first_chunk;
    return chunks_[chunk_of(shifted)] + (shifted - std::bit_floor(shifted));
  }

  bool is_there(std::uint32_t number) const {
    return number < end_ && (there_[number / 64] >> number % 64 & 1) != 0;
  }
  /// The number that the next element gets; there is room for it.
  std::uint32_t number_of_gap() {
    if (!gaps_.empty()) return gaps_.back();
    if (end_ == 0xffff'fff0)
      throw error("a rank's part of a container is full: it has 4 billion elements");
    const unsigned chunk = chunk_of(std::uint64_t{end_} + in_first_chunk);
    if (chunk == chunks_.size()) {
      chunks_.reserve(chunks_.size() + 1);
      chunks_.push_back(large_page_allocator<value_type>().allocate(elements_in(chunk)));
    }
    if (end_ / 64 == there_.size()) there_.push_back(0);
    return end_;
  }
  void take_gap(std::uint32_t number) {
    if (number == end_) {
      ++end_;
    } else {
      gaps_.pop_back();
    }
    there_[number / 64] |= std::uint64_t{1} << number % 64;
  }
  void give_back(std::uint32_t number) {
    there_[number / 64] &= ~(std::uint64_t{1} << number % 64);
    --count_;
    element_at(number)->~value_type();
  }

  void put(std::uint32_t tag, std::uint32_t number) {
    std::size_t at = tag & mask();
    while (places_[at].number != 0) at = (at + 1) & mask();
    places_[at] = {tag, number};
  }
  void grow() {
    places before(std::max(fewest_places, places_.size() * 2), place{0, 0});
    before.swap(places_);
    for (const place& p : before)
      if (p.number != 0) put(p.tag, p.number);
  }
  /// Frees a place, and moves those behind it forward that are looked for from before it on.
  void close_gap(std::size_t gap) {
    for (std::size_t at = (gap + 1) & mask(); places_[at].number != 0; at = (at + 1) & mask()) {
      const std::size_t from_home = (at - places_[at].tag) & mask();
      if (from_home >= ((at - gap) & mask())) {
        places_[gap] = places_[at];
        gap = at;
      }
    }
    places_[gap] = {0, 0};
  }

  places places_;  ///< As many as a power of two.
  std::vector<value_type*> chunks_;
  std::vector<std::uint64_t> there_;  ///< A bit for each number below end_: there is an element.
  std::vector<std::uint32_t> gaps_;   ///< Numbers below end_ without an element.
  std::uint32_t end_ = 0;
  std::size_t count_ = 0;
};

}  // namespace sojourn::containers
