/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An unwind table that was stored comes back whole, or not at all. */
#include "table_builder.h"
#include "table_cache.h"
#include "test_tools.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>

#define LINK "program.debug"
#define ROWS 40

typedef struct Fixture {
	char *folder, *file; /* of the cache, and in it that of the key */
	TableKey key;
	Invoker invoker;
	uint64_t seed;
} Fixture;

/* ---- helpers --------------------------------------------------------------------------- */

static char *file_path(const Fixture *fixture)
{
	const TableKey *key = &fixture->key;
	char hex[2 * 20 + 1];

	for (size_t i = 0; i < 20; i++)
		sprintf(hex + 2 * i, "%02x", key->build_id[i]);
	return xasprintf("%s/wallprof/tables/%s-%016" PRIx64 ".table", fixture->folder, hex,
			 hash_mix(key->file.device, key->file.inode));
}

static int set_up(void **state)
{
	Fixture *fixture = xcalloc(1, sizeof(*fixture));

	fixture->folder = make_folder();
	setenv("XDG_CACHE_HOME", fixture->folder, 1);
	fixture->key = (TableKey){
		.build_id_len = 20,
		.file = {.size = 1, .mtime_ns = 2, .ctime_ns = 3, .device = 4, .inode = 5},
		.debug = {.size = 6, .mtime_ns = 7, .ctime_ns = 8, .device = 9, .inode = 10},
		.base_svma = 4096,
	};
	for (size_t i = 0; i < 20; i++)
		fixture->key.build_id[i] = random_below(256);
	fixture->seed = random_below(1 << 30);
	fixture->file = file_path(fixture);
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	Fixture *fixture = *state;

	remove_folder(fixture->folder);
	free(fixture->file);
	free(fixture);
	return 0;
}

static char debuglink[TABLE_LINK_MAX]; /* of the table that was loaded last */

static TableCache *open_cache(Fixture *fixture)
{
	TableCache *cache = table_cache_open(&fixture->invoker);

	assert_non_null(cache);
	return cache;
}

static int store(Fixture *fixture, TableCache *cache, size_t rows)
{
	UnwindTable table = make_table(fixture->seed, rows);
	int r = table_cache_store(cache, &fixture->key, &table, LINK);

	unwind_table_free(&table);
	return r;
}

static int store_new_cache(Fixture *fixture)
{
	TableCache *cache = open_cache(fixture);
	int r = store(fixture, cache, ROWS);

	table_cache_close(cache);
	return r;
}

/* What is there must be what was stored. */
static bool load(Fixture *fixture, const TableCache *cache, size_t rows)
{
	UnwindTable truth = make_table(fixture->seed, rows), table = {};
	bool there = table_cache_load(cache, &fixture->key, &table, debuglink);

	if (there)
		assert_true(same_tables(&table, &truth) && !strcmp(debuglink, LINK));
	unwind_table_free(&truth);
	unwind_table_free(&table);
	return there;
}

static bool load_new_cache(Fixture *fixture)
{
	TableCache *cache = open_cache(fixture);
	bool there = load(fixture, cache, ROWS);

	table_cache_close(cache);
	return there;
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

	assert_false(load_new_cache(fixture));
	assert_int_equal(store_new_cache(fixture), 0);
	assert_true(load_new_cache(fixture));
	mode = output_of("stat -c %%a '%s'; ls -A '%s/wallprof/tables' | grep -vx .size | wc -l",
			 fixture->file, fixture->folder);
	assert_string_equal(mode, "600\n1\n");
	/* The comparison sees a wrong one. */
	fixture->seed++;
	assert_int_equal(store_new_cache(fixture), 0);
	fixture->seed--;
	{
		UnwindTable truth = make_table(fixture->seed, ROWS), table = {};
		TableCache *cache = open_cache(fixture);

		assert_true(table_cache_load(cache, &fixture->key, &table, debuglink));
		assert_false(same_tables(&truth, &table));
		unwind_table_free(&truth);
		unwind_table_free(&table);
		table_cache_close(cache);
	}
}

