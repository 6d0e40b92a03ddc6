/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unwind-fibers MS ROUNDS - stacks that do not begin where threads do. makecontext() puts the
 * address of a function of libc in the place of the outermost return address, and other makers of
 * fibers the address of one that does not return, or 0. No call has pushed these.
 */
#include "announce.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#define STACK_SIZE (256 << 10)

static uint64_t ms;
static ucontext_t here, there;
void *fiber_sp;

/* Changes to the stack of fiber_sp, and leaves there what leads back to this one. */
extern void fiber_switch(void);
__asm__(".text\n.type fiber_switch, @function\nfiber_switch: .cfi_startproc\n"
	"push %rbx\n.cfi_adjust_cfa_offset 8\npush %rbp\n.cfi_adjust_cfa_offset 8\n"
	"push %r12\n.cfi_adjust_cfa_offset 8\npush %r13\n.cfi_adjust_cfa_offset 8\n"
	"push %r14\n.cfi_adjust_cfa_offset 8\npush %r15\n.cfi_adjust_cfa_offset 8\n"
	"xchg %rsp, fiber_sp(%rip)\n"
	"pop %r15\n.cfi_adjust_cfa_offset -8\npop %r14\n.cfi_adjust_cfa_offset -8\n"
	"pop %r13\n.cfi_adjust_cfa_offset -8\npop %r12\n.cfi_adjust_cfa_offset -8\n"
	"pop %rbp\n.cfi_adjust_cfa_offset -8\npop %rbx\n.cfi_adjust_cfa_offset -8\nret\n"
	".cfi_endproc\n.size fiber_switch, . - fiber_switch\n");

/* A function before it, with a frame of its own: its rule must not be taken. */
extern void fiber_end(void);
__asm__(".text\n.p2align 4\n.type before_end, @function\nbefore_end: .cfi_startproc\n"
	"sub $40, %rsp\n.cfi_def_cfa_offset 48\nud2\n.cfi_endproc\n.size before_end, . - "
	"before_end\n"
	".p2align 4\n.type fiber_end, @function\nfiber_end: .cfi_startproc\n"
	"ud2\n.cfi_endproc\n.size fiber_end, . - fiber_end\n");

FRAME static void middle(const char *chain)
{
	announce_spin(ms, chain);
	announce_sleep(1, chain);
}

FRAME static void context_body(void)
{
	for (;;) {
		middle("^ . context_body middle");
		swapcontext(&there, &here);
	}
}

FRAME static void ended_body(void)
{
	for (;;) {
		middle("^ fiber_end ended_body middle");
		fiber_switch();
	}
}

FRAME static void zero_body(void)
{
	for (;;) {
		middle("^ zero_body middle");
		fiber_switch();
	}
}

static void *new_stack(void)
{
	void *stack = malloc(STACK_SIZE);

	announce_check(stack != NULL, "malloc");
	return memset(stack, 0x5a, STACK_SIZE);
}

static void make_context(void)
{
	announce_check(getcontext(&there) == 0, "getcontext");
	there.uc_stack.ss_sp = new_stack();
	there.uc_stack.ss_size = STACK_SIZE;
	makecontext(&there, context_body, 0);
}

/* Returns the stack pointer of a fiber that begins with the function. */
static void *make_fiber(void (*begin)(void), void (*end)(void))
{
	void **sp = (void **)((char *)new_stack() + STACK_SIZE);

	sp -= 8;
	*--sp = (void *)end;
	*--sp = (void *)begin;
	return sp - 6;
}

int main(int argc, char **argv)
{
	void *ended = make_fiber(ended_body, fiber_end), *zero = make_fiber(zero_body, NULL);
	int rounds = argc == 3 ? atoi(argv[2]) : 0;

	if (!rounds) {
		fprintf(stderr, "unwind-fibers MS ROUNDS\n");
		return 2;
	}
	ms = strtoull(argv[1], NULL, 10);
	announce_open();
	make_context();
	for (int i = 0; i < rounds; i++) {
		swapcontext(&here, &there);
		fiber_sp = ended;
		fiber_switch();
		ended = fiber_sp;
		fiber_sp = zero;
		fiber_switch();
		zero = fiber_sp;
	}
	return 0;
}
