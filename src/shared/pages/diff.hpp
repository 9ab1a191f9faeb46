// SPDX-License-Identifier: Apache-2.0
// Diffs: which bytes of a page differ from its twin, the copy that was taken before the first
// store, and their new values. Diffs are exact to the byte, because C++ lets two ranks store to
// neighbouring bytes at the same time: a diff of words would bring an old neighbour along.
//
//     u64 lines        bit i is set: line i of the page, 64 bytes, has changed bytes
//     u64 changed[]    for each of these lines: which of its bytes have changed
//     byte values[]    the new values of all changed bytes, in the order of their addresses
//
// When nothing differs, the diff is empty: it has no bytes at all.
#pragma once

#include <cstddef>
#include <cstring>
#include <optional>
#include <span>

#include "shared/pages/page.hpp"

namespace sojourn::detail::pages {

/// The length of the longest diff: every byte of the page has changed.
inline constexpr std::size_t diff_bytes_max = 8 + page_bytes / 64 * 8 + page_bytes;

/// Whether any byte differs; stops at the first.
inline bool differs(const std::byte* page, const std::byte* twin) {
  return std::memcmp(page, twin, page_bytes) != 0;
}

/// Makes the diff of `page` and `twin` at `to`, and returns its length, in bytes: 0 when nothing
/// differs.
/// Requires: room for diff_bytes_max bytes at `to`, whatever the length; nobody stores to the page
/// meanwhile.
std::size_t make_diff(std::byte* to, const std::byte* page, const std::byte* twin);

/// Stores the new values of a diff to a page. All other bytes keep their values, though some are
/// stored again.
/// Requires: is_diff(diff, bytes); nobody else stores to the page meanwhile.
void apply_diff(std::byte* page, const std::byte* diff, std::size_t bytes);

/// Whether the bytes can be used as a diff: their number is the one that their masks ask for.
/// Whoever receives a diff asks this first; the functions below and apply_diff() rely on it.
bool is_diff(const std::byte* diff, std::size_t bytes);

/// How many bytes of the page a diff changes.
/// Requires: is_diff(diff, bytes).
std::size_t changed_bytes(const std::byte* diff, std::size_t bytes);

/// The offset in the page of the first byte that both diffs change. When the diffs are those of two
/// writers whom nothing has ordered, this byte is a data race of the program.
/// Requires: is_diff(a, a_bytes) and is_diff(b, b_bytes).
std::optional<std::size_t> first_overlap(const std::byte* a, std::size_t a_bytes,
                                         const std::byte* b, std::size_t b_bytes);

/// A way to make, apply and check diffs, for processors that have `instructions`. All codings make
/// the same diffs, byte for byte.
struct diff_coding {
  const char* instructions;
  std::size_t (*make)(std::byte* to, const std::byte* page, const std::byte* twin);
  void (*apply)(std::byte* page, const std::byte* diff, std::size_t bytes);
  bool (*is_diff)(const std::byte* diff, std::size_t bytes);
};

/// The codings that this processor can run, the fastest first. The functions above use the first.
std::span<const diff_coding> diff_codings();

}  // namespace sojourn::detail::pages
