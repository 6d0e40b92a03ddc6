/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "jitdump_fixture.h"
#include <string.h>

void dump_bytes(Dump *dump, const void *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++)
		*vec_push(dump) = ((const uint8_t *)bytes)[i];
}

void dump_u32(Dump *dump, uint32_t value)
{
	dump_bytes(dump, &value, sizeof(value));
}

void dump_u64(Dump *dump, uint64_t value)
{
	dump_bytes(dump, &value, sizeof(value));
}

static void dump_text(Dump *dump, const char *text)
{
	dump_bytes(dump, text, strlen(text) + 1);
}

void dump_header(Dump *dump, uint64_t flags)
{
	dump_u32(dump, 0x4a695444);
	dump_u32(dump, 1);
	dump_u32(dump, 40);
	dump_u32(dump, 62); /* EM_X86_64 */
	dump_u32(dump, 0);
	dump_u32(dump, 4711);
	dump_u64(dump, 12345);
	dump_u64(dump, flags);
}

size_t dump_begin(Dump *dump, uint32_t id, uint64_t ns)
{
	size_t place = dump->count;

	dump_u32(dump, id);
	dump_u32(dump, 0);
	dump_u64(dump, ns);
	return place;
}

void dump_end(Dump *dump, size_t place)
{
	uint32_t size = dump->count - place;

	memcpy(dump->items + place + 4, &size, sizeof(size));
}

void dump_load(Dump *dump, uint64_t ns, uint64_t start, uint64_t size, uint64_t index,
	       const char *name)
{
	size_t place = dump_begin(dump, 0, ns);

	dump_u32(dump, 4711);
	dump_u32(dump, 4712);
	dump_u64(dump, start);
	dump_u64(dump, start);
	dump_u64(dump, size);
	dump_u64(dump, index);
	dump_text(dump, name);
	for (uint64_t i = 0; i < size; i++)
		*vec_push(dump) = 0x90;
	dump_end(dump, place);
}

void dump_move(Dump *dump, uint64_t ns, uint64_t old_start, uint64_t new_start, uint64_t size,
	       uint64_t index)
{
	size_t place = dump_begin(dump, 1, ns);

	dump_u32(dump, 4711);
	dump_u32(dump, 4712);
	dump_u64(dump, new_start);
	dump_u64(dump, old_start);
	dump_u64(dump, new_start);
	dump_u64(dump, size);
	dump_u64(dump, index);
	dump_end(dump, place);
}

size_t dump_lines_begin(Dump *dump, uint64_t start, uint64_t count)
{
	size_t place = dump_begin(dump, 2, 1);

	dump_u64(dump, start);
	dump_u64(dump, count);
	return place;
}

void dump_line(Dump *dump, uint64_t address, uint32_t line, const char *source)
{
	dump_u64(dump, address);
	dump_u32(dump, line);
	dump_u32(dump, 0);
	dump_text(dump, source);
}
