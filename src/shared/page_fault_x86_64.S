/* SPDX-License-Identifier: Apache-2.0
   Where a fault goes on, on the stack of the code that faulted (fault_frame.hpp), on x86-64. */

    .intel_syntax noprefix
    .text

    .macro  save register
    push    \register
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset \register, 0
    .endm
    .macro  restore register
    pop     \register
    .cfi_adjust_cfa_offset -8
    .cfi_restore \register
    .endm

/* Entered when the signal handler returns, with the registers of the interrupted code:

     rsp -> [ store? ] [ address ] [ the interrupted instruction ] [ red zone, 128 bytes ] ...

   When all is saved, or has been copied by the signal handler:

     rsp -> [ XSAVE area, aligned to 64 bytes ] ...
     rbp -> [ r15 ... r8, rdi, rsi, rbp, rbx, rdx, rcx, rax ] [ flags ] [ store? ] ...

   To unwinders it is a frame of a signal: its caller may have stopped at any instruction. */
    .globl  sojourn_page_fault_pushed
    .type   sojourn_page_fault_pushed, @function
    .p2align 4
    .cfi_startproc
    .cfi_signal_frame
    .cfi_def_cfa rsp, 152
    .cfi_offset rip, -136
    nop                                 /* unwinders look at the byte before an address */
sojourn_page_fault_pushed:
    pushfq
    .cfi_adjust_cfa_offset 8
    cld
    save    rax
    save    rcx
    save    rdx
    save    rbx
    save    rbp
    save    rsi
    save    rdi
    save    r8
    save    r9
    save    r10
    save    r11
    save    r12
    save    r13
    save    r14
    save    r15
    mov     rbp, rsp
    .cfi_def_cfa_register rbp
    sub     rsp, [rip + sojourn_xsave_bytes]
    and     rsp, -64
    xor     eax, eax                    /* the area's header must be 0 */
    mov     [rsp + 512], rax
    mov     [rsp + 520], rax
    mov     [rsp + 528], rax
    mov     [rsp + 536], rax
    mov     [rsp + 544], rax
    mov     [rsp + 552], rax
    mov     [rsp + 560], rax
    mov     [rsp + 568], rax
    mov     eax, [rip + sojourn_xsave_mask]
    xor     edx, edx
    xsave64 [rsp]
.Lcall:
    mov     rdi, [rbp + 136]
    mov     esi, [rbp + 128]
    call    sojourn_page_fault
    mov     eax, [rip + sojourn_xsave_mask]
    xor     edx, edx
    xrstor64 [rsp]
    mov     rsp, rbp
    .cfi_def_cfa_register rsp
    restore r15
    restore r14
    restore r13
    restore r12
    restore r11
    restore r10
    restore r9
    restore r8
    restore rdi
    restore rsi
    restore rbp
    restore rbx
    restore rdx
    restore rcx
    restore rax
    popfq
    .cfi_adjust_cfa_offset -8
    lea     rsp, [rsp + 16]
    .cfi_adjust_cfa_offset -16
    ret     128
    .cfi_endproc
    .size   sojourn_page_fault_pushed, . - sojourn_page_fault_pushed

/* Called in the signal handler, which is left for good.
     rdi  the saved registers     rsi  the XSAVE area below them */
    .globl  sojourn_page_fault_taken
    .type   sojourn_page_fault_taken, @function
    .p2align 4
sojourn_page_fault_taken:
    mov     rbp, rdi
    mov     rsp, rsi
    jmp     .Lcall
    .size   sojourn_page_fault_taken, . - sojourn_page_fault_taken

    .section .note.GNU-stack, "", @progbits
