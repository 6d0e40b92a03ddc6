/* SPDX-License-Identifier: GPL-2.0-or-later */
/* seeds.h - what make_seeds.c and the targets agree on. */
#ifndef WALLPROF_SEEDS_H
#define WALLPROF_SEEDS_H

/* Of the object whose names are cached. */
#define SEED_BUILD_ID                                                                              \
	{                                                                                          \
		1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20              \
	}

/* Addresses that a child is asked for: these, ascending. */
#define SEED_ADDRESSES	16
#define SEED_ADDRESS(i) (0x1000 + 0x10 * (uint64_t)(i))

#endif
