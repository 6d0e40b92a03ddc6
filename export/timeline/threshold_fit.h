/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * threshold_fit.h - how short what is left out may be, so that the rest has room.
 */
#ifndef WALLPROF_THRESHOLD_FIT_H
#define WALLPROF_THRESHOLD_FIT_H

#include <stdint.h>

/* How many rows those take that took least_ns or longer; ret_others: how many the others would. */
typedef uint64_t (*CountRows)(const void *user, uint64_t least_ns, uint64_t *ret_others);

/*
 * A time (ns) such that no more rows are taken than the budget allows by what took so long: 0 if
 * all have room, UINT64_MAX (nothing is shown) if what lasted for centuries would be too many.
 */
uint64_t threshold_fit_rows(CountRows count, const void *user, uint64_t budget);

#endif
