/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * licenses.h - the licence of wallprof, and those of the libraries that are linked into it.
 */
#ifndef WALLPROF_LICENSES_H
#define WALLPROF_LICENSES_H

/* On stdout. */
void licenses_print(void);

#endif
