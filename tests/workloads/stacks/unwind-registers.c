/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unwind-registers MS - functions whose frame is found by a register that a function need not
 * preserve, or by an index, and which call others that leave that register alone; so do OpenSSL's
 * ciphers and multiplications. The call frame information of those others says nothing of it.
 */
#include "announce.h"
#include <stdio.h>
#include <stdlib.h>

#define ROUNDS 200000

volatile uint64_t spin_left;

/* It changes no register. */
__asm__(".text\n.type spin_kept, @function\nspin_kept: .cfi_startproc\n"
	"1: decq spin_left(%rip)\njnz 1b\nret\n.cfi_endproc\n.size spin_kept, . - spin_kept\n");

/* A frame in between. */
__asm__(".text\n.type keeps, @function\nkeeps: .cfi_startproc\n"
	"sub $24, %rsp\n.cfi_def_cfa_offset 32\ncall spin_kept\n"
	"add $24, %rsp\n.cfi_def_cfa_offset 8\nret\n.cfi_endproc\n.size keeps, . - keeps\n");

#define BY(reg)                                                                                    \
	extern void by_##reg(void);                                                                \
	__asm__(".text\n.type by_" #reg ", @function\nby_" #reg ": .cfi_startproc\n"               \
		"mov %rsp, %" #reg "\n.cfi_def_cfa_register " #reg "\n"                            \
		"sub $136, %rsp\nand $-64, %rsp\ncall keeps\n"                                     \
		"mov %" #reg ", %rsp\n.cfi_def_cfa_register rsp\nret\n"                            \
		".cfi_endproc\n.size by_" #reg ", . - by_" #reg "\n")

BY(rax);
BY(rdx);
BY(rcx);
BY(rsi);
BY(rdi);
BY(r8);
BY(r9);
BY(r10);
BY(r11);

/*
 * The stack pointer is kept behind r9 words and one more (before the call of keeps):
 * DW_CFA_def_cfa_expression (breg7 8; breg9 0; lit8; mul; plus; deref; plus_uconst 8).
 */
extern void by_index(void);
__asm__(".text\n.type by_index, @function\nby_index: .cfi_startproc\n"
	"mov %rsp, %rax\n.cfi_def_cfa_register rax\n"
	"mov $17, %r9d\nlea -16(,%r9,8), %r10\nneg %r10\nlea -48(%rsp,%r10), %rsp\n"
	"and $-64, %rsp\nmov %rax, 8(%rsp,%r9,8)\n"
	".cfi_escape 0x0f, 10, 0x77, 8, 0x79, 0, 0x38, 0x1e, 0x22, 0x06, 0x23, 8\n"
	"call keeps\nmov 8(%rsp,%r9,8), %rsp\n.cfi_def_cfa rsp, 8\nret\n"
	".cfi_endproc\n.size by_index, . - by_index\n");

#define CASE(name)                                                                                 \
	{                                                                                          \
		by_##name, "main through + announce_cpu by_" #name " keeps spin_kept"              \
	}

static const struct {
	void (*function)(void);
	const char *chain;
} cases[] = {
	CASE(rax), CASE(rdx), CASE(rcx), CASE(rsi), CASE(rdi),
	CASE(r8),  CASE(r9),  CASE(r10), CASE(r11), CASE(index),
};

FRAME static void through(int i, uint64_t ms)
{
	uint64_t begin = announce_now(), stop = announce_cpu() + ms * NSEC_PER_MSEC;

	while (announce_cpu() < stop) {
		spin_left = ROUNDS;
		cases[i].function();
	}
	announce("spin", begin, cases[i].chain);
}

int main(int argc, char **argv)
{
	uint64_t ms = argc == 2 ? strtoull(argv[1], NULL, 10) : 0;

	if (!ms) {
		fprintf(stderr, "unwind-registers MS\n");
		return 2;
	}
	announce_open();
	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		through((int)i, ms);
	return 0;
}
