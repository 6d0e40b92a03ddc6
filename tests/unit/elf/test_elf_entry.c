/* SPDX-License-Identifier: GPL-2.0-or-later */
/* _start and main of stripped executables, as nm has them in the same files before. */
#include "object_names_fixture.h"
#include "test_tools.h"
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>

/* Three functions with frames; main is neither the first nor the last. */
#define PROGRAM                                                                                    \
	"__attribute__((noinline)) int before(int x) { __asm__(\"\"); return x + 1; }\n"           \
	"int main(int argc, char **argv) { return before(argc) + !argv[0] ? argc : 0; }\n"         \
	"__attribute__((noinline)) int after(int x) { __asm__(\"\"); return x + before(x); }\n"    \
	"int (*volatile pointer)(int) = after;\n"

typedef struct Program {
	char *folder, *path;
} Program;

/* Programs of one source, stripped. The symbols are those of "whole" beside it. */
static Program build(const char *command)
{
	Program program = {.folder = make_folder()};

	program.path = xasprintf("%s/prog", program.folder);
	write_file(program.folder, "a.c", PROGRAM);
	run("cd '%s' && %s a.c -o whole 2>&1 && strip -s -o prog whole", program.folder, command);
	return program;
}

static void clear(Program *program)
{
	free(program->path);
	remove_folder(program->folder);
}

/* ---- one address ------------------------------------------------------------------------- */

typedef struct Named {
	char name[64]; /* "" if it has none */
	uint64_t start, size;
} Named;

static Named name_one(const char *path, uint64_t address)
{
	Naming naming = {.addresses = &address, .count = 1};
	Named named = {};

	name_objects(&naming, path, NULL);
	if (naming.answers[0]) {
		snprintf(named.name, sizeof(named.name), "%s", frame_of(naming.answers[0], 0).name);
		named.start = naming.answers[0]->function;
		named.size = naming.answers[0]->function_size;
	}
	free_naming(&naming);
	return named;
}

/* ---- what nm says ------------------------------------------------------------------------ */

/* size: 0 if the symbol has none (musl's _start). */
static Named ask_nm(const Program *program, const char *name)
{
	_cleanup_free_ char *text =
		output_of(NM " -f posix '%s/whole' | grep '^%s '", program->folder, name);
	Named symbol = {};

	snprintf(symbol.name, sizeof(symbol.name), "%s", name);
	assert_true(sscanf(text, "%*s %*s %" SCNx64 " %" SCNx64, &symbol.start, &symbol.size) >= 1);
	return symbol;
}

static uint64_t base_of(const char *path)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	ElfIdentity identity;
	uint64_t base;

	assert_int_equal(elf_identify(fd, &identity), 0);
	base = identity.base_svma;
	elf_identity_free(&identity);
	return base;
}

/* The function's first and last byte and the one behind it. */
static bool is_named(const Program *program, const Named *symbol)
{
	Named first = name_one(program->path, symbol->start), last, behind;

	if (strcmp(first.name, symbol->name) || first.start != symbol->start ||
	    (symbol->size && first.size != symbol->size))
		return false;
	last = name_one(program->path, symbol->start + first.size - 1);
	behind = name_one(program->path, symbol->start + first.size);
	return !strcmp(last.name, symbol->name) && strcmp(behind.name, symbol->name) != 0;
}

static void check_program(const char *command)
{
	Program program = build(command);
	Named start = ask_nm(&program, "_start"), main_function = ask_nm(&program, "main"), altered;

	print_message("%s: _start %#" PRIx64 ", main %#" PRIx64 "\n", command, start.start,
		      main_function.start);
	assert_true(is_named(&program, &start));
	assert_true(is_named(&program, &main_function));
	/* The others keep the names of places. */
	for (size_t i = 0; i < 2; i++) {
		Named other = ask_nm(&program, i ? "after" : "before");

		snprintf(other.name, sizeof(other.name), "fun_%" PRIx64,
			 other.start - base_of(program.path));
		assert_true(is_named(&program, &other));
	}
	/* The truth altered. */
	altered = main_function;
	altered.start++;
	assert_false(is_named(&program, &altered));
	altered = main_function;
	altered.size++;
	assert_false(is_named(&program, &altered));
	altered = start;
	altered.start--;
	assert_false(is_named(&program, &altered));
	clear(&program);
}

