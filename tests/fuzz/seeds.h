/* SPDX-License-Identifier: GPL-2.0-or-later */
/* seeds.h - what make_seeds.c and the targets agree on. */
#ifndef WALLPROF_SEEDS_H
#define WALLPROF_SEEDS_H

/* This is the object whose names are cached. */
#define SEED_BUILD_ID                                                                              \
	{                                                                                          \
		1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20              \
	}

/* This is the object whose unwind table is cached. */
#define SEED_TABLE_KEY                                                                             \
	{                                                                                          \
		.build_id = SEED_BUILD_ID, .build_id_len = 20, .base_svma = 0x400000,              \
		.file = {.size = 1, .mtime_ns = 2, .ctime_ns = 3, .device = 4, .inode = 5},        \
	}

/* Addresses that a child is asked for: these, ascending. */
#define SEED_ADDRESSES	16
#define SEED_ADDRESS(i) (0x1000 + 0x10 * (uint64_t)(i))

#endif
