/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Separate debug files, made by objcopy, xz and dwz, in a root folder of our own. */
#include "debug_files.h"
#include "object_names_fixture.h"
#include "test_tools.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>

#define PROGRAM                                                                                    \
	"#include <stdio.h>\n"                                                                     \
	"LOCAL __attribute__((noinline)) int secret_name(int x) { return printf(\"%d\", x); }\n"   \
	"int main(int argc, char **argv) { (void)argv; return secret_name(argc) + 1; }\n"
#define DEBUG_FOLDER "/usr/lib/debug"
#define OBJECT	     "/srv/app/prog"

typedef struct Fixture {
	char *root;
	char *build;	  /* beside the root */
	uint64_t address; /* of secret_name */
	MappedFile file;
	DebugFiles debug;
	char *opened; /* the last that was found below the root */
} Fixture;

/* Paths are those of a container: below the root. */
static int open_below(void *user, const MappedFile *file, const char *path)
{
	Fixture *fixture = user;
	_cleanup_free_ char *inside = xasprintf("%s%s", fixture->root, path);
	int fd = open(inside, O_RDONLY | O_CLOEXEC);

	assert_ptr_equal(file, &fixture->file);
	if (fd < 0)
		return -errno;
	free(fixture->opened);
	fixture->opened = xstrdup(path);
	return fd;
}

static int find(void *user, const Companion *companion)
{
	return debug_files_companion(&((Fixture *)user)->debug, companion);
}

static int set_up(void **state)
{
	Fixture *fixture = xcalloc(1, sizeof(*fixture));

	fixture->root = make_folder();
	fixture->build = make_folder();
	write_file(fixture->build, "a.c", PROGRAM);
	run("mkdir -p '%s/srv/app/.debug' '%s" DEBUG_FOLDER "/srv/app'", fixture->root,
	    fixture->root);
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	Fixture *fixture = *state;

	remove_folder(fixture->root);
	remove_folder(fixture->build);
	free(fixture->opened);
	free(fixture);
	return 0;
}

/* Compiles the program, and makes prog.debug of it; options for compiler and linker. */
static void make_program(Fixture *fixture, const char *options)
{
	_cleanup_free_ char *text = NULL;

	run("cd '%s' && gcc -O2 -g -DLOCAL=static %s a.c -o whole 2>&1 && "
	    "objcopy --only-keep-debug whole prog.debug && objcopy --strip-all whole prog && "
	    "objcopy --add-gnu-debuglink=prog.debug prog && cp prog '%s" OBJECT "'",
	    fixture->build, options, fixture->root);
	text = output_of(NM " '%s/whole' | grep ' secret_name$'", fixture->build);
	assert_int_equal(sscanf(text, "%" SCNx64, &fixture->address), 1);
}

/* The name of the address, as it is known with these files. */
static char *ask(Fixture *fixture)
{
	_cleanup_free_ char *path = xasprintf("%s" OBJECT, fixture->root), *debug = NULL;
	Naming naming = {.addresses = &fixture->address, .count = 1, .find = find, .user = fixture};
	_cleanup_close_ int fd = open(path, O_RDONLY);
	ElfIdentity identity;
	char *answer;
	int debug_fd;

	assert_int_equal(elf_identify(fd, &identity), 0);
	fixture->file = (MappedFile){.path = OBJECT, .build_id_len = identity.build_id_len};
	memcpy(fixture->file.build_id, identity.build_id, sizeof(identity.build_id));
	elf_identity_free(&identity);
	fixture->debug = (DebugFiles){.file = &fixture->file,
				      .open = open_below,
				      .open_named = open_below,
				      .open_user = fixture};
	free(fixture->opened);
	fixture->opened = NULL;
	debug_fd = debug_files_by_build_id(&fixture->debug);
	if (debug_fd >= 0)
		debug = xasprintf("%s%s", fixture->root, fixture->opened);
	closep(&debug_fd);
	assert_int_equal(name_objects(&naming, path, debug), 0);
	assert_non_null(naming.answers[0]); /* at least by the unwind table */
	answer = xasprintf("%s:%u", frame_of(naming.answers[0], 0).name,
			   frame_of(naming.answers[0], 0).line);
	free_naming(&naming);
	debug_files_free(&fixture->debug);
	return answer;
}

