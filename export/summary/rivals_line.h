/* SPDX-License-Identifier: GPL-2.0-or-later */
/* rivals_line.h - which programs had the CPUs that threads waited for, in one line. */
#ifndef WALLPROF_RIVALS_LINE_H
#define WALLPROF_RIVALS_LINE_H

#include "timeline.h"

/*
 * Returns "clang 41 %, cc1 20 %, gzip 8 %": the names of the tasks that ran most while threads
 * waited for a CPU, with their parts of that time. NULL: no name has a part worth a remark. The
 * caller frees it.
 */
char *rivals_line_text(const Timeline *timeline);

#endif
