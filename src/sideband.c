/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sideband.h"
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* How long an event may take from its time to its place in the ring. */
#define EVENT_DELAY_NS (200 * NSEC_PER_USEC)

#define DATA_PAGES 64 /* 256 KiB a CPU: thousands of mappings between two reads */

/* Follows every record, for our sample_type (perf_event_open(2), sample_id_all). */
struct sample_id {
	uint32_t pid, tid;
	uint64_t time;
	uint32_t cpu, reserved;
};

struct event_mmap2 {
	struct perf_event_header header;
	uint32_t pid, tid;
	uint64_t addr, len, pgoff;
	union {
		struct {
			uint32_t maj, min;
			uint64_t ino, ino_generation;
		};
		struct { /* PERF_RECORD_MISC_MMAP_BUILD_ID */
			uint8_t build_id_size;
			uint8_t reserved[3];
			uint8_t build_id[20];
		};
	};
	uint32_t prot, flags;
	char filename[];
};

struct event_fork {
	struct perf_event_header header;
	uint32_t pid, ppid, tid, ptid;
	uint64_t time;
};

struct event_lost {
	struct perf_event_header header;
	uint64_t id, lost;
};

struct cpu_ring {
	int fd;
	void *memory;
};

struct Sideband {
	Files *files;
	RecordSink sink;
	void *user;
	struct cpu_ring *rings;
	size_t cpu_count;
	size_t page_size;
	VEC(uint8_t) fetched; /* whole events, one after another, 8-byte aligned */
	VEC(size_t) order;    /* offsets into fetched, sorted by time */
	Map targets;	      /* ns_tgid -> 1 wanted, 0 not any more */
	uint64_t last_read_ns;
	uint64_t fetched_ns, known_ns;
};

static int open_event(int cpu)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU,
		.sample_id_all = 1,
		.mmap = 1,
		.mmap2 = 1,
		.comm = 1,
		.comm_exec = 1,
		.task = 1,
		.build_id = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.exclude_kernel = 1,
		.watermark = 1,
		.wakeup_watermark = 1, /* files should be opened while their process lives */
	};

	return syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

static int open_ring(Sideband *sideband, size_t cpu)
{
	struct cpu_ring *ring = &sideband->rings[cpu];
	void *memory;

	ring->fd = open_event(cpu);
	if (ring->fd < 0)
		return errno == ENODEV ? 0 : -errno; /* a CPU that is not online */
	memory = mmap(NULL, (DATA_PAGES + 1) * sideband->page_size, PROT_READ | PROT_WRITE,
		      MAP_SHARED, ring->fd, 0);
	if (memory == MAP_FAILED)
		return -errno;
	ring->memory = memory;
	return 0;
}

int sideband_open(Files *files, RecordSink sink, void *user, Sideband **ret_sideband)
{
	Sideband *sideband = xcalloc(1, sizeof(*sideband));

	sideband->files = files;
	sideband->sink = sink;
	sideband->user = user;
	sideband->page_size = sysconf(_SC_PAGESIZE);
	sideband->cpu_count = libbpf_num_possible_cpus();
	sideband->rings = xcalloc(sideband->cpu_count, sizeof(*sideband->rings));
	sideband->last_read_ns = now_ns();
	for (size_t cpu = 0; cpu < sideband->cpu_count; cpu++)
		sideband->rings[cpu].fd = -1;
	for (size_t cpu = 0; cpu < sideband->cpu_count; cpu++) {
		int error = open_ring(sideband, cpu);

		if (error) {
			sideband_close(sideband);
			return error;
		}
	}
	*ret_sideband = sideband;
	return 0;
}

void sideband_close(Sideband *sideband)
{
	if (!sideband)
		return;
	for (size_t cpu = 0; cpu < sideband->cpu_count; cpu++) {
		struct cpu_ring *ring = &sideband->rings[cpu];

		if (ring->memory)
			munmap(ring->memory, (DATA_PAGES + 1) * sideband->page_size);
		if (ring->fd >= 0)
			close(ring->fd);
	}
	free(sideband->rings);
	vec_free(&sideband->fetched);
	vec_free(&sideband->order);
	map_free(&sideband->targets);
	free(sideband);
}

int sideband_add_to_epoll(Sideband *sideband, int epoll_fd)
{
	for (size_t cpu = 0; cpu < sideband->cpu_count; cpu++) {
		int fd = sideband->rings[cpu].fd;
		struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

		if (fd >= 0 && epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event))
			return -errno;
	}
	return 0;
}

static bool is_wanted(const Sideband *sideband, uint32_t ns_tgid)
{
	return map_get(&sideband->targets, ns_tgid) == 1;
}

bool sideband_add_process(Sideband *sideband, uint32_t ns_tgid)
{
	if (!ns_tgid || is_wanted(sideband, ns_tgid))
		return false;
	map_set(&sideband->targets, ns_tgid, 1);
	return true;
}

/* Copies out of a ring that wraps around. */
static void copy_event(const Sideband *sideband, const uint8_t *data, uint64_t at, void *to,
		       size_t length)
{
	size_t size = DATA_PAGES * sideband->page_size;
	size_t offset = at & (size - 1);
	size_t first = MIN(length, size - offset);

	memcpy(to, data + offset, first);
	memcpy((uint8_t *)to + first, data, length - first);
}

