/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "dwarf_sections.h"
#include "elf_decompress.h"
#include "elf_symbols.h"
#include <string.h>

/*
 * libdw decompresses every section that it knows at once. Sections that are not needed here can be
 * as large as the rest; they are marked as having no contents, so libdw skips them.
 */
static void leave_out_sections(Elf *elf)
{
	static const char *const unused_sections[] = {
		".debug_loc",	  ".debug_loclists", ".debug_macro",
		".debug_macinfo", ".debug_frame",    ".debug_aranges",
	};

	for (size_t i = 0; i < ARRAY_LEN(unused_sections); i++) {
		GElf_Shdr header;
		Elf_Scn *section = elf_section_by_name(elf, unused_sections[i], &header);

		if (!section)
			continue;
		header.sh_type = SHT_NOBITS;
		gelf_update_shdr(section, &header);
	}
}

/*
 * libdw would do this as well, but for all sections before the memory of any compressed form can be
 * released.
 */
static unsigned decompress_sections(ElfMap *file)
{
	Elf_Scn *section = NULL;
	unsigned failed = 0;
	GElf_Shdr header;

	while ((section = elf_nextscn(file->elf, section))) {
		if (!gelf_getshdr(section, &header) || !(header.sh_flags & SHF_COMPRESSED) ||
		    header.sh_type == SHT_NOBITS)
			continue;
		if (elf_decompress(file, section) == 0)
			elf_map_forget(file, header.sh_offset, header.sh_size);
		else
			failed++;
	}
	return failed;
}

/*
 * libdw may check that a string begins in its section, but not that it ends there. It uses the same
 * Elf_Data, so what follows the last NUL is cut off.
 */
static void end_strings(Elf *elf)
{
	static const char *const sections[] = {".debug_str", ".debug_line_str"};

	for (size_t i = 0; i < ARRAY_LEN(sections); i++) {
		GElf_Shdr header;
		Elf_Data *data;

		if (!elf_section_data(elf_section_by_name(elf, sections[i], &header), &data))
			continue;
		while (data->d_size > 0 && ((const char *)data->d_buf)[data->d_size - 1])
			data->d_size--;
	}
}

static void add_texts(DwarfSections *sections, Elf *elf)
{
	static const char *const names[] = {
		".debug_info",
		".debug_types",
		".debug_str",
		".debug_line_str",
	};

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		GElf_Shdr header;
		Elf_Data *data;

		if (elf_section_data(elf_section_by_name(elf, names[i], &header), &data))
			*vec_push(&sections->texts) =
				(DwarfText){data->d_buf, (const char *)data->d_buf + data->d_size};
	}
}

void dwarf_sections_prepare(DwarfSections *sections, ElfMap *file)
{
	leave_out_sections(file->elf);
	sections->damaged += decompress_sections(file);
	end_strings(file->elf);
	add_texts(sections, file->elf);
}

const char *dwarf_sections_string(const DwarfSections *sections, const char *s)
{
	for (size_t i = 0; s && i < sections->texts.count; i++) {
		const DwarfText *text = &sections->texts.items[i];

		if (s >= text->start && s < text->end)
			return memchr(s, '\0', text->end - s) ? s : NULL;
	}
	return s;
}

void dwarf_sections_free(DwarfSections *sections)
{
	vec_free(&sections->texts);
}
