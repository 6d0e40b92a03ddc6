/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * perf's rings as the kernel fills them, played in a file that is mapped in its place, with a clock
 * that only the test moves. Rings get full and events are lost, while processes map, fork, exec and
 * end. What processes have mapped, by the test's own book, is what /proc says; and, of a
 * process that is not in doubt, what all the records together say.
 */
#include "images.h"
#include "make_record.h"
#include "sideband.h"
#include "sideband_private.h"
#include "test_tools.h"
#include <errno.h>
#include <linux/perf_event.h>
#include <sys/mman.h>

#define CPUS	  2
#define PAGE	  4096ULL
#define PROCESSES 12
#define SLOTS	  6 /* places where something can be mapped */
#define FIRST	  100
#define DELAY	  (200 * NSEC_PER_USEC)

typedef struct Change {
	uint64_t ns;
	uint32_t slot, file; /* 0 = nothing is there */
} Change;

typedef struct FakeProcess {
	bool is_alive;
	uint32_t mapped[SLOTS];
	VEC(Change) changes;
} FakeProcess;

typedef struct Ring {
	int fd;
	enum sideband_ring kind;
	uint64_t size; /* of the data */
	struct perf_event_mmap_page *page;
	uint64_t lost;
} Ring;

typedef struct World {
	ProcessTable table;
	uint64_t now;
	Ring rings[CPUS * SIDEBAND_RINGS];
	int ring_count;
	FakeProcess processes[PROCESSES];
	uint32_t last_file;
	uint64_t lost, reads, ended_reads;
	Sideband *sideband;
	Images images;
	VEC(struct rec_loss) losses;
	VEC(uint32_t) read_order;
	uint64_t proc_ns;    /* that a reading of /proc takes */
	bool lose_meanwhile; /* once more while a ring is being emptied, */
	uint64_t lost_ns;    /* then */
} World;

static World world;

/* ---- in the place of the kernel and of mapped_files.c ------------------------------------ */

int libbpf_num_possible_cpus(void);

static uint64_t world_now_ns(void)
{
	return world.now += NSEC_PER_USEC;
}

/* The kernel's control page comes first, then the ring. */
static int world_open_event(int cpu, enum sideband_ring kind)
{
	Ring *ring = &world.rings[world.ring_count++];

	assert_int_equal(cpu * SIDEBAND_RINGS + kind, world.ring_count - 1);
	assert_true(world.ring_count <= CPUS * SIDEBAND_RINGS);
	ring->kind = kind;
	ring->size = (kind == SIDEBAND_MAPPINGS ? 64 : 32) * PAGE;
	ring->fd = memfd_create("ring", MFD_CLOEXEC);
	assert_int_equal(ftruncate(ring->fd, PAGE + ring->size), 0);
	ring->page = mmap(NULL, PAGE + ring->size, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd, 0);
	assert_true(ring->page != MAP_FAILED);
	return ring->fd;
}

static ssize_t world_read(int fd, void *to, size_t size)
{
	for (int i = 0; i < world.ring_count; i++) {
		uint64_t counts[2] = {};

		if (world.rings[i].fd != fd)
			continue;
		assert_int_equal(size, sizeof(counts));
		if (world.lose_meanwhile) {
			world.rings[i].lost++;
			world.lost_ns = world.now += NSEC_PER_USEC;
		}
		counts[1] = world.rings[i].lost;
		memcpy(to, counts, size);
		return size;
	}
	fail_msg("no ring has descriptor %d", fd);
	return -1;
}

int libbpf_num_possible_cpus(void)
{
	return CPUS;
}

int mapped_files_add_mapping(MappedFiles *files, const MappingSeen *seen)
{
	struct record *record =
		make_mapping(seen->ns, MAPPING_EXEC, seen->ns_tgid, strtoul(seen->path, NULL, 10),
			     seen->start, seen->end, seen->start - seen->pgoff);

	(void)files;
	images_on_record(&world.images, record, world.now);
	free(record);
	return 0;
}

int mapped_files_read_process(MappedFiles *files, pid_t ns_tgid, uint64_t ns, size_t *ret_count)
{
	const FakeProcess *process = &world.processes[ns_tgid - FIRST];

	*ret_count = 0;
	world.reads++;
	*vec_push(&world.read_order) = ns_tgid;
	world.now += world.proc_ns;
	if (!process->is_alive) {
		world.ended_reads++;
		return -ENOENT;
	}
	for (uint32_t i = 0; i < SLOTS; i++) {
		char path[16];

		if (!process->mapped[i])
			continue;
		sprintf(path, "%u", process->mapped[i]);
		mapped_files_add_mapping(files, &(MappingSeen){.ns = ns,
							       .ns_tgid = ns_tgid,
							       .start = (i + 1) << 12,
							       .end = (i + 2) << 12,
							       .path = path});
		++*ret_count;
	}
	return 0;
}

