/* SPDX-License-Identifier: GPL-2.0-or-later */
/* chrome_parts.h - the parts of a trace that have files of their own; chrome.c calls them. */
#ifndef WALLPROF_CHROME_PARTS_H
#define WALLPROF_CHROME_PARTS_H

#include "chrome_events.h"

/*
 * chrome_threads.c: slices, states and flows of a thread. chrome_slices_fit() returns the shortest
 * threshold (ns, 0: nothing is folded) by which all threads together keep to the budget.
 */
uint64_t chrome_slices_fit(const Timeline *timeline, uint64_t budget);
void chrome_write_thread(Chrome *chrome, const Thread *thread);

/* chrome_spans.c: spans that overlap: faults of a thread; all requests; lost events. */
void chrome_write_faults(Chrome *chrome, const Thread *thread);
void chrome_write_requests(Chrome *chrome);
void chrome_write_losses(Chrome *chrome);

#endif