static void expect_answer(Fixture *fixture, const char *wanted)
{
	_cleanup_free_ char *answer = ask(fixture);

	assert_string_equal(answer, wanted);
}

static void expect(Fixture *fixture, bool found)
{
	_cleanup_free_ char *nameless = xasprintf("fun_%" PRIx64 ":0", fixture->address);

	expect_answer(fixture, found ? "secret_name:2" : nameless);
}

/* The truth, by addr2line, of the file that has it all. */
static void test_truth(void **state)
{
	Fixture *fixture = *state;
	_cleanup_free_ char *text = NULL;

	make_program(fixture, "");
	text = output_of("cd '%s' && addr2line -f -s -e whole %#" PRIx64, fixture->build,
			 fixture->address);
	assert_string_equal(text, "secret_name\na.c:2\n");
	expect(fixture, false);
}

static void test_debuglink(void **state)
{
	static const char *const places[] = {"/srv/app/prog.debug", "/srv/app/.debug/prog.debug",
					     DEBUG_FOLDER "/srv/app/prog.debug"};
	static const char *const options[] = {"", "-Wl,--build-id=none", "-gz -gdwarf-4"};
	Fixture *fixture = *state;

	for (size_t i = 0; i < ARRAY_LEN(options); i++) {
		make_program(fixture, options[i]);
		for (size_t k = 0; k < ARRAY_LEN(places); k++) {
			expect(fixture, false);
			run("cp '%s/prog.debug' '%s%s'", fixture->build, fixture->root, places[k]);
			expect(fixture, true);
			assert_string_equal(fixture->opened, places[k]);
			run("rm '%s%s'", fixture->root, places[k]);
		}
	}
}

/* A link to what is no debug file of this program. */
static void test_wrong_debug_file(void **state)
{
	Fixture *fixture = *state;
	const char *root = fixture->root, *build = fixture->build;

	/* Without a build id the checksum decides. */
	make_program(fixture, "-Wl,--build-id=none");
	run("cp '%s/prog.debug' '%s" OBJECT ".debug'", build, root);
	expect(fixture, true);
	run("printf x >> '%s" OBJECT ".debug'", root);
	expect(fixture, false);
	/* Else that: of another program with the same functions at the same places. */
	make_program(fixture, "");
	run("cp '%s/prog.debug' '%s" OBJECT ".debug'", build, root);
	expect(fixture, true);
	run("cd '%s' && gcc -O2 -g -DLOCAL=static -Wl,--build-id=0x%040d a.c -o other && "
	    "objcopy --only-keep-debug other '%s" OBJECT ".debug'",
	    build, 7, root);
	expect(fixture, false);
	/* Not ELF; a folder; nothing at all; a part. */
	run("echo text > '%s" OBJECT ".debug'", root);
	expect(fixture, false);
	run("cd '%s/srv/app' && rm prog.debug && mkdir prog.debug", root);
	expect(fixture, false);
	run("cd '%s/srv/app' && rmdir prog.debug && touch prog.debug", root);
	expect(fixture, false);
	run("head -c 1000 '%s/prog.debug' > '%s" OBJECT ".debug'", build, root);
	expect(fixture, false);
}

/* A file of another build, at a place where the right one is looked for first. */
static void test_stale_debug_file(void **state)
{
	static const char *const places[] = {"/srv/app/prog.debug", "/srv/app/.debug/prog.debug",
					     DEBUG_FOLDER "/srv/app/prog.debug"};
	static const char *const options[] = {"", "-Wl,--build-id=none"};
	Fixture *fixture = *state;

	for (size_t i = 0; i < ARRAY_LEN(options); i++) {
		make_program(fixture, options[i]);
		run("cd '%s' && gcc -O2 -g -DLOCAL=static -Wl,--build-id=0x%040d a.c -o other && "
		    "objcopy --only-keep-debug other other.debug",
		    fixture->build, 7);
		for (size_t k = 0; k + 1 < ARRAY_LEN(places); k++) {
			run("cp '%s/other.debug' '%s%s'", fixture->build, fixture->root, places[k]);
			expect(fixture, false);
			run("cp '%s/prog.debug' '%s%s'", fixture->build, fixture->root,
			    places[k + 1]);
			expect(fixture, true);
			assert_string_equal(fixture->opened, places[k + 1]);
			run("rm '%s%s'", fixture->root, places[k + 1]);
		}
		run("rm '%s%s' '%s%s'", fixture->root, places[0], fixture->root, places[1]);
	}
}

