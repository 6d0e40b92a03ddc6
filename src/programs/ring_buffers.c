/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ring_buffers.h"
#include "bpf_options.h"
#include "cgroup.h"
#include "util.h"
#include <bpf/bpf.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#define DEFAULT_GROUPS	   16
#define DEFAULT_SIZE	   (16ULL << 20) /* of all rings of a kind */
#define DEFAULT_LEAST_SIZE (4ULL << 20)	 /* of one ring */
#define LEAST_SIZE	   (4ULL << 10)

/*
 * Puts one ring into the map of all rings. Before Linux 6.19 the kernel then waits until all
 * programs that may be running have ended, so each ring has a thread for that.
 */
typedef struct Publisher {
	pthread_t thread;
	bool has_thread;
	int map_fd, ring_fd;
	uint32_t slot;
	int error; /* of putting it there, or 0 */
} Publisher;

struct RingBuffers {
	pthread_t creator;
	bool has_thread;
	RingLayout layout;
	uint64_t sizes[RINGS];
	int error; /* of creating them, or 0 */
	int map_fd;
	int (*fds)[RINGS]; /* by group */
	Publisher (*publishers)[RINGS];
	RingReader *reader;
};

uint64_t ring_layout_bytes(const RingLayout *layout)
{
	return layout->size * layout->groups * RINGS;
}

uint64_t ring_memory_max(void)
{
	struct sysinfo info;
	uint64_t memory = cgroup_memory_limit();

	if (!sysinfo(&info))
		memory = MIN(memory, (uint64_t)info.totalram * info.mem_unit);
	return memory / 4;
}

char *ring_size_text(uint64_t size)
{
	return size % (1 << 20) ? xasprintf("%" PRIu64 "K", size >> 10)
				: xasprintf("%" PRIu64 "M", size >> 20);
}

static uint64_t default_size(uint32_t groups)
{
	uint64_t size = DEFAULT_SIZE;

	while (size > DEFAULT_LEAST_SIZE && size * groups > DEFAULT_SIZE)
		size /= 2;
	return size;
}

RingLayout ring_layout(uint64_t size, uint32_t group_cpus, uint32_t cpus, uint64_t most)
{
	RingLayout layout = {
		.group_cpus = group_cpus ?: (cpus + DEFAULT_GROUPS - 1) / DEFAULT_GROUPS,
	};

	layout.groups =
		MIN((cpus + layout.group_cpus - 1) / layout.group_cpus, (uint32_t)RING_GROUPS_MAX);
	layout.size = size ?: default_size(layout.groups);
	while (layout.size > LEAST_SIZE && ring_layout_bytes(&layout) > most)
		layout.size /= 2;
	return layout;
}

/* ---- creating ----------------------------------------------------------------------------- */

static int create_ring(enum ring_index kind, uint64_t size, int *ret_fd)
{
	static const char *const names[RINGS] = {
		[RING_SCHED] = "sched_ring", [RING_BULK] = "bulk_ring", [RING_COPY] = "copy_ring"};

	*ret_fd = bpf_map_create(BPF_MAP_TYPE_RINGBUF, names[kind], 0, 0, size, NULL);
	if (*ret_fd >= 0)
		return 0;
	log_verbose("making the map %s of %llu bytes failed: %s", names[kind],
		    (unsigned long long)size, strerror(errno));
	return -errno;
}

static int create_rings(RingBuffers *rings)
{
	BPF_OPTIONS(bpf_map_create_opts, options);

	for (size_t i = 0; i < rings->layout.groups; i++) {
		for (size_t kind = 0; kind < RINGS; kind++) {
			int error = create_ring(kind, rings->sizes[kind], &rings->fds[i][kind]);

			if (error)
				return error;
		}
	}
	options.inner_map_fd = rings->fds[0][RING_SCHED];
	rings->map_fd = bpf_map_create(BPF_MAP_TYPE_ARRAY_OF_MAPS, "group_rings", sizeof(uint32_t),
				       sizeof(uint32_t), rings->layout.groups * RINGS, &options);
	return rings->map_fd < 0 ? -errno : 0;
}

