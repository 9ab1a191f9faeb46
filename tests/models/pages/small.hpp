// SPDX-License-Identifier: Apache-2.0
// The small values that a state is made of. States are copied, hashed and compared by the million,
// as bytes, so all of their bytes are in use, and what is no longer used is zero.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace page_model {

using small = std::uint8_t;
constexpr small to_small(int n) { return static_cast<small>(n); }

/// An array, whose indices are ranks, pages, threads and the like: signed numbers.
template <class T, std::size_t Size>
struct table {
  T entries[Size];

  T& operator[](int i) { return entries[i]; }
  const T& operator[](int i) const { return entries[i]; }
  T* begin() { return entries; }
  T* end() { return entries + Size; }
  const T* begin() const { return entries; }
  const T* end() const { return entries + Size; }
  bool operator==(const table&) const = default;
};

/// A set of numbers below eight.
class small_set {
 public:
  bool contains(int i) const { return (bits_ >> i & 1) != 0; }
  bool is_empty() const { return bits_ == 0; }
  void insert(int i) { bits_ = to_small(bits_ | 1 << i); }
  void erase(int i) { bits_ = to_small(bits_ & ~(1 << i)); }

 private:
  small bits_ = 0;
};

/// A rank or a thread, or none.
class optional_small {
 public:
  bool has_value() const { return one_more_ != 0; }
  /// Requires: has_value().
  int value() const { return one_more_ - 1; }
  bool is(int i) const { return one_more_ == i + 1; }
  void set(int i) { one_more_ = to_small(i + 1); }
  void clear() { one_more_ = 0; }

 private:
  small one_more_ = 0;
};

template <class T, std::size_t Max>
class small_queue {
 public:
  bool is_empty() const { return count_ == 0; }
  bool is_full() const { return count_ == Max; }
  /// Requires: not empty.
  const T& front() const { return entries_[0]; }
  /// Requires: not full.
  void push(const T& value) { entries_[count_++] = value; }
  /// Requires: not empty.
  T pop() {
    const T first = entries_[0];
    std::copy(entries_.begin() + 1, entries_.begin() + count_, entries_.begin());
    entries_[--count_] = T{};
    return first;
  }

 private:
  small count_ = 0;
  table<T, Max> entries_{};
};

}  // namespace page_model
