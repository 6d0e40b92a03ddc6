/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cpus.h"
#include "util.h"
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LIST_MAX 4096 /* the kernel writes at most a page, such as "0-3,8" */

struct OnlineCpus {
	int fd;
	ssize_t length;
	uint64_t changes;
	char list[LIST_MAX];
};

OnlineCpus *online_cpus_open(void)
{
	OnlineCpus *cpus = xcalloc(1, sizeof(*cpus));

	cpus->fd = open("/sys/devices/system/cpu/online", O_RDONLY | O_CLOEXEC);
	cpus->length = pread(cpus->fd, cpus->list, sizeof(cpus->list), 0);
	if (cpus->length > 0)
		return cpus;
	online_cpus_close(cpus);
	return NULL;
}

bool online_cpus_check(OnlineCpus *cpus)
{
	char list[LIST_MAX];
	ssize_t length = pread(cpus->fd, list, sizeof(list), 0);

	if (length <= 0 || (length == cpus->length && !memcmp(list, cpus->list, length)))
		return false;
	cpus->changes++;
	cpus->length = length;
	memcpy(cpus->list, list, length);
	return true;
}

uint64_t online_cpus_changes(const OnlineCpus *cpus)
{
	return cpus->changes;
}

void online_cpus_close(OnlineCpus *cpus)
{
	if (!cpus)
		return;
	closep(&cpus->fd);
	free(cpus);
}

/* ---- idle CPUs ---------------------------------------------------------------------- */

/* The idle time of each CPU at one moment. */
typedef struct CpuStat {
	uint64_t ns;		  /* CLOCK_MONOTONIC */
	VEC(uint64_t) idle_ticks; /* by CPU; 0 if it is offline */
} CpuStat;

struct IdleCpus {
	CpuStat begin, end;
	uint64_t tick_ns;
};

/* Parses a line "cpu3 user nice system idle iowait …", in ticks. */
static void read_line(CpuStat *stat, const char *line)
{
	uint64_t idle, iowait;
	unsigned int cpu;

	if (sscanf(line, "cpu%u %*u %*u %*u %" SCNu64 " %" SCNu64, &cpu, &idle, &iowait) != 3)
		return;
	while (stat->idle_ticks.count <= cpu)
		*vec_push(&stat->idle_ticks) = 0;
	stat->idle_ticks.items[cpu] = idle + iowait;
}

/* /proc/stat begins with the lines of the CPUs. */
static void read_cpu_stat(CpuStat *stat)
{
	_cleanup_fclose_ FILE *file = fopen("/proc/stat", "re");
	_cleanup_free_ char *line = NULL;
	size_t size = 0;

	stat->ns = now_ns();
	while (file && getline(&line, &size, file) > 0 && !strncmp(line, "cpu", 3))
		read_line(stat, line);
}

IdleCpus *idle_cpus_begin(void)
{
	IdleCpus *cpus = xcalloc(1, sizeof(*cpus));

	cpus->tick_ns = NSEC_PER_SEC / sysconf(_SC_CLK_TCK);
	read_cpu_stat(&cpus->begin);
	if (cpus->begin.idle_ticks.count > 0)
		return cpus;
	idle_cpus_close(cpus);
	return NULL;
}

void idle_cpus_end(IdleCpus *cpus)
{
	read_cpu_stat(&cpus->end);
}

/* The start of a tick is not known, so one tick does not count. */
static bool was_idle(const IdleCpus *cpus, size_t cpu, uint64_t outside_ns)
{
	uint64_t before = cpus->begin.idle_ticks.items[cpu];
	uint64_t after = cpus->end.idle_ticks.items[cpu];

	return before > 0 && after > before && (after - before - 1) * cpus->tick_ns > outside_ns;
}

char *idle_cpus_list(const IdleCpus *cpus, uint64_t window_ns)
{
	char *text = xstrdup("");
	size_t count = cpus ? MIN(cpus->begin.idle_ticks.count, cpus->end.idle_ticks.count) : 0;
	uint64_t took_ns = cpus ? cpus->end.ns - cpus->begin.ns : 0;

	for (size_t i = 0; i < count; i++) {
		char *longer;

		if (!was_idle(cpus, i, took_ns - MIN(took_ns, window_ns)))
			continue;
		longer = xasprintf("%s%s%zu", text, *text ? "," : "", i);
		free(text);
		text = longer;
	}
	return text;
}

void idle_cpus_close(IdleCpus *cpus)
{
	if (!cpus)
		return;
	vec_free(&cpus->begin.idle_ticks);
	vec_free(&cpus->end.idle_ticks);
	free(cpus);
}
