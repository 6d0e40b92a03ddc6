/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A program of 32-bit code (gcc -m32 -nostdlib -static): ROUNDS times it counts for some
 * milliseconds, and sleeps for five.
 */
	.globl _start
	.text
_start:	mov $ROUNDS, %esi
again:	mov $10000000, %ecx
count:	dec %ecx
	jnz count
	mov $162, %eax /* nanosleep */
	mov $time, %ebx
	int $0x80
	dec %esi
	jnz again
	mov $1, %eax /* exit */
	xor %ebx, %ebx
	int $0x80

	.data
time:	.long 0, 5000000
