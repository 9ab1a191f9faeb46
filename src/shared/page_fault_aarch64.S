/* SPDX-License-Identifier: Apache-2.0
   The end of a fault on the stack of the code that faulted (fault_frame.hpp), on aarch64. */

    .text

/* sojourn_page_fault returns here, with sp at a copy of what the kernel had saved for the signal
   handler. Only the kernel can restore all registers at once. Unwinders know these two
   instructions, and find the registers in the copy; so this code has no tables of its own. */
    .p2align 4
    nop                                 /* unwinders look at the byte before an address */
    .globl  sojourn_page_fault_return
    .type   sojourn_page_fault_return, %function
sojourn_page_fault_return:
    mov     x8, #139                    /* rt_sigreturn */
    svc     #0
    .size   sojourn_page_fault_return, . - sojourn_page_fault_return

    .section .note.GNU-stack, "", %progbits
