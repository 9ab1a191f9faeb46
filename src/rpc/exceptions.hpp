// SPDX-License-Identifier: Apache-2.0
// Exceptions as bytes: standard and registered types by their index in the program's table, others
// by name, what() and rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>

namespace sojourn::detail {

struct encoded_exception {
  static constexpr std::size_t text_max = 1024;

  std::uint32_t kind;       ///< Index in the table, or unregistered.
  std::int32_t rank;        ///< Where it was thrown.
  std::uint32_t name_size;  ///< Of the type's name, at the start of `text`; unregistered only.
  std::uint32_t size;       ///< Of what follows.
  char text[text_max];

  static constexpr std::uint32_t unregistered = ~0u;
  std::size_t bytes() const { return offsetof(encoded_exception, text) + name_size + size; }
};

void encode(const std::exception_ptr& exception, encoded_exception& to);
/// Throws what `encode` was given, or a remote_exception. `bytes` may come from another rank.
[[noreturn]] void rethrow(const void* bytes, std::size_t size);

}  // namespace sojourn::detail
