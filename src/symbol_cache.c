/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbol_cache.h"
#include "as_invoker.h"
#include "capture_format.h"
#include "regular_file.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#define OBJECT_MAX	  (256u << 20) /* bytes of one file, decompressed */
#define COMPRESSED_MAX	  (64u << 20)
#define COMPRESSION_LEVEL 1
#define PRUNE_TO	  (SYMBOL_CACHE_MAX / 4 * 3)

static const char magic[16] = "wallprof names 1";

/* The file is one zstd frame of this, the tried files and the records. */
struct cache_header {
	char magic[sizeof(magic)];
	char version[16]; /* of wallprof: another one may name differently */
	uint8_t build_id[20];
	uint8_t build_id_len, asked_debuginfod;
	uint16_t reserved;
	uint32_t tried; /* cache_tried: how many follow */
	uint32_t reserved2;
	uint64_t records; /* bytes, at the end */
};

struct cache_tried {
	uint32_t len; /* of all of it, a multiple of 8 */
	uint32_t reserved;
	uint64_t size, mtime_ns;
	char path[];
};

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
	return xasprintf("%s/%s.zst", cache->folder, hex);
}

/* ---- reading -------------------------------------------------------------------------- */

/* Frees on failure. Returns its size, or 0. */
static size_t decompress(const uint8_t *data, size_t size, uint8_t **ret_bytes)
{
	unsigned long long content = ZSTD_getFrameContentSize(data, size);
	size_t got;

	/* Both of zstd's error values are larger than any size. */
	if (content > OBJECT_MAX || content < sizeof(struct cache_header))
		return 0;
	*ret_bytes = xmalloc(content);
	got = ZSTD_decompress(*ret_bytes, content, data, size);
	if (!ZSTD_isError(got) && got == content)
		return got;
	free(*ret_bytes);
	*ret_bytes = NULL;
	return 0;
}

static size_t read_file(int fd, uint8_t **ret_bytes)
{
	_cleanup_free_ uint8_t *data = NULL;
	struct stat st;

	if (fstat(fd, &st) || st.st_size <= 0 || st.st_size > COMPRESSED_MAX)
		return 0;
	data = xmalloc(st.st_size);
	if (pread(fd, data, st.st_size, 0) != st.st_size)
		return 0;
	/* The last use decides what is kept. */
	futimens(fd, NULL);
	return decompress(data, st.st_size, ret_bytes);
}

static bool take_tried(CachedObject *object, const uint8_t **p, const uint8_t *end)
{
	const struct cache_tried *tried = (const void *)*p;

	if ((size_t)(end - *p) < sizeof(*tried) || tried->len > (size_t)(end - *p) ||
	    tried->len % 8 || tried->len <= sizeof(*tried) ||
	    !memchr(tried->path, '\0', tried->len - sizeof(*tried)))
		return false;
	*vec_push(&object->tried) = (TriedFile){
		.path = xstrdup(tried->path), .size = tried->size, .mtime_ns = tried->mtime_ns};
	*p += tried->len;
	return true;
}

static bool take_record(CachedObject *object, const uint8_t **p, const uint8_t *end)
{
	const struct rec_symbol *symbol = (const void *)*p;

	if ((size_t)(end - *p) < sizeof(struct record) || symbol->h.len > (size_t)(end - *p) ||
	    symbol->h.len % 8 || symbol->h.kind != REC_SYMBOL ||
	    capture_check(&symbol->h) != CAPTURE_RECORD_GOOD || symbol->file || symbol->lib)
		return false;
	cached_object_add(object, symbol);
	*p += symbol->h.len;
	return true;
}

static bool parse(CachedObject *object, const MappedFile *file, const uint8_t *bytes, size_t size)
{
	const struct cache_header *header = (const void *)bytes;
	const uint8_t *p = bytes + sizeof(*header), *end = bytes + size;

	if (memcmp(header->magic, magic, sizeof(magic)) ||
	    strncmp(header->version, WALLPROF_VERSION, sizeof(header->version)) ||
	    header->build_id_len != file->build_id_len ||
	    memcmp(header->build_id, file->build_id, file->build_id_len))
		return false;
	object->asked_debuginfod = header->asked_debuginfod;
	for (uint32_t i = 0; i < header->tried; i++)
		if (!take_tried(object, &p, end))
			return false;
	while (p < end)
		if (!take_record(object, &p, end))
			return false;
	return true;
}

static uint64_t address_at(const CachedObject *object, size_t place)
{
	return ((const struct rec_symbol *)(object->records.items + place))->address;
}

static int compare_places(const void *a, const void *b, void *object)
{
	uint64_t x = address_at(object, *(const size_t *)a);
	uint64_t y = address_at(object, *(const size_t *)b);

	return x < y ? -1 : x > y;
}

