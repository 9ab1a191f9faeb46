/* SPDX-License-Identifier: Apache-2.0
   Leaving one stack for another on aarch64 (AAPCS64). See switch_x86_64.S for the idea; a
   suspended context is its stack pointer, the word there a resume address (padded to 16 bytes):

       saved by sojourn_switch                  saved by sojourn_call_marked
       sp -> [ restore, 0         ]             sp -> [ resume_marked, x29 ]
             [ x19..x28           ]                   [ x29, x30           ]
             [ x29 x30            ]
             [ d8..d15            ]
   A resumed context receives a word in x0. */

    .text

#define FRAME 176

/* long sojourn_switch(void** save_sp, void* to_sp, long word) */
    .globl  sojourn_switch
    .type   sojourn_switch, %function
    .p2align 4
sojourn_switch:
    .cfi_startproc
    bti     c
    sub     sp, sp, #FRAME
    .cfi_def_cfa_offset FRAME
    stp     x19, x20, [sp, #16]
    stp     x21, x22, [sp, #32]
    stp     x23, x24, [sp, #48]
    stp     x25, x26, [sp, #64]
    stp     x27, x28, [sp, #80]
    stp     x29, x30, [sp, #96]
    .cfi_offset x29, -80
    .cfi_offset x30, -72
    stp     d8, d9, [sp, #112]
    stp     d10, d11, [sp, #128]
    stp     d12, d13, [sp, #144]
    stp     d14, d15, [sp, #160]
    adr     x9, .Lrestore
    stp     x9, xzr, [sp]
    mov     x10, sp
    str     x10, [x0]
    mov     sp, x1
    mov     x0, x2
    ldr     x9, [sp]
    br      x9
.Lrestore:
    bti     j
    ldp     x19, x20, [sp, #16]
    ldp     x21, x22, [sp, #32]
    ldp     x23, x24, [sp, #48]
    ldp     x25, x26, [sp, #64]
    ldp     x27, x28, [sp, #80]
    ldp     x29, x30, [sp, #96]
    ldp     d8, d9, [sp, #112]
    ldp     d10, d11, [sp, #128]
    ldp     d12, d13, [sp, #144]
    ldp     d14, d15, [sp, #160]
    add     sp, sp, #FRAME
    .cfi_def_cfa_offset 0
    .cfi_restore x29
    .cfi_restore x30
    ret
    .cfi_endproc
    .size   sojourn_switch, . - sojourn_switch

/* Marked call; called from inline assembly only, which names every register as clobbered but
   x29.  x9 inner function, x0 its argument: the mark, whose first word takes the saved sp.
   Returns when the callee does, or when it is resumed after a cut; the mark tells which. */
    .globl  sojourn_call_marked
    .type   sojourn_call_marked, %function
    .p2align 4
sojourn_call_marked:
    .cfi_startproc
    bti     c
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
    blr     x9
.Lleave:
    mov     sp, x29
    ldp     x29, x30, [sp], #16
    .cfi_def_cfa sp, 0
    .cfi_restore x29
    .cfi_restore x30
    ret
.Lresume_marked:
    .cfi_def_cfa x29, 16
    .cfi_offset x29, -16
    .cfi_offset x30, -8
    bti     j
    ldr     x29, [sp, #8]
    b       .Lleave
    .cfi_endproc
    .size   sojourn_call_marked, . - sojourn_call_marked

/* void sojourn_call_on(void** save_sp, void* stack_top, void (*fn)(void*), void* arg) */
    .globl  sojourn_call_on
    .type   sojourn_call_on, %function
    .p2align 4
sojourn_call_on:
    .cfi_startproc
    bti     c
    sub     sp, sp, #FRAME
    .cfi_def_cfa_offset FRAME
    stp     x19, x20, [sp, #16]
    stp     x21, x22, [sp, #32]
    stp     x23, x24, [sp, #48]
    stp     x25, x26, [sp, #64]
    stp     x27, x28, [sp, #80]
    stp     x29, x30, [sp, #96]
    stp     d8, d9, [sp, #112]
    stp     d10, d11, [sp, #128]
    stp     d12, d13, [sp, #144]
    stp     d14, d15, [sp, #160]
    adr     x9, .Lrestore
    stp     x9, xzr, [sp]
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

    .section .note.GNU-stack, "", %progbits
