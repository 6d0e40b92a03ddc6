/* SPDX-License-Identifier: GPL-2.0-or-later */
/* licenses.h - the licences of wallprof and of the libraries that are linked into it. */
#ifndef WALLPROF_LICENSES_H
#define WALLPROF_LICENSES_H

/* Prints the licences to stdout. */
void licenses_print(void);

#endif
