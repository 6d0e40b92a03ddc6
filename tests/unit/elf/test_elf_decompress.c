/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sections that are compressed by zlib and zstd have the same bytes as before. This compresses them
 * itself, because binutils do so for debug sections only, and not all of them know zstd.
 */
#include "elf_decompress.h"
#include "elf_symbols.h"
#include "test_tools.h"
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <zlib.h>
#include <zstd.h>

#define ZSTD_KIND 2

typedef VEC(uint8_t) Bytes;

static Bytes read_file(const char *path)
{
	FILE *file = fopen(path, "r");
	Bytes bytes = {};
	int c;

	assert_non_null(file);
	while ((c = fgetc(file)) != EOF)
		*vec_push(&bytes) = c;
	fclose(file);
	return bytes;
}

static size_t compress_bytes(unsigned kind, const uint8_t *from, size_t size, uint8_t *to,
			     size_t room)
{
	uLongf length = room;
	size_t written;

	if (kind == ZSTD_KIND) {
		written = ZSTD_compress(to, room, from, size, 3);
		assert_false(ZSTD_isError(written));
		return written;
	}
	assert_int_equal(compress(to, &length, from, size), Z_OK);
	return length;
}

/* Puts the compressed form of each section that has one of these types behind the file's end. */
static Bytes pack(const Bytes *plain, unsigned kind, bool (*wants)(const Elf64_Shdr *))
{
	Elf64_Ehdr header;
	Bytes packed = {};

	vec_append(&packed, plain->items, plain->count);
	memcpy(&header, plain->items, sizeof(header));
	for (unsigned i = 1; i < header.e_shnum; i++) {
		size_t place = header.e_shoff + i * sizeof(Elf64_Shdr);
		Elf64_Chdr head = {.ch_type = kind, .ch_addralign = 1};
		size_t room, length;
		Elf64_Shdr section;
		uint8_t *to;

		memcpy(&section, plain->items + place, sizeof(section));
		if (!wants(&section) || i == header.e_shstrndx || section.sh_size == 0)
			continue;
		room = ZSTD_compressBound(section.sh_size) + compressBound(section.sh_size);
		to = xmalloc(room);
		length = compress_bytes(kind, plain->items + section.sh_offset, section.sh_size, to,
					room);
		head.ch_size = section.sh_size;
		section.sh_offset = packed.count;
		section.sh_size = sizeof(head) + length;
		section.sh_flags |= SHF_COMPRESSED;
		vec_append(&packed, (const uint8_t *)&head, sizeof(head));
		vec_append(&packed, to, length);
		while (packed.count % 8)
			*vec_push(&packed) = 0;
		memcpy(packed.items + place, &section, sizeof(section));
		free(to);
	}
	return packed;
}

static bool is_not_loaded(const Elf64_Shdr *section)
{
	return !(section->sh_flags & SHF_ALLOC) &&
	       (section->sh_type == SHT_PROGBITS || section->sh_type == SHT_SYMTAB ||
		section->sh_type == SHT_STRTAB);
}

