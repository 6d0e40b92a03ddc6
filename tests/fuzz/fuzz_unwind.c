/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What an unwind table is made of: an ELF file with its debug file (elf_parts.h), or, if it does
 * not begin as one, a section of call frame information behind a byte that says which (bit 0:
 * .debug_frame). A valid table comes out, in which all is counted, or an error.
 */
#include "cfi_fixture.h"
#include "elf_parts.h"
#include "fuzz.h"
#include "unwind_table.h"
#include <errno.h>

/* A copy of exactly this size: what is read behind it is seen. */
static bool open_copy(const void *data, size_t size, ElfMap *ret_map)
{
	*ret_map = (ElfMap){.image = fuzz_copy(data, size), .size = size};
	if (size > 0 && elf_file_open_image(ret_map->image, size, &ret_map->elf) == 0)
		return true;
	elf_end(ret_map->elf);
	ret_map->elf = NULL;
	return false;
}

static void close_copy(ElfMap *map)
{
	/* The image is not mapped here. */
	void *image = map->image;

	map->image = NULL;
	elf_map_close(map);
	free(image);
}

/*
 * Rules that only an FDE can give: of a procedure linkage table, and a CFA that is read at another
 * place than an offset from rsp or rbp. Code without an FDE that aligns its stack has it at such an
 * offset.
 */
static bool has_rule_of_fde(const UnwindTable *table)
{
	for (size_t i = 0; i < table->rules.count; i++) {
		const struct unwind_rule *rule = &table->rules.items[i];

		if (rule->cfa == CFA_PLT || (rule->cfa == CFA_DEREF && rule->cfa_reg != DWARF_RBP &&
					     rule->cfa_reg != DWARF_RSP))
			return true;
	}
	return false;
}

static void check_table(const UnwindTable *table, const UnwindCoverage *coverage)
{
	const UnwindCounts *counts = &table->counts;
	uint64_t rows = 0, dropped = 0, none = 0;

	fuzz_require(unwind_table_valid(table));
	for (size_t i = 0; i < UNWIND_CFAS; i++)
		rows += coverage->rows[i];
	for (size_t i = 0; i < UNWIND_DROPS; i++)
		dropped += counts->drops[i];
	for (size_t i = 0; i < UNWIND_NONES; i++)
		none += coverage->none_bytes[i];
	fuzz_require(rows == table->rows.count && none == coverage->bytes[CFA_NONE]);
	fuzz_require(counts->code_gaps <= counts->code);
	fuzz_require(dropped <= counts->fdes);
	fuzz_require(dropped < counts->fdes || !has_rule_of_fde(table));
	for (size_t i = 0; i < table->rows.count; i++)
		fuzz_require(unwind_table_find(table, table->rows.items[i].pc) ==
			     &table->rows.items[i]);
	fuzz_require(unwind_table_find(table, UINT32_MAX) ==
		     &table->rows.items[table->rows.count - 1]);
}

static void build(const ElfPart *object, const ElfPart *debug_part)
{
	ElfIdentity identity = {};
	UnwindTable table;
	ElfMap file, debug;
	int r = -ENOEXEC;

	open_copy(debug_part->data, debug_part->size, &debug);
	if (open_copy(object->data, object->size, &file))
		elf_file_identify(file.elf, &identity);
	r = unwind_table_build(&file, &debug, identity.base_svma, &table);
	fuzz_require(r == 0 || r == -ENOEXEC || r == -ENODATA);
	if (r == 0) {
		UnwindCoverage coverage = unwind_table_coverage(&table, &identity);

		check_table(&table, &coverage);
		unwind_table_free(&table);
	}
	elf_identity_free(&identity);
	close_copy(&file);
	close_copy(&debug);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	ElfParts parts = elf_parts_of(data, size);
	const ElfPart none = {.data = data};

	if (size > 0 && data[0] != ELFMAG0) {
		size_t file_size;
		_cleanup_free_ struct frames_file *file =
			make_frames_file(data + 1, size - 1, !(data[0] & 1), &file_size);

		build(&(ElfPart){(const uint8_t *)file, file_size}, &none);
	} else {
		build(&parts.parts[ELF_PART_OBJECT], &parts.parts[ELF_PART_DEBUG]);
	}
	return 0;
}
