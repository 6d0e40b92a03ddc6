/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Unwind tables made of .debug_frame in separate debug files, by real compilers and objcopy, in a
 * root folder of our own: each function has the very rules that it has in the file before it was
 * split, or, with a file of another build, none.
 */
#include "debug_files.h"
#include "table_service.h"
#include "test_tools.h"
#include "unwind_oracle.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>

/* A return that is never reached makes the function unintelligible without its tables. */
#define UNCLEAR                                                                                    \
	"#define UNCLEAR __asm__ volatile(\"test %esp, %esp\\njnz 1f\\npush %rax\\nret\\n1: "      \
	".zero 99, 0x90\")\n"

#define PROGRAM                                                                                    \
	"#include <stdio.h>\n" UNCLEAR "__attribute__((noipa)) int inner(int x) {\n"               \
	"	UNCLEAR; volatile char room[200];\n"                                                     \
	"	room[x & 127] = x;\n"                                                                    \
	"	return printf(\"%d\", room[3]) + x; }\n"                                                 \
	"__attribute__((noipa)) int outer(int x) { UNCLEAR; return inner(x + 1) * 3; }\n"          \
	"int main(int argc, char **argv) { UNCLEAR; (void)argv; return outer(argc) + 1; }\n"
#define DEBUG_FOLDER "/usr/lib/debug"
#define FOLDER	     "/srv/app"
#define OBJECT	     FOLDER "/prog"
#define NO_BUILD_ID  "-Wl,--build-id=none"
#define WAIT_NS	     (60 * NSEC_PER_SEC)

/* objcopy's way to take away what the linker has put in for the C library's own files. */
#define NO_EH_FRAME "--remove-section=.eh_frame --remove-section=.eh_frame_hdr"

typedef struct Fixture {
	char *root, *build;
	MappedFile file;
	bool has_rules; /* what the functions of the program have in the table, else gaps */
	int error, debug;
	TableServiceCounts counts;
} Fixture;

static int set_up(void **state)
{
	Fixture *fixture = xcalloc(1, sizeof(*fixture));

	fixture->root = make_folder();
	fixture->build = make_folder();
	write_file(fixture->build, "a.c", PROGRAM);
	run("mkdir -p '%s" FOLDER "/.debug' '%s" DEBUG_FOLDER FOLDER "'", fixture->root,
	    fixture->root);
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	Fixture *fixture = *state;

	remove_folder(fixture->root);
	remove_folder(fixture->build);
	free(fixture);
	return 0;
}

/* whole; prog.debug; and, in the root, what is left of it: options of the linker and of objcopy. */
static void make_program(const Fixture *fixture, const char *linking, const char *stripping)
{
	run("cd '%s' && gcc -O2 -g -fomit-frame-pointer -fno-asynchronous-unwind-tables "
	    "-fno-unwind-tables %s a.c -o whole && objcopy --only-keep-debug whole prog.debug && "
	    "objcopy --strip-all %s whole prog && objcopy --add-gnu-debuglink=prog.debug prog && "
	    "cp prog '%s" OBJECT "'",
	    fixture->build, linking, stripping, fixture->root);
}

static void put_debug_file(const Fixture *fixture, const char *path)
{
	run("f='%s%s' && mkdir -p \"${f%%/*}\" && cp '%s/prog.debug' \"$f\"", fixture->root, path,
	    fixture->build);
}

static char *build_id_path(const Fixture *fixture)
{
	_cleanup_free_ char *id = output_of(
		"readelf -n '%s/prog' | sed -n 's/.*Build ID: //p' | tr -d '\\n'", fixture->build);

	return xasprintf(DEBUG_FOLDER "/.build-id/%.2s/%s.debug", id, id + 2);
}

/* Like "whole", with another build ID. */
static void make_other_debug_file(const Fixture *fixture, const char *path)
{
	run("cd '%s' && gcc -O2 -g -fomit-frame-pointer -fno-asynchronous-unwind-tables "
	    "-Wl,--build-id=0x%040d a.c -o other && objcopy --only-keep-debug other '%s%s'",
	    fixture->build, 7, fixture->root, path);
}

/* An OpenBeside. */
static int open_below(void *user, const MappedFile *file, const char *path)
{
	const Fixture *fixture = user;
	_cleanup_free_ char *inside = xasprintf("%s%s", fixture->root, path);
	int fd = open(inside, O_RDONLY | O_CLOEXEC);

	assert_ptr_equal(file, &fixture->file);
	return fd < 0 ? -errno : fd;
}

