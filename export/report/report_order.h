/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * report_order.h - threads and processes in order of what they matter for the run: by their time on
 * the critical path, then by running time, then by the time that they were runnable.
 */
#ifndef WALLPROF_REPORT_ORDER_H
#define WALLPROF_REPORT_ORDER_H

#include "timeline.h"

typedef struct ReportOrder {
	uint32_t *threads;   /* Timeline::threads */
	uint32_t *processes; /* Timeline::processes */
} ReportOrder;

void report_order_init(ReportOrder *order, const Timeline *timeline);
void report_order_free(ReportOrder *order);

#endif
