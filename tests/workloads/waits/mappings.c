/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mappings - three threads take the lock of one process's mappings, mmap_lock. "holder" holds it
 * while it forks, which takes long with --mb of memory; --forks times. "asker", a thread of the
 * process, calls mincore(), and "reader", in another process, reads the first one's command line.
 * Both take the lock for reading, so that they sleep instead of spinning.
 */
#include "truth.h"
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define NSEC_PER_USEC 1000

static uint64_t mb = 192, forks = 8;
static atomic_bool done;
static char *memory;

/* Small pages, because a fork copies an entry for each page. */
static void fill_memory(void)
{
	size_t size = mb << 20;

	memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	truth_check(memory != MAP_FAILED, "mmap");
	truth_check(madvise(memory, size, MADV_NOHUGEPAGE) == 0, "madvise");
	memset(memory, 1, size);
}

static void *hold(void *arg)
{
	TruthThread *self = truth_begin("holder");

	(void)arg;
	for (uint64_t i = 0; i < forks; i++) {
		pid_t child = fork();

		if (child == 0)
			_exit(0);
		truth_check(child > 0 && waitpid(child, NULL, 0) == child, "fork");
		truth_sleep(NSEC_PER_USEC * 2000);
	}
	done = true;
	truth_park(self);
}

static void *ask(void *arg)
{
	TruthThread *self = truth_begin("asker");
	unsigned char there;

	(void)arg;
	while (!done) {
		truth_check(mincore(memory, 1, &there) == 0, "mincore");
		truth_sleep(100 * NSEC_PER_USEC);
	}
	truth_park(self);
}

static void read_command_line(void)
{
	char path[64], text[4096];

	prctl(PR_SET_NAME, "reader");
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	snprintf(path, sizeof(path), "/proc/%d/cmdline", getppid());
	for (;;) {
		int fd = open(path, O_RDONLY | O_CLOEXEC);

		if (fd < 0 || read(fd, text, sizeof(text)) <= 0)
			_exit(1);
		close(fd);
		usleep(100);
	}
}

int main(int argc, char **argv)
{
	TruthThread *self;
	pid_t reader;

	truth_options(argc, argv, (TruthOption[]){{"mb", &mb}, {"forks", &forks}, {}});
	self = truth_begin("mappings");
	reader = fork();
	if (reader == 0)
		read_command_line();
	fill_memory();
	truth_spawn(hold, 0);
	truth_spawn(ask, 0);
	while (!done)
		truth_sleep(1000 * NSEC_PER_USEC);
	kill(reader, SIGKILL);
	waitpid(reader, NULL, 0);
	truth_finish(self);
}
