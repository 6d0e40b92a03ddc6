/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ring_buffers.h"
#include "util.h"
#include <bpf/bpf.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

struct RingBuffers {
	pthread_t creator;
	bool has_thread;
	uint32_t sizes[RINGS];
	int fds[RINGS];
	int error; /* error of creating them, or 0 */
	struct ring_buffer *buffer;
	int (*on_record)(void *user, const struct record *record);
	void *on_record_user;
};

static void *create_rings(void *argument)
{
	static const char *const names[RINGS] = {
		[RING_SCHED] = "sched_ring", [RING_BULK] = "bulk_ring", [RING_COPY] = "copy_ring"};
	RingBuffers *rings = argument;

	for (size_t i = 0; i < RINGS && !rings->error; i++) {
		rings->fds[i] =
			bpf_map_create(BPF_MAP_TYPE_RINGBUF, names[i], 0, 0, rings->sizes[i], NULL);
		if (rings->fds[i] < 0) {
			rings->error = -errno;
			log_verbose("making the map %s of %u bytes failed: %s", names[i],
				    rings->sizes[i], strerror(-rings->error));
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
	rings->has_thread = aside && !pthread_create(&rings->creator, NULL, create_rings, rings);
	if (!rings->has_thread)
		create_rings(rings);
	return rings;
}

static void join_creator(RingBuffers *rings)
{
	if (rings->has_thread)
		pthread_join(rings->creator, NULL);
	rings->has_thread = false;
}

static int on_sample(void *context, void *data, size_t size)
{
	RingBuffers *rings = context;
	const struct record *record = data;

	/* wallprof's own programs wrote the record; nevertheless nothing is read beyond its end. */
	if (size < sizeof(*record) || record->len > size)
		return 0;
	return rings->on_record(rings->on_record_user, record);
}

/* Opens libbpf's reader of all rings. */
static int open_buffer(RingBuffers *rings)
{
	rings->buffer = ring_buffer__new(rings->fds[0], on_sample, rings, NULL);
	if (!rings->buffer)
		return -errno;
	for (size_t i = 1; i < RINGS; i++) {
		int error = ring_buffer__add(rings->buffer, rings->fds[i], on_sample, rings);

		if (error)
			return error;
	}
	return 0;
}

int ring_buffers_attach(RingBuffers *rings, struct bpf_map *const maps[static RINGS])
{
	join_creator(rings);
	if (rings->error)
		return rings->error;
	for (size_t i = 0; i < RINGS; i++) {
		int error = bpf_map__reuse_fd(maps[i], rings->fds[i]);

		if (error)
			return error;
	}
	return open_buffer(rings);
}

int ring_buffers_drain(RingBuffers *rings,
		       int (*on_record)(void *user, const struct record *record), void *user)
{
	int got;

	rings->on_record = on_record;
	rings->on_record_user = user;
	got = ring_buffer__consume(rings->buffer);
	return got < 0 ? got : 0;
}

void ring_buffers_free(RingBuffers *rings)
{
	if (!rings)
		return;
	join_creator(rings);
	ring_buffer__free(rings->buffer);
	for (size_t i = 0; i < RINGS; i++)
		if (rings->fds[i] >= 0)
			close(rings->fds[i]);
	free(rings);
}
