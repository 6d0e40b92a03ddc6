/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "answer_private.h"
#include "name_shares.h"
#include "text.h"

/* A limit of a cgroup is a fact about its threads, not about the machine. */
static bool is_cpu_wait(const Portion *part)
{
	return reason_info[part->reason].category == CATEGORY_RUNNABLE &&
	       part->reason != REASON_THROTTLED;
}

static const char *program_of(const Maker *maker, const Portion *part)
{
	const Timeline *timeline = maker->timeline;

	return timeline->processes.items[timeline->threads.items[part->thread].process].name;
}

/* Returns whether waits of several labels are to be joined. */
static bool is_worth_it(const Maker *maker)
{
	const Portion *first = NULL;

	for (size_t i = 0; i < maker->parts.count; i++) {
		const Portion *part = &maker->parts.items[i];

		if (!is_cpu_wait(part))
			continue;
		if (first && first->who != part->who)
			return true;
		first = part;
	}
	return false;
}

void answer_join_cpu_waits(Maker *maker)
{
	Portion joined = {};
	NameShares programs = {};
	uint64_t most_ns = 0;
	size_t kept = 0, others;
	_cleanup_free_ char *who = NULL;
	char *list;

	if (!is_worth_it(maker))
		return;
	for (size_t i = 0; i < maker->parts.count; i++) {
		Portion *part = &maker->parts.items[i];

		if (!is_cpu_wait(part)) {
			maker->parts.items[kept++] = *part;
			continue;
		}
		name_shares_add(&programs, program_of(maker, part), part->ns);
		joined.ns += part->ns;
		joined.count += part->count;
		if (part->ns >= most_ns) {
			most_ns = part->ns;
			joined.reason = part->reason;
			joined.thread = part->thread;
		}
		answer_free_portion(part);
	}
	maker->parts.count = kept;
	list = name_shares_text(&programs, &others);
	who = programs.ns.count == 1 ? text_printable(strings_get(&programs.names, 0))
				     : xasprintf("%zu programs", programs.ns.count);
	joined.who = strings_intern(&maker->labels, who);
	joined.joined = programs.ns.count > 1 && list ? xasprintf("waiting for a CPU (%s)", list)
						      : xstrdup("waiting for a CPU");
	free(list);
	name_shares_free(&programs);
	*vec_push(&maker->parts) = joined;
}