/* ---- events ------------------------------------------------------------------------------------
 */

static void put(Ring *ring, const void *event, uint16_t size)
{
	uint8_t *data = (uint8_t *)ring->page + PAGE;

	if (ring->page->data_head + size - ring->page->data_tail > ring->size) {
		ring->lost++;
		world.lost++;
		return;
	}
	for (uint16_t i = 0; i < size; i++)
		data[(ring->page->data_head + i) % ring->size] = ((const uint8_t *)event)[i];
	ring->page->data_head += size;
}

/* The fields that follow each event: ids, time, CPU. */
static void send(uint32_t cpu, uint32_t type, uint16_t misc, uint32_t pid, const void *body,
		 size_t size)
{
	union {
		uint64_t words[32];
		uint8_t bytes[256];
	} event = {};
	struct perf_event_header header = {.type = type, .misc = misc, .size = 8 + size + 24};
	struct {
		uint32_t pid, tid;
		uint64_t time;
		uint64_t cpu;
	} id = {.pid = pid, .tid = pid, .time = world.now, .cpu = cpu};

	memcpy(event.bytes, &header, 8);
	memcpy(event.bytes + 8, body, size);
	memcpy(event.bytes + 8 + size, &id, sizeof(id));
	put(&world.rings[cpu * SIDEBAND_RINGS +
			 (type == PERF_RECORD_MMAP2 ? SIDEBAND_MAPPINGS : SIDEBAND_TASKS)],
	    event.bytes, header.size);
}

/* The side-band knows such an event and does not use it. */
static void fill_ring(Ring *ring)
{
	uint64_t words[512] = {};
	struct perf_event_header header = {.type = PERF_RECORD_EXIT, .size = 4096};

	memcpy(words, &header, sizeof(header));
	while (ring->page->data_head - ring->page->data_tail + 4096 <= ring->size)
		put(ring, words, 4096);
	header.size = (ring->size - (ring->page->data_head - ring->page->data_tail)) & ~7ULL;
	memcpy(words, &header, sizeof(header));
	if (header.size >= 40)
		put(ring, words, header.size);
}

static void fill(uint32_t cpu)
{
	for (size_t kind = 0; kind < SIDEBAND_RINGS; kind++)
		fill_ring(&world.rings[cpu * SIDEBAND_RINGS + kind]);
}

/* ---- what processes do -------------------------------------------------------------------------
 */

static void change(uint32_t number, uint32_t slot, uint32_t file)
{
	FakeProcess *process = &world.processes[number];

	process->mapped[slot] = file;
	*vec_push(&process->changes) = (Change){.ns = world.now, .slot = slot, .file = file};
}

static uint32_t map(uint32_t cpu, uint32_t number, uint32_t slot)
{
	struct {
		uint32_t pid, tid;
		uint64_t addr, len, pgoff;
		uint32_t maj, min;
		uint64_t inode, generation;
		uint32_t prot, flags;
		char path[16];
	} body = {.pid = number + FIRST, .addr = (slot + 1) << 12, .len = 4096};

	world.now += NSEC_PER_USEC;
	sprintf(body.path, "%u", ++world.last_file);
	change(number, slot, world.last_file);
	send(cpu, PERF_RECORD_MMAP2, 0, body.pid, &body, sizeof(body));
	return world.last_file;
}

static void do_fork(uint32_t cpu, uint32_t parent, uint32_t child)
{
	struct {
		uint32_t pid, ppid, tid, ptid;
		uint64_t time;
	} body = {.pid = child + FIRST, .ppid = parent + FIRST};

	world.now += NSEC_PER_USEC;
	world.processes[child].is_alive = true;
	for (uint32_t i = 0; i < SLOTS; i++)
		change(child, i, world.processes[parent].mapped[i]);
	send(cpu, PERF_RECORD_FORK, 0, parent + FIRST, &body, sizeof(body));
}

static void do_exec(uint32_t cpu, uint32_t number)
{
	uint64_t body[3] = {(uint64_t)(number + FIRST) << 32 | (number + FIRST)};

	world.now += NSEC_PER_USEC;
	for (uint32_t i = 0; i < SLOTS; i++)
		change(number, i, 0);
	send(cpu, PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC, number + FIRST, body, sizeof(body));
}