static void test_glibc(void **state)
{
	static const char *const commands[] = {
		"gcc -O2",
		"gcc -O0",
		"gcc -O2 -no-pie -fno-pie",
		"gcc -O2 -static",
		"gcc -O2 -static-pie",
		"gcc -O2 -fno-plt -Wl,-z,now",
		"gcc -O2 -fcf-protection=full -Wl,-z,ibtplt",
		"gcc -O2 -pg",
	};

	(void)state;
	if (!has_program("gcc"))
		skip_because("no gcc");
	for (size_t i = 0; i < ARRAY_LEN(commands); i++)
		check_program(commands[i]);
}

static void test_other_linkers(void **state)
{
	static const char *const linkers[] = {"ld.gold", "ld.lld", "ld.mold"};

	(void)state;
	if (!has_program("gcc"))
		skip_because("no gcc");
	for (size_t i = 0; i < ARRAY_LEN(linkers); i++) {
		_cleanup_free_ char *command = xasprintf("gcc -O2 -fuse-ld=%s", linkers[i] + 3);
		_cleanup_free_ char *no_pie = xasprintf("%s -no-pie -fno-pie", command);

		if (!has_program(linkers[i])) {
			print_message("no %s\n", linkers[i]);
			continue;
		}
		check_program(command);
		check_program(no_pie);
	}
}

static void test_musl(void **state)
{
	(void)state;
	if (!has_program("musl-gcc"))
		skip_because("no musl-gcc");
	check_program("musl-gcc -O2");
	check_program("musl-gcc -O2 -no-pie -fno-pie");
	check_program("musl-gcc -O2 -static");
	check_program("musl-gcc -O2 -static -Wl,--eh-frame-hdr");
}

/* ---- what is not to be named --------------------------------------------------------------- */

static uint64_t entry_of(const char *path)
{
	_cleanup_free_ char *text =
		output_of("readelf -hW '%s' | sed -n 's/.*Entry point address: *//p'", path);

	return strtoull(text, NULL, 16);
}

static void check_entry(const char *command, const char *expected)
{
	Program program = build(command);
	Named named = name_one(program.path, entry_of(program.path));

	if (strcmp(named.name, expected) != 0)
		fail_msg("%s: the entry point is %s, not %s", command, named.name, expected);
	clear(&program);
}

static void test_own_symbol(void **state)
{
	(void)state;
	if (!has_program("gcc"))
		skip_because("no gcc");
	check_entry("gcc -O2 -rdynamic -Wl,-e,before", "before");
	check_entry("gcc -O2 -Wl,-e,before", "_start");
}

static void test_shared_library(void **state)
{
	_cleanup_free_ char *libc = NULL;
	Program program;
	Named named;
	uint64_t entry;
	_cleanup_free_ char *expected = NULL;

	(void)state;
	if (!has_program("gcc"))
		skip_because("no gcc");
	program = build("gcc -O2 -shared -fPIC -fvisibility=hidden -Wl,-e,before");
	entry = entry_of(program.path);
	expected = xasprintf("fun_%" PRIx64, entry);
	named = name_one(program.path, entry);
	assert_string_equal(named.name, expected);
	clear(&program);
	libc = output_of("gcc -print-file-name=libc.so.6 | tr -d '\\n'");
	if (*libc == '/' && (entry = entry_of(libc)) != 0)
		assert_string_not_equal(name_one(libc, entry).name, "_start");
}

/* glibc's ld.so has no unwind table for its _start, of two instructions. */
static void test_loader(void **state)
{
	_cleanup_free_ char *path = NULL, *stripped = NULL;
	Program program;
	Named named;

	(void)state;
	if (!has_program("gcc"))
		skip_because("no gcc");
	program = build("gcc -O2");
	path = output_of(
		"readelf -lW '%s' | sed -n 's/.*interpreter: \\(.*\\)]/\\1/p' | tr -d '\\n'",
		program.path);
	stripped = xasprintf("%s/loader", program.folder);
	run("strip -s -o '%s' '%s'", stripped, path);
	named = name_one(stripped, entry_of(stripped));
	assert_string_equal(named.name, "_start");
	assert_int_equal(named.size, 8);
	assert_string_not_equal(name_one(stripped, named.start + 8).name, "_start");
	clear(&program);
}

