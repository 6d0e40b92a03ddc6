/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What was stored comes back, or nothing does: never a wrong name. */
#include "symbol_cache.h"
#include "symbol_record.h"
#include "test_tools.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <time.h>

#define NAMES 20

typedef struct Fixture {
	char *folder; /* home of caches and of what stands beside the object */
	char *cache_file;
	char *debug;
	MappedFile file;
	Invoker invoker;
} Fixture;

/* ---- helpers --------------------------------------------------------------------------- */

/* The root of a container: everything is below the folder. */
static int open_below(void *user, const MappedFile *file, const char *path)
{
	const Fixture *fixture = user;
	_cleanup_free_ char *inside = xasprintf("%s%s", fixture->folder, path);
	int fd = open(inside, O_RDONLY | O_CLOEXEC);

	(void)file;
	return fd < 0 ? -errno : fd;
}

static DebugFiles debug_files_of(Fixture *fixture)
{
	return (DebugFiles){.file = &fixture->file, .open = open_below, .open_user = fixture};
}

static void write_debug(const Fixture *fixture, const char *text)
{
	write_file(fixture->folder, "prog.debug", text);
}

static void set_mtime(const char *path, time_t seconds)
{
	struct timespec times[] = {{seconds, 0}, {seconds, 0}};

	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

/* Where the names of the object are, by all that identifies it. */
static char *cache_path(const Fixture *fixture)
{
	const MappedFile *file = &fixture->file;
	char hex[2 * 20 + 1];

	for (size_t i = 0; i < 20; i++)
		sprintf(hex + 2 * i, "%02x", file->build_id[i]);
	return xasprintf("%s/wallprof/symbols/%s-%016" PRIx64 ".zst", fixture->folder, hex,
			 hash_mix(file->device, file->inode));
}

static int set_up(void **state)
{
	Fixture *fixture = xcalloc(1, sizeof(*fixture));

	fixture->folder = make_folder();
	fixture->debug = xasprintf("%s/prog.debug", fixture->folder);
	setenv("XDG_CACHE_HOME", fixture->folder, 1);
	fixture->file = (MappedFile){.id = 1,
				     .build_id_len = 20,
				     .path = "/prog",
				     .size = 1234,
				     .mtime_ns = 5678,
				     .ctime_ns = 6789,
				     .device = 7,
				     .inode = 89};
	for (size_t i = 0; i < 20; i++)
		fixture->file.build_id[i] = random_below(256);
	fixture->cache_file = cache_path(fixture);
	write_debug(fixture, "\177ELF debug");
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	Fixture *fixture = *state;

	remove_folder(fixture->folder);
	free(fixture->cache_file);
	free(fixture->debug);
	free(fixture);
	return 0;
}

/* Name of an address; every third has none. */
static char *truth(uint64_t address)
{
	return address % 3 ? xasprintf("function_%lu", address) : NULL;
}

static void add_names(CachedObject *object)
{
	SymbolRecord record = {};

	/* In no order. */
	for (uint64_t i = 0; i < NAMES; i++) {
		uint64_t address = (i * 7) % NAMES;
		_cleanup_free_ char *name = truth(address);

		symbol_record_begin(&record, address);
		if (name)
			symbol_record_add(&record, name, "a.c", address);
		cached_object_add(object, symbol_record_finish(&record, NULL));
	}
	symbol_record_free(&record);
}

/* Stores what was looked for and what was found, as symbol_files.c does. */
static void store(Fixture *fixture, SymbolCache *cache)
{
	DebugFiles files = debug_files_of(fixture);
	CachedObject object = {};
	Companion companion = {.kind = COMPANION_DEBUG, .name = "prog.debug"};
	int fd;

	fd = debug_files_by_build_id(&files);
	assert_int_equal(fd, -ENOENT);
	fd = debug_files_companion(&files, &companion);
	closep(&fd);
	add_names(&object);
	for (size_t i = 0; i < files.tried.count; i++)
		*vec_push(&object.tried) = files.tried.items[i];
	files.tried.count = 0;
	symbol_cache_store(cache, &fixture->file, &object);
	cached_object_free(&object);
	debug_files_free(&files);
}

/* Returns how many answers there are; all must be true. */
static size_t load(Fixture *fixture, SymbolCache *cache)
{
	DebugFiles files = debug_files_of(fixture);
	CachedObject object;
	size_t count = 0;

	symbol_cache_load(cache, &files, &object);
	for (uint64_t address = 0; address < 2 * NAMES; address++) {
		const struct rec_symbol *symbol = cached_object_find(&object, address);
		_cleanup_free_ char *name = truth(address);

		if (!symbol)
			continue;
		assert_true(address < NAMES);
		assert_int_equal(symbol->address, address);
		assert_int_equal(symbol->count, name ? 1 : 0);
		if (name)
			assert_string_equal(symbol->text + sizeof(uint32_t), name);
		count++;
	}
	assert_int_equal(object.records.count > 0, count > 0);
	cached_object_free(&object);
	debug_files_free(&files);
	return count;
}

static SymbolCache *open_cache(Fixture *fixture)
{
	SymbolCache *cache = symbol_cache_open(&fixture->invoker);

	assert_non_null(cache);
	return cache;
}

static size_t load_new_cache(Fixture *fixture)
{
	SymbolCache *cache = open_cache(fixture);
	size_t count = load(fixture, cache);

	symbol_cache_close(cache);
	return count;
}

static void store_new_cache(Fixture *fixture)
{
	SymbolCache *cache = open_cache(fixture);

	store(fixture, cache);
	symbol_cache_close(cache);
}

typedef struct Image {
	uint8_t *bytes;
	size_t size;
} Image;

static Image read_image(const char *path)
{
	FILE *file = fopen(path, "r");
	Image image = {.bytes = xmalloc(1 << 20)};

	assert_non_null(file);
	image.size = fread(image.bytes, 1, 1 << 20, file);
	fclose(file);
	return image;
}

static void write_image(const char *path, const uint8_t *bytes, size_t size)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, size, file), size);
	fclose(file);
}