/* Split debug information of the program; what the symbol table has is not enough. */
static void make_split(Fixture *fixture)
{
	_cleanup_free_ char *text = NULL;

	run("cd '%s' && mkdir -p '%s/'\"$PWD\"/sub sub && gcc -O2 -g -gdwarf-4 -gsplit-dwarf "
	    "-DLOCAL=static -c a.c -o sub/a.o 2>&1 && gcc sub/a.o -o whole && "
	    "objcopy --strip-symbol=secret_name whole prog && cp prog '%s" OBJECT "'",
	    fixture->build, fixture->root, fixture->root);
	text = output_of("nm '%s/whole' | grep ' secret_name$'", fixture->build);
	assert_int_equal(sscanf(text, "%" SCNx64, &fixture->address), 1);
}

static void expect_split(Fixture *fixture, bool found)
{
	_cleanup_free_ char *lines_only = xasprintf("fun_%" PRIx64 ":2", fixture->address);

	expect_answer(fixture, found ? "secret_name:2" : lines_only);
}

/* The same of .dwo and .dwp files. */
static void test_stale_split_file(void **state)
{
	Fixture *fixture = *state;
	const char *root = fixture->root, *build = fixture->build;

	make_split(fixture);
	run("cd '%s' && gcc -O1 -g -gdwarf-4 -gsplit-dwarf -DLOCAL=static -c a.c -o other.o 2>&1",
	    build);
	expect_split(fixture, false);
	/* Where the compiler wrote it, there is one of another build. */
	run("cp '%s/other.dwo' '%s%s/sub/a.dwo'", build, root, build);
	expect_split(fixture, false);
	run("mkdir '%s/srv/app/sub' && cp '%s/sub/a.dwo' '%s/srv/app/sub/a.dwo'", root, build,
	    root);
	expect_split(fixture, true);
	/* Then also beside the program. */
	run("cp '%s/other.dwo' '%s/srv/app/sub/a.dwo'", build, root);
	expect_split(fixture, false);
	run("cp '%s/sub/a.dwo' '%s/srv/app/a.dwo'", build, root);
	expect_split(fixture, true);
	if (!has_program("dwp"))
		skip_because("no dwp");
	run("cd '%s' && dwp other.dwo -o other.dwp && dwp sub/a.dwo -o a.dwp && cp other.dwp "
	    "'%s" OBJECT ".dwp'",
	    build, root);
	expect_split(fixture, true); /* by the .dwo file, for the package does not have it */
	run("rm '%s/srv/app/a.dwo'", root);
	expect_split(fixture, false);
	assert_null(strstr(fixture->opened, ".dwp"));
	run("cp '%s/a.dwp' '%s" DEBUG_FOLDER OBJECT ".dwp'", build, root);
	expect_split(fixture, true);
	assert_string_equal(fixture->opened, DEBUG_FOLDER OBJECT ".dwp");
}

/* A link that leads elsewhere is not followed. */
static void test_hostile_link(void **state)
{
	static const char *const names[] = {"../app/prog.debug", "/srv/app/prog.debug", "..", "."};
	Fixture *fixture = *state;

	make_program(fixture, "");
	run("cp '%s/prog.debug' '%s/srv/app'", fixture->build, fixture->root);
	expect(fixture, true);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		run("cd '%s' && printf '%%s\\0\\0\\0\\0\\0\\0\\0\\0' '%s' > link && "
		    "objcopy --update-section .gnu_debuglink=link prog '%s" OBJECT "'",
		    fixture->build, names[i], fixture->root);
		expect(fixture, false);
	}
}

