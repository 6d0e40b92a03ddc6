/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pipeline - three processes, head | middle | tail. Each of `--blocks` blocks the middle one keeps
 * for
 * `--delay-us`, asleep, or with `--burn 1` by using its CPU; the others pass on at once.
 */
#include "truth.h"
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define BLOCK 4096

static uint64_t blocks = 100, delay_us = 2000, burn;
static char block[BLOCK];

static void read_block(int fd)
{
	for (size_t got = 0; got < BLOCK;) {
		ssize_t n = read(fd, block + got, BLOCK - got);

		truth_check(n > 0, "read");
		got += (size_t)n;
	}
}

static void write_block(int fd)
{
	truth_check(write(fd, block, BLOCK) == BLOCK, "write");
}

static void delay(void)
{
	if (burn)
		truth_burn(delay_us * 1000);
	else if (delay_us > 0)
		truth_sleep(delay_us * 1000);
}

/* -1: it has none. */
static pid_t start(const char *name, int from, int to, bool delays)
{
	pid_t child = fork();

	truth_check(child >= 0, "fork");
	if (child > 0)
		return child;
	prctl(PR_SET_NAME, name);
	for (uint64_t i = 0; i < blocks; i++) {
		if (from >= 0)
			read_block(from);
		if (delays)
			delay();
		if (to >= 0)
			write_block(to);
	}
	_exit(0);
}

int main(int argc, char **argv)
{
	int first[2], second[2];
	TruthThread *self;
	uint64_t begin;

	truth_options(
		argc, argv,
		(TruthOption[]){{"blocks", &blocks}, {"delay-us", &delay_us}, {"burn", &burn}, {}});
	self = truth_begin("pipeline");
	truth_check(pipe2(first, O_CLOEXEC) == 0 && pipe2(second, O_CLOEXEC) == 0, "pipe2");
	begin = truth_now();
	start("head", -1, first[1], false);
	start("middle", first[0], second[1], true);
	start("tail", second[0], -1, false);
	for (int i = 0; i < 3; i++)
		truth_check(wait(NULL) > 0, "wait");
	truth_wait(self, "child", begin);
	truth_finish(self);
}
