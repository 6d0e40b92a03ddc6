/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "epoll_watches.h"
#include "util.h"
#include <stddef.h>
#include <string.h>

/* Returns the index of the first entry that is the same; UINT32_MAX: none. */
static uint32_t find(const struct rec_watch *known, const struct watched *wanted)
{
	for (uint32_t i = 0; i < known->count; i++) {
		const struct watched *have = &known->watched[i];

		if (have->inode == wanted->inode && have->device == wanted->device &&
		    have->generation == wanted->generation && have->fd == wanted->fd &&
		    have->kind == wanted->kind && have->via == wanted->via)
			return i;
	}
	return UINT32_MAX;
}

/* Returns its index in the list; UINT32_MAX: the list is full. */
static uint32_t add_one(struct rec_watch *known, const struct watched *watched)
{
	uint32_t number = find(known, watched);

	if (number != UINT32_MAX)
		return number;
	if (known->count == WATCHES_KEPT) {
		known->more = 1;
		return UINT32_MAX;
	}
	known->watched[known->count] = *watched;
	return known->count++;
}

struct rec_watch *epoll_watches_add(struct rec_watch *known, const struct rec_watch *record)
{
	_cleanup_free_ uint32_t *places = xcalloc(record->count + 1, sizeof(*places));

	if (!known) {
		known = xcalloc(1, sizeof(*known) + WATCHES_KEPT * sizeof(struct watched));
		memcpy(known, record, offsetof(struct rec_watch, count));
	}
	known->more |= record->more;
	for (uint32_t i = 0; i < record->count; i++) {
		struct watched watched = record->watched[i];

		places[i] = UINT32_MAX;
		/* An entry whose watcher is not in the list cannot be in it either. */
		if (watched.via && places[watched.via - 1] == UINT32_MAX)
			continue;
		watched.via = watched.via ? places[watched.via - 1] + 1 : 0;
		places[i] = add_one(known, &watched);
	}
	return known;
}

bool epoll_watches_through(const struct rec_watch *watch, uint32_t number)
{
	for (uint32_t i = 0; i < watch->count; i++)
		if (watch->watched[i].via == number + 1)
			return true;
	return false;
}

uint32_t epoll_watches_leaves(const struct rec_watch *watch, uint32_t *ret_kinds)
{
	uint32_t count = 0;

	*ret_kinds = 0;
	for (uint32_t i = 0; i < watch->count; i++) {
		if (epoll_watches_through(watch, i))
			continue;
		*ret_kinds |= 1U << (watch->watched[i].kind & 31);
		count++;
	}
	return count;
}

static bool comes_before(const struct watched *a, const struct watched *b)
{
	bool a_listens = a->kind == FD_LISTEN, b_listens = b->kind == FD_LISTEN;

	return a_listens != b_listens ? a_listens : a->fd < b->fd;
}

uint32_t epoll_watches_sorted(const struct rec_watch *watch, uint32_t via, uint32_t *numbers)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < watch->count; i++) {
		uint32_t at = count;

		if (watch->watched[i].via != via)
			continue;
		for (; at > 0 && comes_before(&watch->watched[i], &watch->watched[numbers[at - 1]]);
		     at--)
			numbers[at] = numbers[at - 1];
		numbers[at] = i;
		count++;
	}
	return count;
}
