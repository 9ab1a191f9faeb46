/* SPDX-License-Identifier: Apache-2.0
   Leaving one stack for another on x86-64 (System V ABI).

   Each entry point but sojourn_capture and those of forks is called from inline assembly only, which
   names every register but rbp and rsp as clobbered: the compiler then saves what lives, and only
   that. A suspended context is its stack pointer. The word there is a resume address. Only the code
   at that address knows what lies above, so whoever resumes a context need not know its kind:

       by sojourn_switch            by sojourn_call_marked       by sojourn_fork_marked
       sp -> [ resume         ]     sp -> [ resume_marked  ]     sp -> [ resume_fork                ]
             [ rbp            ]           [ its rbp        ]           [ r15, r14, r13, r12, rbx, rbp ]
             [ return address ]           ...                          [ return address             ]

   A resumed context receives a word in rax. Returns are made by a jump: a `ret` would be predicted
   by the calls of the stack that was left, always wrongly. x87 and MXCSR control words are kept by
   the scheduler, which reloads them only on change. */

    .intel_syntax noprefix
    .section sojourn_calls_program, "ax", @progbits

/* Leaves this stack for another.
     rdi  where to save this stack pointer     rsi  the other's     rax  the word it receives */
    .globl  sojourn_switch
    .type   sojourn_switch, @function
    .p2align 4
sojourn_switch:
    .cfi_startproc
    push    rbp
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset rbp, 0
    push    offset .Lresume
    .cfi_adjust_cfa_offset 8
    mov     [rdi], rsp
    mov     rsp, rsi
    pop     rcx
    .cfi_adjust_cfa_offset -8
    jmp     rcx
.Lresume:
    pop     rbp
    .cfi_adjust_cfa_offset -8
    .cfi_restore rbp
    pop     rcx
    jmp     rcx
    .cfi_endproc
    .size   sojourn_switch, . - sojourn_switch

/* Calls fn(a, b, sp) with this stack made resumable at `sp`. fn may copy away what lies above `sp`
   and then leave this stack for good; or it returns. This function follows the C ABI, so that a
   function that ends with a call of it can jump here and need not return itself.
     rdi  fn     rsi  a     rdx  b
   Returns in rax what fn returned, or the word this stack, here or elsewhere, was resumed with. */
    .globl  sojourn_capture
    .type   sojourn_capture, @function
    .p2align 4
sojourn_capture:
    .cfi_startproc
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
    push    offset .Lcaptured
    .cfi_adjust_cfa_offset 8
    push    rbp
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset rbp, 0
    mov     rbp, rsp
    .cfi_def_cfa_register rbp
    push    offset .Lresume
    mov     rax, rdi
    mov     rdi, rsi
    mov     rsi, rdx
    mov     rdx, rsp
    and     rsp, -16
    call    rax
    leave
    .cfi_def_cfa rsp, 56
    .cfi_restore rbp
    add     rsp, 8
    .cfi_adjust_cfa_offset -8
    nop                                 /* unwinders look at the byte before a return address */
.Lcaptured:
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
    pop     rcx
    jmp     rcx
    .cfi_endproc
    .size   sojourn_capture, . - sojourn_capture

/* Marked call of an activation; called from inline assembly only, which names every register but
   rbp as clobbered.
     rdi  the mark, whose first word takes the saved sp, and argument of
     rsi  the inner function
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
    call    rsi
    leave
    .cfi_def_cfa rsp, 8
    .cfi_restore rbp
    ret
    .cfi_escape 0x0f, 5, 0x77, 0, 0x06, 0x23, 16  /* 16 above where the word at rsp points */
    .cfi_offset rbp, -16
    nop                                 /* unwinders look at the byte before a return address */
    .globl  sojourn_resume_marked
sojourn_resume_marked:                  /* for code that reads a suspended stack */
.Lresume_marked:
    pop     rbp
    .cfi_def_cfa rbp, 16
    leave
    .cfi_def_cfa rsp, 8
    .cfi_restore rbp
    ret
    .cfi_endproc
    .size   sojourn_call_marked, . - sojourn_call_marked

/* Marked calls of forks. They follow the C ABI and save the registers themselves: most functions in
   a tree of forks are leaves, which so save no registers for a fork that they do not reach. */
    .macro  save_registers
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
    push    offset .Lresume_fork
    .cfi_adjust_cfa_offset 8
    mov     [rdi], rsp
    .endm

    .globl  sojourn_fork_marked
    .type   sojourn_fork_marked, @function
    .p2align 6
sojourn_fork_marked:
    .cfi_startproc
    save_registers
    xor     ebx, ebx
    xor     ebp, ebp
    xor     r12d, r12d
    xor     r13d, r13d
    xor     r14d, r14d
    xor     r15d, r15d
    call    rsi
    add     rsp, 8
    .cfi_adjust_cfa_offset -8
    nop                                 /* unwinders look at the byte before a return address */
    .globl  sojourn_resume_fork
sojourn_resume_fork:                  /* for code that reads a suspended stack */
.Lresume_fork:
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
    .size   sojourn_fork_marked, . - sojourn_fork_marked

