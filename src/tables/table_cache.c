/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "table_cache.h"
#include "cache_dir.h"
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* File systems store times in steps: mostly of a timer tick, at most of two seconds (FAT). */
#define TIME_STEP_NS (2 * NSEC_PER_SEC)

struct TableCache {
	CacheDir *folder;
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
	TableKey now;

	if (!table_key_make(fd, debug_fd, key->base_svma, key->build_id, key->build_id_len, &now) ||
	    memcmp(&now, key, sizeof(now)))
		return false;
	return MAX(key->file.ctime_ns, key->debug.ctime_ns) + TIME_STEP_NS <
	       clock_ns(CLOCK_REALTIME);
}

/* ---- the cache -------------------------------------------------------------------------- */

TableCache *table_cache_open(const Invoker *invoker)
{
	CacheDir *folder = cache_dir_open(invoker, "tables", TABLE_CACHE_MAX);
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
	cache_dir_close(cache->folder);
	free(cache);
}

static char *object_name(const TableKey *key)
{
	return cache_dir_object_name(key->build_id, key->build_id_len, key->file.device,
				     key->file.inode, "table");
}

bool table_cache_load(const TableCache *cache, const TableKey *key, UnwindTable *table,
		      char *ret_debuglink)
{
	_cleanup_free_ char *name = object_name(key);
	struct stat st;
	_cleanup_close_ int fd = cache_dir_read(cache->folder, name, &st);

	return fd >= 0 && table_file_read(fd, st.st_size, key, table, ret_debuglink);
}

int table_cache_store(const TableCache *cache, const TableKey *key, const UnwindTable *table,
		      const char *debuglink)
{
	_cleanup_free_ char *name = object_name(key);
	struct table_file_header header;
	struct iovec parts[] = {
		{&header, sizeof(header)},
		{table->rules.items, table->rules.count * sizeof(struct unwind_rule)},
		{table->rows.items, table->rows.count * sizeof(struct unwind_row)},
	};
	int r = table_file_header(key, table, debuglink, &header);

	if (r == 0)
		r = cache_dir_replace(cache->folder, name, parts, ARRAY_LEN(parts));
	if (r < 0)
		log_verbose("caching an unwind table (%s) failed: %s", name, strerror(-r));
	return r;
}
