// SPDX-License-Identifier: Apache-2.0
// Arguments that are read where they arrive.
#pragma once

#include <concepts>
#include <cstddef>
#include <iterator>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include "sojourn/calls/travels.hpp"

namespace sojourn {

namespace detail {
/// What std::data of a range points to.
template <class Range>
using element_in_a_row =
    std::remove_const_t<std::remove_pointer_t<decltype(std::data(std::declval<const Range&>()))>>;
/// Its elements lie one behind the other. The concepts of <ranges> say so too; that header alone
/// would be a tenth of what every program compiles.
template <class Range>
concept elements_in_a_row = requires(const Range& range) {
  requires std::is_pointer_v<decltype(std::data(range))>;
  { std::size(range) } -> std::convertible_to<std::size_t>;
};
}  // namespace detail

/// A range of elements that a remote function reads in place: in the message as it arrived, without
/// a copy at the receiver. Elements travel and are aligned to 16 bytes at most.
///
/// A function that takes a view, by value, promises not to wait before it returns, because it would
/// hold up the messages behind. If it waits nevertheless, the job ends with a sentence. A function
/// that has to wait takes a std::span<const T> or std::string_view instead, which is read from a
/// buffer that stays for the call. The elements of neither may be used after the call. Source:
/// MRPC, "Fast Copying and Persistent Buffers".
template <class T>
class view {
  static_assert(!std::is_const_v<T>, "sojourn: a view<T> is of constant elements already");

 public:
  using value_type = T;
  using const_iterator = const T*;

  constexpr view() = default;
  constexpr view(const T* first, std::size_t count) : first_(first), count_(count) {}
  /// A view of a vector, an array, a string, a span…
  template <detail::elements_in_a_row Range>
    requires(!std::same_as<Range, view> && std::same_as<detail::element_in_a_row<Range>, T>)
  constexpr view(const Range& range) : first_(std::data(range)), count_(std::size(range)) {}

  constexpr const T* data() const { return first_; }
  constexpr std::size_t size() const { return count_; }
  constexpr bool empty() const { return count_ == 0; }
  constexpr const T* begin() const { return first_; }
  constexpr const T* end() const { return first_ + count_; }
  constexpr const T& operator[](std::size_t i) const { return first_[i]; }
  constexpr operator std::span<const T>() const { return {first_, count_}; }
  constexpr operator std::string_view() const
    requires std::same_as<T, char>
  {
    return {first_, count_};
  }

 private:
  const T* first_ = nullptr;
  std::size_t count_ = 0;
};

template <detail::elements_in_a_row Range>
view(const Range&) -> view<detail::element_in_a_row<Range>>;

template <class T>
inline constexpr bool detail::has_address<view<T>> = true;

/// It holds an address: its elements are marshalled, never its bytes.
template <class T>
inline constexpr bool travels<view<T>> = false;

}  // namespace sojourn
