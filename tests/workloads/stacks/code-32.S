/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * code-32 [ARGUMENT...] - a program of 32-bit code. As many times as it has arguments, the name
 * included, it counts for some milliseconds in work(), and sleeps for five.
 */
	.globl _start
	.type _start, @function
	.type work, @function
	.text
_start:	mov (%esp), %esi
again:	call work
	mov $162, %eax /* nanosleep */
	mov $time, %ebx
	xor %ecx, %ecx
	int $0x80
	dec %esi
	jnz again
	mov $1, %eax /* exit */
	xor %ebx, %ebx
	int $0x80
	.size _start, . - _start

work:	mov $10000000, %ecx
count:	dec %ecx
	jnz count
	ret
	.size work, . - work

	.data
time:	.long 0, 5000000
	.section .note.GNU-stack, "", @progbits
