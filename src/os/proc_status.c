/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "proc_status.h"
#include "util.h"
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

pid_t proc_status_number(pid_t pid, const char *name)
{
	_cleanup_fclose_ FILE *status = NULL;
	char path[64], line[256];

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	status = fopen(path, "re");
	while (status && fgets(line, sizeof(line), status)) {
		const char *last = strrchr(line, '\t');

		if (!strncmp(line, name, strlen(name)))
			return last ? strtol(last, NULL, 10) : 0;
	}
	return 0;
}

#define STAT_MAX 1024

/* Reads /proc/PID/stat and returns what follows the name, from the state on; NULL on an error. */
static const char *read_stat(pid_t pid, char line[STAT_MAX])
{
	_cleanup_fclose_ FILE *stat = NULL;
	const char *name_end;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	stat = fopen(path, "re");
	if (!stat)
		return NULL;
	line[fread(line, 1, STAT_MAX - 1, stat)] = '\0';
	name_end = strrchr(line, ')'); /* the name may contain anything, ')' too */
	return name_end ? name_end + 1 : NULL;
}

uint64_t proc_start_ticks(pid_t pid)
{
	unsigned long long ticks = 0;
	char line[STAT_MAX];
	const char *fields = read_stat(pid, line);

	if (!fields || sscanf(fields,
			      " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d "
			      "%*d %*d %*d %llu",
			      &ticks) != 1)
		return 0;
	return ticks;
}

bool proc_is_runnable(pid_t pid)
{
	char line[STAT_MAX], state;
	const char *fields = read_stat(pid, line);

	return fields && sscanf(fields, " %c", &state) == 1 && state == 'R';
}

/* A zombie has no program any more, and a kernel thread never had one. */
static bool has_program(pid_t tid)
{
	char path[64], byte;

	snprintf(path, sizeof(path), "/proc/%d/exe", tid);
	return readlink(path, &byte, 1) >= 0 || errno != ENOENT;
}

pid_t proc_living_thread(pid_t pid)
{
	_cleanup_closedir_ DIR *threads = NULL;
	struct dirent *entry;
	char path[64];

	if (has_program(pid))
		return pid;
	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	threads = opendir(path);
	while (threads && (entry = readdir(threads))) {
		pid_t tid = strtol(entry->d_name, NULL, 10);

		if (tid > 0 && has_program(tid))
			return tid;
	}
	return pid;
}

bool proc_is_ours(void)
{
	char self[16];
	ssize_t length = readlink("/proc/self", self, sizeof(self) - 1);

	if (length < 0)
		return false;
	self[length] = '\0';
	return atoi(self) == getpid();
}
