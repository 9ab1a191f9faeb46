// SPDX-License-Identifier: Apache-2.0
// A list that mostly has one element, and takes no memory of its own for it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

namespace sojourn::detail::coherence {

template <class T>
class few {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  few() = default;
  few(const few& other) { append(other); }
  few(few&& other) noexcept { take(other); }
  few& operator=(const few& other) {
    if (this == &other) return *this;
    size_ = 0;
    append(other);
    return *this;
  }
  few& operator=(few&& other) noexcept {
    if (this == &other) return *this;
    delete[] more_;
    take(other);
    return *this;
  }
  ~few() { delete[] more_; }

  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  T* begin() { return more_ != nullptr ? more_ : &one_; }
  T* end() { return begin() + size_; }
  const T* begin() const { return more_ != nullptr ? more_ : &one_; }
  const T* end() const { return begin() + size_; }

  void push_back(const T& element) {
    const T added = element;  // may be an element of this list
    if (size_ == room_) grow();
    begin()[size_++] = added;
  }
  void clear() { size_ = 0; }
  template <class Which>
  void remove_if(Which which) {
    size_ = static_cast<std::uint32_t>(std::remove_if(begin(), end(), which) - begin());
  }

 private:
  void append(const few& other) {
    for (const T& element : other) push_back(element);
  }
  void take(few& other) {
    one_ = other.one_;
    more_ = std::exchange(other.more_, nullptr);
    size_ = std::exchange(other.size_, 0u);
    room_ = std::exchange(other.room_, 1u);
  }
  void grow() {
    T* const larger = new T[room_ * 4];
    std::copy(begin(), end(), larger);
    delete[] more_;
    more_ = larger;
    room_ *= 4;
  }

  T one_{};
  T* more_ = nullptr;
  std::uint32_t size_ = 0;
  std::uint32_t room_ = 1;
};

}  // namespace sojourn::detail::coherence