/* Tables of all sizes into the same memory. */
static void test_sizes(void **state)
{
	Fixture *fixture = *state;
	TableCache *cache = open_cache(fixture);
	UnwindTable table = {};

	for (int round = 0; round < 30; round++) {
		size_t rows = 3 + random_below(1 << random_below(20));
		UnwindTable truth = make_table(fixture->seed, rows);

		assert_int_equal(store(fixture, cache, rows), 0);
		assert_true(table_cache_load(cache, &fixture->key, &table, debuglink));
		assert_true(same_tables(&truth, &table));
		unwind_table_free(&truth);
	}
	unwind_table_free(&table);
	table_cache_close(cache);
}

/* Under the name that it would have, whatever that is. */
static void check_other_key(Fixture *fixture)
{
	_cleanup_free_ char *other = fixture->file;

	assert_false(load_new_cache(fixture));
	fixture->file = file_path(fixture);
	if (strcmp(other, fixture->file))
		run("cp '%s' '%s'", other, fixture->file);
	assert_false(load_new_cache(fixture));
	run("rm -f '%s'", fixture->file);
	free(fixture->file);
	fixture->file = xstrdup(other);
}

static void test_other_object(void **state)
{
	Fixture *fixture = *state;
	TableKey *key = &fixture->key;
	uint64_t *const parts[] = {
		&key->file.size,    &key->file.mtime_ns, &key->file.ctime_ns,  &key->file.device,
		&key->file.inode,   &key->debug.size,	 &key->debug.mtime_ns, &key->debug.ctime_ns,
		&key->debug.device, &key->debug.inode,	 &key->base_svma,
	};

	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		uint64_t kept = *parts[i];

		assert_int_equal(store_new_cache(fixture), 0);
		assert_true(load_new_cache(fixture));
		*parts[i] ^= 1ULL << random_below(64);
		check_other_key(fixture);
		*parts[i] = kept;
	}
	for (size_t i = 0; i < 20; i++) {
		uint8_t kept = key->build_id[i];

		assert_int_equal(store_new_cache(fixture), 0);
		assert_true(load_new_cache(fixture));
		key->build_id[i] ^= 1 + random_below(255);
		check_other_key(fixture);
		key->build_id[i] = kept;
	}
	assert_int_equal(store_new_cache(fixture), 0);
	key->build_id_len--;
	assert_false(load_new_cache(fixture));
}

/* Each bit of it: the magic, the versions, the key, the counts, the rows. */
static void test_flipped(void **state)
{
	Fixture *fixture = *state;
	TableCache *cache = open_cache(fixture);
	Image image;

	assert_int_equal(store(fixture, cache, ROWS), 0);
	image = read_image(fixture->file);
	for (size_t i = 0; i < 8 * image.size; i++) {
		image.bytes[i / 8] ^= 1 << i % 8;
		write_image(fixture->file, image.bytes, image.size);
		assert_false(load(fixture, cache, ROWS));
		image.bytes[i / 8] ^= 1 << i % 8;
	}
	write_image(fixture->file, image.bytes, image.size);
	assert_true(load(fixture, cache, ROWS));
	free(image.bytes);
	table_cache_close(cache);
}

static void test_truncated(void **state)
{
	Fixture *fixture = *state;
	TableCache *cache = open_cache(fixture);
	Image image;

	assert_int_equal(store(fixture, cache, ROWS), 0);
	image = read_image(fixture->file);
	for (size_t size = 0; size < image.size; size++) {
		write_image(fixture->file, image.bytes, size);
		assert_false(load(fixture, cache, ROWS));
	}
	image.bytes[image.size] = 0;
	write_image(fixture->file, image.bytes, image.size + 1);
	assert_false(load(fixture, cache, ROWS));
	free(image.bytes);
	table_cache_close(cache);
}

static void spoil(UnwindTable *table, int how)
{
	struct unwind_row *rows = table->rows.items;
	size_t i = 1 + random_below(table->rows.count - 1);

	switch (how) {
	case 0:
		rows[i].pc = rows[i - 1].pc;
		break;
	case 1:
		rows[i].rule = table->rules.count;
		break;
	case 2:
		rows[0].pc = 1;
		break;
	case 3:
		table->rows.count = 0;
		break;
	case 4:
		table->rules.items[random_below(MADE_RULES)].cfa = CFA_SIGNAL + 1;
		break;
	case 5:
		table->rules.items[random_below(MADE_RULES)].bp = BP_LOST + 1;
		break;
	default:
		table->rules.count = 0;
		break;
	}
}

