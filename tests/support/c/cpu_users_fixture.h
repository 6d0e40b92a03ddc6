/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cpu_users_fixture.h - the parts of a wait for a CPU as text, for tests of the division. */
#ifndef WALLPROF_TEST_CPU_USERS_OF_H
#define WALLPROF_TEST_CPU_USERS_OF_H

#include "cpu_users.h"

/* The parts of interval i; to be freed. */
static inline char *cpu_users_of(const Timeline *timeline, const Thread *thread, size_t i)
{
	CpuParts parts = {};
	char *text;

	cpu_users_divide(timeline, thread, i, &parts);
	cpu_parts_sort(&parts);
	text = cpu_users_text(timeline, &parts);
	cpu_parts_free(&parts);
	return text;
}

#endif