/* ---- tests ------------------------------------------------------------------------------- */

static void test_round_trip(void **state)
{
	Fixture *fixture = *state;
	_cleanup_free_ char *mode = NULL;

	assert_int_equal(load_new_cache(fixture), 0);
	store_new_cache(fixture);
	assert_int_equal(load_new_cache(fixture), NAMES);
	/* For its owner only, and nothing beside it but the size of all. */
	mode = output_of("stat -c %%a '%s'; ls -A '%s/wallprof/symbols' | grep -vx .size | wc -l",
			 fixture->cache_file, fixture->folder);
	assert_string_equal(mode, "600\n1\n");
	run("zstd -q -t '%s'", fixture->cache_file);
}

static void test_other_build(void **state)
{
	Fixture *fixture = *state;
	_cleanup_free_ char *other = NULL;

	store_new_cache(fixture);
	other = xstrdup(fixture->cache_file);
	fixture->file.build_id[random_below(20)] ^= 1 + random_below(255);
	assert_int_equal(load_new_cache(fixture), 0);
	/* Nor under the other's name. */
	free(fixture->cache_file);
	fixture->cache_file = cache_path(fixture);
	run("cp '%s' '%s'", other, fixture->cache_file);
	assert_int_equal(load_new_cache(fixture), 0);
}

/* A build id is only what a file says of itself. */
static void test_other_file_of_the_build(void **state)
{
	Fixture *fixture = *state;
	_cleanup_free_ char *other = xstrdup(fixture->cache_file);
	uint64_t *const parts[] = {
		&fixture->file.size,   &fixture->file.mtime_ns, &fixture->file.ctime_ns,
		&fixture->file.device, &fixture->file.inode,
	};

	store_new_cache(fixture);
	assert_int_equal(load_new_cache(fixture), NAMES);
	*parts[random_below(ARRAY_LEN(parts))] += 1 + random_below(99);
	assert_int_equal(load_new_cache(fixture), 0);
	/* Nor under the name that the file's own would have, be it the same. */
	free(fixture->cache_file);
	fixture->cache_file = cache_path(fixture);
	if (strcmp(other, fixture->cache_file))
		run("cp '%s' '%s'", other, fixture->cache_file);
	assert_int_equal(load_new_cache(fixture), 0);
}

