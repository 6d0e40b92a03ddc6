/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ring_buffers.h"
#include "util.h"
#include <bpf/bpf.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

struct RingBuffers {
	pthread_t maker;
	bool has_thread;
	uint32_t sizes[RINGS];
	int fds[RINGS];
	int error; /* why not all were made */
	struct ring_buffer *buffer;
	int (*take)(void *user, const struct record *record);
	void *take_user;
};

static void *make(void *argument)
{
	static const char *const names[RINGS] = {
		[RING_SCHED] = "sched_ring", [RING_BULK] = "bulk_ring", [RING_COPY] = "copy_ring"};
	RingBuffers *rings = argument;

	for (size_t i = 0; i < RINGS && !rings->error; i++) {
		rings->fds[i] =
			bpf_map_create(BPF_MAP_TYPE_RINGBUF, names[i], 0, 0, rings->sizes[i], NULL);
		if (rings->fds[i] < 0) {
			rings->error = -errno;
			log_verbose("%s of %u bytes: %s", names[i], rings->sizes[i],
				    strerror(-rings->error));
		}
	}
	return NULL;
}

RingBuffers *ring_buffers_new(const uint32_t sizes[static RINGS], bool aside)
{
	RingBuffers *rings = xcalloc(1, sizeof(*rings));

	for (size_t i = 0; i < RINGS; i++) {
		rings->sizes[i] = sizes[i];
		rings->fds[i] = -1;
	}
	rings->has_thread = aside && !pthread_create(&rings->maker, NULL, make, rings);
	if (!rings->has_thread)
		make(rings);
	return rings;
}

static void join_maker(RingBuffers *rings)
{
	if (rings->has_thread)
		pthread_join(rings->maker, NULL);
	rings->has_thread = false;
}

static int take_record(void *context, void *data, size_t size)
{
	RingBuffers *rings = context;
	const struct record *record = data;

	/* Our own programs wrote it; still, nothing may be read beyond what came. */
	if (size < sizeof(*record) || record->len > size)
		return 0;
	return rings->take(rings->take_user, record);
}

/* libbpf's reader of all of them. */
static int open_buffer(RingBuffers *rings)
{
	rings->buffer = ring_buffer__new(rings->fds[0], take_record, rings, NULL);
	if (!rings->buffer)
		return -errno;
	for (size_t i = 1; i < RINGS; i++) {
		int error = ring_buffer__add(rings->buffer, rings->fds[i], take_record, rings);

		if (error)
			return error;
	}
	return 0;
}

int ring_buffers_attach(RingBuffers *rings, struct bpf_map *const maps[static RINGS])
{
	join_maker(rings);
	if (rings->error)
		return rings->error;
	for (size_t i = 0; i < RINGS; i++) {
		int error = bpf_map__reuse_fd(maps[i], rings->fds[i]);

		if (error)
			return error;
	}
	return open_buffer(rings);
}

int ring_buffers_drain(RingBuffers *rings, int (*take)(void *user, const struct record *record),
		       void *user)
{
	int got;

	rings->take = take;
	rings->take_user = user;
	got = ring_buffer__consume(rings->buffer);
	return got < 0 ? got : 0;
}

void ring_buffers_free(RingBuffers *rings)
{
	if (!rings)
		return;
	join_maker(rings);
	ring_buffer__free(rings->buffer);
	for (size_t i = 0; i < RINGS; i++)
		if (rings->fds[i] >= 0)
			close(rings->fds[i]);
	free(rings);
}