/* The same for a fork whose younger frames never leave without the older ones: no register need be
   zeroed. */
    .globl  sojourn_fork_marked_to_stay
    .type   sojourn_fork_marked_to_stay, @function
    .p2align 6
sojourn_fork_marked_to_stay:
    .cfi_startproc
    save_registers
    call    rsi
    add     rsp, 56                     /* the callee has preserved them */
    .cfi_adjust_cfa_offset -56
    ret
    .cfi_endproc
    .size   sojourn_fork_marked_to_stay, . - sojourn_fork_marked_to_stay

/* Calls a child without a link; reached by a jump from the function that the fork has called.
     r11  the site
   A site that forks for the first time is entered into the list of them all, and is called directly
   from then on, unless all forks are to be counted. Preserves all registers of arguments. */
    .globl  sojourn_call_counted
    .type   sojourn_call_counted, @function
    .p2align 4
sojourn_call_counted:
    .cfi_startproc
    inc     qword ptr [r11]
    cmp     qword ptr [r11 + 32], 0
    jne     1f
    mov     rax, [rsp]
    mov     [r11 + 32], rax
    mov     rax, [rip + sojourn_fork_sites]
    mov     [r11 + 40], rax
    mov     [rip + sojourn_fork_sites], r11
    cmp     qword ptr [rip + sojourn_fork_sites + 8], 0
    jne     1f
    mov     rax, [r11 + 64]
    mov     [r11 + 56], rax
    mov     [r11 + 72], rax
1:
    jmp     [r11 + 64]
    .cfi_endproc
    .size   sojourn_call_counted, . - sojourn_call_counted

/* Calls a child under a link (fork_links.hpp), for a fork whose mark is in the tables; reached by a
   jump from the function that the fork has called.
     r11  the site
   The link lies in the child's frames, right below the return address, which identifies the mark:
     [ site ] [ negated forks by tables so far ] [ next older link ] [ r15, r14, r13, r12, rbx, rbp ]
   The registers hold values of the older frames: they are saved here and zeroed, as for
   sojourn_fork_marked. */
    .globl  sojourn_call_linked
    .type   sojourn_call_linked, function
    .p2align 6
sojourn_call_linked:
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
    push    [rip + sojourn_fork_links]
    .cfi_adjust_cfa_offset 8
    mov     rax, [rip + sojourn_fork_links + 8]
    inc     rax
    mov     [rip + sojourn_fork_links + 8], rax
    sub     rax, [rip + _ZN7sojourn6detail6countsE + 312] /* counts.forks: fork_links.cpp */
    push    rax
    .cfi_adjust_cfa_offset 8
    push    r11
    .cfi_adjust_cfa_offset 8
    xor     ebx, ebx
    sub     rbx, rsp
    mov     [rip + sojourn_fork_links], rbx
    xor     ebx, ebx
    xor     ebp, ebp
    xor     r12d, r12d
    xor     r13d, r13d
    xor     r14d, r14d
    xor     r15d, r15d
    inc     qword ptr [r11]
    call    [r11 + 64]
    .globl  sojourn_linked_child_returns
sojourn_linked_child_returns:
    pop     r11
    .cfi_adjust_cfa_offset -8
    add     rsp, 8
    .cfi_adjust_cfa_offset -8
    pop     [rip + sojourn_fork_links]
    .cfi_adjust_cfa_offset -8
    mov     rcx, [r11]
    cmp     rcx, [r11 + 8]
    jae     2f
1:
    .cfi_remember_state
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
    .cfi_restore_state
2:  /* For long no child of the site has blocked. */
    mov     rcx, [r11 + 72]
    mov     [r11 + 56], rcx
    jmp     1b
    .cfi_endproc
    .size   sojourn_call_linked, . - sojourn_call_linked

/* Marked call of an activation or a fork in checked mode; it follows the C ABI. The younger frames
   begin at a page boundary, so that on another rank the pages above can be made inaccessible. The
   first word of these frames is the caller's return address, so that the caller can be named there.
   SOJOURN_CLEARED_BYTES of the stack below are cleared, so that the younger frames hold no words of
   earlier calls. The registers are saved as for a fork; the word above them is the address of this
   function's own frame. */
    .globl  sojourn_call_marked_checked
    .type   sojourn_call_marked_checked, @function
    .p2align 4
sojourn_call_marked_checked:
    .cfi_startproc
    push    rbp
    .cfi_def_cfa_offset 16
    .cfi_offset rbp, -16
    mov     rbp, rsp
    .cfi_def_cfa_register rbp
    sub     rsp, 80
    and     rsp, -4096
    add     rsp, 72
    push    rbp
    push    [rbp + 8]
    push    [rbp]
    push    rbx
    push    r12
    push    r13
    push    r14
    push    r15
    push    offset .Lresume_marked_checked
    mov     [rdi], rsp
    push    [rbp + 8]
    push    0
    mov     rdx, rdi
    lea     rdi, [rsp - 4080]
    mov     ecx, 510
    xor     eax, eax
    rep stosq
    mov     rdi, rdx
    xor     ebx, ebx
    xor     r12d, r12d
    xor     r13d, r13d
    xor     r14d, r14d
    xor     r15d, r15d
    call    rsi
    add     rsp, 24
    .globl  sojourn_resume_marked_checked
