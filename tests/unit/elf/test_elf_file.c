/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "dwarf_names.h"
#include "elf_file.h"
#include "elf_symbols_fixture.h"
#include "make_record.h"
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* The file under test is this program: its figures are known to nm, readelf and us. */
#define SELF "/proc/self/exe"

static char self[4096];

/* Not inlined, and seen by nm. */
__attribute__((noinline)) int a_known_function(int x)
{
	__asm__ volatile("" ::: "memory");
	return x + 1;
}

typedef struct Image {
	uint8_t *data;
	size_t size;
} Image;

static Image read_self(void)
{
	int fd = open(SELF, O_RDONLY);
	struct stat st;
	Image image;

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	image.size = st.st_size;
	image.data = xmalloc(image.size);
	assert_int_equal(read(fd, image.data, image.size), image.size);
	close(fd);
	return image;
}

static void test_build_id(void **state)
{
	_cleanup_free_ char *command = xasprintf("readelf -n '%s'", self);
	FILE *pipe = popen(command, "r");
	char line[256], expected[41] = "", found[41] = "";
	ElfIdentity identity;
	int fd = open(SELF, O_RDONLY);

	(void)state;
	assert_non_null(pipe);
	while (fgets(line, sizeof(line), pipe))
		sscanf(line, " Build ID: %40s", expected);
	assert_int_equal(pclose(pipe), 0);
	assert_int_equal(elf_identify(fd, &identity), 0);
	assert_true(fcntl(fd, F_GETFD) >= 0);
	close(fd);
	for (size_t i = 0; i < identity.build_id_len; i++)
		snprintf(found + 2 * i, 3, "%02x", identity.build_id[i]);
	assert_int_equal(strlen(expected), 40);
	assert_string_equal(found, expected);
	elf_identity_free(&identity);
}

static void test_segments(void **state)
{
	_cleanup_free_ char *command = xasprintf("readelf -lW '%s'", self);
	FILE *pipe = popen(command, "r");
	char line[256];
	ElfIdentity identity;
	size_t loads = 0;
	int fd = open(SELF, O_RDONLY);

	(void)state;
	assert_int_equal(elf_identify(fd, &identity), 0);
	close(fd);
	while (fgets(line, sizeof(line), pipe)) {
		ElfSegment load;

		if (sscanf(line, " LOAD %" SCNx64 " %" SCNx64 " %*x %" SCNx64, &load.offset,
			   &load.vaddr, &load.file_size) != 3)
			continue;
		assert_true(loads < identity.loads.count);
		assert_int_equal(identity.loads.items[loads].offset, load.offset);
		assert_int_equal(identity.loads.items[loads].vaddr, load.vaddr);
		assert_int_equal(identity.loads.items[loads].file_size, load.file_size);
		assert_int_equal(identity.loads.items[loads].exec, strstr(line, " R E ") != NULL);
		loads++;
	}
	assert_int_equal(pclose(pipe), 0);
	assert_int_equal(loads, identity.loads.count);
	assert_true(loads > 1);
	elf_identity_free(&identity);
}

/* The bias of our own text, from /proc/self/maps, moves our function to where it is. */
static void test_bias_of_ourselves(void **state)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	uint64_t here = (uintptr_t)a_known_function, bias = 0;
	const ElfSymbol *symbol;
	ElfIdentity identity;
	ElfSymbols symbols;
	char line[4096];
	int fd = open(SELF, O_RDONLY);

	(void)state;
	assert_int_equal(elf_identify(fd, &identity), 0);
	assert_int_equal(read_symbols(fd, &symbols), 0);
	close(fd);
	while (fgets(line, sizeof(line), maps)) {
		uint64_t start, end, pgoff;

		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64, &start, &end, &pgoff) ==
			    3 &&
		    start <= here && here < end)
			assert_int_equal(
				elf_mapping_bias(&identity, start, end - start, pgoff, &bias), 0);
	}
	fclose(maps);
	symbol = elf_symbols_find(&symbols, here - bias);
	assert_non_null(symbol);
	assert_string_equal(symbols.names.items + symbol->name, "a_known_function");
	assert_int_equal(symbol->start + bias, here);
	elf_symbols_free(&symbols);
	elf_identity_free(&identity);
}