static void open_bytes(const char *folder, const Bytes *bytes, ElfMap *ret_map)
{
	_cleanup_free_ char *path = xasprintf("%s/packed", folder);
	FILE *file = fopen(path, "w");
	int fd;

	assert_int_equal(fwrite(bytes->items, 1, bytes->count, file), bytes->count);
	fclose(file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(elf_map_open(fd, ret_map), 0);
	close(fd);
}

/* Returns how many sections were compressed and have the same bytes as in the plain file. */
static unsigned count_equal(ElfMap *packed, const Bytes *plain)
{
	Elf_Scn *section = NULL;
	unsigned equal = 0;
	Elf64_Ehdr header;

	memcpy(&header, plain->items, sizeof(header));
	while ((section = elf_nextscn(packed->elf, section))) {
		Elf64_Shdr original;
		GElf_Shdr found;
		Elf_Data *data;
		bool compressed;

		memcpy(&original,
		       plain->items + header.e_shoff + elf_ndxscn(section) * sizeof(original),
		       sizeof(original));
		assert_non_null(gelf_getshdr(section, &found));
		compressed = found.sh_flags & SHF_COMPRESSED;
		assert_int_equal(elf_decompress(packed, section), 0);
		assert_non_null(gelf_getshdr(section, &found));
		assert_int_equal(found.sh_size, original.sh_size);
		assert_int_equal(found.sh_flags, original.sh_flags);
		if (!compressed)
			continue;
		assert_true(elf_section_data(section, &data));
		assert_int_equal(data->d_size, original.sh_size);
		assert_int_equal(elf_rawdata(section, NULL)->d_size, original.sh_size);
		equal += !memcmp(data->d_buf, plain->items + original.sh_offset, data->d_size) &&
			 !memcmp(elf_rawdata(section, NULL)->d_buf,
				 plain->items + original.sh_offset, data->d_size);
	}
	return equal;
}

/* Returns the file with another byte in each section; its headers stay. */
static Bytes alter_contents(const Bytes *plain)
{
	Bytes altered = {};
	Elf64_Ehdr header;

	vec_append(&altered, plain->items, plain->count);
	memcpy(&header, plain->items, sizeof(header));
	for (unsigned i = 1; i < header.e_shnum; i++) {
		Elf64_Shdr section;

		memcpy(&section, plain->items + header.e_shoff + i * sizeof(section),
		       sizeof(section));
		if (section.sh_type != SHT_NOBITS && section.sh_size)
			altered.items[section.sh_offset + section.sh_size / 2] ^= 1;
	}
	return altered;
}

static size_t count_symbols(ElfMap *map)
{
	ElfSymbols symbols = {};
	size_t count;

	elf_decompress_tables(map);
	elf_symbols_add_tables(&symbols, map->elf);
	elf_symbols_finalize(&symbols);
	count = symbols.list.count;
	elf_symbols_free(&symbols);
	return count;
}

static Bytes build(const char *folder)
{
	_cleanup_free_ char *path = xasprintf("%s/a.so", folder);

	write_file(folder, "a.c",
		   "static __attribute__((noinline)) int inner(int x) { return x * 3; }\n"
		   "int outer(int x) { return inner(x) + inner(x + 1); }\n");
	run("cd '%s' && gcc -g -O1 -shared -fPIC -fno-asynchronous-unwind-tables -o a.so a.c",
	    folder);
	return read_file(path);
}

static void test_same_bytes(void **state)
{
	static const unsigned kinds[] = {ELFCOMPRESS_ZLIB, ZSTD_KIND};
	Bytes plain;
	char *folder;

	(void)state;
	if (!has_program("gcc"))
		skip_because("no gcc");
	folder = make_folder();
	plain = build(folder);
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		Bytes packed = pack(&plain, kinds[i], is_not_loaded), altered;
		ElfMap map, original;
		unsigned equal;

		open_bytes(folder, &packed, &map);
		equal = count_equal(&map, &plain);
		print_message("kind %u: %u sections\n", kinds[i], equal);
		assert_true(equal >= 8);
		elf_map_close(&map);
		/* Its symbols are found as well. */
		open_bytes(folder, &packed, &map);
		open_bytes(folder, &plain, &original);
		assert_true(count_symbols(&original) > 2);
		assert_int_equal(count_symbols(&map), count_symbols(&original));
		elf_map_close(&map);
		elf_map_close(&original);
		/* The truth altered: other bytes in all sections. */
		open_bytes(folder, &packed, &map);
		altered = alter_contents(&plain);
		assert_int_equal(count_equal(&map, &altered), 0);
		elf_map_close(&map);
		vec_free(&altered);
		vec_free(&packed);
	}
	vec_free(&plain);
	remove_folder(folder);
}

/* Wrong sizes, unknown kinds and changed bytes are refused, and the section stays as it was. */
static void test_damaged(void **state)
{
	static const struct {
		uint32_t type;
		int64_t more;
		bool change;
		int error;
	} cases[] = {
		{ZSTD_KIND, 1, false, -EBADMSG},	  {ZSTD_KIND, -1, false, -EBADMSG},
		{ZSTD_KIND, 0, true, -EBADMSG},		  {7, 0, false, -ENOTSUP},
		{ZSTD_KIND, 1LL << 40, false, -EFBIG},	  {ELFCOMPRESS_ZLIB, 0, false, -EBADMSG},
		{ZSTD_KIND, -(1LL << 40), false, -EFBIG},
	};
	char *folder;
	Bytes plain;

	(void)state;
	if (!has_program("gcc"))
		skip_because("no gcc");
	folder = make_folder();
	plain = build(folder);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		Bytes packed = pack(&plain, ZSTD_KIND, is_not_loaded);
		Elf_Scn *section;
		Elf64_Chdr head;
		GElf_Shdr header;
		ElfMap map;

		open_bytes(folder, &packed, &map);
		section = elf_section_by_name(map.elf, ".debug_info", &header);
		elf_map_close(&map);
		memcpy(&head, packed.items + header.sh_offset, sizeof(head));
		head.ch_type = cases[i].type;
		head.ch_size += cases[i].more;
		memcpy(packed.items + header.sh_offset, &head, sizeof(head));
		if (cases[i].change)
			memset(packed.items + header.sh_offset + sizeof(head), 0xff, 8);
		open_bytes(folder, &packed, &map);
		section = elf_section_by_name(map.elf, ".debug_info", &header);
		assert_int_equal(elf_decompress(&map, section), cases[i].error);
		assert_non_null(gelf_getshdr(section, &header));
		assert_true(header.sh_flags & SHF_COMPRESSED);
		elf_map_close(&map);
		vec_free(&packed);
	}
	vec_free(&plain);
	remove_folder(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_bytes),
		cmocka_unit_test(test_damaged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
