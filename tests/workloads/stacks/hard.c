/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hard KIND MS - uses MS milliseconds of CPU time in code whose callers are hard to find. The chain
 * of calls is always main, outer, middle, and then functions of that kind:
 *
 *   plain       C code
 *   scratch     a frame that call frame information finds by rax, below a call
 *   expression  … by an expression over the stack pointer and another register
 *   no-cfi      assembly without any, which pushes registers and moves the stack pointer
 *   aligned     … which aligns the stack, and finds its caller's by a word there
 *   context     a coroutine of makecontext(), which begins at __start_context
 *   zero        a coroutine whose outermost return address is 0
 *   planted     … is a function in assembly that has no call frame information
 *   anonymous   code of this file, copied to anonymous memory that is mapped over it
 *   raw-file    code with frame pointers in a mapped file that is not an ELF file
 */
#include "frame.h"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define TURNS 200000
#define PAGE  4096UL

typedef void (*Turn)(uint64_t turns);

void hard_scratch(uint64_t turns);
void hard_expression(uint64_t turns);
void hard_no_cfi(uint64_t turns);
void hard_aligned_sp(uint64_t turns);
void hard_zero(uint64_t turns);
void hard_planted(uint64_t turns);
__attribute__((noreturn)) void hard_zero_back(void);
void *hard_stack_top, *hard_stack_saved;
extern const char hard_raw[PAGE];

static const char *kind;
static uint64_t end;
static Turn turn;
static ucontext_t caller, coroutine;
static void *other_stack;

static void must(int good, const char *what)
{
	if (good)
		return;
	perror(what);
	exit(1);
}

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

FRAME static void plain(uint64_t turns)
{
	for (volatile uint64_t i = 0; i < turns; i++)
		continue;
}

/* A page of its own, which is mapped again. */
__attribute__((section(".text.moved"), aligned(4096))) FRAME void hard_moved(uint64_t turns)
{
	for (volatile uint64_t i = 0; i < turns; i++)
		continue;
}
__attribute__((section(".text.moved"), aligned(4096), used)) static void after_moved(void)
{
}

FRAME static void in_coroutine(void)
{
	plain(TURNS);
}

FRAME static void context(uint64_t turns)
{
	(void)turns;
	must(!getcontext(&coroutine), "getcontext");
	coroutine.uc_stack.ss_sp = other_stack;
	coroutine.uc_stack.ss_size = 64 * PAGE;
	coroutine.uc_link = &caller;
	makecontext(&coroutine, in_coroutine, 0);
	must(!swapcontext(&caller, &coroutine), "swapcontext");
}

/* It comes back by changing the stack pointer, because there is nothing to return to. */
__attribute__((noreturn, used)) FRAME void hard_zero_body(void)
{
	plain(TURNS);
	hard_zero_back();
}

static void map_again(void)
{
	void *page = (void *)hard_moved, *copy = malloc(PAGE);

	memcpy(copy, page, PAGE);
	must(mmap(page, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		  0) == page,
	     "mmap");
	memcpy(page, copy, PAGE);
	must(!mprotect(page, PAGE, PROT_READ | PROT_EXEC), "mprotect");
	free(copy);
}

static Turn map_raw(void)
{
	char path[] = "hard-XXXXXX";
	int file = mkstemp(path);
	void *code;

	must(file >= 0 && write(file, hard_raw, PAGE) > 0, "file");
	code = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
	must(code != MAP_FAILED, "mmap");
	unlink(path);
	close(file);
	return (Turn)code;
}

FRAME static int middle(void)
{
	while (now() < end)
		turn(TURNS);
	return 1;
}

FRAME static int outer(void)
{
	return middle() + 1;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		Turn turn;
	} kinds[] = {
		{"plain", plain},
		{"scratch", hard_scratch},
		{"expression", hard_expression},
		{"no-cfi", hard_no_cfi},
		{"aligned", hard_aligned_sp},
		{"context", context},
		{"zero", hard_zero},
		{"planted", hard_planted},
		{"anonymous", hard_moved},
	};

	must(argc == 3, "usage: hard KIND MS");
	kind = argv[1];
	other_stack =
		mmap(NULL, 64 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	must(other_stack != MAP_FAILED, "mmap");
	hard_stack_top = (char *)other_stack + 64 * PAGE - 64;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (!strcmp(kind, kinds[i].name))
			turn = kinds[i].turn;
	if (!strcmp(kind, "anonymous"))
		map_again();
	if (!strcmp(kind, "raw-file"))
		turn = map_raw();
	must(turn != NULL, "no such kind");
	end = now() + strtoull(argv[2], NULL, 10) * 1000000;
	return outer() - 2;
}
