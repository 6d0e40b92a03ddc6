/* SPDX-License-Identifier: GPL-2.0-or-later */
/* table_builder.h - makes unwind tables whose every row follows from a seed. */
#ifndef WALLPROF_TEST_TABLE_BUILDER_H
#define WALLPROF_TEST_TABLE_BUILDER_H

#include "unwind_table.h"

#define MADE_RULES 50

/* There are at least 3 rows. At both ends there is a gap; neighbours differ. */
UnwindTable make_table(uint64_t seed, size_t rows);
bool same_tables(const UnwindTable *a, const UnwindTable *b);

#endif