/* A TableFindDebug. */
static int find_debug(void *user, uint32_t id, const char *debuglink, unsigned candidate)
{
	Fixture *fixture = user;
	DebugFiles files = {.file = &fixture->file, .open = open_below, .open_user = fixture};
	int fd;

	assert_int_equal(id, 1);
	fd = debuglink ? debug_files_by_link(&files, debuglink, candidate)
		       : debug_files_by_build_id(&files);
	debug_files_free(&files);
	return fd;
}

/* How many bytes of the program's functions have another rule than in the truth, and of how many.
 */
static size_t count_differences(const Fixture *fixture, const UnwindTable *table,
				const UnwindTable *truth, uint64_t base_svma, size_t *ret_bytes)
{
	_cleanup_free_ char *text =
		output_of(NM " -S '%s/whole' | grep -E ' (inner|outer|main)$'", fixture->build);
	uint64_t start, size;
	size_t different = 0, functions = 0;
	char *rest = text, *line;

	*ret_bytes = 0;
	while ((line = strsep(&rest, "\n")) && *line) {
		assert_int_equal(sscanf(line, "%" SCNx64 " %" SCNx64, &start, &size), 2);
		functions++;
		for (uint64_t pc = start - base_svma; pc < start - base_svma + size; pc++) {
			const struct unwind_rule *right = rule_at(truth, pc);

			assert_int_equal(right->cfa, CFA_REG);
			different += memcmp(rule_at(table, pc), right, sizeof(*right)) != 0;
			++*ret_bytes;
		}
	}
	assert_int_equal(functions, 3);
	return different;
}

/* A TableReady. */
static void ready(void *user, uint32_t id, const UnwindTable *table, int error, int debug)
{
	Fixture *fixture = user;
	_cleanup_free_ char *path = xasprintf("%s/whole", fixture->build);
	Built whole = build_table(path, NULL);
	size_t different, bytes;

	assert_int_equal(id, 1);
	fixture->error = error;
	fixture->debug = debug;
	fixture->has_rules = false;
	if (table) {
		assert_true(unwind_table_valid(table));
		different = count_differences(fixture, table, &whole.table,
					      whole.identity.base_svma, &bytes);
		/* One half of them would be neither. */
		assert_true(different == 0 || different == bytes);
		fixture->has_rules = different == 0;
	}
	free_built(&whole);
}

/* Asks for the table of the program in the root. */
static void ask(Fixture *fixture, const Invoker *invoker)
{
	_cleanup_free_ char *path = xasprintf("%s" OBJECT, fixture->root);
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	TableServiceOptions options = {
		.find_debug = find_debug, .find_user = fixture, .invoker = invoker};
	TableService *service;
	ElfIdentity identity;

	assert_int_equal(elf_identify(fd, &identity), 0);
	fixture->file = (MappedFile){.path = OBJECT, .build_id_len = identity.build_id_len};
	memcpy(fixture->file.build_id, identity.build_id, sizeof(identity.build_id));
	assert_int_equal(table_service_new(&options, &service), 0);
	table_service_request(service, &(TableRequest){.id = 1,
						       .fd = fd,
						       .base_svma = identity.base_svma,
						       .build_id = identity.build_id,
						       .build_id_len = identity.build_id_len});
	assert_int_equal(table_service_wait(service, now_ns() + WAIT_NS, ready, fixture), 0);
	fixture->counts = table_service_counts(service);
	table_service_free(service);
	elf_identity_free(&identity);
}

static void expect(Fixture *fixture, int debug)
{
	ask(fixture, NULL);
	assert_int_equal(fixture->debug, debug);
	assert_int_equal(fixture->has_rules, debug == TABLE_DEBUG_USED);
}

/* Programs with and without what the C library's own files have. Both have a table: start-up
 * code needs no call frame information. */
static const char *const strip_options[] = {NO_EH_FRAME, ""};

static void test_by_link(void **state)
{
	static const char *const places[] = {FOLDER "/prog.debug", FOLDER "/.debug/prog.debug",
					     DEBUG_FOLDER FOLDER "/prog.debug"};
	static const char *const linkings[] = {NO_BUILD_ID, "", NO_BUILD_ID " -gz -static"};
	Fixture *fixture = *state;

	for (size_t i = 0; i < ARRAY_LEN(linkings) * ARRAY_LEN(strip_options); i++) {
		make_program(fixture, linkings[i / 2], strip_options[i % 2]);
		/* A static program is mostly the C library, which has its .eh_frame. */
		if (strstr(linkings[i / 2], "-static") && !*strip_options[i % 2])
			continue;
		for (size_t k = 0; k < ARRAY_LEN(places); k++) {
			expect(fixture, 0);
			assert_int_equal(fixture->error, 0);
			put_debug_file(fixture, places[k]);
			expect(fixture, TABLE_DEBUG_USED);
			assert_int_equal(fixture->error, 0);
			run("rm '%s%s'", fixture->root, places[k]);
		}
	}
}