static void test_bias_of_skewed_segments(void **state)
{
	ElfSegment loads[] = {
		{.vaddr = 0x200000, .offset = 0, .file_size = 0x17c0},
		{.vaddr = 0x2027c0, .offset = 0x17c0, .file_size = 0x3000, .exec = true},
		{.vaddr = 0x2067c0, .offset = 0x47c0, .file_size = 0x100},
		{.vaddr = 0, .offset = UINT64_MAX - 10, .file_size = 100},
	};
	ElfIdentity identity = {.loads = {.items = loads, .count = 4, .capacity = 4}};
	uint64_t bias;

	(void)state;
	assert_int_equal(elf_mapping_bias(&identity, 0x7f0000001000, 0x2000, 0, &bias), 0);
	assert_int_equal(bias, 0x7f0000001000 - 0x200000);
	/* This page of the file belongs to the first segment too. */
	assert_int_equal(elf_mapping_bias(&identity, 0x7f0000003000, 0x4000, 0x1000, &bias), 0);
	assert_int_equal(bias, 0x7f0000003000 - 0x202000);
	/* The middle of the text, as after mprotect of what is before. */
	assert_int_equal(elf_mapping_bias(&identity, 0x7f0000004000, 0x1000, 0x2000, &bias), 0);
	assert_int_equal(bias, 0x7f0000004000 - 0x203000);
	/* A text of a few bytes, in one page with more of something else. */
	loads[1].file_size = 0x20;
	loads[2].offset = 0x17e0;
	assert_int_equal(elf_mapping_bias(&identity, 0x7f0000003000, 0x1000, 0x1000, &bias), 0);
	assert_int_equal(bias, 0x7f0000003000 - 0x202000);
	assert_int_equal(elf_mapping_bias(&identity, 0x7f0000001000, 0x1000, 0x10000, &bias),
			 -ENOENT);
	assert_int_equal(elf_mapping_bias(&identity, 0x1000, UINT64_MAX, 0x10000, &bias), 0);
}

/* Every function that nm shows is found under one of its names, from first to last byte. */
static void test_symbols_as_nm_has_them(void **state)
{
	_cleanup_free_ char *command = xasprintf("nm -S --defined-only '%s'", self);
	FILE *pipe = popen(command, "r");
	size_t functions = 0, same_name = 0;
	char line[1024];
	ElfSymbols symbols;
	int fd = open(SELF, O_RDONLY);

	(void)state;
	assert_int_equal(read_symbols(fd, &symbols), 0);
	close(fd);
	while (fgets(line, sizeof(line), pipe)) {
		const ElfSymbol *symbol;
		uint64_t start, size;
		char type, name[512];

		if (sscanf(line, "%" SCNx64 " %" SCNx64 " %c %511s", &start, &size, &type, name) !=
			    4 ||
		    !strchr("tTwWi", type))
			continue;
		symbol = elf_symbols_find(&symbols, start);
		assert_non_null(symbol);
		assert_int_equal(symbol->start, start);
		assert_true(symbol->size >= size);
		assert_ptr_equal(elf_symbols_find(&symbols, start + size - 1), symbol);
		same_name += !strcmp(symbols.names.items + symbol->name, name);
		functions++;
	}
	assert_int_equal(pclose(pipe), 0);
	assert_true(functions > 10);
	assert_true(same_name * 10 >= functions * 9);
	for (size_t i = 1; i < symbols.list.count; i++)
		assert_true(symbols.list.items[i - 1].start < symbols.list.items[i].start);
	assert_null(elf_symbols_find(&symbols, 0));
	assert_null(elf_symbols_find(&symbols, UINT64_MAX));
	elf_symbols_free(&symbols);
}

