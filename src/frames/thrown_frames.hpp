// SPDX-License-Identifier: Apache-2.0
// The code addresses of the frames that an exception was thrown from: kept by the rank, sent with
// the exception, and printed in a death report.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sojourn::detail {

struct thrown_frames {
  static constexpr std::uint32_t youngest = 18;  ///< This many of the youngest frames are kept, …
  static constexpr std::uint32_t oldest = 6;     ///< … and this many of the oldest.

  std::int32_t rank = -1;
  std::uint32_t in_all = 0;  ///< 0: nothing is known.
  std::uint64_t code[youngest + oldest] = {};

  std::uint32_t kept() const { return in_all < youngest + oldest ? in_all : youngest + oldest; }
  /// The position among all frames of the i-th frame kept.
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
  /// The bytes that travel: `code` only as far as it is used.
  std::size_t bytes() const { return offsetof(thrown_frames, code) + kept() * sizeof code[0]; }
};

/// Tells the crash report where the exception was thrown that the last words are about. `instead`:
/// the report shows these frames in place of the process's own, which say nothing.
void last_words_are_of(const thrown_frames& frames, bool instead);
struct thrown_last {
  thrown_frames frames;
  bool instead = false;
};
const thrown_last& thrown_last_words();

}  // namespace sojourn::detail
