// SPDX-License-Identifier: Apache-2.0
// One-way calls of one method that are made one by one, and arrive many at once.
#pragma once

#include <cstddef>
#include <cstring>
#include <iterator>
#include <type_traits>

#include "sojourn/calls/travels.hpp"

namespace sojourn {

/// What a method takes that handles many items at once. Callers pass one item in each call:
///
///     void add_all(batch<std::uint64_t> keys);            // a method of `part`
///     p.ff<&part::add_all>(key);                          // one item
///
/// Where calls are bundled (aggregate.hpp), the method is called once for all items of a run in a
/// bundle, which it reads where they arrived; otherwise once for each item. So it can look ahead,
/// for instance to have the memory that the next items need fetched in time.
///
/// Such a method promises not to wait before it returns, nor to send anything, as a
/// nonblocking_method does; and objects with such a method are neither copied nor moved. What it
/// throws is the outcome of all of the items, and those behind are left out. Items travel. The
/// method takes the batch by value and nothing else, and does not use it after the call.
template <class T>
class batch {
  static_assert(travels<T> && !std::is_const_v<T>, "sojourn: the items of a batch must travel");

 public:
  using value_type = T;
  /// Bytes from an item to the next.
  static constexpr std::size_t stride = (sizeof(T) + 7) / 8 * 8;

  class iterator {
   public:
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    using reference = const T&;
    using pointer = const T*;
    using iterator_category = std::forward_iterator_tag;

    constexpr iterator() = default;
    explicit iterator(const std::byte* at) : at_(at) {}
    reference operator*() const { return *reinterpret_cast<const T*>(at_); }
    pointer operator->() const { return &**this; }
    iterator& operator++() {
      at_ += stride;
      return *this;
    }
    iterator operator++(int) {
      const iterator before = *this;
      ++*this;
      return before;
    }
    friend bool operator==(iterator, iterator) = default;

   private:
    const std::byte* at_ = nullptr;
  };
  using const_iterator = iterator;

  /// Of one item, which must live as long.
  batch(const T& item) : batch(reinterpret_cast<const std::byte*>(&item), 1) {}
  /// Requires: the items lie `stride` bytes apart from `first` on, which is aligned for them.
  batch(const std::byte* first, std::size_t count) : first_(first), count_(count) {}

  std::size_t size() const { return count_; }
  bool empty() const { return count_ == 0; }
  const T& operator[](std::size_t i) const {
    return *reinterpret_cast<const T*>(first_ + i * stride);
  }
  iterator begin() const { return iterator(first_); }
  iterator end() const { return iterator(first_ + count_ * stride); }

 private:
  const std::byte* first_;
  std::size_t count_;
};

namespace detail {

template <class P>
inline constexpr bool is_batch = false;
template <class T>
inline constexpr bool is_batch<batch<T>> = true;

/// The method handles items that were sent one by one.
template <class Method>
inline constexpr bool takes_batch = false;
template <class C, class R, class T>
inline constexpr bool takes_batch<R (C::*)(batch<T>)> = true;
template <class C, class R, class T>
inline constexpr bool takes_batch<R (C::*)(batch<T>) noexcept> = true;
template <class C, class R, class T>
inline constexpr bool takes_batch<R (C::*)(batch<T>) const> = true;
template <class C, class R, class T>
inline constexpr bool takes_batch<R (C::*)(batch<T>) const noexcept> = true;

}  // namespace detail

}  // namespace sojourn
