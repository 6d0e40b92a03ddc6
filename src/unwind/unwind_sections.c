/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind_sections.h"
#include "elf_decompress.h"
#include "elf_symbols.h"
#include <dwarf.h>
#include <errno.h>

#define ADDRESSES    (1ULL << 32)
#define CODE_MAX     1024 /* sections of code; if there are more, the segments are used */
#define FRAME_HEADER 4	  /* bytes of .eh_frame_hdr before the address of .eh_frame */

/* ---- ranges ------------------------------------------------------------------- */

static int compare_ranges(const void *a, const void *b)
{
	const UnwindRange *x = a, *y = b;

	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return x->to > y->to ? -1 : x->to < y->to;
}

/* The ranges are sorted; two that overlap or touch become one. */
static void join_ranges(UnwindRanges *ranges)
{
	size_t kept = 0;

	if (ranges->count == 0)
		return;
	qsort(ranges->items, ranges->count, sizeof(*ranges->items), compare_ranges);
	for (size_t i = 1; i < ranges->count; i++) {
		UnwindRange *last = &ranges->items[kept], *next = &ranges->items[i];

		if (next->from > last->to) {
			ranges->items[++kept] = *next;
			continue;
		}
		if (next->to <= last->to)
			continue;
		/* Ranges that touch in memory may be apart in the file. */
		if (last->bytes && last->bytes + (next->from - last->from) != next->bytes)
			last->bytes = NULL;
		last->to = next->to;
	}
	ranges->count = kept + 1;
}

const UnwindRange *unwind_ranges_find(const UnwindRanges *ranges, uint64_t address)
{
	size_t next = partition_point(middle, ranges->count, ranges->items[middle].from <= address);

	return next > 0 && address < ranges->items[next - 1].to ? &ranges->items[next - 1] : NULL;
}

/* offset is that of the bytes in the file. */
static void add_range(UnwindRanges *ranges, const ElfMap *file, uint64_t base_svma, uint64_t svma,
		      uint64_t size, uint64_t offset)
{
	uint64_t from = svma - base_svma;
	bool in_file = file && offset <= file->size && size <= file->size - offset;

	/* The address space does not wrap around. */
	size = MIN(size, UINT64_MAX - svma);
	if (svma < base_svma || from >= ADDRESSES || size == 0)
		return;
	*vec_push(ranges) = (UnwindRange){
		.from = from,
		.to = from + MIN(size, ADDRESSES - from),
		.bytes = in_file ? (const uint8_t *)file->image + offset : NULL,
	};
}

void unwind_executable_find(const ElfMap *file, const ElfIdentity *identity, uint64_t base_svma,
			    UnwindRanges *ret_ranges)
{
	*ret_ranges = (UnwindRanges){};
	for (size_t i = 0; i < identity->loads.count; i++) {
		const ElfSegment *load = &identity->loads.items[i];

		if (load->exec)
			add_range(ret_ranges, file, base_svma, load->vaddr, load->file_size,
				  load->offset);
	}
	join_ranges(ret_ranges);
}

/*
 * Finds the sections of code, so that nothing looks for code in tables that share a segment with it
 * (as gold links them). They count only as far as they lie in an executable segment.
 */
static void find_code(const ElfMap *file, uint64_t base_svma, UnwindSections *sections)
{
	Elf_Scn *section = NULL;

	while ((section = elf_nextscn(file->elf, section)) && sections->code.count < CODE_MAX) {
		GElf_Shdr header;
		const UnwindRange *segment;

		if (!gelf_getshdr(section, &header) || !(header.sh_flags & SHF_EXECINSTR) ||
		    header.sh_type == SHT_NOBITS)
			continue;
		segment = unwind_ranges_find(&sections->executable, header.sh_addr - base_svma);
		if (segment && header.sh_size <= segment->to - (header.sh_addr - base_svma))
			add_range(&sections->code, file, base_svma, header.sh_addr, header.sh_size,
				  header.sh_offset);
	}
	join_ranges(&sections->code);
	if ((sections->code.count == 0 || section) && sections->executable.count > 0) {
		sections->code.count = 0;
		vec_append(&sections->code, sections->executable.items, sections->executable.count);
	}
}

/* ---- .eh_frame ------------------------------------------------------------------ */

static void set_section(CfiSection *ret_section, const Elf_Data *data, uint64_t address,
			bool eh_frame)
{
	*ret_section = (CfiSection){
		.data = data->d_buf,
		.size = data->d_size,
		.address = address,
		.eh_frame = eh_frame,
	};
}

/* Finds the bytes from an address to the end of its segment, as far as they are in the file. */
static bool find_loaded(const ElfMap *file, const ElfIdentity *identity, uint64_t address,
			CfiSection *ret_section)
{
	for (size_t i = 0; i < identity->loads.count; i++) {
		const ElfSegment *load = &identity->loads.items[i];
		uint64_t skipped = address - load->vaddr;

		if (address < load->vaddr || skipped >= load->file_size ||
		    load->offset >= file->size || skipped >= file->size - load->offset)
			continue;
		*ret_section = (CfiSection){
			.data = (const uint8_t *)file->image + load->offset + skipped,
			.size = MIN(load->file_size - skipped, file->size - load->offset - skipped),
			.address = address,
			.eh_frame = true,
			.open_ended = true,
		};
		return true;
	}
	return false;
}

