/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tick_rates.h"
#include <inttypes.h>
#include <stdio.h>

/* No interrupt takes longer; a greater number is not a measurement. */
#define INTERRUPT_MAX_NS NSEC_PER_SEC

static void add_rate(TickRates *rates, uint64_t from_ns, uint64_t hz)
{
	if (rates->count < TICK_RATES_MOST && hz > 0 && hz <= NSEC_PER_SEC)
		rates->list[rates->count++] = (TickRate){from_ns, hz};
}

/* Parses "NS:HZ,NS:HZ"; what comes after a malformed entry is ignored. */
static void add_changes(TickRates *rates, const char *text)
{
	uint64_t ns, hz, last_ns = 0;
	int length;

	while (sscanf(text, "%" SCNu64 ":%" SCNu64 "%n", &ns, &hz, &length) == 2 && ns > last_ns) {
		add_rate(rates, ns, hz);
		last_ns = ns;
		text += length;
		if (*text != ',')
			return;
		text++;
	}
}

TickRates tick_rates_of(const Timeline *timeline)
{
	const char *changes = timeline_meta(timeline, "frequency_changes");
	const char *share = timeline_meta(timeline, "frequency_share");
	TickRates rates = {};
	uint64_t number;

	if (!timeline_meta_number(timeline, "frequency", &number))
		return rates;
	add_rate(&rates, 0, number);
	if (rates.count > 0 && changes)
		add_changes(&rates, changes);
	rates.share = share ? strtod(share, NULL) : 0;
	if (!(rates.share > 0 && rates.share <= 1))
		rates.share = 0;
	if (timeline_meta_number(timeline, "tick_interrupt_ns", &number) &&
	    number <= INTERRUPT_MAX_NS)
		rates.interrupt_ns = number;
	if (timeline_meta_number(timeline, "ticks", &number))
		rates.ticks = number;
	return rates;
}

uint64_t tick_rates_highest(const TickRates *rates, const Timeline *timeline)
{
	uint64_t highest = 0;

	for (size_t i = 0; i < rates->count; i++) {
		uint64_t until_ns = i + 1 < rates->count ? rates->list[i + 1].from_ns : UINT64_MAX;

		if (until_ns > timeline->start_ns && rates->list[i].from_ns < timeline->end_ns)
			highest = MAX(highest, rates->list[i].hz);
	}
	return highest;
}

uint64_t tick_rates_interrupts_ns(const TickRates *rates, const Timeline *timeline)
{
	uint64_t ticks = 0;

	for (size_t i = 0; i < timeline->threads.count; i++)
		ticks += timeline->threads.items[i].ticks.count;
	return ticks * rates->interrupt_ns;
}