static void fetch_ring(Sideband *sideband, struct cpu_ring *ring)
{
	struct perf_event_mmap_page *page = ring->memory;
	const uint8_t *data = (const uint8_t *)ring->memory + sideband->page_size;
	uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
	uint64_t tail = page->data_tail;

	while (tail < head) {
		struct perf_event_header header;
		size_t at = sideband->fetched.count;

		copy_event(sideband, data, tail, &header, sizeof(header));
		if (header.size < sizeof(header) || header.size > head - tail)
			break; /* cannot be; never loop on it */
		while (sideband->fetched.capacity < at + header.size) {
			sideband->fetched.capacity = MAX(2 * sideband->fetched.capacity, 65536UL);
			sideband->fetched.items =
				xrealloc(sideband->fetched.items, sideband->fetched.capacity);
		}
		copy_event(sideband, data, tail, sideband->fetched.items + at, header.size);
		sideband->fetched.count += header.size;
		*vec_push(&sideband->order) = at;
		tail += header.size;
	}
	__atomic_store_n(&page->data_tail, head, __ATOMIC_RELEASE);
}

void sideband_fetch(Sideband *sideband)
{
	sideband->fetched_ns = now_ns();
	sideband->fetched.count = 0;
	sideband->order.count = 0;
	for (size_t cpu = 0; cpu < sideband->cpu_count; cpu++)
		if (sideband->rings[cpu].memory)
			fetch_ring(sideband, &sideband->rings[cpu]);
}

static const struct sample_id *event_id(const struct perf_event_header *header)
{
	if (header->size < sizeof(*header) + sizeof(struct sample_id))
		return NULL;
	return (const void *)((const uint8_t *)header + header->size - sizeof(struct sample_id));
}

static int compare_times(const void *a, const void *b, void *base)
{
	const struct sample_id *x = event_id((void *)((uint8_t *)base + *(const size_t *)a));
	const struct sample_id *y = event_id((void *)((uint8_t *)base + *(const size_t *)b));
	uint64_t x_time = x ? x->time : 0, y_time = y ? y->time : 0;

	return x_time < y_time ? -1 : x_time > y_time;
}

static int take_mmap2(Sideband *sideband, const struct event_mmap2 *event,
		      const struct sample_id *id)
{
	const char *end = (const char *)id;
	MappingSeen mapping = {
		.ns = id->time,
		.ns_tgid = event->pid,
		.start = event->addr,
		.end = event->addr + event->len,
		.pgoff = event->pgoff,
		.path = event->filename,
	};

	if (event->filename >= end || !memchr(event->filename, '\0', end - event->filename))
		return 0;
	if (event->header.misc & PERF_RECORD_MISC_MMAP_BUILD_ID) {
		mapping.build_id_len = MIN(event->build_id_size, sizeof(mapping.build_id));
		memcpy(mapping.build_id, event->build_id, mapping.build_id_len);
	} else {
		mapping.inode = event->ino;
	}
	return files_add_mapping(sideband->files, &mapping);
}

static int emit_space(Sideband *sideband, uint8_t flags, uint32_t pid, uint32_t parent, uint64_t ns)
{
	struct rec_space record = {
		.h = {.len = sizeof(record), .kind = REC_SPACE, .flags = flags, .ns = ns},
		.ns_tgid = pid,
		.ns_parent = parent,
	};

	return sideband->sink(sideband->user, &record.h);
}

static int take_fork(Sideband *sideband, const struct event_fork *event)
{
	if (event->pid == event->ppid) /* a thread */
		return 0;
	if (!is_wanted(sideband, event->ppid)) {
		if (is_wanted(sideband, event->pid)) /* a number used again by a stranger */
			map_set(&sideband->targets, event->pid, 0);
		return 0;
	}
	sideband_add_process(sideband, event->pid);
	return emit_space(sideband, SPACE_FORK, event->pid, event->ppid, event->time);
}

static int take_lost(Sideband *sideband, const struct event_lost *event, const struct sample_id *id)
{
	struct rec_loss record = {
		.h = {.len = sizeof(record), .kind = REC_LOSS, .cpu = id->cpu, .ns = id->time},
		.lost_kind = REC_MAPPING,
		.cause = LOSS_SIDEBAND,
		.count = event->lost,
		.from_ns = sideband->last_read_ns,
		.to_ns = id->time,
	};

	return sideband->sink(sideband->user, &record.h);
}

static int take_event(Sideband *sideband, const struct perf_event_header *header)
{
	const struct sample_id *id = event_id(header);
	size_t size = header->size - (id ? sizeof(*id) : 0);

	if (!id)
		return 0;
	switch (header->type) {
	case PERF_RECORD_MMAP2:
		if (size < sizeof(struct event_mmap2) ||
		    !is_wanted(sideband, ((const struct event_mmap2 *)header)->pid))
			return 0;
		return take_mmap2(sideband, (const struct event_mmap2 *)header, id);
	case PERF_RECORD_FORK:
		return size < sizeof(struct event_fork)
			       ? 0
			       : take_fork(sideband, (const struct event_fork *)header);
	case PERF_RECORD_COMM:
		if (!(header->misc & PERF_RECORD_MISC_COMM_EXEC) || !is_wanted(sideband, id->pid))
			return 0;
		return emit_space(sideband, SPACE_EXEC, id->pid, 0, id->time);
	case PERF_RECORD_LOST:
		return size < sizeof(struct event_lost)
			       ? 0
			       : take_lost(sideband, (const struct event_lost *)header, id);
	}
	return 0;
}

int sideband_process(Sideband *sideband)
{
	uint8_t *base = sideband->fetched.items;

	if (sideband->order.count)
		qsort_r(sideband->order.items, sideband->order.count, sizeof(size_t), compare_times,
			base);
	for (size_t i = 0; i < sideband->order.count; i++) {
		const void *event = base + sideband->order.items[i];
		int error = take_event(sideband, event);

		if (error)
			return error;
	}
	sideband->last_read_ns = now_ns();
	sideband->known_ns = sideband->fetched_ns - EVENT_DELAY_NS;
	return 0;
}

uint64_t sideband_known_ns(const Sideband *sideband)
{
	return sideband->known_ns;
}
