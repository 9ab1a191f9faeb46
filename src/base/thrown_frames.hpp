// SPDX-License-Identifier: Apache-2.0
// The frames that an exception was thrown from, as addresses of code: kept in a rank, sent with the
// exception, and told by a death report.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sojourn::detail {

struct thrown_frames {
  static constexpr std::uint32_t youngest = 18;  ///< So many are kept first, …
  static constexpr std::uint32_t oldest = 6;     ///< … and so many at the other end.

  std::int32_t rank = -1;
  std::uint32_t in_all = 0;  ///< 0: nothing is known.
  std::uint64_t code[youngest + oldest] = {};

  std::uint32_t kept() const { return in_all < youngest + oldest ? in_all : youngest + oldest; }
  /// The number of the i-th that is kept.
  std::uint32_t number(std::uint32_t i) const { return i < youngest ? i : in_all - kept() + i; }
  void add(std::uint64_t address) {
    if (in_all < youngest + oldest) {
      code[in_all] = address;
    } else {
      for (std::uint32_t i = youngest; i + 1 < youngest + oldest; ++i) code[i] = code[i + 1];
      code[youngest + oldest - 1] = address;
    }
    ++in_all;
  }
  /// Without those in the middle that are not kept, these are the bytes that travel.
  std::size_t bytes() const { return offsetof(thrown_frames, code) + kept() * sizeof code[0]; }
};

/// What the last words of this process are about was thrown from there: for the crash report.
/// `instead`: its own frames when it dies say nothing.
void last_words_are_of(const thrown_frames& frames, bool instead);
struct thrown_last {
  thrown_frames frames;
  bool instead = false;
};
const thrown_last& thrown_last_words();

}  // namespace sojourn::detail