/* The checksum is right. */
static void test_not_valid(void **state)
{
	Fixture *fixture = *state;
	TableCache *cache = open_cache(fixture);

	for (int how = 0; how < 7; how++) {
		UnwindTable table = make_table(fixture->seed, ROWS), loaded = {};

		assert_int_equal(table_cache_store(cache, &fixture->key, &table, LINK), 0);
		assert_true(load(fixture, cache, ROWS));
		spoil(&table, how);
		assert_int_equal(table_cache_store(cache, &fixture->key, &table, LINK), 0);
		assert_false(table_cache_load(cache, &fixture->key, &loaded, debuglink));
		unwind_table_free(&table);
		unwind_table_free(&loaded);
	}
	table_cache_close(cache);
}

/* A header that promises more than any memory holds. */
static void test_huge_counts(void **state)
{
	Fixture *fixture = *state;
	TableCache *cache = open_cache(fixture);
	Image image;

	assert_int_equal(store(fixture, cache, ROWS), 0);
	image = read_image(fixture->file);
	for (size_t i = 0; i + 8 <= image.size; i += 8) {
		static const uint64_t numbers[] = {UINT64_MAX, 1ULL << 61, 1ULL << 60, 1ULL << 32};
		uint64_t kept, number;

		memcpy(&kept, image.bytes + i, 8);
		do
			number = numbers[random_below(ARRAY_LEN(numbers))];
		while (number == kept);
		memcpy(image.bytes + i, &number, 8);
		write_image(fixture->file, image.bytes, image.size);
		assert_false(load(fixture, cache, ROWS));
		memcpy(image.bytes + i, &kept, 8);
	}
	free(image.bytes);
	table_cache_close(cache);
}

/* The oldest by their last use go, until there is room. */
static void test_bound(void **state)
{
	Fixture *fixture = *state;
	_cleanup_free_ char *folder = xasprintf("%s/wallprof/tables", fixture->folder);

	run("mkdir -p '%s'", folder);
	for (int i = 0; i < 8; i++)
		run("truncate -s %llu '%s/%d' && touch -d @%d '%s/%d'", TABLE_CACHE_MAX / 8, folder,
		    i, 1000 + i, folder, i);
	assert_int_equal(store_new_cache(fixture), 0);
	run("cd '%s' && test -e '%s' && test \"$(echo [0-9])\" = '3 4 5 6 7'", folder,
	    fixture->file);
	assert_int_equal(store_new_cache(fixture), 0);
	assert_true(load_new_cache(fixture));
	run("cd '%s' && test -e '%s' && test \"$(echo [0-9])\" = '3 4 5 6 7'", folder,
	    fixture->file);
}

/* The invoker's rights apply: what the invoker may not write is not written. */
static void test_read_only(void **state)
{
	Fixture *fixture = *state;
	_cleanup_free_ char *home = xasprintf("%s/home", fixture->folder);
	_cleanup_free_ char *owner = NULL;

	if (geteuid())
		skip_because("not root");
	fixture->invoker = (Invoker){.change = true, .uid = 12345, .gid = 23456, .home = home};
	run("mkdir -m 700 '%s' && chown 12345:23456 '%s'", home, home);
	assert_int_equal(store_new_cache(fixture), 0);
	assert_int_equal(geteuid(), 0);
	owner = output_of("stat -c %%u:%%g '%s'/.cache/wallprof/tables/*", home);
	assert_string_equal(owner, "12345:23456\n");
	run("chmod 500 '%s/.cache/wallprof/tables'", home);
	assert_int_equal(store_new_cache(fixture), -EACCES);
	assert_true(load_new_cache(fixture));
	run("chmod 700 '%s/.cache/wallprof/tables'", home);
	assert_int_equal(store_new_cache(fixture), 0);
	/* No place for a folder, no cache. */
	run("rm -r '%s/.cache' && chmod 500 '%s'", home, home);
	assert_null(table_cache_open(&fixture->invoker));
	table_cache_close(NULL);
}

static bool mount_small(const char *folder)
{
	/* For this process alone: it goes with it. */
	return !unshare(CLONE_NEWNS) && !mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) &&
	       !mount("small", folder, "tmpfs", 0, "size=64k");
}

