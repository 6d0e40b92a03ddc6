/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "jit_memory.h"
#include <errno.h>
#include <sys/mman.h>

#define PAGE ((uint64_t)REMOTE_PAGE_SIZE)
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

int jit_memory_open(RemoteMemory *memory, int tid, JitMemoryReader *ret_reader)
{
	int r;

	*ret_reader = (JitMemoryReader){
		.fd = -1,
		.memory_left = JIT_MEMORY_MAX,
		.objects_left = JIT_MEMORY_MAX,
		.entries_left = JIT_OBJECTS_MAX,
	};
	r = remote_memory_open(memory, tid, &ret_reader->process);
	if (r < 0)
		return r;
	ret_reader->fd = memfd_create("wallprof-jit", MFD_CLOEXEC);
	return ret_reader->fd < 0 ? -errno : 0;
}

void jit_memory_close(JitMemoryReader *reader)
{
	remote_memory_close(reader->process);
	closep(&reader->fd);
	vec_free(&reader->todo);
	vec_free(&reader->pieces);
	*reader = (JitMemoryReader){.fd = -1};
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
	if (remote_memory_read(reader->process, entry->symfile_addr, object, entry->symfile_size))
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

	if (!take_entry(reader) ||
	    !remote_memory_read(reader->process, descriptor, &head, sizeof(head)) ||
	    head.version != DESCRIPTOR_VERSION)
		return;
	address = head.first_entry;
	while (address && take_entry(reader)) {
		if (!remote_memory_read(reader->process, address, &entry, sizeof(entry)) ||
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

/* Appends pages that were read and follow each other. */
static void put_run(JitMemoryReader *reader, uint64_t address, const uint8_t *data, uint32_t count)
{
	size_t size = MIN(count * PAGE, reader->memory_left);

	reader->omitted += size < count * PAGE;
	if (size && put(reader, address, data, size, /* object= */ false))
		reader->memory_left -= size;
}

/* Reads the next pages of a region. */
static void read_block(JitMemoryReader *reader, const JitRegion *region)
{
	uint64_t address = region->start + reader->done;
	uint64_t left = (region->end - address) / PAGE;
	RemotePages pages;
	uint32_t run = 0;

	if (!remote_memory_pages(reader->process, address, MIN(left, REMOTE_PAGES_MAX), &pages) ||
	    pages.known == 0) { /* it is mapped no more */
		reader->done = region->end - region->start;
		return;
	}
	reader->done += pages.known * PAGE;
	for (uint32_t i = 0; i < pages.known; i += run + 1) {
		for (run = 0; i + run < pages.known && pages.read >> (i + run) & 1; run++)
			;
		if (run)
			put_run(reader, address + i * PAGE, pages.data + i * PAGE, run);
	}
}

bool jit_memory_go_on(JitMemoryReader *reader, uint64_t deadline_ns)
{
	while (reader->next < reader->todo.count && reader->memory_left &&
	       !remote_memory_is_refused(reader->process)) {
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
