/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "rivals_line.h"
#include "cpu_user_sums.h"
#include "name_shares.h"

char *rivals_line_text(const Timeline *timeline)
{
	CpuUserSums sums = cpu_user_sums_of(timeline);
	NameShares shares = {};
	size_t others;
	char *text;

	/* Many tasks have one name: a build has a process for each file. */
	for (size_t i = 0; i < sums.list.count; i++) {
		const CpuUser *user = &sums.list.items[i];
		char comm[COMM_LEN + 1];

		name_shares_add(&shares, cpu_user_name(timeline, user->task, comm), user->total_ns);
	}
	text = name_shares_text(&shares, &others);
	name_shares_free(&shares);
	cpu_user_sums_free(&sums);
	return text;
}