static void test_full_disk(void **state)
{
	Fixture *fixture = *state;
	TableCache *cache;

	if (geteuid())
		skip_because("not root");
	if (!mount_small(fixture->folder))
		skip_because("no tmpfs: %s", strerror(errno));
	cache = open_cache(fixture);
	assert_int_equal(store(fixture, cache, ROWS), 0);
	assert_int_equal(store(fixture, cache, 100000), -ENOSPC);
	/* What was there is there, and nothing else. */
	assert_true(load(fixture, cache, ROWS));
	run("test $(ls -A '%s/wallprof/tables' | wc -l) = 1", fixture->folder);
	table_cache_close(cache);
	assert_int_equal(umount(fixture->folder), 0);
}

/* ---- which file it is ---------------------------------------------------------------------- */

static int open_made(const Fixture *fixture)
{
	_cleanup_free_ char *path = xasprintf("%s/object", fixture->folder);

	write_file(fixture->folder, "object", "text");
	return open(path, O_RDWR | O_CLOEXEC);
}

static void test_key(void **state)
{
	Fixture *fixture = *state;
	_cleanup_close_ int fd = open_made(fixture), memory = memfd_create("object", MFD_CLOEXEC);
	_cleanup_close_ int old = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	const uint8_t *id = fixture->key.build_id;
	TableKey key, other;

	assert_true(table_key_make(fd, -1, 7, id, 20, &key));
	assert_true(table_key_make(fd, -1, 7, id, 20, &other));
	assert_memory_equal(&key, &other, sizeof(key));
	assert_true(table_key_make(fd, old, 7, id, 20, &other));
	assert_memory_not_equal(&key, &other, sizeof(key));
	/* Nothing identifies a file without a build ID or a name. */
	assert_false(table_key_make(fd, -1, 7, id, 0, &other));
	assert_false(table_key_make(fd, -1, 7, id, 21, &other));
	assert_false(table_key_make(memory, -1, 7, id, 20, &other));
	assert_false(table_key_make(fd, memory, 7, id, 20, &other));
	run("rm '%s/object'", fixture->folder);
	assert_false(table_key_make(fd, -1, 7, id, 20, &other));
}

static void test_key_holds(void **state)
{
	Fixture *fixture = *state;
	_cleanup_close_ int fd = open_made(fixture), other = open("/bin/sh", O_RDONLY | O_CLOEXEC);
	TableKey key, with_other;

	assert_true(table_key_make(fd, -1, 7, fixture->key.build_id, 20, &key));
	assert_true(table_key_make(fd, other, 7, fixture->key.build_id, 20, &with_other));
	/* Another change in this moment might not be seen. */
	assert_false(table_key_holds(&key, fd, -1));
	usleep(2200000);
	assert_true(table_key_holds(&key, fd, -1));
	assert_true(table_key_holds(&with_other, fd, other));
	assert_false(table_key_holds(&key, fd, other));
	assert_false(table_key_holds(&key, other, -1));
	/* Same size, same time: the time of the change can't be set. */
	assert_int_equal(pwrite(fd, "TEXT", 4, 0), 4);
	run("touch -d @%llu.%09llu '%s/object'", key.file.mtime_ns / NSEC_PER_SEC,
	    key.file.mtime_ns % NSEC_PER_SEC, fixture->folder);
	usleep(2200000);
	assert_false(table_key_holds(&key, fd, -1));
	assert_true(table_key_make(fd, -1, 7, fixture->key.build_id, 20, &with_other));
	assert_int_equal(with_other.file.mtime_ns, key.file.mtime_ns);
	assert_true(table_key_holds(&with_other, fd, -1));
}

#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FIXTURE(test_round_trip),	 WITH_FIXTURE(test_sizes),
		WITH_FIXTURE(test_other_object), WITH_FIXTURE(test_flipped),
		WITH_FIXTURE(test_truncated),	 WITH_FIXTURE(test_not_valid),
		WITH_FIXTURE(test_huge_counts),	 WITH_FIXTURE(test_bound),
		WITH_FIXTURE(test_read_only),	 WITH_FIXTURE(test_full_disk),
		WITH_FIXTURE(test_key),		 WITH_FIXTURE(test_key_holds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