/* Changes the content at an offset, and compresses it again, so that no checksum shows it. */
static void alter(const Fixture *fixture, size_t place, uint8_t change)
{
	_cleanup_free_ char *raw = xasprintf("%s/raw", fixture->folder);
	Image image;

	run("zstd -q -d -c '%s' > '%s'", fixture->cache_file, raw);
	image = read_image(raw);
	image.bytes[place] ^= change;
	write_image(raw, image.bytes, image.size);
	run("zstd -q -f '%s' -o '%s'", raw, fixture->cache_file);
	free(image.bytes);
}

/* The first 16 bytes are the format, the next 16 the version of wallprof. */
static void test_other_version(void **state)
{
	static const size_t places[] = {0, 15, 16, 20};
	Fixture *fixture = *state;

	store_new_cache(fixture);
	alter(fixture, 0, 0);
	assert_int_equal(load_new_cache(fixture), NAMES);
	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		alter(fixture, places[i], 1);
		assert_int_equal(load_new_cache(fixture), 0);
		alter(fixture, places[i], 1);
		assert_int_equal(load_new_cache(fixture), NAMES);
	}
}

/* Every byte changed, at random: what still can be read is what was written. */
static void test_corrupted(void **state)
{
	Fixture *fixture = *state;
	SymbolCache *cache = open_cache(fixture);
	size_t unnoticed = 0;
	Image image;

	store(fixture, cache);
	image = read_image(fixture->cache_file);
	for (size_t i = 0; i < image.size; i++)
		for (int round = 0; round < 4; round++) {
			uint8_t kept = image.bytes[i];

			image.bytes[i] ^= round < 2 ? 1U << random_below(8) : 1 + random_below(255);
			write_image(fixture->cache_file, image.bytes, image.size);
			unnoticed += load(fixture, cache) == NAMES;
			image.bytes[i] = kept;
		}
	/* Some bits of zstd's form mean nothing: how many depends on what is compressed. */
	assert_true(unnoticed < image.size / 8);
	write_image(fixture->cache_file, image.bytes, image.size);
	assert_int_equal(load(fixture, cache), NAMES);
	free(image.bytes);
	symbol_cache_close(cache);
}

static void test_truncated(void **state)
{
	Fixture *fixture = *state;
	SymbolCache *cache = open_cache(fixture);
	Image image;

	store(fixture, cache);
	image = read_image(fixture->cache_file);
	for (size_t size = 0; size < image.size; size++) {
		write_image(fixture->cache_file, image.bytes, size);
		assert_int_equal(load(fixture, cache), 0);
	}
	free(image.bytes);
	symbol_cache_close(cache);
}

/*
 * The content is changed and compressed again, so that no checksum shows it: nothing is read
 * outside (the sanitizers watch), and what is taken is a good record.
 */
static void test_forged(void **state)
{
	Fixture *fixture = *state;
	_cleanup_free_ char *raw_path = xasprintf("%s/raw", fixture->folder);
	SymbolCache *cache = open_cache(fixture);
	Image image;

	store(fixture, cache);
	run("zstd -q -d -c '%s' > '%s'", fixture->cache_file, raw_path);
	image = read_image(raw_path);
	for (int round = 0; round < 100; round++) {
		DebugFiles files = debug_files_of(fixture);
		uint8_t *bytes = xmalloc(image.size);
		size_t size = round % 4 ? image.size : random_below(image.size);
		CachedObject object;

		memcpy(bytes, image.bytes, image.size);
		for (int i = 0; i < 3 && size; i++)
			bytes[random_below(size)] = random_below(2) ? 255 : random_below(256);
		write_image(raw_path, bytes, size);
		run("zstd -q -f '%s' -o '%s'", raw_path, fixture->cache_file);
		symbol_cache_load(cache, &files, &object);
		for (size_t i = 0; i < object.offsets.count; i++)
			assert_true(object.offsets.items[i] < object.records.count);
		cached_object_free(&object);
		debug_files_free(&files);
		free(bytes);
	}
	free(image.bytes);
	symbol_cache_close(cache);
}

