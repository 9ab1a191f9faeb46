// SPDX-License-Identifier: Apache-2.0
// Promises that checked mode holds a program to, and its exceptions. Elsewhere they cost the test
// of a flag, or nothing.
#pragma once

#include <cstdint>

#include "sojourn/detail/checked.hpp"

namespace sojourn {

/// While one lives, its function promises not to wait: no get(), no remote call, no barrier, no
/// migration, neither itself nor in what it calls. Checked mode ends the program, with the
/// function's name, when it does. Where checked mode is off it does nothing.
class non_blocking {
 public:
  [[gnu::always_inline]] non_blocking() {
    if (detail::checked()) [[unlikely]]
      promise();
  }
  [[gnu::always_inline]] ~non_blocking() {
    if (open_) [[unlikely]]
      detail::unwatch(detail::watched_kind::non_blocking, this);
  }
  non_blocking(const non_blocking&) = delete;
  non_blocking& operator=(const non_blocking&) = delete;

 private:
  void promise();
  bool open_ = false;
};

/// While one lives, checked mode lets the frame that holds it migrate with words that look like
/// pointers to what stays behind. `reason` is a literal, for the reader. The same from outside:
/// SOJOURN_ALLOW=function:reason.
class scan_allow {
 public:
  explicit scan_allow(const char* reason) : mark_(mark), reason_(reason) {}
  ~scan_allow() { mark_ = 0; }
  scan_allow(const scan_allow&) = delete;
  scan_allow& operator=(const scan_allow&) = delete;

  /// What the scan looks for in a frame; no address, and no number that programs compute with.
  static constexpr std::uint64_t mark = 0x5ca9'a110'3ed7'feed;

 private:
  // Volatile: written, though nothing in the program reads it.
  volatile std::uint64_t mark_;
  [[maybe_unused]] const char* volatile reason_;
};

}  // namespace sojourn
