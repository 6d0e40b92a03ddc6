/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A Go program as far as its pclntab goes (runtime/symtab.go), written by hand.
 *
 * VERSION: 118, 120, 126 or 127, as Go 1.18, 1.20, … lays it out. RELOCATED: for -shared, amidst
 * other data, with relocations in the place of pointers.
 */
#ifndef VERSION
#define VERSION 120
#endif
#ifdef RELOCATED
#define TABLE_SECTION .section .data.rel.ro, "aw"
#else
#define TABLE_SECTION .section .gopclntab, "a"
#endif
#if VERSION >= 126
#define MODULE_SECTION .section .go.module, "aw"
#else
#define MODULE_SECTION .section .noptrdata, "aw"
#endif

	.section .note.go.buildid, "a"
	.long 4, 3, 4
	.ascii "Go\0\0id\0\0"

/* ---- code ---------------------------------------------------------------------------- */

	.text
	.globl _start
before:
_start:
	ret
	.p2align 4, 0xcc

go_text:
/* As Go since 1.21: rbp is pushed. main.inner is inlined from inner_0 to inner_1. */
pushes:
	push %rbp
pushes_1:
	mov %rsp, %rbp
	sub $16, %rsp
pushes_2:
	call stores
inner_0:
	nop
inner_1:
	add $16, %rsp
pushes_3:
	pop %rbp
pushes_4:
	ret
pushes_end:
	.p2align 4, 0xcc

/* As before: rbp is stored. */
stores:
	sub $24, %rsp
stores_1:
	mov %rbp, 16(%rsp)
stores_saved:
	lea 16(%rsp), %rbp
	mov 16(%rsp), %rbp
	add $24, %rsp
stores_2:
	ret
	.p2align 4, 0xcc

/* The same with a frame for which the distance takes four bytes. */
stores_far:
	sub $1024, %rsp
stores_far_1:
	mov %rbp, 1016(%rsp)
stores_far_saved:
	mov 1016(%rsp), %rbp
	add $1024, %rsp
stores_far_2:
	ret
	.p2align 4, 0xcc

/* And with one in which there is room for nothing else. */
stores_none:
	sub $8, %rsp
stores_none_1:
	mov %rbp, (%rsp)
stores_none_saved:
	mov (%rsp), %rbp
	add $8, %rsp
stores_none_2:
	ret
	.p2align 4, 0xcc

/* An assembler's: rbp stays where it is. */
grows:
	sub $8, %rsp
grows_1:
	add $8, %rsp
grows_2:
	ret
grows_3:
	nop
	.p2align 4, 0xcc

top:
	nop
	call pushes
	.p2align 4, 0xcc

/* A handler's: what it interrupted is behind it, though it is said to be the outermost. */
handler:
	ret
	.p2align 4, 0xcc

never_returns:
	ret
	.p2align 4, 0xcc

switches:
	nop
	mov 0x38(%rbx), %rsp
switches_1:
	call pushes
	ret
	.p2align 4, 0xcc

/* One that has a frame of its own, on the stack that it leaves. */
own_frame:
	push %rbp
own_frame_1:
	mov %rsp, %rbp
	mov %rdx, %rsp
own_frame_2:
	call pushes
	mov %r12, %rsp
	pop %rbp
own_frame_3:
	ret
own_frame_4:
	call stores
	mov %r12, %rsp
	pop %rbp
own_frame_5:
	ret
	.p2align 4, 0xcc

/* As syscall.rawVforkSyscall: its return address is in a register. */
vforks:
	pop %r12
vforks_1:
	syscall
	push %r12
vforks_2:
	ret
	.p2align 4, 0xcc

leaves:
	nop
	mov %r13, %rsp
leaves_1:
	call pushes
	.p2align 4, 0xcc

grows_stack:
	nop
	mov 0x38(%r8), %rsp
grows_stack_1:
	call pushes
	.p2align 4, 0xcc

/* Compiled from C, and linked by Go: it has no depths. */
in_c:
	cpuid
	ret
	.p2align 4, 0xcc

sigreturn:
	mov $15, %rax
	syscall
	int3
	.p2align 4, 0xcc
go_etext:

/* ---- moduledata ----------------------------------------------------------------------- */

	MODULE_SECTION
	.balign 16
module:
	.quad pclntab
	.quad names, 0, 0
	.zero 8 * 16
	.quad go_text, go_etext
	.quad go_text, go_etext
#if VERSION == 118
	.zero 8 * 14
	.quad funcdata
#elif VERSION < 127
	.zero 8 * 16
	.quad funcdata
#else
	.zero 8 * 16
	.quad 8, 0, 0
	.quad funcdata, table_end
#endif

/* ---- pclntab --------------------------------------------------------------------------- */

/* How far a value moves, and for how long what it becomes holds. */
	.macro value change, from, to
	.if \change < 0
	.uleb128 -2 * (\change) - 1
	.else
	.uleb128 2 * (\change)
	.endif
	.uleb128 \to - \from
	.endm

	.macro function entry, name, stack, flags=0, file=no_values, line=no_values, inlined=no_values
record_\entry:
	.long \entry - go_text, \name - names, 0, 0
	.ifc \stack, none
	.long 0
	.else
	.long \stack - values
	.endif
	.long \file - values, \line - values
	.long 3, (unit_files - units) / 4
