/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * firefox_order.c - keeps the order of the processes that are visible at first.
 *
 * The viewer does not take the order of processes from the profile: it sorts them by the number of
 * rows of their main thread that are not idle, and leaves equal ones in the profile's order
 * (docs/adr/0075). So the main threads of processes at the top get further rows, without weight and
 * width, until they have as many as any below them.
 */
#include "firefox_parts.h"

/* The further rows are at most this part of the budget of rows; else the order ends earlier. */
#define ORDER_PART 20

/* A process with a visible track. */
typedef struct Shown {
	uint32_t main; /* Tracks::list */
	uint64_t rows; /* of its main track that are not idle */
} Shown;

typedef VEC(Shown) ShownList;

static uint64_t count_rows(Profile *profile, const Track *track)
{
	uint64_t count = 0;

	profile_make_rows(profile, track);
	for (size_t i = 0; i < profile->track_rows.stacks.count; i++)
		count += stack_table_leaf_category(profile->tables,
						   profile->track_rows.stacks.items[i]) !=
			 CATEGORY_IDLE;
	return count;
}

/* Adds the processes in the profile's order. A main track is the first one of its process. */
static void find_shown(ShownList *shown, Profile *profile)
{
	const Tracks *tracks = &profile->tracks;
	uint32_t main = TRACK_NONE;

	for (size_t i = 0, next = 0; i < tracks->list.count; i++) {
		const Track *track = &tracks->list.items[i];

		if (track->is_main || track->tid.word)
			main = track->is_main && !track->is_path ? i : TRACK_NONE;
		if (next >= tracks->visible.count || tracks->visible.items[next] != i)
			continue;
		next++;
		if (main == TRACK_NONE)
			continue;
		*vec_push(shown) = (Shown){main, count_rows(profile, &tracks->list.items[main])};
		main = TRACK_NONE;
	}
}

void profile_plan_order(Profile *profile, uint64_t row_budget)
{
	uint64_t *more = xcalloc(profile->tracks.list.count, sizeof(*more));
	uint64_t left = row_budget / ORDER_PART;
	ShownList shown = {};

	profile->order_rows = more;
	if (profile->cpu_graph) /* the viewer sorts by the CPU time then */
		return;
	find_shown(&shown, profile);
	for (size_t i = 0; i < shown.count; i++) {
		uint64_t most = shown.items[i].rows, missing;

		for (size_t k = i + 1; k < shown.count; k++)
			most = MAX(most, shown.items[k].rows);
		missing = most - shown.items[i].rows;
		if (missing > left)
			break;
		left -= missing;
		more[shown.items[i].main] = missing;
	}
	vec_free(&shown);
}