static void test_debug_file_changes(void **state)
{
	Fixture *fixture = *state;

	set_mtime(fixture->debug, 1000);
	store_new_cache(fixture);
	assert_int_equal(load_new_cache(fixture), NAMES);
	/* Newer. */
	set_mtime(fixture->debug, 1001);
	assert_int_equal(load_new_cache(fixture), 0);
	set_mtime(fixture->debug, 1000);
	assert_int_equal(load_new_cache(fixture), NAMES);
	/* Longer. */
	write_debug(fixture, "\177ELF debug, more");
	set_mtime(fixture->debug, 1000);
	assert_int_equal(load_new_cache(fixture), 0);
	/* Gone, and stored without. */
	assert_int_equal(unlink(fixture->debug), 0);
	assert_int_equal(load_new_cache(fixture), 0);
	store_new_cache(fixture);
	assert_int_equal(load_new_cache(fixture), NAMES);
	/* There again; something else there is nothing. */
	write_debug(fixture, "no ELF");
	assert_int_equal(load_new_cache(fixture), NAMES);
	write_debug(fixture, "\177ELF");
	assert_int_equal(load_new_cache(fixture), 0);
	/* Another build ID. */
	assert_int_equal(unlink(fixture->debug), 0);
	assert_int_equal(load_new_cache(fixture), NAMES);
	run("d='%s/usr/lib/debug/.build-id/%02x'; mkdir -p \"$d\" && n=$(basename '%s') && "
	    "n=${n%%%%-*} && "
	    "printf '\\177ELF' > \"$d/${n#??}.debug\"",
	    fixture->folder, fixture->file.build_id[0], fixture->cache_file);
	assert_int_equal(load_new_cache(fixture), 0);
}

/* Two write the same and different files for a while, a third reads: always all or nothing. */
static void test_writers_at_once(void **state)
{
	Fixture *fixture = *state;
	uint64_t end = now_ns() + NSEC_PER_SEC;
	SymbolCache *cache;
	size_t seen = 0;
	int status;

	for (int writer = 0; writer < 2; writer++) {
		if (fork())
			continue;
		cache = symbol_cache_open(&fixture->invoker);
		while (now_ns() < end)
			store(fixture, cache);
		symbol_cache_close(cache);
		_exit(0);
	}
	cache = open_cache(fixture);
	while (now_ns() < end) {
		size_t count = load(fixture, cache);

		assert_true(count == 0 || count == NAMES);
		assert_true(count == NAMES || seen == 0);
		seen += count == NAMES;
	}
	assert_true(seen > 10);
	while (wait(&status) > 0)
		assert_int_equal(status, 0);
	symbol_cache_close(cache);
	run("test $(ls '%s/wallprof/symbols' | wc -l) = 1", fixture->folder);
}

/* The oldest by their last use go, until there is room. */
static void test_bound(void **state)
{
	Fixture *fixture = *state;
	char *folder = xasprintf("%s/wallprof/symbols", fixture->folder);

	run("mkdir -p '%s'", folder);
	for (int i = 0; i < 8; i++) {
		_cleanup_free_ char *name = xasprintf("%s/%d.zst", folder, i);
		_cleanup_close_ int fd = open(name, O_CREAT | O_WRONLY, 0600);

		/* Files of the right length, but empty. */
		assert_int_equal(ftruncate(fd, SYMBOL_CACHE_MAX / 8), 0);
		set_mtime(name, 1000 + i);
	}
	/* The file that is stored now is the youngest. */
	store_new_cache(fixture);
	run("test -e '%s' && cd '%s' && test $(ls | wc -l) = 6 && ls 3.zst 4.zst 5.zst 6.zst "
	    "7.zst",
	    fixture->cache_file, folder);
	/* Within the bound nothing goes. */
	store_new_cache(fixture);
	assert_int_equal(load_new_cache(fixture), NAMES);
	run("test $(ls '%s' | wc -l) = 6", folder);
	free(folder);
}

