/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sideband_world.h"
#include "make_record.h"
#include <errno.h>
#include <linux/perf_event.h>
#include <sys/mman.h>

World world;

/* ---- in the place of the kernel and of mapped_files.c ------------------------------------ */

int libbpf_num_possible_cpus(void);

static uint64_t world_now_ns(void)
{
	return world.now += NSEC_PER_USEC;
}

/* The kernel's control page comes first, then the ring. */
static int world_open_event(int cpu, enum sideband_ring kind)
{
	size_t index = cpu * SIDEBAND_RINGS + kind;
	Ring *ring = &world.rings[index];

	if (world.open_error && kind >= world.open_error_from) {
		errno = world.open_error;
		return -1;
	}
	if (ring->page) {
		assert_true(ring->removed);
		munmap(ring->page, PAGE + ring->size);
		*ring = (Ring){};
	} else {
		assert_true(index == (size_t)world.ring_count++ && cpu < CPUS);
	}
	ring->kind = kind;
	ring->size = (kind == SIDEBAND_MAPPINGS ? 64 : 32) * PAGE;
	ring->fd = memfd_create("ring", MFD_CLOEXEC);
	assert_int_equal(ftruncate(ring->fd, PAGE + ring->size), 0);
	ring->page = mmap(NULL, PAGE + ring->size, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd, 0);
	assert_true(ring->page != MAP_FAILED);
	return ring->fd;
}

static void world_pause(unsigned int us)
{
	world.now += us * NSEC_PER_USEC;
}

static ssize_t world_read(int fd, void *to, size_t size)
{
	for (int i = 0; i < world.ring_count; i++) {
		uint64_t counts[3] = {};

		if (world.rings[i].fd != fd)
			continue;
		assert_int_equal(size, sizeof(counts));
		if (world.lose_meanwhile) {
			world.rings[i].lost++;
			world.lost_ns = world.now += NSEC_PER_USEC;
		}
		counts[1] = world.rings[i].removed ? 1 : world.now;
		counts[2] = world.rings[i].lost;
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
	Ring *ring = &world.rings[cpu * SIDEBAND_RINGS +
				  (type == PERF_RECORD_MMAP2 ? SIDEBAND_MAPPINGS : SIDEBAND_TASKS)];

	memcpy(event.bytes, &header, 8);
	memcpy(event.bytes + 8, body, size);
	memcpy(event.bytes + 8 + size, &id, sizeof(id));
	if (!ring->removed) /* the kernel has nowhere to count that */
		put(ring, event.bytes, header.size);
}

/* The side-band knows such an event and does not use it. */
void fill_ring(Ring *ring)
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

void fill(uint32_t cpu)
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

uint32_t map(uint32_t cpu, uint32_t number, uint32_t slot)
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

void do_fork(uint32_t cpu, uint32_t parent, uint32_t child)
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

void do_exec(uint32_t cpu, uint32_t number)
{
	uint64_t body[3] = {(uint64_t)(number + FIRST) << 32 | (number + FIRST)};

	world.now += NSEC_PER_USEC;
	for (uint32_t i = 0; i < SLOTS; i++)
		change(number, i, 0);
	send(cpu, PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC, number + FIRST, body, sizeof(body));
}

void do_exit(uint32_t number)
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

const Image *image_of(uint32_t number)
{
	uint32_t at = map_get(&world.images.current, number + FIRST);

	return at == MAP_NONE ? NULL : world.images.list.items[at];
}

uint32_t found_at(uint32_t number, uint32_t slot)
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

void round_of(bool last)
{
	sideband_fetch(world.sideband);
	assert_int_equal(sideband_process(world.sideband, last), 0);
	assert_int_equal(wrong(), 0);
}

/* Until all is known that has happened. */
void check_when_complete(void)
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

int set_up(void **state)
{
	(void)state;
	world = (World){.now = NSEC_PER_SEC};
	world.images.processes = &world.table;
	sideband_kernel = (SidebandKernel){world_now_ns, world_open_event, world_read, world_pause};
	assert_int_equal(sideband_open(NULL, &world.table, take, NULL, &world.sideband), 0);
	world.processes[0].is_alive = true;
	sideband_add_process(world.sideband, FIRST, world.now);
	for (uint32_t slot = 0; slot < SLOTS; slot++)
		map(0, 0, slot);
	check_when_complete();
	assert_int_equal(world.reads, 0);
	return 0;
}

int tear_down(void **state)
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
