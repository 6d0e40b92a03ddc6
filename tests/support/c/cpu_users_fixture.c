/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cpu_users_fixture.h"

char *cpu_users_of(const Timeline *timeline, const Thread *thread, size_t i)
{
	CpuParts parts = {};
	char *text;

	cpu_users_divide(timeline, thread, i, &parts);
	cpu_parts_sort(&parts);
	text = cpu_users_text(timeline, &parts);
	cpu_parts_free(&parts);
	return text;
}
