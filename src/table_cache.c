/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "table_cache.h"
#include "cache_folder.h"
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* One that were longer would leave no room for another. */
#define ROWS_MAX  (TABLE_CACHE_MAX / 2 / sizeof(struct unwind_row))
#define RULES_MAX (1u << 20)
/* File systems note times in steps: of a timer tick mostly, of two seconds at the most (FAT). */
#define TIME_STEP_NS (2 * NSEC_PER_SEC)

#define TEXT_OF(number) #number
#define MAGIC(version)	"wallprof table " TEXT_OF(version)

/* As long as its number is, the rest is 0. */
static const char magic[24] = MAGIC(UNWIND_TABLE_VERSION);

/* A file is this, the rules and the rows. */
struct cache_header {
	char magic[sizeof(magic)];
	char version[16]; /* of wallprof: another one may build other tables */
	TableKey key;
	uint64_t rows, rules, counts_size;
	UnwindCounts counts;
	uint64_t checksum; /* of all of it, with this as 0 */
};

_Static_assert(sizeof(TableKey) == 24 + 2 * sizeof(FileIdentity) + 8, "no padding");
_Static_assert(sizeof(struct cache_header) % 8 == 0, "checksum() takes words");

struct TableCache {
	CacheFolder *folder;
};

/* ---- which file it is ----------------------------------------------------------------- */

static uint64_t time_of(const struct timespec *time)
{
	return time->tv_sec * NSEC_PER_SEC + time->tv_nsec;
}

static bool identify(int fd, FileIdentity *ret_identity)
{
	struct stat st;

	if (fstat(fd, &st) || st.st_nlink == 0)
		return false;
	*ret_identity = (FileIdentity){
		.size = st.st_size,
		.mtime_ns = time_of(&st.st_mtim),
		.ctime_ns = time_of(&st.st_ctim),
		.device = st.st_dev,
		.inode = st.st_ino,
	};
	return true;
}

bool table_key_make(int fd, int debug_fd, uint64_t base_svma, const uint8_t *build_id,
		    uint8_t build_id_len, TableKey *ret_key)
{
	TableKey key = {.base_svma = base_svma, .build_id_len = build_id_len};

	if (build_id_len == 0 || build_id_len > sizeof(key.build_id) || !identify(fd, &key.file) ||
	    (debug_fd >= 0 && !identify(debug_fd, &key.debug)))
		return false;
	memcpy(key.build_id, build_id, build_id_len);
	*ret_key = key;
	return true;
}

bool table_key_holds(const TableKey *key, int fd, int debug_fd)
{
	struct timespec now;
	TableKey again;

	if (!table_key_make(fd, debug_fd, key->base_svma, key->build_id, key->build_id_len,
			    &again) ||
	    memcmp(&again, key, sizeof(again)))
		return false;
	clock_gettime(CLOCK_REALTIME, &now);
	return MAX(key->file.ctime_ns, key->debug.ctime_ns) + TIME_STEP_NS < time_of(&now);
}

/* ---- a file's form -------------------------------------------------------------------- */

static uint64_t word_at(const void *data, size_t i)
{
	uint64_t word;

	memcpy(&word, (const char *)data + i * sizeof(word), sizeof(word));
	return word;
}

/* Can be undone, so that no change of one word goes unnoticed. */
static uint64_t stir(uint64_t lane, uint64_t word)
{
	lane = (lane ^ word) * 0x9e3779b97f4a7c15ULL;
	return lane ^ lane >> 32;
}

/*
 * Tells a disk's errors, not forgery. Four lanes, for each step has to wait for the one before it
 * in its lane. size is a multiple of 8.
 */
static uint64_t checksum(uint64_t seed, const void *data, size_t size)
{
	uint64_t a = seed, b = 1, c = 2, d = 3;
	size_t words = size / sizeof(uint64_t), i = 0;

	for (; i + 4 <= words; i += 4) {
		a = stir(a, word_at(data, i));
		b = stir(b, word_at(data, i + 1));
		c = stir(c, word_at(data, i + 2));
		d = stir(d, word_at(data, i + 3));
	}
	for (; i < words; i++)
		a = stir(a, word_at(data, i));
	return hash_mix(hash_mix(hash_mix(hash_mix(size, a), b), c), d);
}