/* Where the unwind table does not say where main ends, it has no name. */
static void test_no_unwind_table(void **state)
{
	Program program;

	(void)state;
	if (!has_program("gcc"))
		skip_because("no gcc");
	program = build("gcc -O2 -fno-asynchronous-unwind-tables");
	assert_string_not_equal(name_one(program.path, ask_nm(&program, "main").start).name,
				"main");
	assert_string_equal(name_one(program.path, entry_of(program.path)).name, "_start");
	clear(&program);
}

/* ---- spoilt files -------------------------------------------------------------------------- */

typedef struct Bytes {
	uint8_t at[1 << 16];
	size_t size;
} Bytes;

static Bytes read_bytes(const char *path)
{
	Bytes bytes;
	FILE *file = fopen(path, "r");

	assert_non_null(file);
	bytes.size = fread(bytes.at, 1, sizeof(bytes.at), file);
	fclose(file);
	assert_true(bytes.size < sizeof(bytes.at));
	return bytes;
}

static void write_bytes(const char *path, const Bytes *bytes)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_int_equal(fwrite(bytes->at, 1, bytes->size, file), bytes->size);
	assert_int_equal(fclose(file), 0);
}

/*
 * One byte of _start is another: main is the function that it passes or none, never a place inside
 * of one.
 */
static void check_spoilt_start(const Program *program)
{
	static const char *const functions[] = {"before", "main", "after"};
	uint64_t entry = entry_of(program->path);
	Bytes whole = read_bytes(program->path), spoilt;
	Named symbols[ARRAY_LEN(functions)];
	size_t mains = 0, others = 0;

	for (size_t k = 0; k < ARRAY_LEN(functions); k++)
		symbols[k] = ask_nm(program, functions[k]);

	/* .text begins at the same offset as its address in the file of a PIE. */
	for (size_t i = 0; i < 34; i++) {
		spoilt = whole;
		spoilt.at[entry + i] ^= 1 + random_below(255);
		write_bytes(program->path, &spoilt);
		assert_string_equal(name_one(program->path, entry).name, "_start");
		for (size_t k = 0; k < ARRAY_LEN(functions); k++) {
			Named named = name_one(program->path, symbols[k].start);

			assert_int_equal(named.start, symbols[k].start);
			assert_int_equal(named.size, symbols[k].size);
			mains += !strcmp(named.name, "main");
			others += strcmp(named.name, "main") != 0;
		}
	}
	print_message("%zu are main, %zu are not\n", mains, others);
	assert_true(mains > 10 && mains < 34);
	write_bytes(program->path, &whole);
}

/* Any bytes of the headers and of _start; the sanitizers watch. */
static void check_spoilt_headers(const Program *program)
{
	uint64_t entry = entry_of(program->path);
	Bytes whole = read_bytes(program->path), spoilt;
	size_t named = 0;

	for (int round = 0; round < 600; round++) {
		uint64_t address = entry;
		Naming naming = {.addresses = &address, .count = 1};
		_cleanup_close_ int fd = -1;
		ElfIdentity identity;

		spoilt = whole;
		for (int i = 0; i < 3; i++)
			spoilt.at[random_below(3) ? 16 + random_below(64 + 13 * 56 - 16)
						  : entry + random_below(40)] =
				random_below(2) ? 0xff : random_below(256);
		if (random_below(4) == 0)
			spoilt.size = MIN(spoilt.size, entry + random_below(70));
		write_bytes(program->path, &spoilt);
		fd = open(program->path, O_RDONLY | O_CLOEXEC);
		if (elf_identify(fd, &identity))
			continue;
		elf_identity_free(&identity);
		name_objects(&naming, program->path, NULL);
		named += naming.answers[0] != NULL;
		free_naming(&naming);
	}
	print_message("%zu of 600 named\n", named);
	assert_true(named > 10 && named < 600);
}

static void test_spoilt_files(void **state)
{
	Program program;

	(void)state;
	if (!has_program("gcc"))
		skip_because("no gcc");
	program = build("gcc -O2 -pie -fPIE");
	check_spoilt_start(&program);
	check_spoilt_headers(&program);
	clear(&program);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_glibc),	       cmocka_unit_test(test_other_linkers),
		cmocka_unit_test(test_musl),	       cmocka_unit_test(test_own_symbol),
		cmocka_unit_test(test_shared_library), cmocka_unit_test(test_no_unwind_table),
		cmocka_unit_test(test_loader),	       cmocka_unit_test(test_spoilt_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
