/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * elf_file.c - reads ELF files that may be hostile.
 *
 * libelf keeps its reads inside the file; the values that it returns may still be anything, so
 * sizes are limited here and sums are checked before use. Outside of the sandbox files are read and
 * not mapped: if a mapped file shrinks, SIGBUS ends the process.
 */
#include "elf_file.h"
#include <elf.h>
#include <errno.h>
#include <gelf.h>
#include <libelf.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define PAGE_MASK_4K 0xfffULL
#define LOADS_MAX    ELF_LOADS_MAX
#define NOTES_MAX    (1u << 20) /* bytes of a note segment */
/* Linkers make three. The recorder waits meanwhile, so thousands must not be read. */
#define NOTE_SEGMENTS_MAX 16u

static int check_class(Elf *elf)
{
	const char *ident = elf ? elf_getident(elf, NULL) : NULL;
	GElf_Ehdr header;

	if (!ident || elf_kind(elf) != ELF_K_ELF || ident[EI_DATA] != ELFDATA2LSB ||
	    !gelf_getehdr(elf, &header))
		return -ENOEXEC;
	if (ident[EI_CLASS] == ELFCLASS64 && header.e_machine == EM_X86_64)
		return 0;
	return ident[EI_CLASS] == ELFCLASS32 && header.e_machine == EM_386 ? 0 : -ENOEXEC;
}

bool elf_file_is_32(Elf *elf)
{
	return gelf_getclass(elf) == ELFCLASS32;
}

int elf_file_open(int fd, Elf **ret_elf)
{
	struct stat st;

	*ret_elf = NULL;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -ENOEXEC;
	elf_version(EV_CURRENT);
	*ret_elf = elf_begin(fd, ELF_C_READ, NULL);
	return check_class(*ret_elf);
}

int elf_file_open_image(const void *image, size_t size, Elf **ret_elf)
{
	elf_version(EV_CURRENT);
	/* libelf's signature lacks the const; it does not write without ELF_C_WRITE. */
	*ret_elf = elf_memory((char *)image, size);
	return check_class(*ret_elf);
}

/*
 * libelf writes into the section headers when it decompresses. Only these become writable: writable
 * memory counts (RLIMIT_DATA), even if it is as large as a debug file.
 */
static bool allow_notes(const ElfMap *map)
{
	const Elf64_Ehdr *header = map->image;
	const Elf32_Ehdr *header_32 = map->image;
	bool is_32 = map->size > EI_CLASS && header->e_ident[EI_CLASS] == ELFCLASS32;
	uint64_t first = 0, size = map->size, at = 0, length = 0;

	if (is_32 && map->size >= sizeof(*header_32)) {
		at = header_32->e_shoff;
		length = header_32->e_shnum * sizeof(Elf32_Shdr);
	} else if (!is_32 && map->size >= sizeof(*header)) {
		at = header->e_shoff;
		length = header->e_shnum * sizeof(Elf64_Shdr);
	}
	if (length && at < map->size) {
		first = at & ~PAGE_MASK_4K;
		size = MIN(at - first + length, map->size - first);
	}
	return !mprotect((char *)map->image + first, size, PROT_READ | PROT_WRITE);
}

int elf_map_open(int fd, ElfMap *ret_map)
{
	struct stat st;
	int r;

	*ret_map = (ElfMap){};
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size == 0)
		return -ENOEXEC;
	ret_map->size = st.st_size;
	ret_map->image = mmap(NULL, ret_map->size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (ret_map->image == MAP_FAILED) {
		*ret_map = (ElfMap){};
		return -errno;
	}
	r = allow_notes(ret_map) ? elf_file_open_image(ret_map->image, ret_map->size, &ret_map->elf)
				 : -errno;
	if (r < 0)
		elf_map_close(ret_map);
	return r;
}

void elf_map_close(ElfMap *map)
{
	elf_end(map->elf);
	for (size_t i = 0; i < map->decompressed.count; i++)
		free(map->decompressed.items[i]);
	vec_free(&map->decompressed);
	if (map->image)
		munmap(map->image, map->size);
	*map = (ElfMap){};
}

void elf_map_forget(const ElfMap *map, uint64_t offset, uint64_t size)
{
	uint64_t first = (offset + PAGE_MASK_4K) & ~PAGE_MASK_4K;
	uint64_t end = (offset + size) & ~PAGE_MASK_4K;

	if (offset <= map->size && size <= map->size - offset && first < end)
		madvise((char *)map->image + first, end - first, MADV_DONTNEED);
}