static void *run_creator(void *argument)
{
	RingBuffers *rings = argument;

	rings->error = create_rings(rings);
	return NULL;
}

static void join_creator(RingBuffers *rings)
{
	if (rings->has_thread)
		pthread_join(rings->creator, NULL);
	rings->has_thread = false;
}

RingBuffers *ring_buffers_new(const RingLayout *layout, bool copies, bool aside)
{
	RingBuffers *rings = xcalloc(1, sizeof(*rings));

	rings->layout = *layout;
	for (size_t kind = 0; kind < RINGS; kind++)
		rings->sizes[kind] = layout->size;
	if (!copies)
		rings->sizes[RING_COPY] = sysconf(_SC_PAGESIZE);
	rings->map_fd = -1;
	rings->fds = xmalloc(layout->groups * sizeof(*rings->fds));
	memset(rings->fds, 0xff, layout->groups * sizeof(*rings->fds)); /* -1: not open */
	rings->publishers = xcalloc(layout->groups, sizeof(*rings->publishers));
	rings->reader = ring_reader_new(layout->groups);
	rings->has_thread = aside && !pthread_create(&rings->creator, NULL, run_creator, rings);
	if (!rings->has_thread)
		run_creator(rings);
	return rings;
}

/* ---- the map of all rings ----------------------------------------------------------------- */

static void *run_publisher(void *argument)
{
	Publisher *publisher = argument;

	if (bpf_map_update_elem(publisher->map_fd, &publisher->slot, &publisher->ring_fd, BPF_ANY))
		publisher->error = -errno;
	return NULL;
}

static void start_publisher(RingBuffers *rings, uint32_t group, enum ring_index kind)
{
	Publisher *publisher = &rings->publishers[group][kind];

	*publisher = (Publisher){.map_fd = rings->map_fd,
				 .ring_fd = rings->fds[group][kind],
				 .slot = RING_SLOT(group, kind)};
	publisher->has_thread = !pthread_create(&publisher->thread, NULL, run_publisher, publisher);
	if (!publisher->has_thread)
		run_publisher(publisher);
}

int ring_buffers_attach(RingBuffers *rings, struct bpf_map *group_rings)
{
	int error;

	join_creator(rings);
	if (rings->error)
		return rings->error;
	for (size_t i = 0; i < rings->layout.groups; i++) {
		for (size_t kind = 0; kind < RINGS; kind++) {
			error = ring_reader_add(rings->reader, i, kind, rings->fds[i][kind],
						rings->sizes[kind]);
			if (error)
				return error;
			start_publisher(rings, i, kind);
		}
	}
	return bpf_map__reuse_fd(group_rings, rings->map_fd);
}

int ring_buffers_ready(RingBuffers *rings)
{
	int error = 0;

	for (size_t i = 0; i < rings->layout.groups; i++) {
		for (size_t kind = 0; kind < RINGS; kind++) {
			Publisher *publisher = &rings->publishers[i][kind];

			if (publisher->has_thread)
				pthread_join(publisher->thread, NULL);
			publisher->has_thread = false;
			error = error ?: publisher->error;
		}
	}
	return error;
}

/* ---- using them --------------------------------------------------------------------------- */

RingLayout ring_buffers_layout(const RingBuffers *rings)
{
	return rings->layout;
}

RingReader *ring_buffers_reader(RingBuffers *rings)
{
	return rings->reader;
}

int ring_buffers_fd(const RingBuffers *rings, uint32_t group, enum ring_index kind)
{
	return rings->fds[group][kind];
}

void ring_buffers_free(RingBuffers *rings)
{
	if (!rings)
		return;
	join_creator(rings);
	ring_buffers_ready(rings);
	ring_reader_free(rings->reader);
	for (size_t i = 0; i < rings->layout.groups; i++)
		for (size_t kind = 0; kind < RINGS; kind++)
			closep(&rings->fds[i][kind]);
	closep(&rings->map_fd);
	free(rings->publishers);
	free(rings->fds);
	free(rings);
}
