/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cfi_fixture.h"

void put_bytes(Bytes *bytes, const void *data, size_t size)
{
	vec_append(bytes, (const uint8_t *)data, size);
}

void put_number(Bytes *bytes, uint64_t number, unsigned size)
{
	put_bytes(bytes, &number, size);
}

void put_uleb(Bytes *bytes, uint64_t number)
{
	for (; number >= 0x80; number >>= 7)
		put_number(bytes, 0x80 | (number & 0x7f), 1);
	put_number(bytes, number, 1);
}

struct frames_file *make_frames_file(const void *frames, size_t size, bool eh_frame,
				     size_t *ret_size)
{
	static const char names[] = "\0.shstrtab\0.eh_frame\0.debug_frame";
	struct frames_file *file;

	*ret_size = sizeof(*file) + size;
	file = xcalloc(1, *ret_size);
	memcpy(file->header.e_ident, ELFMAG, SELFMAG);
	file->header.e_ident[EI_CLASS] = ELFCLASS64;
	file->header.e_ident[EI_DATA] = ELFDATA2LSB;
	file->header.e_ident[EI_VERSION] = EV_CURRENT;
	file->header.e_type = ET_DYN;
	file->header.e_machine = EM_X86_64;
	file->header.e_version = EV_CURRENT;
	file->header.e_ehsize = sizeof(Elf64_Ehdr);
	file->header.e_phoff = offsetof(struct frames_file, segment);
	file->header.e_phentsize = sizeof(Elf64_Phdr);
	file->header.e_phnum = 1;
	file->header.e_shoff = offsetof(struct frames_file, sections);
	file->header.e_shentsize = sizeof(Elf64_Shdr);
	file->header.e_shnum = 3;
	file->header.e_shstrndx = 1;
	file->segment = (Elf64_Phdr){.p_type = PT_LOAD,
				     .p_flags = PF_R | PF_X,
				     .p_filesz = FRAMES_EXECUTABLE,
				     .p_memsz = FRAMES_EXECUTABLE};
	file->sections[1] = (Elf64_Shdr){.sh_name = 1,
					 .sh_type = SHT_STRTAB,
					 .sh_offset = offsetof(struct frames_file, names),
					 .sh_size = sizeof(file->names)};
	file->sections[2] = (Elf64_Shdr){.sh_name = eh_frame ? 11 : 21,
					 .sh_type = SHT_PROGBITS,
					 .sh_flags = SHF_ALLOC,
					 .sh_addr = FRAMES_ADDRESS,
					 .sh_offset = FRAMES_ADDRESS,
					 .sh_size = size};
	memcpy(file->names, names, sizeof(names));
	if (size)
		memcpy(file->frames, frames, size);
	return file;
}
