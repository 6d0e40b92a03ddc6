/* SPDX-License-Identifier: GPL-2.0-or-later */
/* threshold_fit.h - finds the threshold below which items are hidden, so that the rest fits. */
#ifndef WALLPROF_THRESHOLD_FIT_H
#define WALLPROF_THRESHOLD_FIT_H

#include <stdint.h>

/*
 * Returns how many rows the items need that took least_ns or longer; ret_others: how many the
 * others would need.
 */
typedef uint64_t (*CountRows)(const void *user, uint64_t least_ns, uint64_t *ret_others);

/*
 * Returns a time (ns) such that the items that took at least this long need no more rows than the
 * budget. 0 if all fit; UINT64_MAX (nothing is shown) if even the longest ones would be too many.
 */
uint64_t threshold_fit_rows(CountRows count, const void *user, uint64_t budget);

#endif