static void sort_places(CachedObject *object)
{
	if (object->places.count)
		qsort_r(object->places.items, object->places.count, sizeof(size_t), compare_places,
			object);
}

void symbol_cache_load(SymbolCache *cache, const DebugFiles *files, CachedObject *ret_object)
{
	_cleanup_free_ char *path = object_path(cache, files->file);
	_cleanup_free_ uint8_t *bytes = NULL;
	_cleanup_close_ int fd = -1;
	struct stat st;
	size_t size;
	bool good;

	*ret_object = (CachedObject){};
	if (as_invoker_enter(&cache->as))
		return;
	fd = open_regular(path, RESOLVE_NO_MAGICLINKS, &st);
	as_invoker_leave(&cache->as);
	size = fd >= 0 ? read_file(fd, &bytes) : 0;
	if (size == 0)
		return;
	good = parse(ret_object, files->file, bytes, size);
	for (size_t i = 0; i < ret_object->tried.count && good; i++)
		good = debug_files_unchanged(files, &ret_object->tried.items[i]);
	if (good)
		sort_places(ret_object);
	else
		cached_object_free(ret_object);
}

const struct rec_symbol *cached_object_find(const CachedObject *object, uint64_t address)
{
	size_t low = 0, high = object->places.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (address_at(object, object->places.items[middle]) < address)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == object->places.count || address_at(object, object->places.items[low]) != address)
		return NULL;
	return (const struct rec_symbol *)(object->records.items + object->places.items[low]);
}

void cached_object_add(CachedObject *object, const struct rec_symbol *symbol)
{
	*vec_push(&object->places) = object->records.count;
	vec_append(&object->records, (const uint8_t *)symbol, symbol->h.len);
}

void cached_object_free(CachedObject *object)
{
	for (size_t i = 0; i < object->tried.count; i++)
		free(object->tried.items[i].path);
	vec_free(&object->tried);
	vec_free(&object->records);
	vec_free(&object->places);
	*object = (CachedObject){};
}

/* ---- writing -------------------------------------------------------------------------- */

typedef VEC(uint8_t) Bytes;

static void append_tried(Bytes *bytes, const TriedFile *tried)
{
	size_t length = strlen(tried->path) + 1;
	size_t padding = -(sizeof(struct cache_tried) + length) & 7;
	struct cache_tried head = {
		.len = sizeof(head) + length + padding,
		.size = tried->size,
		.mtime_ns = tried->mtime_ns,
	};

	vec_append(bytes, (const uint8_t *)&head, sizeof(head));
	vec_append(bytes, (const uint8_t *)tried->path, length);
	vec_append(bytes, (const uint8_t *)"\0\0\0\0\0\0\0", padding);
}

static Bytes serialize(const MappedFile *file, const CachedObject *object)
{
	struct cache_header header = {
		.version = WALLPROF_VERSION,
		.build_id_len = file->build_id_len,
		.asked_debuginfod = object->asked_debuginfod,
		.tried = object->tried.count,
		.records = object->records.count,
	};
	Bytes bytes = {};

	memcpy(header.magic, magic, sizeof(magic));
	memcpy(header.build_id, file->build_id, sizeof(header.build_id));
	vec_append(&bytes, (const uint8_t *)&header, sizeof(header));
	for (size_t i = 0; i < object->tried.count; i++)
		append_tried(&bytes, &object->tried.items[i]);
	if (object->records.count)
		vec_append(&bytes, object->records.items, object->records.count);
	return bytes;
}

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

/* With a checksum, for a disk may lie. Returns the size, or 0. */
static size_t compress(const Bytes *bytes, void *room, size_t capacity)
{
	ZSTD_CCtx *context = ZSTD_createCCtx();
	size_t size = 0;

	if (context &&
	    !ZSTD_isError(
		    ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, COMPRESSION_LEVEL)) &&
	    !ZSTD_isError(ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1)))
		size = ZSTD_compress2(context, room, capacity, bytes->items, bytes->count);
	ZSTD_freeCCtx(context);
	return ZSTD_isError(size) ? 0 : size;
}

void symbol_cache_store(SymbolCache *cache, const MappedFile *file, CachedObject *object)
{
	_cleanup_free_ char *path = object_path(cache, file);
	Bytes bytes = serialize(file, object);
	size_t room = ZSTD_compressBound(bytes.count);
	_cleanup_free_ void *compressed = NULL;
	size_t size = 0;
	int r = -EFBIG;

	if (bytes.count <= OBJECT_MAX) {
		compressed = xmalloc(room);
		size = compress(&bytes, compressed, room);
		r = size ? as_invoker_enter(&cache->as) : -ENOMEM;
	}
	if (r == 0) {
		r = replace_file(path, compressed, size);
		as_invoker_leave(&cache->as);
	}
	if (r < 0)
		log_verbose("names of %s are not cached: %s", file->path, strerror(-r));
	vec_free(&bytes);
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
