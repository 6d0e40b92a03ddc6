/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbol_cache.h"
#include "cache_dir.h"
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define COMPRESSED_MAX (64u << 20)

struct SymbolCache {
	CacheDir *folder;
};

SymbolCache *symbol_cache_open(const Invoker *invoker)
{
	CacheDir *folder = cache_dir_open(invoker, "symbols", SYMBOL_CACHE_MAX);
	SymbolCache *cache;

	if (!folder)
		return NULL;
	cache = xcalloc(1, sizeof(*cache));
	cache->folder = folder;
	return cache;
}

void symbol_cache_close(SymbolCache *cache)
{
	if (!cache)
		return;
	cache_dir_close(cache->folder);
	free(cache);
}

static char *object_name(const MappedFile *file)
{
	return cache_dir_object_name(file->build_id, file->build_id_len, file->device, file->inode,
				     "zst");
}

static bool read_file(int fd, uint64_t size, const MappedFile *file, CachedObject *ret_object)
{
	_cleanup_free_ uint8_t *data = NULL;

	if (size == 0 || size > COMPRESSED_MAX)
		return false;
	data = xmalloc(size);
	if (pread(fd, data, size, 0) != (ssize_t)size)
		return false;
	return cached_object_read(file, data, size, ret_object);
}

void symbol_cache_load(SymbolCache *cache, const DebugFiles *files, CachedObject *ret_object)
{
	_cleanup_free_ char *name = object_name(files->file);
	struct stat st;
	_cleanup_close_ int fd = cache_dir_read(cache->folder, name, &st);
	bool good;

	*ret_object = (CachedObject){};
	good = fd >= 0 && read_file(fd, st.st_size, files->file, ret_object);
	for (size_t i = 0; i < ret_object->tried.count && good; i++)
		good = debug_files_unchanged(files, &ret_object->tried.items[i]);
	if (!good)
		cached_object_free(ret_object);
}

int symbol_cache_store(SymbolCache *cache, const MappedFile *file, const CachedObject *object)
{
	_cleanup_free_ char *name = object_name(file);
	_cleanup_free_ void *data = NULL;
	size_t size;
	int r = cached_object_write(file, object, &data, &size);

	if (r == 0)
		r = cache_dir_replace(cache->folder, name, &(struct iovec){data, size}, 1);
	return r;
}