/* It has the same functions at the same addresses, but not the checksum in the link. */
static void test_wrong_checksum(void **state)
{
	Fixture *fixture = *state;

	for (size_t i = 0; i < ARRAY_LEN(strip_options); i++) {
		make_program(fixture, NO_BUILD_ID, strip_options[i]);
		put_debug_file(fixture, OBJECT ".debug");
		expect(fixture, TABLE_DEBUG_USED);
		run("printf x >> '%s" OBJECT ".debug'", fixture->root);
		expect(fixture, -ESTALE);
		assert_int_equal(fixture->error, 0);
		run("cp '%s/a.c' '%s" OBJECT ".debug'", fixture->build, fixture->root);
		expect(fixture, 0); /* not even an ELF file */
		run("rm '%s" OBJECT ".debug'", fixture->root);
	}
}

static void test_by_build_id(void **state)
{
	Fixture *fixture = *state;
	_cleanup_free_ char *path = NULL;

	make_program(fixture, "", "");
	path = build_id_path(fixture);
	put_debug_file(fixture, path);
	expect(fixture, TABLE_DEBUG_USED);
	/* What lies there is another's, and what the link leads to, too; then the right one. */
	make_other_debug_file(fixture, path);
	expect(fixture, -ESTALE);
	make_other_debug_file(fixture, OBJECT ".debug");
	expect(fixture, -ESTALE);
	put_debug_file(fixture, OBJECT ".debug");
	expect(fixture, TABLE_DEBUG_USED);
}

/* One that fits and has nothing to say of how to unwind. */
static void test_nothing_to_add(void **state)
{
	Fixture *fixture = *state;

	for (size_t i = 0; i < ARRAY_LEN(strip_options); i++) {
		make_program(fixture, NO_BUILD_ID, strip_options[i]);
		run("cd '%s' && objcopy --remove-section=.debug_frame prog.debug && objcopy "
		    "--remove-section=.gnu_debuglink prog && objcopy "
		    "--add-gnu-debuglink=prog.debug prog && cp prog '%s" OBJECT "'",
		    fixture->build, fixture->root);
		put_debug_file(fixture, OBJECT ".debug");
		expect(fixture, 0);
		assert_int_equal(fixture->error, 0);
	}
}

/*
 * What is kept is of both files. An object with gaps is kept without its debug file, too, which is
 * looked for again.
 */
static void test_cache(void **state)
{
	Fixture *fixture = *state;
	_cleanup_free_ char *cache = xasprintf("%s/cache", fixture->root);
	Invoker invoker = {};

	setenv("XDG_CACHE_HOME", cache, 1);
	make_program(fixture, "", "");
	usleep(2200000);
	for (int i = 0; i < 2; i++) {
		ask(fixture, &invoker);
		assert_int_equal(fixture->counts.cached, i);
		assert_int_equal(fixture->counts.built, !i);
		assert_false(fixture->has_rules);
	}
	put_debug_file(fixture, OBJECT ".debug");
	usleep(2200000);
	for (int i = 0; i < 2; i++) {
		ask(fixture, &invoker);
		assert_int_equal(fixture->counts.cached, i);
		assert_int_equal(fixture->debug, TABLE_DEBUG_USED);
		assert_true(fixture->has_rules);
	}
	/* The file is of another build by now. */
	make_other_debug_file(fixture, OBJECT ".debug");
	ask(fixture, &invoker);
	assert_int_equal(fixture->counts.cached, 0);
	assert_int_equal(fixture->debug, -ESTALE);
	assert_false(fixture->has_rules);
}

#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FIXTURE(test_by_link),	WITH_FIXTURE(test_wrong_checksum),
		WITH_FIXTURE(test_by_build_id), WITH_FIXTURE(test_nothing_to_add),
		WITH_FIXTURE(test_cache),
	};

	if (!has_program("gcc") || !has_program("objcopy")) {
		print_message("no gcc or no objcopy\n");
		return 1;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
