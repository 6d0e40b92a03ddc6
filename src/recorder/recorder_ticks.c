/* SPDX-License-Identifier: GPL-2.0-or-later */
/* recorder_ticks.c - what sampling ticks cost, and the rate that follows from it. */
#include "metadata.h"
#include "recorder_private.h"
#include "tick_rate.h"
#include "util.h"
#include <inttypes.h>
#include <string.h>

/* The slices of the measurement are apart, so that each takes little from what runs. */
#define SLICE_DISTANCE_NS (20 * NSEC_PER_MSEC)

static int write_number(Recording *recording, const char *key, uint64_t number)
{
	_cleanup_free_ char *text = xasprintf("%" PRIu64, number);

	return metadata_write_one(key, text, recording_write, recording);
}

void recording_begin_ticks(Recording *recording)
{
	RecordedTicks *ticks = &recording->ticks;

	ticks->frequency = recording->options->frequency;
	ticks->at_start = programs_tick_counts(recording->programs);
	ticks->seen_ns = recording->window_start_ns;
}

/* Measures a little in each round in which the rings do not wait. Returns whether it is done. */
static bool measure(Recording *recording, uint64_t now)
{
	RecordedTicks *ticks = &recording->ticks;

	if (now < ticks->next_slice_ns ||
	    ring_reader_is_behind(programs_ring_reader(recording->programs)))
		return false;
	ticks->next_slice_ns = now + SLICE_DISTANCE_NS;
	return interrupt_cost_step(&ticks->cost);
}

static int end_measurement(Recording *recording)
{
	RecordedTicks *ticks = &recording->ticks;

	ticks->measured = true;
	ticks->interrupt_ns = interrupt_cost_ns(&ticks->cost);
	interrupt_cost_free(&ticks->cost);
	if (ticks->interrupt_ns == 0) {
		log_verbose("CPU samples: the cost of an interrupt could not be measured");
		return 0;
	}
	log_verbose("CPU samples: an interrupt takes %.1f us", ticks->interrupt_ns / 1e3);
	return write_number(recording, "tick_interrupt_ns", ticks->interrupt_ns);
}

/* Returns the time that one tick which hits a target takes of its CPU, in ns. */
static double cost_of_tick(const Recording *recording, const TickCounts *counts)
{
	return recording->ticks.interrupt_ns +
	       (counts->samples ? (double)counts->samples_ns / counts->samples : 0);
}

static int change_rate(Recording *recording, unsigned int frequency)
{
	_cleanup_free_ char *change = NULL;
	int error = programs_set_tick_rate(recording->programs, frequency);

	if (error) {
		log_verbose("CPU samples: changing their rate failed: %s", error_text(error));
		return 0;
	}
	recording->ticks.frequency = frequency;
	change = xasprintf("%" PRIu64 ":%u", now_ns(), frequency);
	return metadata_write_one("frequency_changes", change, recording_write, recording);
}

/* Decides on the rate once and for all. */
static int choose_rate(Recording *recording)
{
	RecordedTicks *ticks = &recording->ticks;
	double share = recording_ticks_share(recording->options), tick_ns;
	unsigned int frequency;

	ticks->chosen = true;
	ticks->at_choice = programs_tick_counts(recording->programs);
	if (ticks->interrupt_ns == 0)
		return 0;
	tick_ns = cost_of_tick(recording, &ticks->at_choice);
	frequency = tick_rate_choose(share, tick_ns);
	log_verbose("CPU samples: from here on %u a second on each CPU, which take %.1f %% of it "
		    "(%.1f us each); %u would take %.1f %%",
		    frequency, 100 * frequency * tick_ns / NSEC_PER_SEC, tick_ns / 1e3,
		    TICK_RATE_FIRST, 100 * TICK_RATE_FIRST * tick_ns / NSEC_PER_SEC);
	return frequency == ticks->frequency ? 0 : change_rate(recording, frequency);
}

int recording_adapt_ticks(Recording *recording)
{
	RecordedTicks *ticks = &recording->ticks;
	uint64_t now = now_ns();
	int error = 0;

	if (programs_ticks_run(recording->programs))
		ticks->ran_ns += now - ticks->seen_ns;
	ticks->seen_ns = now;
	if (!ticks->measured && measure(recording, now))
		error = end_measurement(recording);
	if (error || ticks->chosen || !recording->options->adapt_frequency || !ticks->measured ||
	    ticks->ran_ns < TICK_RATE_FULL_NS)
		return error;
	return choose_rate(recording);
}

double recording_ticks_share(const RecordOptions *options)
{
	return options->budget > 0 ? TICK_RATE_BUDGET_SHARE * options->budget : TICK_RATE_SHARE;
}

uint64_t recording_interrupts_ns(const Recording *recording)
{
	const RecordedTicks *ticks = &recording->ticks;
	TickCounts counts = programs_tick_counts(recording->programs);

	return ticks->chosen ? (counts.samples - ticks->at_choice.samples) * ticks->interrupt_ns
			     : 0;
}

int recording_write_ticks(Recording *recording)
{
	const RecordedTicks *ticks = &recording->ticks;
	uint64_t count = programs_tick_counts(recording->programs).ticks - ticks->at_start.ticks;

	if (ticks->interrupt_ns)
		log_verbose("CPU samples: %" PRIu64 " interrupts on all CPUs took %.3f ms", count,
			    count * ticks->interrupt_ns / 1e6);
	return write_number(recording, "ticks", count);
}