static void do_exit(uint32_t number)
{
	world.now += NSEC_PER_USEC;
	world.processes[number].is_alive = false;
	process_table_end(&world.table, number + FIRST, world.now);
}

/* ---- the recorder ------------------------------------------------------------------------------
 */

static int take(void *user, const struct record *record)
{
	(void)user;
	if (record->kind == REC_LOSS)
		*vec_push(&world.losses) = *(const struct rec_loss *)record;
	images_on_record(&world.images, record, world.now);
	return 0;
}

static const Image *image_of(uint32_t number)
{
	uint32_t at = map_get(&world.images.current, number + FIRST);

	return at == MAP_NONE ? NULL : world.images.list.items[at];
}

static uint32_t found_at(uint32_t number, uint32_t slot)
{
	const Image *image = image_of(number);
	const ImageMapping *mapping = image ? image_find(image, (slot + 1) << 12) : NULL;

	return mapping ? mapping->file : 0;
}

/* Was it there at the time up to which all is said to be known, or later? Nothing: anything goes.
 */
static bool was_there(const FakeProcess *process, uint32_t slot, uint32_t file)
{
	uint64_t known = sideband_watermark_ns(world.sideband);

	if (file == 0 || process->mapped[slot] == file || process->mapped[slot] == 0)
		return true;
	for (size_t i = process->changes.count, later = 1; i-- > 0 && later;) {
		const Change *change = &process->changes.items[i];

		if (change->slot != slot)
			continue;
		if (change->file == file || change->file == 0)
			return true;
		later = change->ns > known;
	}
	return false;
}

static uint32_t wrong(void)
{
	uint32_t count = 0;

	images_apply_pending(&world.images);
	for (uint32_t i = 0; i < PROCESSES; i++) {
		const FakeProcess *process = &world.processes[i];
		const Image *image = image_of(i);

		for (uint32_t slot = 0; image && process->is_alive && slot < SLOTS; slot++)
			count += !image->uncertain_since_ns &&
				 !was_there(process, slot, found_at(i, slot));
	}
	return count;
}

static void round_of(bool last)
{
	sideband_fetch(world.sideband);
	assert_int_equal(sideband_process(world.sideband, last), 0);
	assert_int_equal(wrong(), 0);
}

/* Until all is known that has happened. */
static void check_when_complete(void)
{
	for (int i = 0; i < 5; i++) {
		world.now += DELAY + 10 * NSEC_PER_USEC;
		round_of(false);
	}
	for (uint32_t i = 0; i < PROCESSES; i++) {
		if (!world.processes[i].is_alive || !image_of(i))
			continue;
		assert_int_equal(image_of(i)->uncertain_since_ns, 0);
		for (uint32_t slot = 0; slot < SLOTS; slot++)
			if (world.processes[i].mapped[slot])
				assert_int_equal(found_at(i, slot),
						 world.processes[i].mapped[slot]);
	}
	assert_int_equal(sideband_unread(world.sideband), 0);
	assert_int_equal(sideband_wait_ns(world.sideband), 0);
}

static int set_up(void **state)
{
	(void)state;
	world = (World){.now = NSEC_PER_SEC};
	world.images.processes = &world.table;
	sideband_kernel = (SidebandKernel){world_now_ns, world_open_event, world_read};
	assert_int_equal(sideband_open(NULL, &world.table, take, NULL, &world.sideband), 0);
	world.processes[0].is_alive = true;
	sideband_add_process(world.sideband, FIRST, world.now);
	for (uint32_t slot = 0; slot < SLOTS; slot++)
		map(0, 0, slot);
	check_when_complete();
	assert_int_equal(world.reads, 0);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	sideband_close(world.sideband);
	images_free(&world.images);
	process_table_free(&world.table);
	vec_free(&world.losses);
	vec_free(&world.read_order);
	for (int i = 0; i < PROCESSES; i++)
		vec_free(&world.processes[i].changes);
	for (int i = 0; i < world.ring_count; i++)
		munmap(world.rings[i].page, PAGE + world.rings[i].size);
	return 0;
}

/* ---- tests -------------------------------------------------------------------------------------
 */

/* One mapping is reported, and another one, mapped over it, is lost. */
static void test_mapped_over(void **state)
{
	uint32_t hidden;

	(void)state;
	map(0, 0, 2);
	fill(0);
	hidden = map(0, 0, 2);
	assert_int_equal(world.lost, 1);
	round_of(false);
	assert_int_equal(world.losses.count, 1);
	assert_true(image_of(0)->uncertain_since_ns);
	check_when_complete();
	assert_int_equal(found_at(0, 2), hidden);
}

