/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The functions of hard.c that a compiler does not write. Each counts rdi down. */

.macro function name
	.globl \name
	.type \name, @function
	.p2align 4
\name:
.endm

.macro spin
1:	dec %rdi
	jnz 1b
.endm

	.text

/* rax has the CFA less 8 while another function runs. */
function hard_scratch
	.cfi_startproc
	lea (%rsp), %rax
	.cfi_def_cfa_register %rax
	push %rbx
	.cfi_offset %rbx, -16
	sub $64, %rsp
	call hard_scratch_inner
	mov -8(%rax), %rbx
	lea (%rax), %rsp
	.cfi_def_cfa_register %rsp
	ret
	.cfi_endproc
	.size hard_scratch, . - hard_scratch

function hard_scratch_inner
	.cfi_startproc
	spin
	ret
	.cfi_endproc
	.size hard_scratch_inner, . - hard_scratch_inner

/* The CFA is *(rsp + 8 + 8 * r9) + 8. */
function hard_expression
	.cfi_startproc
	mov %rsp, %rax
	.cfi_def_cfa_register %rax
	mov $4, %r9
	sub $80, %rsp
	mov %rax, 8(%rsp,%r9,8)
	/* DW_CFA_def_cfa_expression: breg7 8; breg9 0; lit8; mul; plus; deref; plus_uconst 8 */
	.cfi_escape 0x0f, 10, 0x77, 8, 0x79, 0, 0x38, 0x1e, 0x22, 0x06, 0x23, 8
	spin
	mov 8(%rsp,%r9,8), %rsp
	.cfi_def_cfa %rsp, 8
	ret
	.cfi_endproc
	.size hard_expression, . - hard_expression

function hard_no_cfi
	push %rbx
	push %r12
	sub $40, %rsp
	spin
	add $40, %rsp
	pop %r12
	pop %rbx
	ret
	.size hard_no_cfi, . - hard_no_cfi

/* The caller's stack pointer is at the place to which the stack is aligned, where rbp points to. */
function hard_aligned
	push %rbp
	mov %rsp, %rax
	sub $4, %rsp
	and $-32, %rsp
	mov %rax, (%rsp)
	mov %rsp, %rbp
	lea -256(%rsp), %rsp
	push %rbx
	spin
	pop %rbx
	mov %rbp, %rsp
	pop %rsp
	pop %rbp
	ret
	.size hard_aligned, . - hard_aligned

/* The caller's stack pointer is above the room that the function takes. */
function hard_aligned_sp
	mov %rsp, %rcx
	and $-64, %rsp
	sub $128, %rsp
	mov %rcx, 112(%rsp)
	xor %ecx, %ecx
	call hard_aligned
	mov 112(%rsp), %rsp
	ret
	.size hard_aligned_sp, . - hard_aligned_sp

/* Goes to another stack, on which nothing is but a return address of 0. */
function hard_zero
	push %rbx
	push %rbp
	push %r12
	push %r13
	push %r14
	push %r15
	mov %rsp, hard_stack_saved(%rip)
	mov hard_stack_top(%rip), %rsp
	pushq $0
	jmp hard_zero_body
	.size hard_zero, . - hard_zero

/* The same, but the return address is a function that has no call frame information. */
function hard_planted
	push %rbx
	push %rbp
	push %r12
	push %r13
	push %r14
	push %r15
	mov %rsp, hard_stack_saved(%rip)
	mov hard_stack_top(%rip), %rsp
	lea hard_begins(%rip), %rax
	push %rax
	jmp hard_zero_body
	.size hard_planted, . - hard_planted

/* So short that there is padding behind it. */
function hard_before_it
	ret
	.size hard_before_it, . - hard_before_it

function hard_begins
	hlt
	.size hard_begins, . - hard_begins

/* Returns from hard_zero() and hard_planted(). */
function hard_zero_back
	mov hard_stack_saved(%rip), %rsp
	pop %r15
	pop %r14
	pop %r13
	pop %r12
	pop %rbp
	pop %rbx
	ret
	.size hard_zero_back, . - hard_zero_back

/* The contents of a file: a page of data here. */
	.section .rodata
	.globl hard_raw
	.p2align 12
hard_raw:
	push %rbp
	mov %rsp, %rbp
	spin
	pop %rbp
	ret
	.p2align 12

	.section .note.GNU-stack, "", @progbits