/* Finds the section in the way that programs do at run time: by the segment of .eh_frame_hdr. */
static bool find_by_header(const ElfMap *file, const ElfIdentity *identity, CfiSection *ret_section)
{
	size_t count;

	if (elf_getphdrnum(file->elf, &count) < 0)
		return false;
	for (size_t i = 0; i < count; i++) {
		GElf_Phdr segment;
		CfiSection header;
		CfiBytes bytes;
		uint64_t frame;
		uint8_t encoding;

		if (!gelf_getphdr(file->elf, i, &segment))
			return false;
		if (segment.p_type != PT_GNU_EH_FRAME ||
		    !find_loaded(file, identity, segment.p_vaddr, &header) ||
		    header.size < FRAME_HEADER || header.data[0] != 1)
			continue;
		encoding = header.data[1];
		bytes = (CfiBytes){.at = header.data + FRAME_HEADER,
				   .end = header.data + header.size};
		return encoding != DW_EH_PE_omit &&
		       cfi_pointer(&header, &bytes, encoding, segment.p_vaddr, &frame) == 0 &&
		       find_loaded(file, identity, frame, ret_section);
	}
	return false;
}

static void find_eh_frame(const ElfMap *file, const ElfIdentity *identity, UnwindSections *sections)
{
	GElf_Shdr header;
	Elf_Scn *section = elf_section_by_name(file->elf, ".eh_frame", &header);
	Elf_Data *data;

	if (elf_section_data(section, &data))
		set_section(&sections->eh_frame, data, header.sh_addr, /* eh_frame= */ true);
	else if (!find_by_header(file, identity, &sections->eh_frame) && section &&
		 header.sh_type != SHT_NOBITS)
		sections->unreadable += header.sh_size;
}

/* ---- functions known by their addresses ---------------------------------------------- */

/* Returns the address relative to base_svma; UINT64_MAX if it is not executable. */
static uint64_t executable_address(const UnwindSections *sections, uint64_t base_svma,
				   uint64_t svma)
{
	return svma && svma >= base_svma &&
			       unwind_ranges_find(&sections->executable, svma - base_svma)
		       ? svma - base_svma
		       : UINT64_MAX;
}

/* This uses the program headers, as the loader does. */
static void find_init_fini(const ElfMap *file, const ElfIdentity *identity, uint64_t base_svma,
			   UnwindSections *sections)
{
	size_t count;

	if (elf_getphdrnum(file->elf, &count) < 0)
		return;
	for (size_t i = 0; i < count; i++) {
		GElf_Phdr segment;
		CfiSection dynamic;
		Elf64_Dyn entry;

		if (!gelf_getphdr(file->elf, i, &segment) || segment.p_type != PT_DYNAMIC ||
		    !find_loaded(file, identity, segment.p_vaddr, &dynamic))
			continue;
		dynamic.size = MIN(dynamic.size, segment.p_filesz);
		for (size_t at = 0; at + sizeof(entry) <= dynamic.size; at += sizeof(entry)) {
			memcpy(&entry, dynamic.data + at, sizeof(entry));
			if (entry.d_tag == DT_NULL)
				break;
			sections->needs_others |= entry.d_tag == DT_NEEDED;
			if (entry.d_tag == DT_INIT)
				sections->init =
					executable_address(sections, base_svma, entry.d_un.d_ptr);
			if (entry.d_tag == DT_FINI)
				sections->fini =
					executable_address(sections, base_svma, entry.d_un.d_ptr);
		}
		return;
	}
}

/* ---- .debug_frame --------------------------------------------------------------- */

static void find_debug_frame(ElfMap *file, UnwindSections *sections)
{
	GElf_Shdr header;
	Elf_Scn *section = elf_section_by_name(file->elf, ".debug_frame", &header);
	Elf_Data *data;

	if (!section || header.sh_type == SHT_NOBITS || header.sh_size == 0)
		return;
	if (elf_decompress(file, section) == 0 && elf_section_data(section, &data))
		set_section(&sections->debug_frame, data, /* address= */ 0, /* eh_frame= */ false);
	else
		sections->unreadable += header.sh_size;
}

/* ---- all ------------------------------------------------------------------------ */

int unwind_sections_find(ElfMap *file, ElfMap *debug, uint64_t base_svma,
			 UnwindSections *ret_sections)
{
	UnwindSections sections = {.init = UINT64_MAX, .fini = UINT64_MAX};
	ElfIdentity identity;
	GElf_Ehdr header;

	if (!file->elf || elf_file_is_32(file->elf) || !gelf_getehdr(file->elf, &header) ||
	    elf_file_identify(file->elf, &identity) < 0)
		return -ENOEXEC;
	/* unwind_functions.h reads their symbols. */
	elf_decompress_tables(file);
	if (debug)
		elf_decompress_tables(debug);
	unwind_executable_find(file, &identity, base_svma, &sections.executable);
	find_code(file, base_svma, &sections);
	sections.entry = executable_address(&sections, base_svma, header.e_entry);
	find_init_fini(file, &identity, base_svma, &sections);
	find_eh_frame(file, &identity, &sections);
	find_debug_frame(file, &sections);
	if (!sections.debug_frame.size && debug && debug->elf)
		find_debug_frame(debug, &sections);
	elf_identity_free(&identity);
	*ret_sections = sections;
	return 0;
}

void unwind_sections_free(UnwindSections *sections)
{
	vec_free(&sections->executable);
	vec_free(&sections->code);
}