static void test_vdso(void **state)
{
	const void *image = (const void *)getauxval(AT_SYSINFO_EHDR);
	const Elf64_Ehdr *header = image;
	ElfIdentity identity;
	ElfSymbols symbols;
	bool found = false;
	size_t size;

	(void)state;
	if (!image)
		skip();
	size = header->e_shoff + header->e_shnum * header->e_shentsize;
	assert_int_equal(elf_identify_image(image, size, &identity), 0);
	assert_int_equal(identity.build_id_len, 20);
	assert_int_equal(read_symbols_of_image(image, size, &symbols), 0);
	for (size_t i = 0; i < symbols.list.count; i++) {
		const ElfSymbol *symbol = &symbols.list.items[i];

		/* Each function has two names; the plainer one is found. */
		if (!strcmp(symbols.names.items + symbol->name, "clock_gettime"))
			found = true;
		assert_true(symbol->size > 0);
	}
	assert_true(found);
	elf_symbols_free(&symbols);
	elf_identity_free(&identity);
}

static void test_not_elf(void **state)
{
	Image image = read_self();
	ElfIdentity identity;
	ElfSymbols symbols;
	int fd;
	_cleanup_free_ char *path = make_temporary(&fd);

	(void)state;
	assert_int_equal(elf_identify(fd, &identity), -ENOEXEC);
	assert_int_equal(write(fd, "#!/bin/sh\n", 10), 10);
	assert_int_equal(elf_identify(fd, &identity), -ENOEXEC);
	assert_int_equal(read_symbols(fd, &symbols), -ENOEXEC);
	close(fd);
	unlink(path);
	fd = open("/", O_RDONLY);
	assert_int_equal(elf_identify(fd, &identity), -ENOEXEC);
	close(fd);
	assert_int_equal(elf_identify(-1, &identity), -EBADF);

	image.data[EI_CLASS] = ELFCLASS32; /* a 32-bit file of x86-64, that is of x32 */
	assert_int_equal(elf_identify_image(image.data, image.size, &identity), -ENOEXEC);
	((Elf32_Ehdr *)image.data)->e_machine = EM_386;
	assert_int_equal(elf_identify_image(image.data, image.size, &identity), 0);
	assert_true(identity.is_32);
	elf_identity_free(&identity);
	image.data[EI_CLASS] = ELFCLASS64;
	((Elf64_Ehdr *)image.data)->e_machine = EM_AARCH64;
	assert_int_equal(elf_identify_image(image.data, image.size, &identity), -ENOEXEC);
	((Elf64_Ehdr *)image.data)->e_machine = EM_X86_64;
	assert_int_equal(elf_identify_image(image.data, image.size, &identity), 0);
	elf_identity_free(&identity);
	free(image.data);
}

/* Whatever it is, it is refused or read, within its bounds (the sanitizers watch). */
static void try_image(const uint8_t *data, size_t size)
{
	uint8_t *exact = xmalloc(MAX(size, (size_t)1));
	ElfIdentity identity;
	ElfSymbols symbols;

	memcpy(exact, data, size);
	if (elf_identify_image(exact, size, &identity) == 0) {
		assert_true(identity.build_id_len <= sizeof(identity.build_id));
		elf_identity_free(&identity);
	}
	if (read_symbols_of_image(exact, size, &symbols) == 0) {
		for (size_t i = 0; i < symbols.list.count; i++) {
			assert_true(symbols.list.items[i].name < symbols.names.count);
			assert_true(symbols.list.items[i].size > 0);
			assert_ptr_not_equal(
				memchr(symbols.names.items + symbols.list.items[i].name, '\0',
				       symbols.names.count - symbols.list.items[i].name),
				NULL);
		}
		elf_symbols_free(&symbols);
	}
	free(exact);
}

