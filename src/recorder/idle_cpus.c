/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "idle_cpus.h"
#include "util.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* What a CPU had been idle when it was looked at, by number of the CPU; 0 of one that is offline.
 */
typedef struct CpuStat {
	uint64_t ns; /* when */
	VEC(uint64_t) idle_ticks;
} CpuStat;

struct IdleCpus {
	CpuStat begin, end;
	uint64_t tick_ns;
};

/* "cpu3 user nice system idle iowait …", ticks. */
static void read_line(CpuStat *look, const char *line)
{
	uint64_t idle, iowait;
	unsigned int number;

	if (sscanf(line, "cpu%u %*u %*u %*u %" SCNu64 " %" SCNu64, &number, &idle, &iowait) != 3)
		return;
	while (look->idle_ticks.count <= number)
		*vec_push(&look->idle_ticks) = 0;
	look->idle_ticks.items[number] = idle + iowait;
}

/* The lines of CPUs are the first. */
static void read_cpu_stat(CpuStat *look)
{
	FILE *file = fopen("/proc/stat", "re");
	_cleanup_free_ char *line = NULL;
	size_t size = 0;

	look->ns = now_ns();
	while (file && getline(&line, &size, file) > 0 && !strncmp(line, "cpu", 3))
		read_line(look, line);
	if (file)
		fclose(file);
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

/* Ticks are whole: of one it is not known when it began. */
static bool was_idle(const IdleCpus *cpus, size_t number, uint64_t outside_ns)
{
	uint64_t before = cpus->begin.idle_ticks.items[number];
	uint64_t after = cpus->end.idle_ticks.items[number];

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
