/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unwind-calls MODE MS [DEPTH] - spins and sleeps for MS milliseconds each at the end of a chain
 * of calls that is hard to walk (announce.h). Also linked statically, and by musl-gcc.
 */
#include "announce.h"
#include <alloca.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static uint64_t ms, depth = 20;
static char chain[128];

/*
 * Keeps the call before it from becoming a tail call. UNFOLLOWED: a return that is never reached
 * makes the function unintelligible by its instructions alone.
 */
#ifdef UNFOLLOWED
#define NOT_LAST()                                                                                 \
	__asm__ volatile("test %%esp, %%esp\n jnz 1f\n push %%rax\n ret\n 1:" ::: "memory", "cc")
#else
#define NOT_LAST() __asm__ volatile("" ::: "memory")
#endif

FRAME static void recurse(uint64_t left)
{
	if (left > 1) {
		recurse(left - 1);
	} else {
		announce_spin(ms, chain);
		announce_sleep(ms, chain);
	}
	NOT_LAST();
}

static void recursion(void)
{
	snprintf(chain, sizeof(chain), "main recursion recurse*%lu", (unsigned long)depth);
	recurse(depth);
	NOT_LAST();
}

FRAME __attribute__((noreturn)) static void never_returns(uint64_t arg)
{
	announce_spin(ms, "main noreturn last_call never_returns");
	announce_sleep(ms, "main noreturn last_call never_returns");
	_exit((int)arg);
}

/*
 * The return address of its last call is the first byte after it, which belongs to a function
 * with another frame, if to any.
 */
FRAME __attribute__((noreturn)) static void last_call(uint64_t arg)
{
	char big[200];

	memset(big, (int)arg, sizeof(big));
	__asm__ volatile("" ::"r"(big) : "memory");
	never_returns(arg);
}

FRAME static uint64_t after_last_call(uint64_t arg)
{
	return arg + 1;
}

static void noreturn(void)
{
	if (after_last_call(ms) != ms)
		last_call(0);
}

static int compared;

static int compare(const void *a, const void *b)
{
	if (compared++ == 0) {
		announce_spin(ms, "main callback lib:LIBC compare");
		announce_sleep(ms, "main callback lib:LIBC compare");
	}
	return *(const int *)a - *(const int *)b;
}

static void callback(void)
{
	int numbers[] = {7, 2, 9, 4, 1, 8};

	qsort(numbers, sizeof(numbers) / sizeof(*numbers), sizeof(*numbers), compare);
	announce_check(numbers[0] == 1 && numbers[5] == 9, "qsort");
}

FRAME static void allocates(uint64_t size)
{
	char *room = alloca(size);

	memset(room, 1, size);
	__asm__ volatile("" ::"r"(room) : "memory");
	announce_spin(ms, "main dynamic allocates");
	announce_sleep(ms, "main dynamic allocates");
	NOT_LAST();
}

static void dynamic(void)
{
	allocates(1000 + ms);
	NOT_LAST();
}

/*
 * A frame at a multiple of 64 whose size is known at run time only and whose arguments are
 * partly on the stack: where it began has to be kept in a register (the compiler's "DRAP").
 */
FRAME static uint64_t realigned(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,
				uint64_t f, uint64_t g, uint64_t h)
{
	__attribute__((aligned(64))) char room[192];
	char *more = alloca(g);

	memset(room, (int)h, sizeof(room));
	memset(more, (int)h, g);
	__asm__ volatile("" ::"r"(room), "r"(more) : "memory");
	announce_check(((uintptr_t)room & 63) == 0, "alignment");
	announce_spin(ms, "main realignment realigned");
	announce_sleep(ms, "main realignment realigned");
	return a + b + c + d + e + f + g + h + (uint64_t)room[1];
}

static void realignment(void)
{
	announce_check(realigned(1, 2, 3, 4, 5, 6, 700, 8) == 737, "realigned");
}

static void work_for_jit(const char *how)
{
	announce_spin(ms, how);
	announce_sleep(ms, how);
	NOT_LAST();
}

/* The code is in a private mapping of this file; -1: in memory without a file. */
static int code_file = -1;

