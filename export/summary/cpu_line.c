/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cpu_line.h"
#include "load_counters.h"
#include "short_names.h"
#include "text.h"

/* A wait for a CPU or for a limit that is a larger part of the time than this is worth a remark. */
#define REMARK_SHARE 0.05

/*
 * Returns the time that tasks had the CPUs, if the whole system was recorded, else that of the
 * threads.
 */
static uint64_t used_ns(const Timeline *timeline, const Accounts *accounts)
{
	uint64_t ns = 0;

	if (timeline->cpus.count == 0)
		return accounts->ledger[STATE_RUNNING];
	for (size_t c = 0; c < timeline->cpus.count; c++) {
		const Cpu *cpu = &timeline->cpus.items[c];

		for (size_t i = 0; i < cpu->runs.count; i++)
			if (cpu->runs.items[i].task != CPU_IDLE &&
			    cpu->runs.items[i].task != CPU_UNKNOWN)
				ns += cpu_run_end(timeline, cpu, i) - cpu->runs.items[i].start_ns;
	}
	return ns;
}

/*
 * Returns the most threads that ran or were runnable at once, on average over 10 ms or longer,
 * rounded up.
 */
static size_t most_wanted(const Timeline *timeline)
{
	LoadCounters counters = load_counters_make(timeline);
	uint64_t most = 0;

	for (size_t i = 0; i < counters.count; i++) {
		uint64_t wanted = load_counters_average(&counters, counters.running_ns, i) +
				  load_counters_average(&counters, counters.runnable_ns, i);

		most = MAX(most, wanted);
	}
	load_counters_free(&counters);
	return (most + 999) / 1000;
}

static uint64_t throttled_ns(const Timeline *timeline)
{
	uint64_t ns = 0;

	for (size_t t = 0; t < timeline->threads.count; t++)
		ns += timeline->threads.items[t].reason_ledger[REASON_THROTTLED];
	return ns;
}

#define CGROUP_COLUMNS 28 /* a longer name is cut */

/* Returns "throttled: db.service may use 0.5 CPUs", or without names if the capture has none. */
static char *throttled_text(const Timeline *timeline, uint64_t ns)
{
	const char *path = timeline_meta(timeline, "cpu_limit_cgroup");
	const char *slash = path ? strrchr(path, '/') : NULL;
	_cleanup_free_ char *name = NULL, *cut = NULL;
	uint64_t quota, period;

	if (!path || !timeline_meta_number(timeline, "cpu_limit_quota_us", &quota) ||
	    !timeline_meta_number(timeline, "cpu_limit_period_us", &period) || period == 0)
		return xasprintf(" (%s throttled by a cgroup's limit)", DURATION(ns));
	name = text_printable(slash && slash[1] ? slash + 1 : path);
	cut = short_names_cut(name, CGROUP_COLUMNS);
	return xasprintf(" (%s throttled: %s may use %.3g CPU%s)", DURATION(ns), cut,
			 (double)quota / period, quota == period ? "" : "s");
}

/* Returns "up to 5 threads wanted one, and waited 1.338 s", or "" if that is hardly any time. */
static char *wanted_text(const Timeline *timeline, uint64_t runnable_ns)
{
	size_t most;

	if (runnable_ns <= REMARK_SHARE * (timeline->end_ns - timeline->start_ns))
		return xstrdup("");
	most = most_wanted(timeline);
	return xasprintf("up to %zu thread%s wanted one, and waited %s", most, most == 1 ? "" : "s",
			 DURATION(runnable_ns));
}

char *cpu_line_text(const Timeline *timeline, const Accounts *accounts)
{
	uint64_t cpus = 0, window_ns = timeline->end_ns - timeline->start_ns;
	uint64_t steal_ns, throttled = throttled_ns(timeline);
	_cleanup_free_ char *limit = NULL, *steal = NULL, *share = NULL, *wanted = NULL;
	double steal_share;

	if (timeline_meta_number(timeline, "cpus", &cpus) && cpus > 0 && window_ns > 0)
		share = xasprintf("used %.0f %% of %lu",
				  100.0 * used_ns(timeline, accounts) / cpus / window_ns,
				  (unsigned long)cpus);
	if (throttled > REMARK_SHARE * (accounts->ledger[STATE_RUNNING] + throttled))
		limit = throttled_text(timeline, throttled);
	steal_ns = accounts_steal_ns(timeline, &steal_share);
	if (steal_ns)
		steal = xasprintf("; %.1f %% stolen", 100 * steal_share);
	wanted = wanted_text(timeline, accounts->ledger[STATE_RUNNABLE]);
	if (!share && !*wanted)
		return NULL;
	return xasprintf("%s%s%s%s%s", share ? share : "", share && *wanted ? "; " : "", wanted,
			 limit ? limit : "", steal ? steal : "");
}