/* ---- identity ------------------------------------------------------------ */

static bool read_build_id(Elf *elf, const GElf_Phdr *segment, ElfIdentity *identity)
{
	Elf_Data *data;
	GElf_Nhdr note;
	size_t offset = 0, name, desc;

	if (segment->p_filesz > NOTES_MAX)
		return false;
	data = elf_getdata_rawchunk(elf, segment->p_offset, segment->p_filesz,
				    segment->p_align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR);
	while (data && (offset = gelf_getnote(data, offset, &note, &name, &desc)) > 0) {
		if (note.n_type != NT_GNU_BUILD_ID || note.n_namesz != sizeof(ELF_NOTE_GNU) ||
		    memcmp((char *)data->d_buf + name, ELF_NOTE_GNU, sizeof(ELF_NOTE_GNU)))
			continue;
		identity->build_id_len = MIN(note.n_descsz, sizeof(identity->build_id));
		memcpy(identity->build_id, (char *)data->d_buf + desc, identity->build_id_len);
		return true;
	}
	return false;
}

static void add_load(const GElf_Phdr *segment, ElfIdentity *identity)
{
	uint64_t base = segment->p_vaddr & ~PAGE_MASK_4K;

	if (identity->loads.count == 0 || base < identity->base_svma)
		identity->base_svma = base;
	*vec_push(&identity->loads) = (ElfSegment){
		.vaddr = segment->p_vaddr,
		.offset = segment->p_offset,
		.file_size = segment->p_filesz,
		.exec = segment->p_flags & PF_X,
	};
}

int elf_file_identify(Elf *elf, ElfIdentity *ret_identity)
{
	ElfIdentity identity = {.is_32 = elf_file_is_32(elf)};
	unsigned notes = 0;
	size_t count;

	if (elf_getphdrnum(elf, &count) < 0)
		return -ENOEXEC;
	for (size_t i = 0; i < count && identity.loads.count < LOADS_MAX; i++) {
		GElf_Phdr segment;

		if (!gelf_getphdr(elf, i, &segment))
			break;
		if (segment.p_type == PT_LOAD)
			add_load(&segment, &identity);
		else if (segment.p_type == PT_NOTE && identity.build_id_len == 0 &&
			 notes++ < NOTE_SEGMENTS_MAX)
			read_build_id(elf, &segment, &identity);
	}
	*ret_identity = identity;
	return 0;
}

int elf_identify(int fd, ElfIdentity *ret_identity)
{
	_cleanup_elf_ Elf *elf = NULL;
	int r = elf_file_open(fd, &elf);

	/* A file for another processor is an ELF file, too, and so is one that is damaged. */
	ret_identity->not_elf = r == -ENOEXEC && elf && elf_kind(elf) != ELF_K_ELF;
	return r < 0 ? r : elf_file_identify(elf, ret_identity);
}

int elf_identify_image(const void *image, size_t size, ElfIdentity *ret_identity)
{
	_cleanup_elf_ Elf *elf = NULL;
	int r = elf_file_open_image(image, size, &elf);

	return r < 0 ? r : elf_file_identify(elf, ret_identity);
}

void elf_identity_free(ElfIdentity *identity)
{
	vec_free(&identity->loads);
}

static uint64_t end_of(uint64_t start, uint64_t length)
{
	return length > UINT64_MAX - start ? UINT64_MAX : start + length;
}

/* Returns how well a segment fits a mapping: 0 = not at all. */
static uint64_t fit(const ElfSegment *load, uint64_t pgoff, uint64_t length)
{
	uint64_t from = MAX(load->offset, pgoff);
	uint64_t to = MIN(end_of(load->offset, load->file_size), end_of(pgoff, length));
	uint64_t score;

	if (from >= to)
		return 0;
	score = MIN(to - from, (1ULL << 61) - 1);
	if (load->exec)
		score |= 1ULL << 61;
	if ((load->offset & ~PAGE_MASK_4K) == pgoff)
		score |= 1ULL << 62;
	return score;
}

int elf_mapping_bias(const ElfIdentity *identity, uint64_t start, uint64_t length, uint64_t pgoff,
		     uint64_t *ret_bias)
{
	uint64_t best = 0;

	for (size_t i = 0; i < identity->loads.count; i++) {
		const ElfSegment *load = &identity->loads.items[i];
		uint64_t score = fit(load, pgoff, length);

		if (score <= best)
			continue;
		best = score;
		*ret_bias = start - pgoff + load->offset - load->vaddr;
	}
	return best ? 0 : -ENOENT;
}
