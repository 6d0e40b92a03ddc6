/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From a file to its names by all that there is: the sandboxed child, separate debug files, a
 * debuginfod server, the cache. The program is stripped; its names are in its debug file.
 */
#include "file_server.h"
#include "make_record.h"
#include "symbol_files.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>

#define PROGRAM                                                                                    \
	"#include <stdio.h>\n"                                                                     \
	"static __attribute__((noinline)) int secret_name(int x) { return printf(\"%d\", x); }\n"  \
	"int main(int argc, char **argv) { (void)argv; return secret_name(argc) + 1; }\n"

typedef struct Fixture {
	char *folder; /* of the server, the caches and the program */
	FileServer server;
	AddressSpaces *spaces;
	SymbolTarget target;
	char *nameless, *name; /* as it would be, and as it was found */
	SymbolsSummary summary;
	bool broken; /* there is a note */
} Fixture;

static int keep(void *user, const struct record *record)
{
	Fixture *fixture = user;
	const struct rec_symbol *symbol = (const struct rec_symbol *)record;

	if (record->kind == REC_NOTE) {
		fixture->broken = true;
		return 0;
	}
	free(fixture->name);
	fixture->name = xstrdup(symbol->text + sizeof(uint32_t));
	return 0;
}

static int open_file(void *user, const MappedFile *file)
{
	int fd = open(file->path, O_RDONLY | O_CLOEXEC);

	(void)user;
	return fd < 0 ? -errno : fd;
}

/* Not the machine's /usr/lib/debug, but one of our own. */
static int open_beside(void *user, const MappedFile *file, const char *path)
{
	const Fixture *fixture = user;
	_cleanup_free_ char *inside = xasprintf("%s/root%s", fixture->folder, path);
	int fd = open(inside, O_RDONLY | O_CLOEXEC);

	(void)file;
	return fd < 0 ? -errno : fd;
}

static int set_up(void **state)
{
	Fixture *fixture = xcalloc(1, sizeof(*fixture));
	_cleanup_free_ char *path = NULL, *text = NULL, *cache = NULL;
	struct rec_file *file;
	ElfIdentity identity;
	struct stat st;
	int fd;

	fixture->folder = make_folder();
	write_file(fixture->folder, "a.c", PROGRAM);
	run("cd '%s' && mkdir cache root && gcc -O2 -g a.c -o whole && strip whole -o prog && "
	    "id=$(readelf -n prog | sed -n 's/.*Build ID: //p') && mkdir -p buildid/$id && "
	    "objcopy --only-keep-debug whole buildid/$id/debuginfo",
	    fixture->folder);
	text = output_of(NM " '%s/whole' | grep secret_name", fixture->folder);
	fixture->target.file = 1;
	assert_int_equal(sscanf(text, "%" SCNx64, &fixture->target.svma), 1);
	fixture->nameless = xasprintf("fun_%" PRIx64, fixture->target.svma);
	path = xasprintf("%s/prog", fixture->folder);
	fd = open(path, O_RDONLY);
	assert_int_equal(elf_identify(fd, &identity), 0);
	assert_int_equal(fstat(fd, &st), 0);
	close(fd);
	file = (struct rec_file *)make_file(1, 0, path, identity.base_svma);
	file->build_id_len = identity.build_id_len;
	memcpy(file->build_id, identity.build_id, sizeof(file->build_id));
	file->size = st.st_size;
	file->mtime_ns = st.st_mtim.tv_sec * NSEC_PER_SEC + st.st_mtim.tv_nsec;
	elf_identity_free(&identity);
	fixture->spaces = address_spaces_new();
	address_spaces_add(fixture->spaces, &file->h);
	free(file);
	start_server(&fixture->server, fixture->folder);
	cache = xasprintf("%s/cache", fixture->folder);
	setenv("XDG_CACHE_HOME", cache, 1);
	setenv("DEBUGINFOD_CACHE_PATH", cache, 1);
	setenv("DEBUGINFOD_URLS", fixture->server.url, 1);
	setenv("no_proxy", "*", 1);
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	Fixture *fixture = *state;

	stop_server(&fixture->server);
	unsetenv("DEBUGINFOD_URLS");
	address_spaces_free(fixture->spaces);
	remove_folder(fixture->folder);
	free(fixture->nameless);
	free(fixture->name);
	free(fixture);
	return 0;
}

static void expect(Fixture *fixture, bool no_debuginfod, const char *name, unsigned cached)
{
	Invoker invoker = {};
	SymbolsSink sink = {.open = open_file,
			    .open_beside = open_beside,
			    .open_user = fixture,
			    .emit = keep,
			    .user = fixture,
			    .invoker = &invoker,
			    .no_debuginfod = no_debuginfod};

	fixture->summary = (SymbolsSummary){};
	assert_int_equal(symbol_files_resolve(fixture->spaces, &fixture->target, 1, &sink,
					      &fixture->summary),
			 0);
	assert_non_null(fixture->name);
	assert_string_equal(fixture->name, name);
	assert_int_equal(fixture->summary.files_cached, cached);
	assert_false(fixture->broken);
}

/* Whether the server was asked is for its own log to say. */
static void expect_requests(const Fixture *fixture, int wanted)
{
	_cleanup_free_ char *count =
		output_of("grep -c 'GET /buildid' '%s/log' || true", fixture->folder);

	assert_int_equal(atoi(count), wanted);
}

static void test_server_and_cache(void **state)
{
	Fixture *fixture = *state;

	NEEDS_LIBRARY();
	/* Not asked: not by the option, not without the variable. */
	expect(fixture, true, fixture->nameless, 0);
	expect(fixture, true, fixture->nameless, 1);
	unsetenv("DEBUGINFOD_URLS");
	expect(fixture, false, fixture->nameless, 1);
	expect_requests(fixture, 0);
	/* What is cached without the server does not hide what it has. */
	setenv("DEBUGINFOD_URLS", fixture->server.url, 1);
	expect(fixture, false, "secret_name", 0);
	expect_requests(fixture, 1);
	/* Now it is cached, also for runs that do not ask debuginfod. */
	expect(fixture, false, "secret_name", 1);
	expect(fixture, true, "secret_name", 1);
	expect_requests(fixture, 1);
}

static void test_debug_file_comes_and_goes(void **state)
{
	Fixture *fixture = *state;
	const char *folder = fixture->folder;

	expect(fixture, true, fixture->nameless, 0);
	expect(fixture, true, fixture->nameless, 1);
	run("cd '%s' && id=$(ls buildid) && rest=${id#??} && "
	    "d=root/usr/lib/debug/.build-id/${id%%$rest} && mkdir -p $d && "
	    "cp buildid/$id/debuginfo $d/$rest.debug",
	    folder);
	expect(fixture, true, "secret_name", 0);
	expect(fixture, true, "secret_name", 1);
	run("rm -r '%s/root/usr'", folder);
	expect(fixture, true, fixture->nameless, 0);
}

#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FIXTURE(test_server_and_cache),
		WITH_FIXTURE(test_debug_file_comes_and_goes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
