// SPDX-License-Identifier: Apache-2.0
// Values as words, which are passed in registers whatever their types are.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <type_traits>
#include <utility>

namespace sojourn::detail {

/// How many words of 8 bytes hold a T.
template <class T>
constexpr std::size_t words_of() {
  return std::is_empty_v<T> ? 0 : (sizeof(T) + sizeof(std::uint64_t) - 1) / sizeof(std::uint64_t);
}
/// True when words can hold all of these, and a call passes that many in registers.
template <class... T>
inline constexpr bool fit_in_registers =
    (std::is_trivially_copyable_v<T> && ...) && (words_of<T>() + ... + 0) <= 6;

template <std::size_t Bytes>
using unsigned_of = std::conditional_t<
    Bytes == 1, std::uint8_t,
    std::conditional_t<Bytes == 2, std::uint16_t,
                       std::conditional_t<Bytes == 4, std::uint32_t, std::uint64_t>>>;
template <class T, std::size_t At>
inline constexpr std::size_t bytes_in_word = std::min(sizeof(T) - At, sizeof(std::uint64_t));

/// The bytes of `value` from number `At` on, as many as fit in a word. (1, 2, 4 or 8 of them are
/// read at once: to store them in a word that is read as a whole afterwards takes longer than a
/// call.)
#if defined(__GNUC__) && !defined(__clang__)
// A value may have bytes that nobody has written, which the compiler would warn of in users' files.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
template <std::size_t At, class T>
[[gnu::always_inline]] inline std::uint64_t word_at(const T& value) {
  unsigned_of<bytes_in_word<T, At>> word{};
  std::memcpy(&word, reinterpret_cast<const std::byte*>(std::addressof(value)) + At,
              bytes_in_word<T, At>);
  return word;
}
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
template <std::size_t At, class T>
[[gnu::always_inline]] inline void set_word_at(std::array<std::byte, sizeof(T)>& bytes,
                                               std::uint64_t value) {
  const auto word = static_cast<unsigned_of<bytes_in_word<T, At>>>(value);
  std::memcpy(bytes.data() + At, &word, bytes_in_word<T, At>);
}

/// Writes the words of `value` to `to`, and goes past them.
template <class T>
[[gnu::always_inline]] inline void put_words(std::uint64_t*& to, const T& value) {
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    ((*to++ = word_at<sizeof(std::uint64_t) * I>(value)), ...);
  }(std::make_index_sequence<words_of<T>()>());
}
/// The value whose words lie at `from`; goes past them.
template <class T>
[[gnu::always_inline]] inline T take_words(const std::uint64_t*& from) {
  std::array<std::byte, sizeof(T)> bytes{};
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (set_word_at<sizeof(std::uint64_t) * I, T>(bytes, *from++), ...);
  }(std::make_index_sequence<words_of<T>()>());
  return std::bit_cast<T>(bytes);
}

}  // namespace sojourn::detail
