/* SPDX-License-Identifier: GPL-2.0-or-later */
/* flamegraph_page.h - what all flame graphs have in common: measures, colours, styles, script. */
#ifndef WALLPROF_FLAMEGRAPH_PAGE_H
#define WALLPROF_FLAMEGRAPH_PAGE_H

#include "reason.h"

/* In pixels. The script knows the same measures. */
#define FLAMEGRAPH_WIDTH  1200
#define FLAMEGRAPH_MARGIN 10
#define FLAMEGRAPH_FRAME  16
#define FLAMEGRAPH_TOP	  78 /* title, notes, legend */
#define FLAMEGRAPH_BOTTOM 28 /* the details of the frame at the pointer */
#define FLAMEGRAPH_LETTER 6.7

/* Returns a colour as CSS has it. */
const char *flamegraph_colour(enum category category);

extern const char flamegraph_style[];
extern const char flamegraph_script[];

#endif
