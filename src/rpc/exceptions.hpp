// SPDX-License-Identifier: Apache-2.0
// Exceptions as bytes: standard types by their index in the table, which all programs have; others
// by name, with what() and rank, and the bytes of the registered ones: for who has registered them,
// too. Behind them, the frames that it was thrown from, where they are known.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>

#include "base/thrown_frames.hpp"

namespace sojourn::detail {

struct encoded_exception {
  static constexpr std::size_t text_max = 1024;

  std::uint32_t kind;        ///< Index among the standard types, or by name.
  std::int32_t rank;         ///< Where it was thrown.
  std::uint16_t name_size;   ///< Of the type's mangled name, at the start of `text`; else 0.
  std::uint16_t bytes_size;  ///< Of a registered type's own bytes, which follow the name.
  std::uint32_t size;        ///< Of what follows.
  std::uint32_t from_size;   ///< Of the frames behind that, a thrown_frames; 0: not known.
  char text[text_max + sizeof(thrown_frames)];

  static constexpr std::uint32_t by_name = ~0u;
  static constexpr std::uint32_t by_plain_name = ~1u;  ///< The same; the name is not mangled.
  std::size_t bytes_of_text() const { return std::size_t{name_size} + bytes_size + size; }
  std::size_t bytes() const {
    return offsetof(encoded_exception, text) + bytes_of_text() + from_size;
  }
};

void encode(const std::exception_ptr& exception, encoded_exception& to);
/// Throws what `encode` was given, or a remote_exception. `bytes` may come from another rank.
[[noreturn]] void rethrow(const void* bytes, std::size_t size);

}  // namespace sojourn::detail
