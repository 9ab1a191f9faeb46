/* SPDX-License-Identifier: Apache-2.0
   Starting an unwinder on a stack that does not run; see walk_x86_64.S. */

    .text

/*   x0  from: pc, sp, x29        x1  fn        x2  argument */
    .globl  sojourn_call_as_if_from
    .type   sojourn_call_as_if_from, %function
    .p2align 4
sojourn_call_as_if_from:
    .cfi_startproc
    stp     x19, x30, [sp, #-16]!
    .cfi_adjust_cfa_offset 16
    mov     x19, x0
    mov     x0, x2
    .cfi_remember_state
    .cfi_escape 0x0f, 3, 0x83, 8, 0x06      /* CFA = [x19 + 8] */
    .cfi_escape 0x10, 30, 2, 0x83, 0        /* the return address is at x19 */
    .cfi_escape 0x10, 29, 2, 0x83, 16       /* x29 is at x19 + 16 */
    blr     x1
    .cfi_restore_state
    ldp     x19, x30, [sp], #16
    .cfi_adjust_cfa_offset -16
    ret
    .cfi_endproc
    .size   sojourn_call_as_if_from, . - sojourn_call_as_if_from

    .section .note.GNU-stack, "", %progbits
