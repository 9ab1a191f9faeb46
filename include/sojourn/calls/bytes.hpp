// SPDX-License-Identifier: Apache-2.0
// Values as bytes, in the form in which remote calls send them: for files, say.
//
//     std::vector<std::byte> bytes = to_bytes(name, scores);
//     auto [name, scores] = from_bytes<std::string, std::map<int, long>>(bytes);
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>
#include <vector>

#include "sojourn/calls/marshal.hpp"
#include "sojourn/detail/marshalled.hpp"

namespace sojourn {

/// Appends the bytes of the values, which are marshalled (marshal.hpp) and stay as they are. The
/// same program reads them: bytes of types that travel are those of its memory. A global_ptr means
/// nothing in another job. What one call appends is read by one call of from_bytes. Never suspends.
/// Errors: what the `save` of a type throws; then nothing is appended.
template <class... T>
void append_bytes(std::vector<std::byte>& to, const T&... values) {
  static_assert((detail::marshals_copies<T> && ...),
                "sojourn: what is kept as bytes travels, or is marshalled as a copy: see "
                "docs/marshalling.md");
  const std::size_t before = to.size();
  const std::size_t size = detail::measure(values...).whole;
  to.resize(before + size);
  try {
    const nonblocking<> promise;
    detail::writer writes(to.data() + before, size);
    (detail::save_value(writes, values), ...);
    if (writes.left() != 0) detail::cannot_be_saved("its `save` writes less the second time");
  } catch (...) {
    to.resize(before);
    throw;
  }
}
template <class... T>
std::vector<std::byte> to_bytes(const T&... values) {
  std::vector<std::byte> bytes;
  append_bytes(bytes, values...);
  return bytes;
}
/// The values whose bytes these are. Never suspends. Errors: malformed_message when there are too
/// few or too many of them; what the `load` of a type throws.
template <class... T>
std::tuple<T...> from_bytes(std::span<const std::byte> bytes) {
  static_assert((detail::marshals_copies<T> && ...),
                "sojourn: what is made of bytes travels, or is marshalled as a copy: see "
                "docs/marshalling.md");
  // Where values lie is counted from an address that is aligned like this.
  constexpr std::size_t alignment = 16;
  std::vector<std::byte> copy;
  if (reinterpret_cast<std::uintptr_t>(bytes.data()) % alignment != 0) {
    copy.assign(bytes.begin(), bytes.end());
    bytes = copy;
  }
  const nonblocking<> promise;
  detail::reader from(bytes.data(), bytes.size(), nullptr);
  std::tuple<T...> values{detail::make_value<T>(from)...};  // in this order
  from.expect_end();
  return values;
}

}  // namespace sojourn
