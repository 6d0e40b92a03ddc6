/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which files are CPython, of which version, and whether its frames can be read. */
#include "interpreter_module.h"
#include "test_tools.h"
#include <elf.h>
#include <string.h>

#define BASE	 0x400000
#define RUNTIME	 0x100 /* in the data */
#define VERSION	 0x80
#define EVALUATE 0x10
#define CODE	 0x40
#define DATA	 0x800 /* its size */
#define MANY	 (64u << 20)

/* A file to be looked at. */
typedef struct File {
	const char *name;
	uint32_t version;	/* of the variable Py_Version, 0x030b0000; 0: there is none */
	uint32_t debug_version; /* of offsets for debuggers; 0: there are none */
	bool free_threaded, local, no_code_type, no_evaluator, data_is_cut;
	uint32_t hash_words; /* of its hash table: HASH_WORDS, or fewer, if it is cut; 0: none */
} File;

/* One bucket and one word of a Bloom filter; then a word for each symbol. */
#define HASH_HEAD  7
#define HASH_WORDS (HASH_HEAD + 4)

typedef struct Symbols {
	Elf64_Sym list[8];
	char names[256];
	size_t count, bytes;
} Symbols;

static void add_symbol(Symbols *symbols, const char *name, uint64_t at)
{
	symbols->list[symbols->count++] = (Elf64_Sym){
		.st_name = symbols->bytes,
		.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT),
		.st_shndx = 1,
		.st_value = BASE + at,
	};
	strcpy(symbols->names + symbols->bytes, name);
	symbols->bytes += strlen(name) + 1;
}

static void fill_hash(const Symbols *symbols, uint32_t *words)
{
	static const uint32_t head[HASH_HEAD] = {1, 1, 1, 0, UINT32_MAX, UINT32_MAX, 1};

	memcpy(words, head, sizeof(head));
	for (size_t i = 1; i < symbols->count; i++) {
		uint32_t hash = 5381;

		for (const char *c = symbols->names + symbols->list[i].st_name; *c; c++)
			hash = hash * 33 + (uint8_t)*c;
		words[HASH_HEAD + i - 1] = (hash & ~1u) | (i + 1 == symbols->count);
	}
}

/* One segment with the data, and its symbols: exported, or of the symbol table alone. */
static void *make_file(const File *file, size_t *ret_size)
{
	struct {
		Elf64_Ehdr header;
		Elf64_Phdr segment;
		Elf64_Shdr sections[4];
		Symbols symbols;
		uint32_t hash[HASH_WORDS + 4];
		uint8_t data[DATA];
	} *image = xcalloc(1, sizeof(*image));
	uint64_t version = file->version,
		 offsets[] = {(uint64_t)file->debug_version << 16, file->free_threaded};

	image->symbols.count = image->symbols.bytes = 1;
	add_symbol(&image->symbols, "_PyRuntime", RUNTIME);
	if (!file->no_evaluator)
		add_symbol(&image->symbols, "_PyEval_EvalFrameDefault", EVALUATE);
	if (!file->no_code_type)
		add_symbol(&image->symbols, "PyCode_Type", CODE);
	if (file->version)
		add_symbol(&image->symbols, "Py_Version", VERSION);
	memcpy(image->data + VERSION, &version, sizeof(version));
	if (file->debug_version) {
		memcpy(image->data + RUNTIME, "xdebugpy", 8);
		memcpy(image->data + RUNTIME + 8, offsets, sizeof(offsets));
	}
	image->header = (Elf64_Ehdr){
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			    EV_CURRENT},
		.e_type = ET_EXEC,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_phoff = offsetof(typeof(*image), segment),
		.e_shoff = offsetof(typeof(*image), sections),
		.e_ehsize = sizeof(Elf64_Ehdr),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 1,
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = ARRAY_LEN(image->sections),
	};
	image->segment = (Elf64_Phdr){
		.p_type = PT_LOAD,
		.p_flags = PF_R,
		.p_offset = offsetof(typeof(*image), data),
		.p_vaddr = BASE,
		.p_filesz = file->data_is_cut ? RUNTIME + 32 : DATA,
		.p_memsz = DATA,
	};
	image->sections[1] = (Elf64_Shdr){
		.sh_type = file->local ? SHT_SYMTAB : SHT_DYNSYM,
		.sh_offset = offsetof(typeof(*image), symbols.list),
		.sh_size = image->symbols.count * sizeof(Elf64_Sym),
		.sh_link = 2,
		.sh_entsize = sizeof(Elf64_Sym),
	};
	image->sections[2] = (Elf64_Shdr){
		.sh_type = SHT_STRTAB,
		.sh_offset = offsetof(typeof(*image), symbols.names),
		.sh_size = image->symbols.bytes,
	};
	if (file->hash_words) {
		fill_hash(&image->symbols, image->hash);
		image->sections[3] = (Elf64_Shdr){
			.sh_type = SHT_GNU_HASH,
			.sh_offset = offsetof(typeof(*image), hash),
			.sh_size = file->hash_words * sizeof(uint32_t),
			.sh_link = 1,
		};
	}
	*ret_size = sizeof(*image);
	return image;
}

