// SPDX-License-Identifier: Apache-2.0
// Exceptions as bytes. A standard type is named by its index in a table that all programs have.
// Other types are sent by name, with what() and rank, and registered types also with their own
// bytes, for receivers that have registered them, too. If the frames are known from which the
// exception was thrown, they follow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <vector>

#include "frames/thrown_frames.hpp"

namespace sojourn::detail {

struct encoded_exception {
  static constexpr std::size_t text_max = 1024;

  std::uint32_t kind;        ///< Index among the standard types, or one of the constants below.
  std::int32_t rank;         ///< The rank on which it was thrown.
  std::uint16_t name_size;   ///< Length of the type's name at the start of `text`; 0 if standard.
  std::uint16_t bytes_size;  ///< Length of a registered type's own bytes, which follow the name.
  std::uint32_t size;        ///< Length of what follows these.
  std::uint32_t from_size;   ///< Length of the frames after that, a thrown_frames; 0: not known.
  char text[text_max + sizeof(thrown_frames)];

  static constexpr std::uint32_t by_name = ~0u;
  static constexpr std::uint32_t by_plain_name = ~1u;  ///< As by_name; the name is not mangled.
  std::size_t bytes_of_text() const { return std::size_t{name_size} + bytes_size + size; }
  std::size_t bytes() const {
    return offsetof(encoded_exception, text) + bytes_of_text() + from_size;
  }
};

void encode(const std::exception_ptr& exception, encoded_exception& to);
/// The same, as `rank` is to get it: without the frames if that rank has other code at their
/// addresses.
void encode_for(int rank, const std::exception_ptr& exception, encoded_exception& to);
/// The bytes as any other rank would get them.
std::vector<std::byte> encoded(const std::exception_ptr& exception);
/// Throws the exception that `encode` was given, or a remote_exception that describes it. `bytes`
/// may come from another rank.
[[noreturn]] void rethrow(const void* bytes, std::size_t size);
/// Returns the exception that `rethrow` throws.
std::exception_ptr decoded(const void* bytes, std::size_t size);

}  // namespace sojourn::detail
