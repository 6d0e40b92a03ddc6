/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * chain - `--depth` processes: each uses `--ms` of CPU, forks a child that
 * executes this program again with one less, and waits for it. Each process
 * writes its own truth, to the --truth file with its depth as suffix.
 */
#include "truth.h"
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static uint64_t depth = 3, ms = 10;

static void execute_next(void)
{
	char depth_text[24], ms_text[24];

	snprintf(depth_text, sizeof(depth_text), "%lu", depth - 1);
	snprintf(ms_text, sizeof(ms_text), "%lu", ms);
	execl("/proc/self/exe", "chain", "--truth", truth_file(), "--depth", depth_text, "--ms",
	      ms_text, (char *)NULL);
	_exit(127);
}

int main(int argc, char **argv)
{
	TruthThread *self;
	char path[4096];

	truth_options(argc, argv, (TruthOption[]){{"depth", &depth}, {"ms", &ms}, {}});
	truth_check(truth_file(), "--truth is missing");
	self = truth_begin("chain %lu", depth);
	truth_burn(ms * NSEC_PER_MSEC);
	if (depth > 1) {
		pid_t child = fork();
		uint64_t begin = truth_now();
		int status;

		truth_check(child >= 0, "fork");
		if (child == 0)
			execute_next();
		truth_check(waitpid(child, &status, 0) == child && status == 0, "child");
		truth_wait(self, "child", begin);
	}
	snprintf(path, sizeof(path), "%s.%lu", truth_file(), depth);
	truth_set_file(path);
	truth_finish(self);
}