#if VERSION != 118
	.long 1
#endif
	.byte 0, \flags, 0, 4
	.long no_values - values, no_values - values, \inlined - values
	.long -1, -1, -1, calls - funcdata
	.endm

	.macro place entry
	.long \entry - go_text, record_\entry - functions
	.endm

	TABLE_SECTION
#ifdef RELOCATED
	.quad before, 0x01000000fffffff1 /* looks like one, and is none */
#endif
	.balign 32
pclntab:
#if VERSION == 118
	.long 0xfffffff0
#else
	.long 0xfffffff1
#endif
	.byte 0, 0, 1, 8
	.quad 15, 2
#if VERSION >= 126
	.quad 0
#else
	.quad go_text
#endif
	.quad names - pclntab, units - pclntab, files - pclntab, values - pclntab
	.quad functions - pclntab
names:
	.byte 0
name_pushes:
	.asciz "main.(*T[...]).pushes"
name_stores:
	.asciz "main.stores"
name_grows:
	.asciz "main.grows"
name_inner:
	.asciz "main.inner"
name_top:
	.asciz "runtime.goexit"
name_switches:
	.asciz "runtime.systemstack"
name_leaves:
	.asciz "runtime.mcall"
name_handler:
	.asciz "runtime.sigtramp"
name_never_returns:
	.asciz "runtime.gopreempt_m"
name_own_frame:
	.asciz "runtime.nanotime1"
name_vforks:
	.asciz "syscall.rawVforkSyscall"
name_grows_stack:
	.asciz "runtime.morestack"
name_in_c:
	.asciz "in_c"
name_sigreturn:
	.asciz "runtime.sigreturn"
	.balign 4
units:
	.long -1
unit_files:
	.long 0, file_inner - files
files:
	.asciz "/go/main.go"
file_inner:
	.asciz "/go/inner.go"
values:
no_values:
	.byte 0
stack_pushes:
	value 1, pushes, pushes_1
	value 8, pushes_1, pushes_2
	value 16, pushes_2, pushes_3
	value -16, pushes_3, pushes_4
	value -8, pushes_4, pushes_end
	.byte 0
stack_stores:
	value 1, stores, stores_1
	value 24, stores_1, stores_2
	value -24, stores_2, stores_far
	.byte 0
stack_stores_far:
	value 1, stores_far, stores_far_1
	value 1024, stores_far_1, stores_far_2
	value -1024, stores_far_2, stores_none
	.byte 0
stack_stores_none:
	value 1, stores_none, stores_none_1
	value 8, stores_none_1, stores_none_2
	value -8, stores_none_2, grows
	.byte 0
stack_own_frame:
	value 1, own_frame, own_frame_1
	value 8, own_frame_1, own_frame_3
	value -8, own_frame_3, own_frame_4
	value 8, own_frame_4, own_frame_5
	value -8, own_frame_5, vforks
	.byte 0
stack_vforks:
	value 1, vforks, vforks_1
	value -8, vforks_1, vforks_2
	value 8, vforks_2, leaves
	.byte 0
stack_grows:
	value 1, grows, grows_1
	value 8, grows_1, grows_2
	value -8, grows_2, grows_3
	.byte 0
stack_none:
	value 1, 0, 32
	.byte 0
file_pushes:
	value 1, pushes, inner_0
	value 1, inner_0, inner_1
	value -1, inner_1, stores
	.byte 0
line_pushes:
	value 11, pushes, pushes_2
	value 2, pushes_2, inner_0
	value 88, inner_0, inner_1
	value -80, inner_1, stores
	.byte 0
inlined_pushes:
	value 0, pushes, inner_0
	value 1, inner_0, inner_1
	value -1, inner_1, stores
	.byte 0
	.balign 4
functions:
	place pushes
	place stores
	place stores_far
	place stores_none
	place grows
	place top
	place handler
	place never_returns
	place switches
	place own_frame
	place vforks
	place leaves
	place grows_stack
	place in_c
	place sigreturn
	.long go_etext - go_text
	function pushes, name_pushes, stack_pushes, 0, file_pushes, line_pushes, inlined_pushes
	function stores, name_stores, stack_stores
	function stores_far, name_stores, stack_stores_far
	function stores_none, name_stores, stack_stores_none
	function grows, name_grows, stack_grows
	function top, name_top, stack_none, 1
	function handler, name_handler, stack_none, 1
	function never_returns, name_never_returns, stack_none
	function switches, name_switches, stack_none, 2
	function own_frame, name_own_frame, stack_own_frame, 2
	function vforks, name_vforks, stack_vforks
	function leaves, name_leaves, stack_none, 2
	function grows_stack, name_grows_stack, stack_none, 2
	function in_c, name_in_c, none
	function sigreturn, name_sigreturn, stack_none

#if VERSION < 126
	.section .rodata
	.long 0
#endif
funcdata:
	.zero 8
/* Of main.inner, called where pushes_2 is. */
calls:
#if VERSION == 118
	.short -1
	.byte 0, 0
	.long 0, 13, name_inner - names, pushes_2 - pushes
#else
	.byte 0, 0, 0, 0
	.long name_inner - names, pushes_2 - pushes, 1
#endif
table_end:
