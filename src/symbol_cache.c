/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbol_cache.h"
#include "as_invoker.h"
#include "regular_file.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define COMPRESSED_MAX (64u << 20)
#define PRUNE_TO       (SYMBOL_CACHE_MAX / 4 * 3)

struct SymbolCache {
	AsInvoker as;
	char *folder;
};

/* ---- the folder --------------------------------------------------------------------- */

static bool make_folder(char *path)
{
	for (char *p = path + 1; (p = strchr(p, '/')); p++) {
		*p = '\0';
		mkdir(path, 0700);
		*p = '/';
	}
	return !mkdir(path, 0700) || errno == EEXIST;
}

static char *folder_path(const Invoker *invoker)
{
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");

	if (invoker->change)
		return invoker->home ? xasprintf("%s/.cache/wallprof/symbols", invoker->home)
				     : NULL;
	if (cache && *cache == '/')
		return xasprintf("%s/wallprof/symbols", cache);
	return home && *home == '/' ? xasprintf("%s/.cache/wallprof/symbols", home) : NULL;
}

SymbolCache *symbol_cache_open(const Invoker *invoker)
{
	SymbolCache *cache = xcalloc(1, sizeof(*cache));
	bool usable;

	cache->folder = folder_path(invoker);
	usable = cache->folder && as_invoker_prepare(invoker, &cache->as) == 0 &&
		 as_invoker_enter(&cache->as) == 0;
	if (usable) {
		usable = make_folder(cache->folder);
		if (as_invoker_leave(&cache->as))
			usable = false;
	}
	if (usable)
		return cache;
	log_verbose("names are not cached: no folder for it%s%s", cache->folder ? " at " : "",
		    cache->folder ? cache->folder : "");
	as_invoker_free(&cache->as);
	free(cache->folder);
	free(cache);
	return NULL;
}

static char *object_path(const SymbolCache *cache, const MappedFile *file)
{
	char hex[2 * sizeof(file->build_id) + 1];

	for (size_t i = 0; i < file->build_id_len; i++)
		sprintf(hex + 2 * i, "%02x", file->build_id[i]);
	return xasprintf("%s/%s-%016" PRIx64 ".zst", cache->folder, hex,
			 hash_mix(file->device, file->inode));
}

/* ---- reading -------------------------------------------------------------------------- */

static bool read_file(int fd, const MappedFile *file, CachedObject *ret_object)
{
	_cleanup_free_ uint8_t *data = NULL;
	struct stat st;

	if (fstat(fd, &st) || st.st_size <= 0 || st.st_size > COMPRESSED_MAX)
		return false;
	data = xmalloc(st.st_size);
	if (pread(fd, data, st.st_size, 0) != st.st_size)
		return false;
	return cached_object_read(file, data, st.st_size, ret_object);
}

void symbol_cache_load(SymbolCache *cache, const DebugFiles *files, CachedObject *ret_object)
{
	_cleanup_free_ char *path = object_path(cache, files->file);
	_cleanup_close_ int fd = -1;
	struct stat st;
	bool good;

	*ret_object = (CachedObject){};
	if (as_invoker_enter(&cache->as))
		return;
	fd = open_regular(path, RESOLVE_NO_MAGICLINKS, &st);
	/* The last use decides what is kept; still as the user, whose link may lead anywhere. */
	if (fd >= 0)
		futimens(fd, NULL);
	as_invoker_leave(&cache->as);
	good = fd >= 0 && read_file(fd, files->file, ret_object);
	for (size_t i = 0; i < ret_object->tried.count && good; i++)
		good = debug_files_unchanged(files, &ret_object->tried.items[i]);
	if (!good)
		cached_object_free(ret_object);
}

/* ---- writing -------------------------------------------------------------------------- */

/* Whole or not at all: readers at the same time see the old file or the new one. */
static int replace_file(const char *path, const void *data, size_t size)
{
	_cleanup_free_ char *temporary = xasprintf("%s.XXXXXX", path);
	int fd = mkostemp(temporary, O_CLOEXEC);
	int r;

	if (fd < 0)
		return -errno;
	r = write_all(fd, data, size);
	if (close(fd) && r == 0)
		r = -errno;
	if (r == 0 && rename(temporary, path))
		r = -errno;
	if (r < 0)
		unlink(temporary);
	return r;
}

void symbol_cache_store(SymbolCache *cache, const MappedFile *file, const CachedObject *object)
{
	_cleanup_free_ char *path = object_path(cache, file);
	_cleanup_free_ void *data = NULL;
	size_t size;
	int r = cached_object_write(file, object, &data, &size);

	if (r == 0)
		r = as_invoker_enter(&cache->as);
	if (r == 0) {
		r = replace_file(path, data, size);
		as_invoker_leave(&cache->as);
	}
	if (r < 0)
		log_verbose("names of %s are not cached: %s", file->path, strerror(-r));
}

/* ---- its bound -------------------------------------------------------------------------- */

typedef struct CacheFile {
	char *name;
	uint64_t size, mtime_ns;
} CacheFile;

typedef VEC(CacheFile) CacheFiles;

static int compare_ages(const void *a, const void *b)
{
	const CacheFile *x = a, *y = b;

	return x->mtime_ns < y->mtime_ns ? -1 : x->mtime_ns > y->mtime_ns;
}

static uint64_t list_files(int folder, DIR *entries, CacheFiles *files)
{
	struct dirent *entry;
	uint64_t total = 0;
	struct stat st;

	while ((entry = readdir(entries))) {
		if (fstatat(folder, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) ||
		    !S_ISREG(st.st_mode))
			continue;
		*vec_push(files) = (CacheFile){
			.name = xstrdup(entry->d_name),
			.size = st.st_size,
			.mtime_ns = st.st_mtim.tv_sec * NSEC_PER_SEC + st.st_mtim.tv_nsec,
		};
		total += st.st_size;
	}
	return total;
}

static void prune(const char *path)
{
	DIR *entries = opendir(path);
	CacheFiles files = {};
	uint64_t total;

	if (!entries)
		return;
	total = list_files(dirfd(entries), entries, &files);
	if (total > SYMBOL_CACHE_MAX) {
		qsort(files.items, files.count, sizeof(*files.items), compare_ages);
		for (size_t i = 0; i < files.count && total > PRUNE_TO; i++)
			if (!unlinkat(dirfd(entries), files.items[i].name, 0))
				total -= files.items[i].size;
	}
	for (size_t i = 0; i < files.count; i++)
		free(files.items[i].name);
	vec_free(&files);
	closedir(entries);
}

void symbol_cache_close(SymbolCache *cache)
{
	if (!cache)
		return;
	if (!as_invoker_enter(&cache->as)) {
		prune(cache->folder);
		as_invoker_leave(&cache->as);
	}
	as_invoker_free(&cache->as);
	free(cache->folder);
	free(cache);
}
