/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fake_table_builder.h - a builder of unwind tables that does what the object says: an ELF header
 * and, behind it, a struct behaviour; or, with a debug file, what that says. It runs in the
 * sandboxed child, in the place of unwind_table_build(), as does what sees whether a debug file
 * fits.
 */
#ifndef WALLPROF_TEST_FAKE_TABLE_BUILDER_H
#define WALLPROF_TEST_FAKE_TABLE_BUILDER_H

#include "unwind_table.h"

#define BASE_SVMA 4096

struct behaviour {
	char what;
	uint32_t rows;
	uint64_t seed;
	char debuglink[16]; /* the name of its debug file */
};

/* Makes all table workers that are started from now on use it. */
void fake_table_builder_use(void);

/* Returns the table that a behaviour stands for; that of 'l' has gaps all over. */
UnwindTable table_of_behaviour(const struct behaviour *behaviour);

#endif