/* No folder, no cache; and what cannot be written costs nothing but time. */
static void test_unwritable(void **state)
{
	Fixture *fixture = *state;
	SymbolCache *cache;

	write_file(fixture->folder, "wallprof", "a file where the folder should be");
	assert_null(symbol_cache_open(&fixture->invoker));
	run("rm '%s/wallprof'", fixture->folder);
	cache = open_cache(fixture);
	run("rmdir '%s/wallprof/symbols'", fixture->folder);
	store(fixture, cache);
	assert_int_equal(load(fixture, cache), 0);
	symbol_cache_close(cache);
	/* No file but a link, a folder or a pipe: not followed, not waited for. */
	run("mkdir -p '%s'", fixture->cache_file);
	assert_int_equal(load_new_cache(fixture), 0);
	store_new_cache(fixture);
	run("rmdir '%s' && mkfifo '%s'", fixture->cache_file, fixture->cache_file);
	assert_int_equal(load_new_cache(fixture), 0);
	store_new_cache(fixture);
	assert_int_equal(load_new_cache(fixture), NAMES);
	unsetenv("XDG_CACHE_HOME");
	setenv("HOME", "relative", 1);
	assert_null(symbol_cache_open(&fixture->invoker));
	symbol_cache_close(NULL);
}

/* A file that a run that was killed left under its temporary name. */
static void test_leftover(void **state)
{
	Fixture *fixture = *state;

	store_new_cache(fixture);
	run("rm '%s'; touch '%s.%d'", fixture->cache_file, fixture->cache_file, getpid());
	store_new_cache(fixture);
	assert_int_equal(load_new_cache(fixture), NAMES);
}

/* The invoker's rights apply: it writes into the invoker's folder, and not where only root may. */
static void test_other_user(void **state)
{
	Fixture *fixture = *state;
	_cleanup_free_ char *home = xasprintf("%s/home", fixture->folder);
	_cleanup_free_ char *owner = NULL, *time = NULL;

	if (geteuid())
		skip_because("not root");
	fixture->invoker = (Invoker){.change = true, .uid = 12345, .gid = 23456, .home = home};
	assert_int_equal(mkdir(home, 0700), 0);
	assert_null(symbol_cache_open(&fixture->invoker));
	assert_int_equal(chown(home, 12345, 23456), 0);
	store_new_cache(fixture);
	assert_int_equal(geteuid(), 0);
	assert_int_equal(load_new_cache(fixture), NAMES);
	owner = output_of("stat -c %%u:%%g '%s'/.cache/wallprof/symbols/*", home);
	assert_string_equal(owner, "12345:23456\n");
	/* A link to what only root may read is as good as nothing. */
	run("cd '%s'/.cache/wallprof/symbols && cp -p * '%s/kept' && chown 0 '%s/kept' && "
	    "ln -sf '%s/kept' *.zst",
	    home, fixture->folder, fixture->folder, fixture->folder);
	assert_int_equal(load_new_cache(fixture), 0);
	/* A link to what only root may change changes nothing there. */
	run("chmod 644 '%s/kept' && touch -d @1 '%s/kept'", fixture->folder, fixture->folder);
	assert_int_equal(load_new_cache(fixture), NAMES);
	time = output_of("stat -c %%Y '%s/kept'", fixture->folder);
	assert_string_equal(time, "1\n");
	run("chown 12345 '%s/kept'", fixture->folder);
	assert_int_equal(load_new_cache(fixture), NAMES);
	fixture->invoker.home = NULL;
	assert_null(symbol_cache_open(&fixture->invoker));
}

#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FIXTURE(test_round_trip),
		WITH_FIXTURE(test_other_build),
		WITH_FIXTURE(test_other_file_of_the_build),
		WITH_FIXTURE(test_other_version),
		WITH_FIXTURE(test_corrupted),
		WITH_FIXTURE(test_truncated),
		WITH_FIXTURE(test_forged),
		WITH_FIXTURE(test_debug_file_changes),
		WITH_FIXTURE(test_writers_at_once),
		WITH_FIXTURE(test_bound),
		WITH_FIXTURE(test_unwritable),
		WITH_FIXTURE(test_leftover),
		WITH_FIXTURE(test_other_user),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
