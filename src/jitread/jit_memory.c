/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "jit_memory.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#define PAGE	     4096ULL
#define BLOCK_PAGES  64
#define BLOCK	     (BLOCK_PAGES * PAGE)
#define PAGE_PRESENT (1ULL << 63)
/* An object is one module of a compiler. */
#define OBJECT_MAX (8u << 20)
/* So many regions are read: those that are first in the order of compare_regions(). */
#define REGIONS_MAX 4096u

/* gdb manual, "JIT Compilation Interface". */
struct jit_descriptor {
	uint32_t version, action_flag;
	uint64_t relevant_entry, first_entry;
};

struct jit_code_entry {
	uint64_t next_entry, prev_entry;
	uint64_t symfile_addr, symfile_size;
};

#define DESCRIPTOR_VERSION 1

int jit_memory_open(int tid, JitMemoryReader *ret_reader)
{
	char path[64];

	*ret_reader = (JitMemoryReader){
		.tid = tid,
		.pagemap_fd = -1,
		.fd = -1,
		.memory_left = JIT_MEMORY_MAX,
		.objects_left = JIT_MEMORY_MAX,
		.entries_left = JIT_OBJECTS_MAX,
	};
	snprintf(path, sizeof(path), "/proc/%d/pagemap", tid);
	ret_reader->pagemap_fd = open(path, O_RDONLY | O_CLOEXEC);
	if (ret_reader->pagemap_fd < 0)
		return -errno;
	ret_reader->fd = memfd_create("wallprof-jit", MFD_CLOEXEC);
	return ret_reader->fd < 0 ? -errno : 0;
}

void jit_memory_close(JitMemoryReader *reader)
{
	closep(&reader->pagemap_fd);
	closep(&reader->fd);
	vec_free(&reader->todo);
	vec_free(&reader->pieces);
	*reader = (JitMemoryReader){.pagemap_fd = -1, .fd = -1};
}

/* Returns how many of the pages from this one on are present, or not present, up to a block. */
static size_t count_pages(const JitMemoryReader *reader, uint64_t page, size_t count,
			  bool *ret_present)
{
	uint64_t entries[BLOCK_PAGES];
	size_t wanted = MIN(count, (size_t)BLOCK_PAGES) * sizeof(*entries), same = 0;
	ssize_t got = pread(reader->pagemap_fd, entries, wanted, page * sizeof(*entries));

	count = got > 0 ? (size_t)got / sizeof(*entries) : 0;
	*ret_present = count > 0 && entries[0] & PAGE_PRESENT;
	while (same < count && !!(entries[same] & PAGE_PRESENT) == *ret_present)
		same++;
	return same;
}

static bool read_present(const JitMemoryReader *reader, uint64_t address, void *to, size_t size)
{
	struct iovec local = {.iov_base = to, .iov_len = size};
	struct iovec remote = {.iov_base = (void *)(uintptr_t)address, .iov_len = size};

	return process_vm_readv(reader->tid, &local, 1, &remote, 1, 0) == (ssize_t)size;
}

bool jit_memory_read(const JitMemoryReader *reader, uint64_t address, void *to, size_t size)
{
	uint64_t page = address / PAGE, end = (address + size + PAGE - 1) / PAGE;

	if (size == 0 || address + size < address)
		return false;
	while (page < end) {
		bool present;
		size_t same = count_pages(reader, page, end - page, &present);

		if (!same || !present)
			return false;
		page += same;
	}
	return read_present(reader, address, to, size);
}

/* Appends what was read to the file. */
static bool put(JitMemoryReader *reader, uint64_t address, const void *data, size_t size,
		bool object)
{
	JitMemoryPiece *last =
		reader->pieces.count ? &reader->pieces.items[reader->pieces.count - 1] : NULL;

	if (write_all(reader->fd, data, size) < 0)
		return false;
	if (last && !object && !last->object && last->address + last->size == address)
		last->size += size;
	else
		*vec_push(&reader->pieces) = (JitMemoryPiece){address, size, reader->size, object};
	reader->size += size;
	return true;
}

/* ---- objects ------------------------------------------------------------------------- */

