/* SPDX-License-Identifier: Apache-2.0
   Starting an unwinder on a stack that does not run. */

    .intel_syntax noprefix
    .text

/* Calls fn(argument) so that an unwinder started in fn finds, as the caller of this frame, the call
   whose registers `from` holds: this function's unwind table says that they lie in `from`.
     rdi  from: pc, sp, rbp        rsi  fn        rdx  argument */
    .globl  sojourn_call_as_if_from
    .type   sojourn_call_as_if_from, @function
    .p2align 4
sojourn_call_as_if_from:
    .cfi_startproc
    push    rbx
    .cfi_adjust_cfa_offset 8
    mov     rbx, rdi
    mov     rdi, rdx
    .cfi_remember_state
    .cfi_escape 0x0f, 3, 0x73, 8, 0x06      /* CFA = [rbx + 8] */
    .cfi_escape 0x10, 16, 2, 0x73, 0        /* rip is at rbx */
    .cfi_escape 0x10, 6, 2, 0x73, 16        /* rbp is at rbx + 16 */
    call    rsi
    .cfi_restore_state
    pop     rbx
    .cfi_adjust_cfa_offset -8
    ret
    .cfi_endproc
    .size   sojourn_call_as_if_from, . - sojourn_call_as_if_from

    .section .note.GNU-stack, "", @progbits
