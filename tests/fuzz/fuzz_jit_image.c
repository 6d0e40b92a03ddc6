/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a process says of code that it has made: an object that it shows to debuggers, as long as
 * the first two bytes say, and memory in which .eh_frame may be. What is made of it is about the
 * process's code alone, and its files have unwind tables that say nothing of other addresses.
 */
#include "fuzz.h"
#include "jit_image.h"
#include "unwind_table.h"

#define CODE_START   0x100000ULL
#define CODE_END     0x110000ULL
#define MEMORY_START 0x120000ULL
#define OBJECT_START 0x140000ULL

static bool is_code(const JitImage *image, uint64_t address)
{
	for (size_t i = 0; i < image->code.count; i++)
		if (address >= image->code.items[i].start && address < image->code.items[i].end)
			return true;
	return false;
}

/*
 * A signal frame's function is not called, so the address before it is its return address less one:
 * its row begins there.
 */
static void check_rows(const JitImage *image, const UnwindTable *table, uint64_t base)
{
	for (size_t i = 0; i < table->rows.count; i++) {
		uint8_t cfa = table->rules.items[table->rows.items[i].rule].cfa;
		uint64_t address = base + table->rows.items[i].pc;

		fuzz_require(cfa == CFA_NONE || is_code(image, address) ||
			     (cfa == CFA_SIGNAL && is_code(image, address + 1)));
	}
}

static void check_file(const JitImage *image, const uint8_t *data, size_t size)
{
	ElfMap file = {.image = fuzz_copy(data, size), .size = size};
	void *copy = file.image;
	ElfIdentity identity = {};
	UnwindTable table;

	fuzz_require(elf_file_open_image(file.image, size, &file.elf) == 0);
	fuzz_require(elf_file_identify(file.elf, &identity) == 0 && identity.loads.count == 1);
	if (unwind_table_build(&file, NULL, identity.base_svma, &table) == 0) {
		fuzz_require(unwind_table_valid(&table));
		check_rows(image, &table, identity.base_svma);
		unwind_table_free(&table);
	}
	elf_identity_free(&identity);
	file.image = NULL;
	elf_map_close(&file);
	free(copy);
}

static void check_image(const JitDump *dump, const JitImage *image)
{
	uint64_t end = 0;

	for (size_t i = 0; i < image->code.count; i++) {
		const JitCode *code = &image->code.items[i];

		fuzz_require(code->start >= end && code->start < code->end);
		fuzz_require(jit_ranges_contain(&dump->code, code->start, code->end - code->start));
		fuzz_require(code->file == JIT_KNOWN || image->files[code->file].elf.count);
		end = code->end;
	}
	for (size_t i = 0; i < JIT_FILES_MAX; i++)
		if (image->files[i].elf.count)
			check_file(image, image->files[i].elf.items, image->files[i].elf.count);
}

/* What is known of a process is not new the next time. */
static void look_again(JitDump *dump, const JitImage *before)
{
	JitImage again;

	vec_append(&dump->known, before->code.items, before->code.count);
	jit_image_make(dump, &again);
	fuzz_require(again.code.count == before->code.count);
	for (size_t i = 0; i < again.code.count; i++)
		fuzz_require(again.code.items[i].file == JIT_KNOWN &&
			     again.code.items[i].hash == before->code.items[i].hash);
	jit_image_free(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	JitDump dump = {};
	JitImage image;
	uint16_t object_size = 0;
	_cleanup_free_ uint8_t *object = NULL, *memory = NULL;

	if (size < sizeof(object_size))
		return 0;
	memcpy(&object_size, data, sizeof(object_size));
	data += sizeof(object_size);
	size -= sizeof(object_size);
	object_size = MIN((size_t)object_size, size);
	object = fuzz_copy(data, object_size);
	memory = fuzz_copy(data + object_size, size - object_size);
	*vec_push(&dump.code) = (JitRange){CODE_START, CODE_END};
	*vec_push(&dump.objects) = (JitMemory){OBJECT_START, object, object_size};
	*vec_push(&dump.memory) = (JitMemory){MEMORY_START, memory, size - object_size};
	jit_image_make(&dump, &image);
	check_image(&dump, &image);
	look_again(&dump, &image);
	jit_image_free(&image);
	vec_free(&dump.code);
	vec_free(&dump.objects);
	vec_free(&dump.memory);
	vec_free(&dump.known);
	return 0;
}
