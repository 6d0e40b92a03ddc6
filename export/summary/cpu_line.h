/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cpu_line.h - how busy the CPUs were, in one line of the summary and of the report. */
#ifndef WALLPROF_CPU_LINE_H
#define WALLPROF_CPU_LINE_H

#include "accounts.h"

/*
 * Returns "used 53 % of 2; up to 5 threads wanted one, and waited 1.338 s", of a recording of the
 * whole system by all tasks, else by its threads. What hardly anything waited for is not said.
 * NULL: nothing is known. The caller frees it.
 */
char *cpu_line_text(const Timeline *timeline, const Accounts *accounts);

#endif