/* Runs code that calls work_for_jit(how), of which no table knows. */
FRAME static void run_made(const uint8_t *code, size_t size, const char *how)
{
	uint8_t *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			       MAP_PRIVATE | (code_file < 0 ? MAP_ANONYMOUS : 0), code_file, 0);
	void (*made)(const char *how, void (*function)(const char *how));

	announce_check(memory != MAP_FAILED, "mmap");
	memcpy(memory, code, size);
	memcpy(&made, &memory, sizeof(made));
	made(how, work_for_jit);
	NOT_LAST();
}

static void jit_frame(void)
{
	static const uint8_t code[] = {
		0x55,		  /* push %rbp */
		0x48, 0x89, 0xe5, /* mov %rsp, %rbp */
		0xff, 0xd6,	  /* call *%rsi */
		0x5d,		  /* pop %rbp */
		0xc3,		  /* ret */
	};

	run_made(code, sizeof(code), "main jit_frame run_made . work_for_jit");
	NOT_LAST();
}

/* Makes a file that is not an ELF file, as the memory image of a Lisp is. */
static void make_code_file(void)
{
	code_file = memfd_create("code", MFD_CLOEXEC);
	announce_check(code_file >= 0 && ftruncate(code_file, 4096) == 0, "memfd_create");
}

static void jit_frameless(void)
{
	static const uint8_t code[] = {
		0x48, 0x83, 0xec, 0x18, /* sub $24, %rsp */
		0xff, 0xd6,		/* call *%rsi */
		0x48, 0x83, 0xc4, 0x18, /* add $24, %rsp */
		0xc3,			/* ret */
	};

	run_made(code, sizeof(code), "main jit_frameless run_made . work_for_jit");
	NOT_LAST();
}

/* Calls a tiny function of libc through its stub. */
static void plt(void)
{
	uint64_t begin = announce_now(), stop = announce_cpu() + ms * NSEC_PER_MSEC;
	void *element[2];

	while (announce_cpu() < stop)
		for (int i = 0; i < 20000; i++)
			insque(element, NULL);
	announce("spin", begin, "main plt + announce_cpu insque@plt insque lib:LIBC lib:LOADER");
}

static void vdso(void)
{
	uint64_t begin = announce_now(), stop = announce_cpu() + ms * NSEC_PER_MSEC;
	struct timespec t;

	while (announce_cpu() < stop)
		for (int i = 0; i < 1000; i++)
			clock_gettime(CLOCK_MONOTONIC, &t);
	announce("spin", begin,
		 "main vdso + announce_cpu clock_gettime@plt clock_gettime lib:LIBC lib:LOADER "
		 "lib:[vdso]");
}

/* time() of the vsyscall page, which is at a fixed address. */
static void vsyscall(void)
{
	uint64_t begin = announce_now(), stop = announce_cpu() + ms * NSEC_PER_MSEC,
		 address = 0xffffffffff600400;
	time_t (*call)(time_t *);

	memcpy(&call, &address, sizeof(call));
	while (announce_cpu() < stop)
		for (int i = 0; i < 100; i++)
			call(NULL);
	announce("spin", begin, "main vsyscall + announce_cpu time");
}

static const struct {
	const char *name;
	void (*run)(void);
} modes[] = {
	{"recursion", recursion},
	{"noreturn", noreturn},
	{"callback", callback},
	{"dynamic", dynamic},
	{"realignment", realignment},
	{"jit-frame", jit_frame},
	{"jit-frameless", jit_frameless},
	{"plt", plt},
	{"vdso", vdso},
	{"vsyscall", vsyscall},
	{"file-frame", jit_frame},
};

int main(int argc, char **argv)
{
	announce_check(argc >= 3, "usage: unwind-calls MODE MS [DEPTH]:");
	ms = strtoull(argv[2], NULL, 10);
	if (argc > 3)
		depth = strtoull(argv[3], NULL, 10);
	announce_open();
	if (strcmp(argv[1], "file-frame") == 0)
		make_code_file();
	for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++)
		if (strcmp(modes[i].name, argv[1]) == 0) {
			modes[i].run();
			return 0;
		}
	announce_check(0, argv[1]);
	return 1;
}