static uint64_t checksum_of(const struct cache_header *header, const UnwindTable *table)
{
	struct cache_header copy;
	uint64_t sum;

	memcpy(&copy, header, sizeof(copy));
	copy.checksum = 0;
	sum = checksum(0, &copy, sizeof(copy));
	sum = checksum(sum, table->rules.items, table->rules.count * sizeof(struct unwind_rule));
	return checksum(sum, table->rows.items, table->rows.count * sizeof(struct unwind_row));
}

/* Also what the padding holds is defined, for it is part of the checksum. */
static void begin_header(struct cache_header *header, const TableKey *key)
{
	memset(header, 0, sizeof(*header));
	memcpy(header->magic, magic, sizeof(magic));
	strncpy(header->version, WALLPROF_VERSION, sizeof(header->version) - 1);
	header->key = *key;
	header->counts_size = sizeof(UnwindCounts);
}

static bool header_fits(const struct cache_header *header, const TableKey *key, uint64_t size)
{
	struct cache_header wanted;

	begin_header(&wanted, key);
	return !memcmp(header, &wanted, offsetof(struct cache_header, rows)) &&
	       header->counts_size == wanted.counts_size && header->rows <= ROWS_MAX &&
	       header->rules <= RULES_MAX &&
	       size == sizeof(*header) + header->rules * sizeof(struct unwind_rule) +
			       header->rows * sizeof(struct unwind_row);
}

static bool read_table(int fd, const struct cache_header *header, UnwindTable *table)
{
	size_t rules = header->rules * sizeof(struct unwind_rule);
	size_t rows = header->rows * sizeof(struct unwind_row);
	struct iovec parts[2];

	table->rules.count = table->rows.count = 0;
	vec_reserve(&table->rules, header->rules);
	vec_reserve(&table->rows, header->rows);
	parts[0] = (struct iovec){table->rules.items, rules};
	parts[1] = (struct iovec){table->rows.items, rows};
	if (preadv(fd, parts, ARRAY_LEN(parts), sizeof(*header)) != (ssize_t)(rules + rows))
		return false;
	table->rules.count = header->rules;
	table->rows.count = header->rows;
	table->counts = header->counts;
	return checksum_of(header, table) == header->checksum && unwind_table_valid(table);
}

/* ---- the cache -------------------------------------------------------------------------- */

TableCache *table_cache_open(const Invoker *invoker)
{
	CacheFolder *folder = cache_folder_open(invoker, "tables", TABLE_CACHE_MAX);
	TableCache *cache;

	if (!folder)
		return NULL;
	cache = xcalloc(1, sizeof(*cache));
	cache->folder = folder;
	return cache;
}

void table_cache_close(TableCache *cache)
{
	if (!cache)
		return;
	cache_folder_close(cache->folder);
	free(cache);
}

static char *object_name(const TableKey *key)
{
	return cache_folder_object_name(key->build_id, key->build_id_len, key->file.device,
					key->file.inode, "table");
}

bool table_cache_load(const TableCache *cache, const TableKey *key, UnwindTable *table)
{
	_cleanup_free_ char *name = object_name(key);
	struct cache_header header;
	struct stat st;
	_cleanup_close_ int fd = cache_folder_read(cache->folder, name, &st);

	return fd >= 0 && pread(fd, &header, sizeof(header), 0) == sizeof(header) &&
	       header_fits(&header, key, st.st_size) && read_table(fd, &header, table);
}

int table_cache_store(const TableCache *cache, const TableKey *key, const UnwindTable *table)
{
	_cleanup_free_ char *name = object_name(key);
	struct cache_header header;
	struct iovec parts[] = {
		{&header, sizeof(header)},
		{table->rules.items, table->rules.count * sizeof(struct unwind_rule)},
		{table->rows.items, table->rows.count * sizeof(struct unwind_row)},
	};
	int r;

	if (table->rows.count > ROWS_MAX || table->rules.count > RULES_MAX)
		return -EFBIG;
	begin_header(&header, key);
	header.rows = table->rows.count;
	header.rules = table->rules.count;
	memcpy(&header.counts, &table->counts, sizeof(header.counts));
	header.checksum = checksum_of(&header, table);
	r = cache_folder_replace(cache->folder, name, parts, ARRAY_LEN(parts));
	if (r < 0)
		log_verbose("an unwind table is not cached (%s): %s", name, strerror(-r));
	return r;
}
