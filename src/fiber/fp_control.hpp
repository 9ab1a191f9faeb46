// SPDX-License-Identifier: Apache-2.0
// Rounding mode and exception masks of the floating-point units.
#pragma once

#include <cstdint>

namespace sojourn::detail {

/// Control bits of the floating-point units; they belong to a fiber and travel with it.
struct fp_control {
  std::uint32_t mxcsr;
  std::uint32_t x87;
  friend bool operator==(fp_control, fp_control) = default;
};

/// The control bits `now`, changed so that their control word (fp_control_word) is `word`.
inline fp_control fp_with_word(std::uint32_t word, fp_control now) {
#if defined(__x86_64__)
  // Only the x87 word was kept. Exception masks and the rounding mode, where they have changed in
  // that word since, have changed in MXCSR in the same way.
  constexpr std::uint32_t masks = 0x003f, rounding = 0x0c00;
  const std::uint32_t changed = now.x87 ^ (word & 0xffff);
  if (changed == 0) return now;
  now.mxcsr ^= (changed & masks) << 7 | (changed & rounding) << 3;
  now.x87 ^= changed;
#else
  now.mxcsr = word;
#endif
  return now;
}
inline fp_control read_fp() {
  fp_control fp{0, 0};
#if defined(__x86_64__)
  std::uint16_t x87;
  asm volatile("stmxcsr %0" : "=m"(fp.mxcsr));
  asm volatile("fnstcw %0" : "=m"(x87));
  fp.mxcsr &= ~0x3fu;  // sticky flags: not state that a callee preserves
  fp.x87 = x87;
#elif defined(__aarch64__)
  std::uint64_t fpcr;
  asm volatile("mrs %0, fpcr" : "=r"(fpcr));
  fp.mxcsr = static_cast<std::uint32_t>(fpcr);
#endif
  return fp;
}

/// A reload costs tens of nanoseconds: to be called only when the bits change.
void write_fp(fp_control fp);

}  // namespace sojourn::detail
