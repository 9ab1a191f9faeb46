/* SPDX-License-Identifier: Apache-2.0
   Leaving one stack for another on x86-64 (System V ABI).

   A suspended context is its stack pointer. The word it points to is a resume address; what lies
   above that word is known to the code at that address alone, so whoever resumes a context needs
   no kinds:

       saved by sojourn_switch          saved by sojourn_call_marked
       sp -> [ restore            ]     sp -> [ resume_marked          ]
             [ r15 r14 r13 r12    ]           [ frame of call_marked   ]  rbp there
             [ rbx rbp            ]           ...
             [ return address     ]

   A resumed context receives a word in rax: the result of sojourn_switch or of the marked call.
   x87 and MXCSR control words are kept by the scheduler, which reloads them only on change. */

    .intel_syntax noprefix
    .text

/* long sojourn_switch(void** save_sp, void* to_sp, long word) */
    .globl  sojourn_switch
    .type   sojourn_switch, @function
    .p2align 4
sojourn_switch:
    .cfi_startproc
    push    rbp
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset rbp, 0
    push    rbx
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset rbx, 0
    push    r12
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset r12, 0
    push    r13
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset r13, 0
    push    r14
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset r14, 0
    push    r15
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset r15, 0
    lea     rcx, [rip + .Lrestore]
    push    rcx
    .cfi_adjust_cfa_offset 8
    mov     [rdi], rsp
    mov     rsp, rsi
    mov     rax, rdx
    pop     rcx
    .cfi_adjust_cfa_offset -8
    jmp     rcx
.Lrestore:
    pop     r15
    .cfi_adjust_cfa_offset -8
    .cfi_restore r15
    pop     r14
    .cfi_adjust_cfa_offset -8
    .cfi_restore r14
    pop     r13
    .cfi_adjust_cfa_offset -8
    .cfi_restore r13
    pop     r12
    .cfi_adjust_cfa_offset -8
    .cfi_restore r12
    pop     rbx
    .cfi_adjust_cfa_offset -8
    .cfi_restore rbx
    pop     rbp
    .cfi_adjust_cfa_offset -8
    .cfi_restore rbp
    ret
    .cfi_endproc
    .size   sojourn_switch, . - sojourn_switch

/* Marked call; called from inline assembly only, which names every register as clobbered but rbp.
     rax  inner function        rdi  its argument: the mark, whose first word takes the saved sp
   Returns when the callee does, or when it is resumed after a cut; the mark tells which.
   The callee-saved registers hold values of the older frames: they are zeroed, so that no stale
   pointer into those frames is saved in a younger frame that may travel. */
    .globl  sojourn_call_marked
    .type   sojourn_call_marked, @function
    .p2align 4
sojourn_call_marked:
    .cfi_startproc
    push    rbp
    .cfi_def_cfa_offset 16
    .cfi_offset rbp, -16
    mov     rbp, rsp
    .cfi_def_cfa_register rbp
    and     rsp, -16
    push    rbp
    push    offset .Lresume_marked
    mov     [rdi], rsp
    xor     ebx, ebx
    xor     r12d, r12d
    xor     r13d, r13d
    xor     r14d, r14d
    xor     r15d, r15d
    call    rax
    leave
    .cfi_def_cfa rsp, 8
    .cfi_restore rbp
    ret
.Lresume_marked:
    .cfi_def_cfa rbp, 16
    .cfi_offset rbp, -16
    pop     rbp
    leave
    .cfi_def_cfa rsp, 8
    .cfi_restore rbp
    ret
    .cfi_endproc
    .size   sojourn_call_marked, . - sojourn_call_marked

/* void sojourn_call_on(void** save_sp, void* stack_top, void (*fn)(void*), void* arg)
   Runs fn(arg) on an empty stack; comes back when that stack leaves, now or, had it been
   suspended meanwhile, whenever it returns: a stack that ends resumes whatever context
   sojourn_scheduler_sp then names, on whatever rank it then is. `stack_top` is 16-aligned. */
    .globl  sojourn_call_on
    .type   sojourn_call_on, @function
    .p2align 4
sojourn_call_on:
    .cfi_startproc
    push    rbp
    .cfi_adjust_cfa_offset 8
    push    rbx
    .cfi_adjust_cfa_offset 8
    push    r12
    .cfi_adjust_cfa_offset 8
    push    r13
    .cfi_adjust_cfa_offset 8
    push    r14
    .cfi_adjust_cfa_offset 8
    push    r15
    .cfi_adjust_cfa_offset 8
    lea     rax, [rip + .Lrestore]
    push    rax
    .cfi_adjust_cfa_offset 8
    mov     [rdi], rsp
    mov     rsp, rsi
    mov     rdi, rcx
    xor     ebp, ebp
    xor     ebx, ebx
    xor     r12d, r12d
    xor     r13d, r13d
    xor     r14d, r14d
    xor     r15d, r15d
    .cfi_endproc
    .cfi_startproc
    .cfi_undefined rip
    call    rdx
    mov     rsp, [rip + sojourn_scheduler_sp]
    xor     eax, eax
    pop     rcx
    jmp     rcx
    .cfi_endproc
    .size   sojourn_call_on, . - sojourn_call_on

    .section .note.GNU-stack, "", @progbits
