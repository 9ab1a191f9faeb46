// SPDX-License-Identifier: Apache-2.0
// The registers that inline assembly names as clobbered where it leaves the running stack: all but
// those that pass arguments to it, the frame pointer (which the assembly saves) and the stack
// pointer.
#pragma once

#if defined(__x86_64__)

#if defined(__AVX512F__)
#define SOJOURN_VECTOR_CLOBBERS                                                                 \
  "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",      \
      "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", \
      "xmm21", "xmm22", "xmm23", "xmm24", "xmm25", "xmm26", "xmm27", "xmm28", "xmm29", "xmm30", \
      "xmm31", "k1", "k2", "k3", "k4", "k5", "k6", "k7"
#else
#define SOJOURN_VECTOR_CLOBBERS                                                            \
  "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", \
      "xmm11", "xmm12", "xmm13", "xmm14", "xmm15"
#endif
/// Besides rax, rdi, rsi, rdx.
#define SOJOURN_CLOBBERS                                                                    \
  "rbx", "rcx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "memory", "cc", "st", \
      "st(1)", "st(2)", "st(3)", "st(4)", "st(5)", "st(6)", "st(7)", SOJOURN_VECTOR_CLOBBERS

#elif defined(__aarch64__)

#if defined(__ARM_FEATURE_SVE)
#define SOJOURN_PREDICATE_CLOBBERS                                                               \
  "p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7", "p8", "p9", "p10", "p11", "p12", "p13", "p14", \
      "p15",
#else
#define SOJOURN_PREDICATE_CLOBBERS
#endif
/// Besides x0 … x3 and x9.
#define SOJOURN_CLOBBERS                                                                         \
  "x4", "x5", "x6", "x7", "x8", "x10", "x11", "x12", "x13", "x14", "x15", "x16", "x17", "x18",   \
      "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "x30", "v0", "v1",   \
      "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15",  \
      "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28", \
      "v29", "v30", "v31", SOJOURN_PREDICATE_CLOBBERS "memory", "cc"

#else
#error "Sojourn knows x86-64 and aarch64"
#endif

#include <cstdint>

namespace sojourn::detail {

/// The running frame's stack pointer: from there up to the stack's end lie frames.
[[gnu::always_inline]] inline std::uintptr_t stack_pointer() {
  std::uintptr_t sp;
#if defined(__x86_64__)
  asm volatile("mov %%rsp, %0" : "=r"(sp));
#else
  asm volatile("mov %0, sp" : "=r"(sp));
#endif
  return sp;
}

}  // namespace sojourn::detail