sojourn_resume_marked_checked:
.Lresume_marked_checked:
    pop     r15
    pop     r14
    pop     r13
    pop     r12
    pop     rbx
    add     rsp, 16
    pop     rbp
    leave
    .cfi_def_cfa rsp, 8
    .cfi_restore rbp
    ret
    .cfi_endproc
    .size   sojourn_call_marked_checked, . - sojourn_call_marked_checked

/* Runs fn(argument) on an empty stack; comes back when that stack leaves, now or, had it been
   suspended meanwhile, whenever it returns: a stack that ends resumes whatever context
   sojourn_scheduler_sp then names, on whatever rank it then is.
     rdi  where to save this stack pointer     rsi  the empty stack's top, 16-aligned
     rax  fn                                   rdx  argument */
    .globl  sojourn_call_on
    .type   sojourn_call_on, @function
    .p2align 4
sojourn_call_on:
    .cfi_startproc
    push    rbp
    .cfi_adjust_cfa_offset 8
    push    offset .Lresume
    .cfi_adjust_cfa_offset 8
    mov     [rdi], rsp
    mov     rsp, rsi
    mov     rdi, rdx
    xor     ebp, ebp
    xor     ebx, ebx
    xor     r12d, r12d
    xor     r13d, r13d
    xor     r14d, r14d
    xor     r15d, r15d
    .cfi_endproc
    .cfi_startproc
    .cfi_undefined rip
    call    rax
    mov     rsp, [rip + sojourn_scheduler_sp]
    xor     eax, eax
    pop     rcx
    jmp     rcx
    .cfi_endproc
    .size   sojourn_call_on, . - sojourn_call_on

/* Goes on in a handler, as an unwinder that has found the handler does.
     rdi  values of rbx, rbp, r12 to r15     rsi  the stack pointer of the handler's frame
     rdx  the exception     rcx  the handler's number     r8  where the handlers there begin */
    .globl  sojourn_enter_handler
    .type   sojourn_enter_handler, @function
    .p2align 4
sojourn_enter_handler:
    mov     rbx, [rdi]
    mov     rbp, [rdi + 8]
    mov     r12, [rdi + 16]
    mov     r13, [rdi + 24]
    mov     r14, [rdi + 32]
    mov     r15, [rdi + 40]
    mov     rsp, rsi
    mov     rax, rdx
    mov     rdx, rcx
    jmp     r8
    .size   sojourn_enter_handler, . - sojourn_enter_handler

/* The same as a context (write_handler_context), which lies below the handler's frame:
     sp -> [ resume ] [ r15, r14, r13, r12, rbp, rbx ] [ the call's return address ] [ handlers ]
           [ which ] [ ticket ] [ how it was cut ] */
    .type   sojourn_handler_context, @function
    .p2align 4
sojourn_handler_context:
    .cfi_startproc
    .cfi_def_cfa rsp, 88
    .cfi_offset rip, -40
    .cfi_offset rbx, -48
    .cfi_offset rbp, -56
    .cfi_offset r12, -64
    .cfi_offset r13, -72
    .cfi_offset r14, -80
    .cfi_offset r15, -88
    nop                                 /* unwinders look at the byte before a return address */
    .globl  sojourn_resume_handler
sojourn_resume_handler:
    mov     rdi, [rsp + 72]
    mov     rsi, [rsp + 80]
    sub     rsp, 8
    .cfi_adjust_cfa_offset 8
    call    sojourn_begin_handler
    add     rsp, 8
    .cfi_adjust_cfa_offset -8
    mov     r15, [rsp]
    mov     r14, [rsp + 8]
    mov     r13, [rsp + 16]
    mov     r12, [rsp + 24]
    mov     rbp, [rsp + 32]
    mov     rbx, [rsp + 40]
    mov     rdx, [rsp + 64]
    mov     rcx, [rsp + 56]
    add     rsp, 88
    .cfi_adjust_cfa_offset -88
    jmp     rcx
    .cfi_endproc
    .size   sojourn_handler_context, . - sojourn_handler_context

/* Where a child that was cut off its caller returns: its result goes to its ticket. An exception
   that leaves the child is caught here, by sojourn_child_personality. */
    .type   sojourn_after_child, @function
    .p2align 4
sojourn_after_child:
    .cfi_startproc
    .cfi_personality 0x03, sojourn_child_personality
    .cfi_undefined rip
    nop
    .globl  sojourn_child_finish
sojourn_child_finish:
    movq    rsi, xmm0
    mov     rdi, rax
    call    sojourn_child_returned
    ud2
    .globl  sojourn_child_threw
sojourn_child_threw:
    mov     rdi, rax
    call    sojourn_child_caught
    ud2
    .cfi_endproc
    .size   sojourn_after_child, . - sojourn_after_child

/* All code of this file lies between sojourn_switch and this: signal handlers compare with both. */
    .globl  sojourn_switch_end
sojourn_switch_end:

    .section .note.GNU-stack, "", @progbits
