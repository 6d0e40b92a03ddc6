/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * report_select.h - a part of the JSON report: of one section, with so many elements of each list,
 * or of at most so many bytes.
 *
 * The whole report is written first and then cut, so that a part never differs from the whole. Cut
 * are lists ("waits", "critical_path.places"): what matters most is kept, and the member "omitted"
 * counts what is not there. The result is always valid JSON.
 */
#ifndef WALLPROF_REPORT_SELECT_H
#define WALLPROF_REPORT_SELECT_H

#include "report.h"

/*
 * Writes the part of the report, which is one JSON object without white space. Returns 0; or
 * -ENOSPC if the limit is too small, and sets *ret_smallest to the smallest one that is possible.
 */
int report_select(Output *output, const char *json, const ReportSelection *selection,
		  uint64_t *ret_smallest);

#endif