static void read_object(JitMemoryReader *reader, const struct jit_code_entry *entry)
{
	_cleanup_free_ void *object = NULL;

	if (entry->symfile_size == 0)
		return;
	if (entry->symfile_size > MIN(reader->objects_left, (uint64_t)OBJECT_MAX)) {
		reader->omitted++;
		return;
	}
	reader->objects_left -= entry->symfile_size;
	object = xmalloc(entry->symfile_size);
	if (jit_memory_read(reader, entry->symfile_addr, object, entry->symfile_size))
		put(reader, entry->symfile_addr, object, entry->symfile_size, /* object= */ true);
}

/* Returns false if there were too many. All lists of a process have the limit in common. */
static bool take_entry(JitMemoryReader *reader)
{
	if (reader->entries_left == 0) {
		reader->omitted++;
		return false;
	}
	reader->entries_left--;
	return true;
}

void jit_memory_read_objects(JitMemoryReader *reader, uint64_t descriptor)
{
	struct jit_descriptor head;
	struct jit_code_entry entry;
	uint64_t address, before = 0;

	if (!take_entry(reader) || !jit_memory_read(reader, descriptor, &head, sizeof(head)) ||
	    head.version != DESCRIPTOR_VERSION)
		return;
	address = head.first_entry;
	while (address && take_entry(reader)) {
		if (!jit_memory_read(reader, address, &entry, sizeof(entry)) ||
		    entry.prev_entry != before)
			return;
		read_object(reader, &entry);
		before = address;
		address = entry.next_entry;
	}
}

/* ---- memory -------------------------------------------------------------------------- */

void jit_memory_add(JitMemoryReader *reader, const JitRegion *region)
{
	*vec_push(&reader->todo) = *region;
}

/* Returns the distance to the nearest executable memory. */
static uint64_t distance(const JitRegion *region, const JitRanges *code)
{
	size_t next =
		partition_point(middle, code->count, code->items[middle].start < region->start);
	uint64_t nearest = UINT64_MAX;

	if (next < code->count)
		nearest = code->items[next].start - MIN(code->items[next].start, region->end);
	if (next > 0)
		nearest =
			MIN(nearest, region->start - MIN(region->start, code->items[next - 1].end));
	return nearest;
}

static int compare_regions(const void *a, const void *b)
{
	const JitRegion *x = a, *y = b;

	if (x->write != y->write)
		return x->write ? 1 : -1;
	if (x->distance != y->distance)
		return x->distance < y->distance ? -1 : 1;
	return x->start < y->start ? -1 : x->start > y->start;
}

void jit_memory_sort(JitMemoryReader *reader, const JitRanges *code)
{
	for (size_t i = 0; i < reader->todo.count; i++)
		reader->todo.items[i].distance = distance(&reader->todo.items[i], code);
	if (reader->todo.count > 1)
		qsort(reader->todo.items, reader->todo.count, sizeof(JitRegion), compare_regions);
	if (reader->todo.count > REGIONS_MAX) {
		reader->omitted += reader->todo.count - REGIONS_MAX;
		reader->todo.count = REGIONS_MAX;
	}
}

/* Reads the next pages of a region. */
static void read_block(JitMemoryReader *reader, const JitRegion *region)
{
	static uint8_t block[BLOCK];
	uint64_t address = region->start + reader->done;
	bool present;
	size_t pages =
		count_pages(reader, address / PAGE, (region->end - address) / PAGE, &present);
	size_t size = MIN(pages * PAGE, reader->memory_left);

	if (pages == 0) { /* it is mapped no more */
		reader->done = region->end - region->start;
		return;
	}
	reader->done += pages * PAGE;
	if (!present)
		return;
	reader->omitted += size < pages * PAGE;
	if (size && read_present(reader, address, block, size) &&
	    put(reader, address, block, size, /* object= */ false))
		reader->memory_left -= size;
}

bool jit_memory_go_on(JitMemoryReader *reader, uint64_t deadline_ns)
{
	while (reader->next < reader->todo.count && reader->memory_left) {
		const JitRegion *region = &reader->todo.items[reader->next];

		if (reader->done >= region->end - region->start) {
			reader->next++;
			reader->done = 0;
			continue;
		}
		if (now_ns() >= deadline_ns)
			return false;
		read_block(reader, region);
	}
	reader->omitted += reader->next < reader->todo.count;
	return true;
}
