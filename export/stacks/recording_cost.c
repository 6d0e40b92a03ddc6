/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recording_cost.h"
#include "text.h"
#include "tick_rates.h"
#include "tick_weights.h"
#include <string.h>

/* ---- classes of ticks ------------------------------------------------------------ */

static bool begins_with_one(const char *name, const char *const *prefixes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!strncmp(name, prefixes[i], strlen(prefixes[i])))
			return true;
	return false;
}

/* Functions of kernel/sched/core.c that allow interrupts again when a switch is over. */
static bool ends_switch(const char *name)
{
	static const char *const prefixes[] = {"finish_task_switch", "schedule_tail", "__schedule",
					       "raw_spin_rq_unlock"};

	return begins_with_one(name, prefixes, ARRAY_LEN(prefixes));
}

/* Functions that do so when a lock is released that was held with interrupts off. */
static bool ends_lock(const char *name)
{
	static const char *const prefixes[] = {"_raw_spin_unlock_irq",	"__raw_spin_unlock_irq",
					       "_raw_write_unlock_irq", "try_to_wake_up",
					       "wake_up_new_task",	"ttwu_"};

	return begins_with_one(name, prefixes, ARRAY_LEN(prefixes));
}

/*
 * Functions with which a paravirtualized guest allows interrupts, where others have an instruction:
 * pvm_irq_enable(), xen_irq_enable_direct(), pv_native_irq_enable(), below an assembly wrapper.
 */
static bool allows_interrupts(const char *name)
{
	return strstr(name, "irq_enable") || !strncmp(name, "__raw_callee_save_", 18);
}

/* Returns the name of the innermost frame that is not such a function, or "". */
static const char *innermost_caller(const Frames *frames, const uint32_t *indexes, size_t count)
{
	while (count-- > 0) {
		const char *name =
			strings_get(&frames->strings, frames->list.items[indexes[count]].function);

		if (!allows_interrupts(name))
			return name;
	}
	return "";
}

static bool is_inside(const Timeline *timeline, const StackDef *stack)
{
	for (size_t i = 0; i < stack->count; i++)
		if (timeline_is_own_code(timeline, timeline->frames.items[stack->first + i]))
			return true;
	return false;
}

static enum recording_class class_of(const Timeline *timeline, Frames *frames, uint32_t number)
{
	const uint32_t *indexes;
	const char *leaf;
	size_t count;

	if (is_inside(timeline, &timeline->stacks.items[number]))
		return RECORDING_INSIDE;
	count = frames_resolve(frames, timeline, 0, 0, STACK_NONE, number,
			       /* exact_kernel_leaf= */ true, &indexes);
	leaf = innermost_caller(frames, indexes, count);
	if (ends_switch(leaf))
		return RECORDING_SWITCH;
	return ends_lock(leaf) ? RECORDING_UNLOCK : RECORDING_ELSEWHERE;
}

#define CLASS_UNKNOWN UINT8_MAX

static void classify_ticks(Timeline *timeline, Frames *frames)
{
	uint8_t *classes = xmalloc(timeline->stacks.count + 1); /* by stack */

	memset(classes, CLASS_UNKNOWN, timeline->stacks.count + 1);
	for (size_t t = 0; t < timeline->threads.count; t++) {
		Thread *thread = &timeline->threads.items[t];

		for (size_t i = 0; i < thread->ticks.count; i++) {
			Tick *tick = &thread->ticks.items[i];

			if (tick->user_mode || tick->kernel_stack == STACK_NONE)
				continue;
			if (classes[tick->kernel_stack] == CLASS_UNKNOWN)
				classes[tick->kernel_stack] =
					class_of(timeline, frames, tick->kernel_stack);
			tick->recording = classes[tick->kernel_stack];
		}
	}
	free(classes);
}

/* ---- shares ---------------------------------------------------------------------- */

typedef struct Classes {
	Timeline *timeline;
	double weights[RECORDING_CLASSES];
} Classes;

static void weigh(void *user, const Thread *thread, size_t i, const Tick *tick, uint64_t weight_ns)
{
	Classes *classes = user;

	(void)thread;
	(void)i;
	classes->weights[tick ? tick->recording : RECORDING_ELSEWHERE] += weight_ns;
}

/* Assigns `cost` to the ticks of a class as far as their time allows, and returns the rest. */
static double assign(Classes *classes, enum recording_class class, double cost)
{
	double taken = MIN(cost, classes->weights[class]);

	if (classes->weights[class] > 0)
		classes->timeline->recording_shares[class] = taken / classes->weights[class];
	return cost - taken;
}

void recording_cost_find(Timeline *timeline, Frames *frames)
{
	Classes classes = {.timeline = timeline};
	double switches = 0, others = 0;

	for (size_t i = 0; i < timeline->threads.count; i++) {
		switches += timeline->threads.items[i].recording.switches_ns;
		others += timeline->threads.items[i].recording.others_ns;
	}
	if (switches + others == 0)
		return;
	classify_ticks(timeline, frames);
	tick_weights_visit(timeline, weigh, &classes);
	others = assign(&classes, RECORDING_INSIDE, others);
	others = assign(&classes, RECORDING_UNLOCK, others);
	switches = assign(&classes, RECORDING_SWITCH, switches);
	assign(&classes, RECORDING_ELSEWHERE, switches + others);
}

/* ---- in words -------------------------------------------------------------------- */

RecordingSum recording_cost_sum(const Timeline *timeline)
{
	TickRates rates = tick_rates_of(timeline);
	RecordingSum sum = {.interrupts_ns = tick_rates_interrupts_ns(&rates, timeline)};

	for (size_t i = 0; i < timeline->threads.count; i++) {
		const Thread *thread = &timeline->threads.items[i];

		sum.recording_ns += thread->recording.switches_ns + thread->recording.others_ns;
		sum.running_ns += thread->ledger[STATE_RUNNING];
	}
	return sum;
}

char *recording_cost_text(const Timeline *timeline)
{
	RecordingSum sum = recording_cost_sum(timeline);
	uint64_t all_ns = sum.recording_ns + sum.interrupts_ns;
	_cleanup_free_ char *interrupts = NULL;

	if (!timeline->cost_known || sum.running_ns == 0)
		return NULL;
	interrupts = sum.interrupts_ns ? xasprintf(" (%s: interrupts)", DURATION(sum.interrupts_ns))
				       : xstrdup("");
	return xasprintf("recording cost: %s, %.1f %% of running time%s", DURATION(all_ns),
			 100.0 * all_ns / sum.running_ns, interrupts);
}