/* The exec is reported, and what the new program maps is not. */
static void test_exec(void **state)
{
	uint32_t hidden;
	uint64_t began;

	(void)state;
	do_exec(0, 0);
	fill(0);
	hidden = map(0, 0, 1);
	round_of(false);
	check_when_complete();
	assert_int_equal(found_at(0, 1), hidden);
	assert_int_equal(found_at(0, 2), 0);
	/* It is taken, but nothing is read yet: in doubt is what came after it. */
	do_exec(0, 0);
	began = world.now;
	world.now += DELAY;
	fill(0);
	map(0, 0, 1);
	round_of(false);
	assert_int_equal(image_of(0)->uncertain_since_ns, began);
	check_when_complete();
}

static void test_fork(void **state)
{
	uint32_t before = world.processes[0].mapped[3], hidden;

	(void)state;
	fill(1);
	hidden = map(1, 0, 2); /* by the parent, before */
	do_fork(0, 0, 1);
	map(1, 1, 4); /* by the child, after */
	map(1, 0, 3); /* by the parent, after */
	assert_int_equal(world.lost, 3);
	round_of(false);
	check_when_complete();
	assert_int_equal(found_at(1, 2), hidden);
	assert_int_equal(found_at(1, 3), before);
}

/* The fork is lost, and BPF reports the birth a round later than the others. */
static void test_birth(void **state)
{
	uint32_t hidden;

	(void)state;
	fill(0);
	do_fork(0, 0, 1);
	map(1, 1, 3);
	hidden = map(0, 1, 3);
	round_of(false);
	assert_true(sideband_add_process(world.sideband, FIRST + 1, world.now));
	check_when_complete();
	assert_int_equal(found_at(1, 3), hidden);
	assert_int_equal(found_at(1, 2), world.processes[0].mapped[2]);
}

/* The loss is reported before the first record of a process that existed then. */
static void test_new_in_loss(void **state)
{
	uint32_t hidden;

	(void)state;
	fill(0);
	do_fork(0, 0, 1);
	sideband_add_process(world.sideband, FIRST + 1, world.now);
	map(1, 1, 3);
	hidden = map(0, 1, 3);
	world.now += DELAY + 50 * NSEC_PER_USEC;
	round_of(false);
	assert_true(image_of(1)->uncertain_since_ns);
	assert_int_not_equal(found_at(1, 3), hidden);
	check_when_complete();
	assert_int_equal(found_at(1, 3), hidden);
}

/* The parent is read when it has gone on since the fork, which is reported after that. */
static void test_fork_before_reading(void **state)
{
	uint32_t before = world.processes[0].mapped[3];

	(void)state;
	fill(1);
	map(1, 0, 2);
	round_of(false);
	world.now += DELAY + 50 * NSEC_PER_USEC;
	do_fork(0, 0, 1);
	map(0, 0, 3);
	round_of(false);
	assert_true(world.reads > 0);
	check_when_complete();
	assert_int_equal(found_at(1, 3), before);
}

/* What is said to be lost was lost then, and not later. */
static void test_interval(void **state)
{
	uint64_t before = sideband_watermark_ns(world.sideband), after;

	(void)state;
	fill_ring(&world.rings[SIDEBAND_MAPPINGS]);
	world.now += NSEC_PER_MSEC;
	map(0, 0, 2);
	world.lose_meanwhile = true;
	sideband_fetch(world.sideband);
	after = world.now;
	assert_int_equal(sideband_process(world.sideband, false), 0);
	assert_int_equal(world.losses.count, 1);
	assert_int_equal(world.losses.items[0].count, 2);
	assert_int_equal(world.losses.items[0].from_ns, before);
	assert_true(world.losses.items[0].to_ns <= after);
	assert_true(world.losses.items[0].to_ns >= world.lost_ns);
}

/* Those that have ended are not read; of the others the first comes first; the last round reads. */
static void test_order(void **state)
{
	(void)state;
	for (uint32_t i = 1; i < PROCESSES; i++)
		do_fork(0, 0, i);
	check_when_complete();
	for (uint32_t i = 2; i < PROCESSES; i += 2)
		do_exit(i);
	world.proc_ns = 2 * NSEC_PER_MSEC; /* three a round */
	world.read_order.count = 0;
	fill(0);
	map(0, 0, 2);
	round_of(false);
	assert_uint_in_range(sideband_wait_ns(world.sideband), DELAY - 20 * NSEC_PER_USEC, DELAY);
	assert_int_equal(world.read_order.count, 0);
	assert_int_equal(sideband_unread(world.sideband), 1 + PROCESSES / 2);
	round_of(true);
	assert_int_equal(world.read_order.count, 3);
	assert_int_equal(sideband_unread(world.sideband), 1 + PROCESSES / 2 - 3);
	check_when_complete();
	assert_int_equal(world.read_order.count, 1 + PROCESSES / 2);
	for (size_t i = 1; i < world.read_order.count; i++)
		assert_true(world.read_order.items[i] > world.read_order.items[i - 1]);
	assert_int_equal(world.ended_reads, 0);
}