static InterpreterFound look_at(const File *file)
{
	InterpreterFound found = {};
	size_t size;
	_cleanup_free_ void *image = make_file(file, &size);
	Elf *elf;

	assert_int_equal(elf_file_open_image(image, size, &elf), 0);
	python_module.find(elf, file->name, &found);
	elf_end(elf);
	return found;
}

static void test_versions(void **state)
{
	static const struct {
		File file;
		uint32_t version;
		bool present, readable;
	} cases[] = {
		{{.name = "python3.8"}, 0x0308, true, true},
		{{.name = "libpython3.10.so.1.0"}, 0x030a, true, true},
		{{.name = "python3.7"}, 0x0307, true, false},
		{{.name = "python3"}, 0, true, false},
		{{.name = "python3.9", .local = true}, 0x0309, true, true},
		/* The variable is right, whatever the name says. */
		{{.name = "python3.9", .version = 0x030b09f0}, 0x030b, true, true},
		{{.name = "python", .version = 0x030c01f0}, 0x030c, true, true},
		{{.name = "python3.13", .version = 0x030d00f0, .debug_version = 0x030d},
		 0x030d,
		 true,
		 true},
		{{.name = "python3.14", .version = 0x030e00f0, .debug_version = 0x030e},
		 0x030e,
		 true,
		 true},
		{{.name = "python3.15", .version = 0x030f00f0, .debug_version = 0x030f},
		 0x030f,
		 true,
		 false},
		{{.name = "python3.13", .version = 0x030d00f0}, 0x030d, true, false},
		{{.name = "python3.13",
		  .version = 0x030d00f0,
		  .debug_version = 0x030d,
		  .data_is_cut = true},
		 0x030d,
		 true,
		 false},
		{{.name = "python3.8", .no_code_type = true}, 0x0308, true, false},
		{{.name = "python3.8", .no_evaluator = true}, 0, false, false},
		/* Linked with a program of another name. */
		{{.name = "renderer", .version = 0x030b09f0}, 0x030b, true, true},
		{{.name = "renderer"}, 0, true, false},
		{{.name = "renderer", .version = 0x030b09f0, .local = true}, 0, false, false},
		{{.name = "renderer", .version = 0x030b09f0, .hash_words = HASH_WORDS},
		 0x030b,
		 true,
		 true},
		{{.name = "renderer", .no_evaluator = true, .hash_words = HASH_WORDS},
		 0,
		 false,
		 false},
		{{.name = "renderer", .version = 0x030b09f0, .hash_words = HASH_HEAD},
		 0,
		 false,
		 false},
		{{.name = "renderer", .version = 0x030b09f0, .hash_words = 3}, 0, false, false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		InterpreterFound found = look_at(&cases[i].file);

		print_message("%zu: %s\n", i, cases[i].file.name);
		assert_int_equal(found.present, cases[i].present);
		assert_int_equal(found.readable, cases[i].readable);
		assert_int_equal(found.version, cases[i].version);
		assert_false(found.free_threaded);
		if (!cases[i].readable)
			continue;
		assert_int_equal(found.runtime, BASE + RUNTIME);
		assert_int_equal(found.process.code_type, BASE + CODE);
		assert_int_equal(found.process.python.version, cases[i].version);
	}
}

static void test_free_threaded(void **state)
{
	InterpreterFound found = look_at(&(File){.name = "python3.13t",
						 .version = 0x030d00f0,
						 .debug_version = 0x030d,
						 .free_threaded = true});

	(void)state;
	assert_true(found.present && found.free_threaded);
	assert_false(found.readable);
}

static void test_names(void **state)
{
	static const struct {
		const char *name;
		uint64_t size;
		bool may_be;
	} cases[] = {
		{"python3.11", 5904904, true},
		{"python3", 14368, true}, /* a small program with a large library */
		{"libpython3.11.so.1.0", MANY, true},
		{"_ssl.cpython-311-x86_64-linux-gnu.so", MANY, false},
		{"_x.cpython-311-python.so", MANY, false},
		{"renderer", MANY, true},
		{"sh", 125688, false},
		{"libLLVM-14.so.1", MANY, false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_int_equal(python_module.may_be(cases[i].name, cases[i].size),
				 cases[i].may_be);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_versions),
		cmocka_unit_test(test_free_threaded),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
