/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unwind-signal MS ROUNDS - a timer's signal interrupts a known function at any instruction;
 * its handler spins and sleeps on a stack of its own (announce.h).
 */
#include "announce.h"
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#define STACK_SIZE (64 << 10)

static uint64_t ms;
static volatile uint64_t rounds;
static volatile uint64_t work;
static volatile bool inside; /* interrupted() has begun. */

/* In 3 ms, once: the handler takes longer. */
static void start_timer(void)
{
	struct itimerval timer = {.it_value = {.tv_usec = 3000}};

	announce_check(setitimer(ITIMER_REAL, &timer, NULL) == 0, "setitimer");
}

/* "." is where handlers return to: libc's, without a name where libc is stripped. */
static void handler(int number)
{
	(void)number;
	/* A slow machine may take the timer's time to leave setitimer(): such calls are not
	 * announced. */
	if (!inside) {
		start_timer();
		return;
	}
	announce_spin(ms, "main outer interrupted . handler");
	announce_sleep(ms, "main outer interrupted . handler");
	if (--rounds)
		start_timer();
}

/* Calls nothing, and saves registers that its callers need. */
FRAME static uint64_t interrupted(uint64_t seed)
{
	uint64_t a = seed, b = seed + 1, c = seed + 2, d = seed + 3, e = seed + 4, f = seed + 5;

	inside = true;
	while (rounds) {
		work = a = a * 31 + b;
		b ^= c + f;
		c += d;
		d = e - a;
		e = f * 3;
		f ^= a;
		__asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c)::"rbx", "r12", "r13");
	}
	return a + b + c + d + e + f;
}

/* Its frame is large, so that the handler's would not lie close to it by chance. */
FRAME static void outer(void)
{
	char room[3000];

	memset(room, 1, sizeof(room));
	work = interrupted((uint64_t)room[17]);
	__asm__ volatile("" ::"r"(room) : "memory");
}

int main(int argc, char **argv)
{
	stack_t stack = {.ss_size = STACK_SIZE};
	struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};

	announce_check(argc == 3, "usage: unwind-signal MS ROUNDS:");
	ms = strtoull(argv[1], NULL, 10);
	rounds = strtoull(argv[2], NULL, 10);
	announce_open();
	stack.ss_sp =
		mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	announce_check(stack.ss_sp != MAP_FAILED, "mmap");
	announce_check(sigaltstack(&stack, NULL) == 0, "sigaltstack");
	announce_check(sigaction(SIGALRM, &action, NULL) == 0, "sigaction");
	start_timer();
	outer();
	return 0;
}
