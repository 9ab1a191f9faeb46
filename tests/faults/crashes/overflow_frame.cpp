// SPDX-License-Identifier: Apache-2.0
// A function as libraries have them that were compiled without stack clash protection: an array of
// a MiB on a fiber's stack of 256 KiB, of which only the far end is touched.
// clang-format off
//! status 139
//! says sojourn run: rank LAST (pid [0-9]*, .*crash_overflow_frame) was killed by SIGSEGV (segmentation fault) at address 0x[0-9a-f]*
//! says   stack overflow: the stack of a fiber, 256 KiB, is full; use less of it (recursion, large local arrays), or run with larger ones: --stack-fiber SIZE (SOJOURN_STACK_KIB)
//! says     #1  0x[0-9a-f]*  faults::begin(long) at .*overflow_frame.cpp:LINE
//! says   a call by rank 0, of faults::begin(long)
// clang-format on
#include <sojourn/sojourn.hpp>

extern "C" long touches_far_end(long bytes);
#if defined(__x86_64__)
asm(R"(
  .text
  .type touches_far_end, @function
touches_far_end:
  .cfi_startproc
  push %rbp
  .cfi_def_cfa_offset 16
  .cfi_offset %rbp, -16
  mov %rsp, %rbp
  .cfi_def_cfa_register %rbp
  sub %rdi, %rsp
  movq $1, 8(%rsp)
  mov 8(%rsp), %rax
  leave
  .cfi_def_cfa %rsp, 8
  ret
  .cfi_endproc
  .size touches_far_end, . - touches_far_end
)");
#else
asm(R"(
  .text
  .type touches_far_end, @function
touches_far_end:
  .cfi_startproc
  stp x29, x30, [sp, #-16]!
  .cfi_def_cfa_offset 16
  .cfi_offset x29, -16
  .cfi_offset x30, -8
  mov x29, sp
  .cfi_def_cfa_register x29
  sub sp, sp, x0
  str x0, [sp, #8]
  ldr x0, [sp, #8]
  mov sp, x29
  ldp x29, x30, [sp], #16
  .cfi_def_cfa sp, 0
  ret
  .cfi_endproc
  .size touches_far_end, . - touches_far_end
)");
#endif

namespace faults {
[[gnu::noinline]] long begin(long bytes) {
  return touches_far_end(bytes) + 1;  // here
}
}  // namespace faults

int main(int argc, char** argv) {
  return sojourn::run(argc, argv, [] {
    if (sojourn::rank_me() == 0)
      sojourn::rpc(sojourn::rank_count() - 1, faults::begin, 1L << 20).get();
    sojourn::barrier();
  });
}
