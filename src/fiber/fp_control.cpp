// SPDX-License-Identifier: Apache-2.0
#include "fiber/fp_control.hpp"

namespace sojourn::detail {

void write_fp(fp_control fp) {
#if defined(__x86_64__)
  std::uint16_t x87 = static_cast<std::uint16_t>(fp.x87);
  asm volatile("ldmxcsr %0" : : "m"(fp.mxcsr));
  asm volatile("fldcw %0" : : "m"(x87));
#elif defined(__aarch64__)
  std::uint64_t fpcr = fp.mxcsr;
  asm volatile("msr fpcr, %0" : : "r"(fpcr));
#endif
}

}  // namespace sojourn::detail
