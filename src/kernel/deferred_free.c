/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "deferred_free.h"
#include <fcntl.h>
#include <unistd.h>

/* Freeing smaller ones takes less time than a wakeup takes to be noticed. */
#define LARGE_BYTES	   (1ull << 20)
#define FREED_BYTES_PER_US (4ull << 10)
#define PAUSE_US	   1000
/* Measured: 150 ms are too few (docs/perf/history/target-pauses.md). */
#define PROGRAMS_GO_NS (300 * NSEC_PER_MSEC)

void deferred_free_hold_map(DeferredFree *maps, int fd, uint64_t bytes)
{
	LargeMap held = {.bytes = bytes};

	if (bytes < LARGE_BYTES)
		return;
	held.fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (held.fd >= 0)
		*vec_push(&maps->items) = held;
}

void deferred_free_hold(DeferredFree *maps, const struct bpf_object *object)
{
	struct bpf_map *map;

	maps->since_ns = now_ns();
	bpf_object__for_each_map(map, object)
	{
		uint64_t entries = bpf_map__max_entries(map);

		deferred_free_hold_map(maps, bpf_map__fd(map), entries * bpf_map__value_size(map));
	}
}

void deferred_free_wait(const DeferredFree *maps)
{
	uint64_t passed = now_ns() - maps->since_ns;

	if (maps->items.count && passed < PROGRAMS_GO_NS)
		usleep((PROGRAMS_GO_NS - passed) / NSEC_PER_USEC);
}

void deferred_free_pause(uint64_t bytes)
{
	usleep(PAUSE_US + bytes / FREED_BYTES_PER_US);
}

void deferred_free_release(DeferredFree *maps)
{
	for (size_t i = 0; i < maps->items.count; i++) {
		close(maps->items.items[i].fd);
		deferred_free_pause(maps->items.items[i].bytes);
	}
	vec_free(&maps->items);
}
