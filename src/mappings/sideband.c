/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sideband.h"
#include "event_reorder.h"
#include "sideband_private.h"
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/*
 * The longest time between an event's time stamp and its place in the ring. The kernel does both
 * without being preempted (perf_iterate_sb), some hundred nanoseconds apart; an interrupt may come
 * between, and a hypervisor that takes the CPU away. Events that take longer are counted.
 */
#define EVENT_DELAY_NS (200 * NSEC_PER_USEC)

/*
 * 256 KiB a CPU for mappings, thousands of them between two reads, and half of that for the other
 * events, which are shorter. Together they are less than perf_event_mlock_kb's default of 516.
 */
static const size_t data_pages[SIDEBAND_RINGS] = {
	[SIDEBAND_MAPPINGS] = 64,
	[SIDEBAND_TASKS] = 32,
};

#define EVENT_MAX 8192 /* bytes: a path has at most 4096, and a record of losses may precede it */

/* Events of tasks wake the recorder only when they fill this part of a ring. */
#define WAKE_PART 4

/* The limit for reading mappings again in one round. */
#define RESCAN_NS (5 * NSEC_PER_MSEC)

/* An enabled event has counted more after this time, however coarse the kernel's clock is. */
#define REOPEN_PAUSE_US 10000

/* It follows every record, for this sample_type (perf_event_open(2), sample_id_all). */
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
		struct { /* if PERF_RECORD_MISC_MMAP_BUILD_ID */
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

/* The format of read(2) on the descriptor: PERF_FORMAT_TOTAL_TIME_ENABLED, PERF_FORMAT_LOST. */
struct event_counts {
	uint64_t value, enabled_ns, lost;
};

/* One of a CPU's rings. */
struct cpu_ring {
	int fd;
	uint32_t cpu;
	void *memory;
	size_t data_size;  /* bytes, without the control page */
	uint64_t lost;	   /* since it was opened */
	uint64_t lost_new; /* of these, not reported yet */
};

struct Sideband {
	MappedFiles *files;
	ProcessTable *processes;
	RecordSink sink;
	void *user;
	struct cpu_ring *rings; /* of all CPUs, SIDEBAND_RINGS of each */
	size_t ring_count;
	size_t page_size;
	EventReorder order;
	uint8_t event[UINT16_MAX] __attribute__((aligned(8))); /* the one that is being fetched */
	VEC(uint32_t) unread;	 /* ns_tgid of processes that are, or have been, PROCESS_UNREAD, */
	size_t unread_next;	 /* from this index on */
	uint64_t lossy_until_ns; /* no lost event is younger */
	uint64_t uncertain_since_ns; /* events since then may be missing; 0 = none are */
	uint64_t read_ns;	     /* when the mappings of a process were last read */
	uint64_t wait_until_ns;	     /* see sideband_wait_ns() */
	uint64_t last_fetched_ns, fetched_ns;
	bool of_targets; /* see sideband_was_of_targets() */
};

static int open_event(int cpu, enum sideband_ring ring)
{
	bool mappings = ring == SIDEBAND_MAPPINGS;
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU,
		.sample_id_all = 1,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_LOST,
		.mmap = mappings,
		.mmap2 = mappings,
		.comm = !mappings,
		.comm_exec = !mappings,
		.task = !mappings,
		.build_id = mappings,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.exclude_kernel = 1,
		.watermark = 1,
		/* A file should be opened while its process lives; nothing else is urgent. */
		.wakeup_watermark =
			mappings ? 1 : data_pages[ring] * sysconf(_SC_PAGESIZE) / WAKE_PART,
	};

	return syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

static void pause_us(unsigned int us)
{
	usleep(us);
}

SidebandKernel sideband_kernel = {
	.now_ns = now_ns, .open_event = open_event, .read = read, .pause = pause_us};

int sideband_probe(void)
{
	int fd = sideband_kernel.open_event(MAX(sched_getcpu(), 0), SIDEBAND_MAPPINGS);

	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

/* What was lost in it stays to be reported. */
static void close_ring(const Sideband *sideband, struct cpu_ring *ring)
{
	if (ring->memory)
		munmap(ring->memory, sideband->page_size + ring->data_size);
	if (ring->fd >= 0)
		close(ring->fd);
	ring->memory = NULL;
	ring->fd = -1;
	ring->lost = 0;
}

static int open_ring(Sideband *sideband, size_t index)
{
	struct cpu_ring *ring = &sideband->rings[index];
	enum sideband_ring kind = index % SIDEBAND_RINGS;
	void *memory;

	ring->cpu = index / SIDEBAND_RINGS;
	ring->data_size = data_pages[kind] * sideband->page_size;
	ring->fd = sideband_kernel.open_event(ring->cpu, kind);
	if (ring->fd < 0)
		return errno == ENODEV ? 0 : -errno; /* the CPU is not online */
	memory = mmap(NULL, sideband->page_size + ring->data_size, PROT_READ | PROT_WRITE,
		      MAP_SHARED, ring->fd, 0);
	if (memory == MAP_FAILED) /* for mmap, EPERM is about locked memory, not about a right to
				     see the event */
		return errno == EPERM ? -ENOBUFS : -errno;
	ring->memory = memory;
	return 0;
}

int sideband_open(MappedFiles *files, ProcessTable *processes, RecordSink sink, void *user,
		  Sideband **ret_sideband)
{
	Sideband *sideband = xcalloc(1, sizeof(*sideband));

	sideband->files = files;
	sideband->processes = processes;
	sideband->sink = sink;
	sideband->user = user;
	sideband->page_size = sysconf(_SC_PAGESIZE);
	sideband->ring_count = (size_t)libbpf_num_possible_cpus() * SIDEBAND_RINGS;
	sideband->rings = xcalloc(sideband->ring_count, sizeof(*sideband->rings));
	sideband->last_fetched_ns = sideband->fetched_ns = sideband_kernel.now_ns();
	for (size_t i = 0; i < sideband->ring_count; i++)
		sideband->rings[i].fd = -1;
	for (size_t i = 0; i < sideband->ring_count; i++) {
		int error = open_ring(sideband, i);

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
	for (size_t i = 0; i < sideband->ring_count; i++)
		close_ring(sideband, &sideband->rings[i]);
	free(sideband->rings);
	event_reorder_free(&sideband->order);
	vec_free(&sideband->unread);
	free(sideband);
}

static int watch_ring(const struct cpu_ring *ring, int epoll_fd)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = ring->fd};

	if (ring->fd >= 0 && epoll_fd >= 0 && epoll_ctl(epoll_fd, EPOLL_CTL_ADD, ring->fd, &event))
		return -errno;
	return 0;
}

int sideband_add_to_epoll(Sideband *sideband, int epoll_fd)
{
	int error = 0;

	for (size_t i = 0; i < sideband->ring_count && !error; i++)
		error = watch_ring(&sideband->rings[i], epoll_fd);
	return error;
}

static enum process_state state_of(const Sideband *sideband, uint32_t ns_tgid)
{
	const Process *process = process_table_find(sideband->processes, ns_tgid);

	return process ? process->state : PROCESS_NOT_WANTED;
}

static bool is_wanted(const Sideband *sideband, uint32_t ns_tgid)
{
	return state_of(sideband, ns_tgid) != PROCESS_NOT_WANTED;
}

/* Returns whether events that are older than the loss may still be unread. */
static bool is_lossy(const Sideband *sideband)
{
	return sideband->order.watermark_ns < sideband->lossy_until_ns;
}

void sideband_rescan(Sideband *sideband, uint32_t ns_tgid)
{
	if (state_of(sideband, ns_tgid) != PROCESS_WANTED)
		return;
	process_table_find(sideband->processes, ns_tgid)->state = PROCESS_UNREAD;
	*vec_push(&sideband->unread) = ns_tgid;
}

bool sideband_add_process(Sideband *sideband, uint32_t ns_tgid, uint64_t ns)
{
	if (!ns_tgid || !process_table_want(sideband->processes, ns_tgid, ns))
		return false;
	/* The record of its fork may be lost. */
	if (is_lossy(sideband) || ns <= sideband->lossy_until_ns)
		sideband_rescan(sideband, ns_tgid);
	return true;
}

/* Copies out of a ring that wraps around. */
static void copy_event(const struct cpu_ring *ring, const uint8_t *data, uint64_t at, void *to,
		       size_t length)
{
	size_t offset = at & (ring->data_size - 1);
	size_t first = MIN(length, ring->data_size - offset);

	memcpy(to, data + offset, first);
	memcpy((uint8_t *)to + first, data, length - first);
}

static const struct sample_id *event_id(const struct perf_event_header *header)
{
	if (header->size < sizeof(*header) + sizeof(struct sample_id))
		return NULL;
	return (const void *)((const uint8_t *)header + header->size - sizeof(struct sample_id));
}

/* Threads begin, and tasks end, all the time, and such events are not used here. */
static bool is_space_event(const struct perf_event_header *header)
{
	const struct event_fork *fork = (const struct event_fork *)header;

	switch (header->type) {
	case PERF_RECORD_MMAP2:
		return true;
	case PERF_RECORD_FORK:
		return header->size >= sizeof(*fork) && fork->pid != fork->ppid;
	case PERF_RECORD_COMM:
		return header->misc & PERF_RECORD_MISC_COMM_EXEC;
	}
	return false;
}

/*
 * The kernel drops an event that finds no room, and reports that with the next one that does, which
 * may never come. So the count is read, but only if the ring may have been full since the last
 * time: reading it costs an interrupt of that CPU.
 */
static void count_lost(struct cpu_ring *ring)
{
	struct event_counts counts;

	if (sideband_kernel.read(ring->fd, &counts, sizeof(counts)) != sizeof(counts))
		return;
	ring->lost_new += counts.lost - ring->lost;
	ring->lost = counts.lost;
}

static void fetch_ring(Sideband *sideband, struct cpu_ring *ring)
{
	struct perf_event_mmap_page *page = ring->memory;
	const uint8_t *data = (const uint8_t *)ring->memory + sideband->page_size;
	uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
	uint64_t first = page->data_tail, tail = first;
	struct perf_event_header *header = (struct perf_event_header *)sideband->event;

	while (tail < head) {
		const struct sample_id *id;

		copy_event(ring, data, tail, header, sizeof(*header));
		if (header->size < sizeof(*header) || header->size > head - tail)
			break; /* this cannot happen; it must not become an endless loop */
		copy_event(ring, data, tail, header, header->size);
		tail += header->size;
		id = event_id(header);
		if (id && is_space_event(header))
			event_reorder_add(&sideband->order, id->time, header, header->size);
	}
	__atomic_store_n(&page->data_tail, head, __ATOMIC_SEQ_CST);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
	if (head - first > ring->data_size - EVENT_MAX)
		count_lost(ring);
}

void sideband_fetch(Sideband *sideband)
{
	sideband->last_fetched_ns = sideband->fetched_ns;
	sideband->fetched_ns = sideband_kernel.now_ns();
	for (size_t i = 0; i < sideband->ring_count; i++)
		if (sideband->rings[i].memory)
			fetch_ring(sideband, &sideband->rings[i]);
	for (size_t i = 0; i < sideband->ring_count; i++)
		if (sideband->rings[i].lost_new)
			sideband->lossy_until_ns = sideband_kernel.now_ns();
}

static int on_mmap2(Sideband *sideband, const struct event_mmap2 *event, uint64_t ns)
{
	const char *end = (const char *)event_id(&event->header);
	MappingSeen mapping = {
		.ns = ns,
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
	return mapped_files_add_mapping(sideband->files, &mapping);
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

static int on_fork(Sideband *sideband, const struct event_fork *event, uint64_t ns)
{
	if (!is_wanted(sideband, event->ppid)) {
		if (is_wanted(sideband, event->pid)) /* its id is used again by a non-target */
			process_table_find(sideband->processes, event->pid)->state =
				PROCESS_NOT_WANTED;
		return 0;
	}
	sideband_add_process(sideband, event->pid, ns);
	/*
	 * The child inherits mappings that are not all known; or the parent was read after it had
	 * changed them.
	 */
	if (state_of(sideband, event->ppid) == PROCESS_UNREAD || ns <= sideband->read_ns)
		sideband_rescan(sideband, event->pid);
	return emit_space(sideband, SPACE_FORK, event->pid, event->ppid, ns);
}

static int on_event(void *user, const void *event, uint64_t ns)
{
	Sideband *sideband = user;
	const struct perf_event_header *header = event;
	const struct sample_id *id = event_id(header);
	size_t size = header->size - sizeof(*id);

	switch (header->type) {
	case PERF_RECORD_MMAP2:
		if (size < sizeof(struct event_mmap2) ||
		    !is_wanted(sideband, ((const struct event_mmap2 *)event)->pid))
			return 0;
		sideband->of_targets = true;
		return on_mmap2(sideband, event, ns);
	case PERF_RECORD_FORK:
		return size < sizeof(struct event_fork) ? 0 : on_fork(sideband, event, ns);
	case PERF_RECORD_COMM:
		if (!is_wanted(sideband, id->pid))
			return 0;
		return emit_space(sideband, SPACE_EXEC, id->pid, 0, ns);
	}
	return 0;
}

/* ---- losses ------------------------------------------------------------------------------------
 */

static int emit_lost(Sideband *sideband, struct cpu_ring *ring)
{
	struct rec_loss record = {
		.h = {.len = sizeof(record),
		      .kind = REC_LOSS,
		      .cpu = ring->cpu,
		      .ns = sideband->fetched_ns},
		.lost_kind = REC_MAPPING,
		.cause = LOSS_SIDEBAND,
		.count = ring->lost_new,
		.from_ns = sideband->last_fetched_ns - EVENT_DELAY_NS,
		.to_ns = sideband->lossy_until_ns,
	};

	ring->lost_new = 0;
	if (!sideband->uncertain_since_ns)
		sideband->uncertain_since_ns = record.from_ns;
	return sideband->sink(sideband->user, &record.h);
}

/* The missing events can be of any process: the mappings of all are read again. */
static void rescan_all(Sideband *sideband)
{
	for (size_t i = 0; i < sideband->processes->list.count; i++)
		sideband_rescan(sideband, sideband->processes->list.items[i].ns_tgid);
}

static int emit_losses(Sideband *sideband)
{
	bool lossy = false;
	int error = 0;

	for (size_t i = 0; i < sideband->ring_count && !error; i++) {
		if (!sideband->rings[i].lost_new)
			continue;
		lossy = true;
		error = emit_lost(sideband, &sideband->rings[i]);
	}
	if (lossy)
		rescan_all(sideband);
	return error;
}

/* ---- CPUs that went offline and came back ------------------------------------------------------
 */

/*
 * Reads for how long each event has been enabled; for one that cannot be read, that is 0. An event
 * that the kernel has removed from its CPU is no longer enabled, and is not distinguishable from
 * others in any other way.
 */
static void read_enabled_times(Sideband *sideband, uint64_t *ret_ns)
{
	for (size_t i = 0; i < sideband->ring_count; i++) {
		struct event_counts counts = {};
		int fd = sideband->rings[i].fd;

		ret_ns[i] = 0;
		if (fd >= 0 && sideband_kernel.read(fd, &counts, sizeof(counts)) == sizeof(counts))
			ret_ns[i] = counts.enabled_ns;
	}
}

static int reopen_ring(Sideband *sideband, size_t index, int epoll_fd)
{
	struct cpu_ring *ring = &sideband->rings[index];
	int error;

	if (ring->memory)
		fetch_ring(sideband, ring);
	close_ring(sideband, ring);
	error = open_ring(sideband, index);
	return error ? error : watch_ring(ring, epoll_fd);
}

/*
 * The kernel removes all events of a CPU at once. Returns 1 if the CPU has them again, 0 if it is
 * offline, or a negative errno; then it has none.
 */
static int reopen_rings(Sideband *sideband, size_t cpu, int epoll_fd)
{
	size_t first = cpu * SIDEBAND_RINGS;
	bool complete = true;
	int error = 0;

	for (size_t i = first; i < first + SIDEBAND_RINGS && !error; i++) {
		error = reopen_ring(sideband, i, epoll_fd);
		complete &= sideband->rings[i].fd >= 0;
	}
	for (size_t i = first; i < first + SIDEBAND_RINGS && error; i++)
		close_ring(sideband, &sideband->rings[i]);
	return error ? error : complete;
}

static bool all_grew(const uint64_t *before, const uint64_t *after)
{
	for (size_t i = 0; i < SIDEBAND_RINGS; i++)
		if (after[i] <= before[i])
			return false;
	return true;
}

void sideband_reopen(Sideband *sideband, int epoll_fd, ReopenedCpus *ret_cpus)
{
	_cleanup_free_ uint64_t *before = xcalloc(sideband->ring_count, sizeof(*before));
	_cleanup_free_ uint64_t *after = xcalloc(sideband->ring_count, sizeof(*after));

	read_enabled_times(sideband, before);
	sideband_kernel.pause(REOPEN_PAUSE_US);
	read_enabled_times(sideband, after);
	for (size_t first = 0; first < sideband->ring_count; first += SIDEBAND_RINGS) {
		size_t cpu = first / SIDEBAND_RINGS;
		int result = 0;

		if (!all_grew(before + first, after + first))
			result = reopen_rings(sideband, cpu, epoll_fd);
		if (result > 0)
			*vec_push(&ret_cpus->cpus) = cpu;
		else if (result < 0)
			ret_cpus->failed++;
	}
	if (ret_cpus->cpus.count == 0 && ret_cpus->failed == 0)
		return;
	sideband->lossy_until_ns = sideband_kernel.now_ns();
	if (!sideband->uncertain_since_ns)
		sideband->uncertain_since_ns = sideband->last_fetched_ns - EVENT_DELAY_NS;
	rescan_all(sideband);
}

/*
 * All events up to watermark_ns have been used, and no younger one was lost. So a mapping that is
 * found now and was not reported was either lost, or is younger: then its event will follow, and is
 * used as well. If the mappings were read earlier, an older event could replace what was found.
 */
static int read_process(Sideband *sideband, uint32_t ns_tgid)
{
	uint64_t ns = sideband_watermark_ns(sideband);
	size_t count;
	int error = mapped_files_read_process(sideband->files, ns_tgid, ns, &count);

	sideband->read_ns = sideband_kernel.now_ns();
	if (error == -ENOENT || error == -ESRCH || error == -EACCES || error == -EPERM)
		return 0;
	/* /proc shows nothing of a process whose main thread has ended. */
	if (error || count == 0)
		return error;
	return emit_space(sideband, SPACE_READ, ns_tgid, 0, ns);
}

static bool has_unread(const Sideband *sideband)
{
	return sideband->unread_next < sideband->unread.count;
}

static int read_unread(Sideband *sideband)
{
	uint64_t begin = sideband_kernel.now_ns();
	int error = 0;

	while (has_unread(sideband) && !error && sideband_kernel.now_ns() - begin < RESCAN_NS) {
		uint32_t ns_tgid = sideband->unread.items[sideband->unread_next++];

		if (state_of(sideband, ns_tgid) != PROCESS_UNREAD)
			continue;
		process_table_find(sideband->processes, ns_tgid)->state = PROCESS_WANTED;
		error = read_process(sideband, ns_tgid);
	}
	if (!has_unread(sideband))
		sideband->unread.count = sideband->unread_next = 0;
	return error;
}

/* Returns whether the event is of a process that is wanted by now. */
static bool is_of_target(const void *user, const void *event)
{
	const struct perf_event_header *header = event;
	const struct event_fork *fork = event;

	switch (header->type) {
	case PERF_RECORD_MMAP2:
	case PERF_RECORD_COMM:
		return is_wanted(user, event_id(header)->pid);
	case PERF_RECORD_FORK:
		return is_wanted(user, fork->ppid) || is_wanted(user, fork->pid);
	}
	return false;
}

static uint64_t next_known_ns(const Sideband *sideband)
{
	uint64_t ns = event_reorder_youngest_ns(&sideband->order, is_of_target, sideband);

	if (has_unread(sideband) && is_lossy(sideband))
		ns = MAX(ns, sideband->lossy_until_ns);
	return ns ? ns + EVENT_DELAY_NS : 0;
}

int sideband_process(Sideband *sideband, bool last)
{
	uint64_t watermark_ns = sideband->fetched_ns - (last ? 0 : EVENT_DELAY_NS);
	int error = emit_losses(sideband);

	if (error)
		return error;
	sideband->of_targets = false;
	error = event_reorder_deliver(&sideband->order, watermark_ns, on_event, sideband);
	if (error)
		return error;
	error = last || !is_lossy(sideband) ? read_unread(sideband) : 0;
	if (!has_unread(sideband))
		sideband->uncertain_since_ns = 0;
	sideband->wait_until_ns = next_known_ns(sideband);
	return error;
}

uint64_t sideband_watermark_ns(const Sideband *sideband)
{
	return sideband->order.watermark_ns;
}

uint64_t sideband_wait_ns(const Sideband *sideband)
{
	uint64_t now = sideband_kernel.now_ns();

	if (!sideband->wait_until_ns)
		return 0;
	return sideband->wait_until_ns > now ? sideband->wait_until_ns - now : 1;
}

bool sideband_was_of_targets(const Sideband *sideband)
{
	return sideband->of_targets || sideband->wait_until_ns;
}

size_t sideband_unread(const Sideband *sideband)
{
	size_t count = 0;

	for (size_t i = 0; i < sideband->processes->list.count; i++)
		count += sideband->processes->list.items[i].state == PROCESS_UNREAD;
	return count;
}

uint64_t sideband_rescan_watermark_ns(const Sideband *sideband)
{
	return sideband->uncertain_since_ns ? sideband->uncertain_since_ns
					    : sideband->order.watermark_ns;
}

uint64_t sideband_late(const Sideband *sideband)
{
	return sideband->order.late;
}