/* A pid is reused: the end of the process before may be reported late. */
static void test_number_used_again(void **state)
{
	uint64_t ended;

	(void)state;
	do_fork(0, 0, 1);
	check_when_complete();
	do_exit(1);
	ended = world.now;
	do_fork(0, 0, 1);
	check_when_complete();
	process_table_end(&world.table, FIRST + 1, ended);
	fill(0);
	map(0, 1, 2);
	round_of(false);
	check_when_complete();
	assert_int_equal(world.reads, 2);
}

/* The losses of a CPU's two rings are both counted. */
static void test_both_rings(void **state)
{
	(void)state;
	fill_ring(&world.rings[SIDEBAND_RINGS + SIDEBAND_TASKS]);
	do_fork(1, 0, 1);
	round_of(false);
	assert_int_equal(world.losses.count, 1);
	assert_int_equal(world.losses.items[0].h.cpu, 1);
	sideband_add_process(world.sideband, FIRST + 1, world.now);
	check_when_complete();
	assert_int_equal(found_at(1, 2), world.processes[0].mapped[2]);
	fill(1);
	map(1, 0, 2);
	do_fork(1, 0, 2);
	round_of(false);
	assert_int_equal(world.losses.count, 3);
	assert_int_equal(world.losses.items[1].count, 1);
	assert_int_equal(world.losses.items[2].count, 1);
	check_when_complete();
}

/* Only events of processes that are recorded are to be taken soon. */
static void test_wait(void **state)
{
	(void)state;
	world.processes[5].is_alive = true; /* a non-target */
	map(0, 5, 0);
	do_fork(0, 5, 6);
	do_exec(0, 5);
	round_of(false);
	assert_int_equal(sideband_wait_ns(world.sideband), 0);
	world.now += DELAY;
	round_of(false);
	assert_false(sideband_was_of_targets(world.sideband));
	map(0, 0, 1);
	map(0, 5, 0);
	round_of(false);
	assert_true(sideband_was_of_targets(world.sideband));
	assert_uint_in_range(sideband_wait_ns(world.sideband), DELAY - 20 * NSEC_PER_USEC, DELAY);
	check_when_complete();
	do_fork(0, 0, 1); /* the child is not known yet */
	round_of(false);
	assert_uint_in_range(sideband_wait_ns(world.sideband), DELAY - 20 * NSEC_PER_USEC, DELAY);
	check_when_complete();
}

static void do_anything(void)
{
	uint32_t number = random_below(PROCESSES), cpu = random_below(CPUS);
	uint32_t other = random_below(PROCESSES);

	world.now += random_below(80) * NSEC_PER_USEC;
	if (random_below(60) == 0)
		fill(cpu);
	if (!world.processes[number].is_alive)
		return;
	switch (random_below(8)) {
	case 0:
		do_exec(cpu, number);
		map(cpu, number, 0); /* no program is without any */
		break;
	case 1:
		if (!world.processes[other].is_alive && !image_of(other)) {
			do_fork(cpu, number, other);
			sideband_add_process(world.sideband, other + FIRST, world.now);
		}
		break;
	default:
		map(cpu, number, random_below(SLOTS));
	}
}

static void test_anything(void **state)
{
	uint64_t lost = 0, reads = 0;

	for (int i = 0; i < 300; i++) {
		for (int j = 0; j < 400; j++) {
			do_anything();
			if (random_below(6) == 0)
				round_of(false);
		}
		check_when_complete();
		lost += world.lost;
		reads += world.reads;
		tear_down(state);
		set_up(state);
	}
	print_message("%lu events lost, /proc read %lu times\n", lost, reads);
	assert_true(lost > 1000 && reads > 1000);
}

#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_WORLD(test_mapped_over),
		IN_WORLD(test_exec),
		IN_WORLD(test_fork),
		IN_WORLD(test_birth),
		IN_WORLD(test_new_in_loss),
		IN_WORLD(test_fork_before_reading),
		IN_WORLD(test_interval),
		IN_WORLD(test_order),
		IN_WORLD(test_number_used_again),
		IN_WORLD(test_both_rings),
		IN_WORLD(test_wait),
		IN_WORLD(test_anything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
