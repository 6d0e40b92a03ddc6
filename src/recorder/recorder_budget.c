/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder_private.h"
#include "util.h"
#include <string.h>
#include <time.h>

/* Visiting all threads may take this part of the time. */
#define VISIT_SHARE 50

static uint64_t own_cpu_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return time.tv_sec * NSEC_PER_SEC + time.tv_nsec;
}

/* A visit of sleeping threads, during which the recording goes on. */
typedef struct Visit {
	Recording *recording;
	int error; /* of the recording itself */
} Visit;

static int drain_between(void *user)
{
	Visit *visit = user;

	visit->error = recording_drain(visit->recording);
	return visit->error;
}

/*
 * Takes the stacks of threads that sleep for long although they were not expected to. If that is
 * not possible, for example for lack of memory, these stacks are missing, and nothing else.
 */
static int visit_sleepers(Recording *recording, uint64_t now)
{
	uint64_t begin = own_cpu_ns();
	Visit visit = {.recording = recording};
	int error;

	if (now < recording->next_visit_ns || !programs_lack_stacks(recording->programs))
		return 0;
	recording->iterating = true;
	error = programs_snapshot_sleepers(recording->programs, drain_between, &visit);
	recording->iterating = false;
	recording->next_visit_ns = now + (own_cpu_ns() - begin) * VISIT_SHARE;
	if (error && !visit.error) {
		log_verbose("visiting sleeping threads failed: %s", strerror(-error));
		recording->next_visit_ns = UINT64_MAX;
	}
	return visit.error;
}

int recording_keep_budget(Recording *recording)
{
	uint64_t now = now_ns(), cost_ns = 0, ran_ns = 0;
	const struct cpu_account *accounts;
	size_t count;
	uint32_t units;

	if (recording->options->budget <= 0)
		return 0;
	accounts = programs_accounts(recording->programs, &count);
	for (size_t i = 0; i < count; i++) {
		cost_ns += accounts[i].cost_ns;
		ran_ns += accounts[i].ran_ns;
	}
	cost_ns += recording_interrupts_ns(recording);
	units = budget_step(&recording->budget, now, cost_ns, ran_ns);
	if (units)
		programs_set_budget(recording->programs, units);
	return visit_sleepers(recording, now);
}
