/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "left_out.h"
#include "recording_cost.h"
#include "text.h"
#include "wait_fields.h"
#include <inttypes.h>
#include <string.h>

/* A cost of recording above this share of the running time is worth a warning, */
#define WARNING_SHARE 0.05
/* and one above the budget, if it exceeds it by so much. */
#define EXCESS 1.1
/* A large share of hardly any running time changes nothing. */
#define SMALL_COST 0.005 /* of the time that passed */

typedef struct Finding {
	const Timeline *timeline;
	LeftOut *left_out;
	Strings programs;
	Map index; /* (program, system call) -> list */
} Finding;

static double budget_of(const Timeline *timeline)
{
	const char *text = timeline_meta(timeline, "budget");
	double budget = text ? strtod(text, NULL) : 0;

	/* A damaged capture may have anything, also "inf". */
	return budget > 0 && budget <= 1 ? budget : 0;
}

static LeftOutPlace *place_of(Finding *finding, const Thread *thread, const Interval *wait)
{
	const Process *process = &finding->timeline->processes.items[thread->process];
	const char *name = process->name ? process->name : "unknown";
	uint64_t program = strings_intern(&finding->programs, name);
	int syscall = wait->state == STATE_BLOCKED ? wait->syscall : LEFT_OUT_PREEMPTED;
	uint64_t key = program << 32 | (uint32_t)syscall;
	uint32_t number = map_get(&finding->index, key);

	if (number == MAP_NONE) {
		number = finding->left_out->list.count;
		map_set(&finding->index, key, number);
		*vec_push(&finding->left_out->list) =
			(LeftOutPlace){.program = xstrdup(name), .syscall = syscall};
	}
	return &finding->left_out->list.items[number];
}

static void add_wait(Finding *finding, const Thread *thread, size_t i)
{
	const Interval *wait = &thread->intervals.items[i];
	uint64_t ns = interval_end(thread, i) - wait->start_ns;
	LeftOut *left_out = finding->left_out;
	LeftOutPlace *place = place_of(finding, thread, wait);

	place->switch_outs++;
	left_out->waits_ns += ns;
	if (!wait->unsampled)
		return;
	place->unsampled++;
	place->ns += ns;
	left_out->unsampled_ns += ns;
	if (wait->user_stack == STACK_NONE && wait->kernel_stack == STACK_NONE) {
		left_out->without++;
		left_out->without_ns += ns;
	}
}

static int compare_places(const void *a, const void *b)
{
	const LeftOutPlace *x = a, *y = b;
	int order;

	if (x->ns != y->ns)
		return x->ns > y->ns ? -1 : 1;
	order = strcmp(x->program, y->program);
	return order ? order : (x->syscall > y->syscall) - (x->syscall < y->syscall);
}

bool left_out_find(const Timeline *timeline, LeftOut *ret_left_out)
{
	Finding finding = {.timeline = timeline, .left_out = ret_left_out};

	*ret_left_out = (LeftOut){.budget = budget_of(timeline)};
	if (ret_left_out->budget <= 0)
		return false;
	ret_left_out->switch_outs = timeline->budget.switch_outs;
	ret_left_out->unsampled = timeline->budget.unsampled;
	for (size_t t = 0; t < timeline->threads.count; t++) {
		const Thread *thread = &timeline->threads.items[t];

		for (size_t i = 0; i < thread->intervals.count; i++)
			if (interval_is_switch_out(&thread->intervals.items[i]))
				add_wait(&finding, thread, i);
		for (size_t i = 0; i < thread->waker_stacks.count; i++)
			ret_left_out->wakers += thread->waker_stacks.items[i].unsampled;
	}
	if (ret_left_out->list.count > 1)
		qsort(ret_left_out->list.items, ret_left_out->list.count, sizeof(LeftOutPlace),
		      compare_places);
	map_free(&finding.index);
	strings_free(&finding.programs);
	return true;
}

char *left_out_place_text(const LeftOutPlace *place)
{
	_cleanup_free_ char *call = NULL;

	if (place->syscall == LEFT_OUT_PREEMPTED)
		return xstrdup("preempted");
	if (place->syscall < 0)
		return xstrdup("outside of system calls");
	call = wait_call_text(place->syscall);
	return xasprintf("in %s", call);
}

void left_out_free(LeftOut *left_out)
{
	for (size_t i = 0; i < left_out->list.count; i++)
		free(left_out->list.items[i].program);
	vec_free(&left_out->list);
}

char *left_out_text(const LeftOut *left_out)
{
	_cleanup_free_ char *without = NULL;

	if (left_out->unsampled == 0)
		return NULL;
	without = left_out->without ? xasprintf(", except %" PRIu64 " (%s)", left_out->without,
						DURATION(left_out->without_ns))
				    : xstrdup("");
	return xasprintf("--budget %g%%: %" PRIu64 " of %" PRIu64
			 " switch-outs not sampled (waits of %s of %s); shown like others at "
			 "their place%s",
			 100 * left_out->budget, left_out->unsampled, left_out->switch_outs,
			 DURATION(left_out->unsampled_ns), DURATION(left_out->waits_ns), without);
}

char *left_out_line(const Timeline *timeline)
{
	LeftOut left_out;
	char *text = left_out_find(timeline, &left_out) ? left_out_text(&left_out) : NULL;

	left_out_free(&left_out);
	return text;
}

char *left_out_cost_warning(const Timeline *timeline)
{
	RecordingSum sum = recording_cost_sum(timeline);
	double budget = budget_of(timeline), limit = budget > 0 ? EXCESS * budget : WARNING_SHARE;
	uint64_t window_ns = timeline->end_ns - timeline->start_ns;
	uint64_t all_ns = sum.recording_ns + sum.interrupts_ns;
	_cleanup_free_ char *cost = recording_cost_text(timeline);

	if (!cost || all_ns <= limit * sum.running_ns || all_ns <= SMALL_COST * window_ns)
		return NULL;
	if (budget > 0 && sum.recording_ns <= limit * sum.running_ns)
		return xasprintf("%s; with the interrupts of ticks it exceeds --budget %g%%", cost,
				 100 * budget);
	if (budget > 0)
		return xasprintf("%s; what each switch costs without stacks exceeds --budget %g%%",
				 cost, 100 * budget);
	return xasprintf("%s; --budget 2%% limits it", cost);
}
