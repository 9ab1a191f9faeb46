// SPDX-License-Identifier: Apache-2.0
// Values that fibers of all ranks change one at a time, in shared memory: a part of
// sojourn/shared.hpp.
#pragma once

#include <concepts>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace sojourn::shared {

namespace detail {
enum class word_change : std::uint8_t {
  load,
  store,
  exchange,
  compare,
  add,
  bit_and,
  bit_or,
  bit_xor
};
/// Changes the value of the object and returns the value before. `compare` stores `second` if the
/// value is `first`.
std::uint64_t change_word(const void* object, std::size_t bytes, word_change what,
                          std::uint64_t first = 0, std::uint64_t second = 0);
template <class T>
concept number = std::integral<T> && !std::same_as<T, bool>;
}  // namespace detail

/// A value of at most 8 bytes that fibers of all ranks load and change one at a time: sequentially
/// consistent, and ordering other accesses to shared memory as std::atomic does. (That is, whoever
/// loads a value can load what was stored before it was stored. The atomics of global_ptr do not
/// order.)
///
/// Its address names it, as in shared/sync.hpp: it lies in shared memory or is a global variable.
/// Its value is kept by its home, not at this address, and begins with zero bytes. Each operation
/// suspends, and takes a message to the home and one back; on the home itself it takes none. In a
/// loop that many fibers run, count in a variable of each, and add the counts at the end.
///
/// Errors of all operations: rank_lost when a rank has ended, and another one is the home.
template <class T>
class atomic {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 8,
                "sojourn: shared::atomic holds trivially copyable values of at most 8 bytes; guard "
                "others by a shared::mutex");
  static_assert(!std::is_pointer_v<T>,
                "sojourn: a plain pointer in a shared::atomic would mean nothing on other ranks: "
                "use shared::pointer<T>");

 public:
  using value_type = T;
  atomic() = default;
  atomic(const atomic&) = delete;
  atomic& operator=(const atomic&) = delete;

  T load() const { return change(detail::word_change::load); }
  void store(T value) { change(detail::word_change::store, word_of(value)); }
  T exchange(T value) { return change(detail::word_change::exchange, word_of(value)); }
  /// Stores `desired` if the value equals `expected`, byte by byte; otherwise copies the value to
  /// `expected`.
  bool compare_exchange(T& expected, T desired) {
    const std::uint64_t wanted = word_of(expected);
    const std::uint64_t was = detail::change_word(this, sizeof(T), detail::word_change::compare,
                                                  wanted, word_of(desired));
    if (was == wanted) return true;
    expected = value_of(was);
    return false;
  }

  // The fetch_ functions return the value before. Additions and subtractions wrap around.
  T fetch_add(T value)
    requires detail::number<T>
  {
    return change(detail::word_change::add, word_of(value));
  }
  T fetch_sub(T value)
    requires detail::number<T>
  {
    return change(detail::word_change::add, std::uint64_t{0} - word_of(value));
  }
  T fetch_and(T value)
    requires detail::number<T>
  {
    return change(detail::word_change::bit_and, word_of(value));
  }
  T fetch_or(T value)
    requires detail::number<T>
  {
    return change(detail::word_change::bit_or, word_of(value));
  }
  T fetch_xor(T value)
    requires detail::number<T>
  {
    return change(detail::word_change::bit_xor, word_of(value));
  }

 private:
  static std::uint64_t word_of(const T& value) {
    std::uint64_t word = 0;
    std::memcpy(&word, &value, sizeof(T));
    return word;
  }
  static T value_of(std::uint64_t word) {
    T value;
    std::memcpy(&value, &word, sizeof(T));
    return value;
  }
  T change(detail::word_change what, std::uint64_t first = 0) const {
    return value_of(detail::change_word(this, sizeof(T), what, first));
  }

  [[maybe_unused]] char place_ = 0;
};

}  // namespace sojourn::shared