/* A small whole ELF file: the vDSO, where there is one, else the start of ourselves. */
static void test_hostile_images(void **state)
{
	const void *vdso = (const void *)getauxval(AT_SYSINFO_EHDR);
	const Elf64_Ehdr *header = vdso;
	unsigned seed = 4711;
	uint8_t *data;
	size_t size;

	(void)state;
	if (!vdso)
		skip();
	size = header->e_shoff + header->e_shnum * header->e_shentsize;
	data = xmalloc(size);
	for (size_t cut = 0; cut < size; cut += 37) {
		memcpy(data, vdso, size);
		try_image(data, cut);
	}
	for (int round = 0; round < 5000; round++) {
		memcpy(data, vdso, size);
		for (int i = 0; i < 4; i++) {
			/* Headers more often than the rest. */
			size_t place = rand_r(&seed) % (i < 2 ? 1024 : size);

			if (i == 3)
				place = header->e_shoff + rand_r(&seed) % (size - header->e_shoff);
			data[place] = rand_r(&seed) % 3 ? rand_r(&seed) : 0xff;
		}
		try_image(data, size);
	}
	free(data);
}

/* ---- DWARF --------------------------------------------------------------------- */

static Elf64_Shdr *section_header(Image image, const char *name)
{
	Elf64_Ehdr *header = (Elf64_Ehdr *)image.data;
	Elf64_Shdr *sections = (Elf64_Shdr *)(image.data + header->e_shoff);
	const char *names = (char *)image.data + sections[header->e_shstrndx].sh_offset;

	for (size_t i = 0; i < header->e_shnum; i++)
		if (!strcmp(names + sections[i].sh_name, name))
			return &sections[i];
	return NULL;
}

/* What DWARF alone says of a_known_function in the image; to be freed. */
static char *dwarf_name(Image image)
{
	uint64_t address = 0;
	ElfSymbols symbols;
	ElfMap map = {.image = image.data, .size = image.size}, none = {};
	DwarfHost host = {};
	DwarfNames names;
	char *name;

	assert_int_equal(read_symbols_of_image(image.data, image.size, &symbols), 0);
	for (size_t i = 0; i < symbols.list.count; i++)
		if (!strcmp(symbols.names.items + symbols.list.items[i].name, "a_known_function"))
			address = symbols.list.items[i].start;
	elf_symbols_free(&symbols);
	assert_int_not_equal(address, 0);
	assert_int_equal(elf_file_open_image(image.data, image.size, &map.elf), 0);
	dwarf_names_find(&map, &none, &address, 1, &host, &names);
	assert_int_equal(names.answers.items[0].count, 1);
	name = xstrdup(
		strings_get(&names.strings, names.frames.items[names.answers.items[0].first].name));
	dwarf_names_free(&names);
	elf_end(map.elf);
	return name;
}

/* The section of names ends in the middle of one: libdw would read on. */
static void test_dwarf_string_without_end(void **state)
{
	static const char wanted[] = "a_known_function";
	Image image = read_self();
	Elf64_Shdr *strings = section_header(image, ".debug_str");
	_cleanup_free_ char *whole = dwarf_name(image), *cut = NULL;
	const uint8_t *place;

	(void)state;
	assert_string_equal(whole, wanted);
	assert_non_null(strings);
	place = memmem(image.data + strings->sh_offset, strings->sh_size, wanted, sizeof(wanted));
	assert_non_null(place);
	strings->sh_size = place + 4 - (image.data + strings->sh_offset);
	cut = dwarf_name(image);
	assert_string_equal(cut, "");
	free(image.data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_build_id),
		cmocka_unit_test(test_segments),
		cmocka_unit_test(test_bias_of_ourselves),
		cmocka_unit_test(test_bias_of_skewed_segments),
		cmocka_unit_test(test_symbols_as_nm_has_them),
		cmocka_unit_test(test_vdso),
		cmocka_unit_test(test_not_elf),
		cmocka_unit_test(test_hostile_images),
		cmocka_unit_test(test_dwarf_string_without_end),
	};

	if (readlink(SELF, self, sizeof(self) - 1) < 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
