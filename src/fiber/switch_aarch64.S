/* SPDX-License-Identifier: Apache-2.0
   Leaving one stack for another on aarch64 (AAPCS64). See switch_x86_64.S for the idea; here every
   register but x29 and sp is named as clobbered by the inline assembly that calls. A suspended
   context is its stack pointer, the word there a resume address:

       by sojourn_switch         by sojourn_call_marked          by sojourn_fork_marked
       sp -> [ resume, 0 ]       sp -> [ resume_marked, x29 ]    sp -> [ resume_fork, 0          ]
             [ x29, x30  ]             [ x29, x30           ]          [ x29, x30                ]
                                                                       [ x19 to x28, d8 to d15   ]

   A resumed context receives a word in x0. Returns are made by a jump here, too. Therefore programs
   are compiled without branch targets (BTI): compilers put none behind a call. Nor are return
   addresses signed (PAC): the keys differ between processes, and frames travel. SojournFlags.cmake
   compiles all of a program so, and the linker sees that this file asks for neither. */

    .section sojourn_calls_program, "ax", %progbits

/* Leaves this stack for another.
     x0  where to save this stack pointer     x1  the other's     x2  the word it receives */
    .globl  sojourn_switch
    .type   sojourn_switch, %function
    .p2align 4
sojourn_switch:
    .cfi_startproc
    stp     x29, x30, [sp, #-16]!
    .cfi_adjust_cfa_offset 16
    .cfi_rel_offset x29, 0
    .cfi_rel_offset x30, 8
    adr     x9, .Lresume
    stp     x9, xzr, [sp, #-16]!
    .cfi_adjust_cfa_offset 16
    mov     x10, sp
    str     x10, [x0]
    mov     sp, x1
    mov     x0, x2
    ldr     x9, [sp]
    br      x9
.Lresume:
    add     sp, sp, #16
    .cfi_adjust_cfa_offset -16
    ldp     x29, x30, [sp], #16
    .cfi_adjust_cfa_offset -16
    .cfi_restore x29
    .cfi_restore x30
    mov     x9, x30
    br      x9
    .cfi_endproc
    .size   sojourn_switch, . - sojourn_switch

/* Calls fn(a, b, sp) with this stack made resumable at `sp`. This function follows the procedure
   call standard.
     x0  fn     x1  a     x2  b
   Returns in x0 what fn returned, or the word this stack, here or elsewhere, was resumed with. */
    .globl  sojourn_capture
    .type   sojourn_capture, %function
    .p2align 4
sojourn_capture:
    .cfi_startproc
    stp     x30, xzr, [sp, #-160]!
    .cfi_adjust_cfa_offset 160
    .cfi_rel_offset x30, 0
    stp     x19, x20, [sp, #16]
    .cfi_rel_offset x19, 16
    .cfi_rel_offset x20, 24
    stp     x21, x22, [sp, #32]
    .cfi_rel_offset x21, 32
    .cfi_rel_offset x22, 40
    stp     x23, x24, [sp, #48]
    .cfi_rel_offset x23, 48
    .cfi_rel_offset x24, 56
    stp     x25, x26, [sp, #64]
    .cfi_rel_offset x25, 64
    .cfi_rel_offset x26, 72
    stp     x27, x28, [sp, #80]
    .cfi_rel_offset x27, 80
    .cfi_rel_offset x28, 88
    stp     d8, d9, [sp, #96]
    .cfi_rel_offset d8, 96
    .cfi_rel_offset d9, 104
    stp     d10, d11, [sp, #112]
    .cfi_rel_offset d10, 112
    .cfi_rel_offset d11, 120
    stp     d12, d13, [sp, #128]
    .cfi_rel_offset d12, 128
    .cfi_rel_offset d13, 136
    stp     d14, d15, [sp, #144]
    .cfi_rel_offset d14, 144
    .cfi_rel_offset d15, 152
    adr     x10, .Lcaptured
    stp     x29, x10, [sp, #-16]!
    .cfi_adjust_cfa_offset 16
    .cfi_rel_offset x29, 0
    adr     x10, .Lresume
    stp     x10, xzr, [sp, #-16]!
    .cfi_adjust_cfa_offset 16
    mov     x9, x0
    mov     x0, x1
    mov     x1, x2
    mov     x2, sp
    blr     x9
    add     sp, sp, #16
    .cfi_adjust_cfa_offset -16
    ldp     x29, x10, [sp], #16
    .cfi_adjust_cfa_offset -16
    .cfi_restore x29
    nop                                 /* unwinders look before a return address */
.Lcaptured:
    ldp     x19, x20, [sp, #16]
    .cfi_restore x19
    .cfi_restore x20
    ldp     x21, x22, [sp, #32]
    .cfi_restore x21
    .cfi_restore x22
    ldp     x23, x24, [sp, #48]
    .cfi_restore x23
    .cfi_restore x24
    ldp     x25, x26, [sp, #64]
    .cfi_restore x25
    .cfi_restore x26
    ldp     x27, x28, [sp, #80]
    .cfi_restore x27
    .cfi_restore x28
    ldp     d8, d9, [sp, #96]
    .cfi_restore d8
    .cfi_restore d9
    ldp     d10, d11, [sp, #112]
    .cfi_restore d10
    .cfi_restore d11
    ldp     d12, d13, [sp, #128]
    .cfi_restore d12
    .cfi_restore d13
    ldp     d14, d15, [sp, #144]
    .cfi_restore d14
    .cfi_restore d15
    ldp     x30, xzr, [sp], #160
    .cfi_adjust_cfa_offset -160
    .cfi_restore x30
    ret
    .cfi_endproc
    .size   sojourn_capture, . - sojourn_capture

/* Marked call of an activation.
     x0  the mark, whose first word takes the saved sp, and argument of
     x1  the inner function
   Returns when the callee does, or when it is resumed after a cut; the mark tells which. The
   callee-saved registers are zeroed, as on x86-64, so that no stale pointer into older frames is
   saved in a younger frame that may travel. */
    .globl  sojourn_call_marked
    .type   sojourn_call_marked, %function
    .p2align 4
sojourn_call_marked:
    .cfi_startproc
    stp     x29, x30, [sp, #-16]!
    .cfi_def_cfa_offset 16
    .cfi_offset x29, -16
    .cfi_offset x30, -8
    mov     x29, sp
    .cfi_def_cfa_register x29
    adr     x10, .Lresume_marked
    stp     x10, x29, [sp, #-16]!
    mov     x11, sp
    str     x11, [x0]
    mov     x19, xzr
    mov     x20, xzr
    mov     x21, xzr
    mov     x22, xzr
    mov     x23, xzr
    mov     x24, xzr
    mov     x25, xzr
    mov     x26, xzr
    mov     x27, xzr
    mov     x28, xzr
    blr     x1
.Lleave:
    mov     sp, x29
    ldp     x29, x30, [sp], #16
    .cfi_def_cfa sp, 0
    .cfi_restore x29
    .cfi_restore x30
    ret
    .globl  sojourn_resume_marked
sojourn_resume_marked:                  /* for code that reads a suspended stack */
.Lresume_marked:
    .cfi_def_cfa x29, 16
    .cfi_offset x29, -16
    .cfi_offset x30, -8
    ldr     x29, [sp, #8]
    b       .Lleave
    .cfi_endproc
    .size   sojourn_call_marked, . - sojourn_call_marked

/* Marked calls of forks. They follow the procedure call standard. */
    .macro  save_registers
    stp     x29, x30, [sp, #-160]!
    .cfi_adjust_cfa_offset 160
    .cfi_rel_offset x29, 0
    .cfi_rel_offset x30, 8
    stp     x19, x20, [sp, #16]
    .cfi_rel_offset x19, 16
    .cfi_rel_offset x20, 24
    stp     x21, x22, [sp, #32]
    .cfi_rel_offset x21, 32
    .cfi_rel_offset x22, 40
    stp     x23, x24, [sp, #48]
    .cfi_rel_offset x23, 48
    .cfi_rel_offset x24, 56
    stp     x25, x26, [sp, #64]
    .cfi_rel_offset x25, 64
    .cfi_rel_offset x26, 72
    stp     x27, x28, [sp, #80]
    .cfi_rel_offset x27, 80
    .cfi_rel_offset x28, 88
    stp     d8, d9, [sp, #96]
    .cfi_rel_offset d8, 96
    .cfi_rel_offset d9, 104
    stp     d10, d11, [sp, #112]
    .cfi_rel_offset d10, 112
    .cfi_rel_offset d11, 120
    stp     d12, d13, [sp, #128]
    .cfi_rel_offset d12, 128
    .cfi_rel_offset d13, 136
    stp     d14, d15, [sp, #144]
    .cfi_rel_offset d14, 144
    .cfi_rel_offset d15, 152
    adr     x10, .Lresume_fork
    stp     x10, xzr, [sp, #-16]!
    .cfi_adjust_cfa_offset 16
    mov     x11, sp
    str     x11, [x0]
    .endm

    .globl  sojourn_fork_marked
    .type   sojourn_fork_marked, %function
    .p2align 4
sojourn_fork_marked:
    .cfi_startproc
    save_registers
    mov     x29, xzr
    mov     x19, xzr
    mov     x20, xzr
    mov     x21, xzr
    mov     x22, xzr
    mov     x23, xzr
    mov     x24, xzr
    mov     x25, xzr
    mov     x26, xzr
    mov     x27, xzr
    mov     x28, xzr
    blr     x1
    .globl  sojourn_resume_fork
sojourn_resume_fork:                  /* for code that reads a suspended stack */
.Lresume_fork:
    add     sp, sp, #16
    .cfi_adjust_cfa_offset -16
    ldp     x19, x20, [sp, #16]
    .cfi_restore x19
    .cfi_restore x20
    ldp     x21, x22, [sp, #32]
    .cfi_restore x21
    .cfi_restore x22
    ldp     x23, x24, [sp, #48]
    .cfi_restore x23
    .cfi_restore x24
    ldp     x25, x26, [sp, #64]
    .cfi_restore x25
    .cfi_restore x26
    ldp     x27, x28, [sp, #80]
    .cfi_restore x27
    .cfi_restore x28
    ldp     d8, d9, [sp, #96]
    .cfi_restore d8
    .cfi_restore d9
    ldp     d10, d11, [sp, #112]
    .cfi_restore d10
    .cfi_restore d11
    ldp     d12, d13, [sp, #128]
    .cfi_restore d12
    .cfi_restore d13
    ldp     d14, d15, [sp, #144]
    .cfi_restore d14
    .cfi_restore d15
    ldp     x29, x30, [sp], #160
    .cfi_adjust_cfa_offset -160
    .cfi_restore x29
    .cfi_restore x30
    ret
    .cfi_endproc
    .size   sojourn_fork_marked, . - sojourn_fork_marked

/* The same for a fork whose younger frames never leave without the older ones: no register need be
   zeroed, and on return the callee has preserved all. */
    .globl  sojourn_fork_marked_to_stay
    .type   sojourn_fork_marked_to_stay, %function
    .p2align 4
sojourn_fork_marked_to_stay:
    .cfi_startproc
    save_registers
    blr     x1
    add     sp, sp, #16
    .cfi_adjust_cfa_offset -16
    ldp     x29, x30, [sp], #160
    .cfi_adjust_cfa_offset -160
    .cfi_restore x29
    .cfi_restore x30
    ret
    .cfi_endproc
    .size   sojourn_fork_marked_to_stay, . - sojourn_fork_marked_to_stay

/* Runs fn(argument) on an empty stack; comes back when that stack leaves or ends.
     x0  where to save this stack pointer     x1  the empty stack's top, 16-aligned
     x2  fn                                   x3  argument */
    .globl  sojourn_call_on
    .type   sojourn_call_on, %function
    .p2align 4
sojourn_call_on:
    .cfi_startproc
    stp     x29, x30, [sp, #-16]!
    .cfi_adjust_cfa_offset 16
    .cfi_rel_offset x29, 0
    .cfi_rel_offset x30, 8
    adr     x9, .Lresume
    stp     x9, xzr, [sp, #-16]!
    .cfi_adjust_cfa_offset 16
    mov     x10, sp
    str     x10, [x0]
    mov     sp, x1
    mov     x0, x3
    mov     x29, xzr
    mov     x30, xzr
    mov     x19, xzr
    mov     x20, xzr
    mov     x21, xzr
    mov     x22, xzr
    mov     x23, xzr
    mov     x24, xzr
    mov     x25, xzr
    mov     x26, xzr
    mov     x27, xzr
    mov     x28, xzr
    .cfi_endproc
    .cfi_startproc
    .cfi_undefined x30
    blr     x2
    adrp    x9, sojourn_scheduler_sp
    ldr     x10, [x9, #:lo12:sojourn_scheduler_sp]
    mov     sp, x10
    mov     x0, xzr
    ldr     x9, [sp]
    br      x9
    .cfi_endproc
    .size   sojourn_call_on, . - sojourn_call_on

/* All code of this file lies between sojourn_switch and this: signal handlers compare with both. */
    .globl  sojourn_switch_end
sojourn_switch_end:

    .section .note.GNU-stack, "", %progbits
