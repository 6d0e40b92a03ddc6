/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pager.h - shows long text in a pager, as git does: only if standard output is a terminal that is
 * not dumb, with the first of $WALLPROF_PAGER, $PAGER and less that is there; "" and "cat" mean
 * none. less gets LESS=FRX, unless the user has set LESS: a text that fits the screen is printed as
 * it is.
 */
#ifndef WALLPROF_PAGER_H
#define WALLPROF_PAGER_H

#include "page.h"
#include <sys/types.h>

typedef struct Pager {
	pid_t pid;  /* 0: there is none */
	FILE *file; /* its standard input */
} Pager;

/* Starts a pager and makes the page print to it. Without one nothing changes. */
void pager_start(Pager *pager, Page *page);

/* Waits until the user has left the pager. */
void pager_stop(Pager *pager);

#endif