static void test_by_build_id(void **state)
{
	Fixture *fixture = *state;
	const char *root = fixture->root, *build = fixture->build;

	make_program(fixture, "");
	run("cd '%s' && objcopy --remove-section=.gnu_debuglink prog '%s" OBJECT "'", build, root);
	expect(fixture, false);
	run("id=$(readelf -n '%s/prog' | sed -n 's/.*Build ID: //p') && rest=${id#??} && "
	    "d='%s" DEBUG_FOLDER "/.build-id'/${id%%$rest} && mkdir -p \"$d\" && "
	    "cp '%s/prog.debug' \"$d/$rest.debug\"",
	    build, root, build);
	expect(fixture, true);
	/* There, but of another program. */
	run("cd '%s' && gcc -O2 -g -DLOCAL=static -Wl,--build-id=0x%040d a.c -o other && "
	    "objcopy --only-keep-debug other '%s'/" DEBUG_FOLDER "/.build-id/*/*.debug",
	    build, 7, root);
	expect(fixture, false);
}

/* .gnu_debugdata with zeros behind it. */
static void add_padded(const Fixture *fixture, const char *size)
{
	run("cd '%s' && (cat mini && head -c %s /dev/zero) | xz -0 > padded && objcopy "
	    "--add-section .gnu_debugdata=padded prog '%s" OBJECT "'",
	    fixture->build, size, fixture->root);
}

/* .gnu_debugdata, as Fedora's packages have it: names of functions, no lines. */
static void test_mini_debug(void **state)
{
	Fixture *fixture = *state;
	const char *root = fixture->root, *build = fixture->build;

	if (!has_program("xz"))
		skip_because("no xz");
	make_program(fixture, "");
	run("cd '%s' && objcopy -S --remove-section=.comment --keep-symbol=secret_name "
	    "--only-keep-debug whole mini && xz -k mini && objcopy "
	    "--add-section .gnu_debugdata=mini.xz prog '%s" OBJECT "'",
	    build, root);
	expect_answer(fixture, "secret_name:0");
	/* Cut short, or no xz at all. */
	run("cd '%s' && head -c $(($(stat -c %%s mini.xz) / 2)) mini.xz > half && objcopy "
	    "--add-section .gnu_debugdata=half prog '%s" OBJECT "'",
	    build, root);
	expect(fixture, false);
	run("cd '%s' && objcopy --add-section .gnu_debugdata=a.c prog '%s" OBJECT "'", build, root);
	expect(fixture, false);
	/* A bomb: what follows is not looked at, but more than is taken. */
	add_padded(fixture, "1M");
	expect_answer(fixture, "secret_name:0");
	add_padded(fixture, "320M");
	expect(fixture, false);
}

/* What two programs have in common is in a third file. */
static void test_dwz(void **state)
{
	Fixture *fixture = *state;
	const char *root = fixture->root, *build = fixture->build;
	_cleanup_free_ char *answer = NULL;

	if (!has_program("dwz"))
		skip_because("no dwz");
	/* Large enough for it to be worth its while. */
	make_program(fixture,
		     "-x c++ -gdwarf-4 -include map -include string -DLOCAL='extern \"C\"'");
	run("cd '%s' && cp whole one && cp whole two && "
	    "dwz -m common -M /srv/app/common.dwz one two && readelf -S one | grep -q altlink",
	    build);
	run("cp '%s/one' '%s" OBJECT "' && cp '%s/common' '%s/srv/app/common.dwz'", build, root,
	    build, root);
	answer = ask(fixture);
	assert_string_equal(answer, "secret_name:2");
	free(answer);
	assert_string_equal(fixture->opened, "/srv/app/common.dwz");
	/* Without it the symbol table remains, and no wrong name comes from elsewhere. */
	run("rm '%s/srv/app/common.dwz'", root);
	answer = ask(fixture);
	assert_non_null(strstr(answer, "secret_name:"));
}

#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FIXTURE(test_truth),
		WITH_FIXTURE(test_debuglink),
		WITH_FIXTURE(test_wrong_debug_file),
		WITH_FIXTURE(test_stale_debug_file),
		WITH_FIXTURE(test_stale_split_file),
		WITH_FIXTURE(test_hostile_link),
		WITH_FIXTURE(test_by_build_id),
		WITH_FIXTURE(test_mini_debug),
		WITH_FIXTURE(test_dwz),
	};

	if (!has_program("gcc") || !has_program("objcopy")) {
		print_message("no gcc or no objcopy\n");
		return 1;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
