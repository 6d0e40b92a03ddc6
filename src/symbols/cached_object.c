/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cached_object.c - the names of one object, in memory and as a file of symbol_cache.c. */
#include "cached_object.h"
#include "capture_format.h"
#include <errno.h>
#include <string.h>
#include <zstd.h>

#define OBJECT_MAX	  (256u << 20) /* bytes of one file, decompressed */
#define COMPRESSION_LEVEL 1

/*
 * The number at its end increases with every change of how addresses are named, and of the format.
 */
#define MAGIC	     "wallprof names 8"
#define MAGIC_LENGTH (sizeof(MAGIC) - 1) /* without the terminating NUL */

/* The file is one zstd frame of this, the tried files, the note and the records. */
struct cache_header {
	char magic[MAGIC_LENGTH];
	char version[16]; /* of wallprof: another one may name differently */
	uint8_t build_id[20];
	uint8_t build_id_len, asked_debuginfod;
	uint16_t reserved;
	uint32_t tried; /* the number of struct cache_tried that follow */
	uint32_t note;	/* bytes of the note behind them, a multiple of 8 with its NULs; 0 = none */
	uint64_t size, mtime_ns, ctime_ns, device, inode; /* of the object */
	uint64_t records;				  /* bytes, at the end */
};

struct cache_tried {
	uint32_t len; /* of the whole, a multiple of 8 */
	uint32_t by_dwarf;
	uint64_t size, mtime_ns;
	char path[];
};

/* ---- in memory ------------------------------------------------------------------------ */

static uint64_t address_at(const CachedObject *object, size_t offset)
{
	return ((const struct rec_symbol *)(object->records.items + offset))->address;
}

static int compare_offsets(const void *a, const void *b, void *object)
{
	uint64_t x = address_at(object, *(const size_t *)a);
	uint64_t y = address_at(object, *(const size_t *)b);

	return x < y ? -1 : x > y;
}

static void sort_offsets(CachedObject *object)
{
	if (object->offsets.count)
		qsort_r(object->offsets.items, object->offsets.count, sizeof(size_t),
			compare_offsets, object);
}

const struct rec_symbol *cached_object_find(const CachedObject *object, uint64_t address)
{
	size_t at = partition_point(middle, object->offsets.count,
				    address_at(object, object->offsets.items[middle]) < address);

	if (at == object->offsets.count || address_at(object, object->offsets.items[at]) != address)
		return NULL;
	return (const struct rec_symbol *)(object->records.items + object->offsets.items[at]);
}

void cached_object_add(CachedObject *object, const struct rec_symbol *symbol)
{
	*vec_push(&object->offsets) = object->records.count;
	vec_append(&object->records, (const uint8_t *)symbol, symbol->h.len);
}

void cached_object_free(CachedObject *object)
{
	for (size_t i = 0; i < object->tried.count; i++)
		free(object->tried.items[i].path);
	vec_free(&object->tried);
	free(object->note);
	vec_free(&object->records);
	vec_free(&object->offsets);
	*object = (CachedObject){};
}

/* ---- reading -------------------------------------------------------------------------- */

static bool parse_tried(CachedObject *object, const uint8_t **p, const uint8_t *end)
{
	const struct cache_tried *tried = (const void *)*p;

	if ((size_t)(end - *p) < sizeof(*tried) || tried->len > (size_t)(end - *p) ||
	    tried->len % 8 || tried->len <= sizeof(*tried) ||
	    !memchr(tried->path, '\0', tried->len - sizeof(*tried)))
		return false;
	*vec_push(&object->tried) = (TriedFile){
		.path = xstrdup(tried->path),
		.size = tried->size,
		.mtime_ns = tried->mtime_ns,
		.by_dwarf = tried->by_dwarf,
	};
	*p += tried->len;
	return true;
}

static bool parse_note(CachedObject *object, uint32_t size, const uint8_t **p, const uint8_t *end)
{
	if (size == 0)
		return true;
	if (size > (size_t)(end - *p) || size % 8 || !memchr(*p, '\0', size))
		return false;
	object->note = xstrdup((const char *)*p);
	*p += size;
	return true;
}

static bool parse_record(CachedObject *object, const uint8_t **p, const uint8_t *end)
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

static bool parse_all(CachedObject *object, const MappedFile *file, const uint8_t *bytes,
		      size_t size)
{
	const struct cache_header *header = (const void *)bytes;
	const uint8_t *p = bytes + sizeof(*header), *end = bytes + size;

	if (size < sizeof(*header) || memcmp(header->magic, MAGIC, MAGIC_LENGTH) ||
	    strncmp(header->version, WALLPROF_VERSION, sizeof(header->version)) ||
	    header->size != file->size || header->mtime_ns != file->mtime_ns ||
	    header->ctime_ns != file->ctime_ns || header->device != file->device ||
	    header->inode != file->inode || header->build_id_len != file->build_id_len ||
	    memcmp(header->build_id, file->build_id, file->build_id_len))
		return false;
	object->asked_debuginfod = header->asked_debuginfod;
	for (uint32_t i = 0; i < header->tried; i++)
		if (!parse_tried(object, &p, end))
			return false;
	if (!parse_note(object, header->note, &p, end))
		return false;
	while (p < end)
		if (!parse_record(object, &p, end))
			return false;
	return true;
}

bool cached_object_parse(const MappedFile *file, const uint8_t *bytes, size_t size,
			 CachedObject *ret_object)
{
	*ret_object = (CachedObject){};
	if (parse_all(ret_object, file, bytes, size)) {
		sort_offsets(ret_object);
		return true;
	}
	cached_object_free(ret_object);
	return false;
}

/* Frees *ret on failure. Returns the size, or 0. */
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

bool cached_object_read(const MappedFile *file, const uint8_t *data, size_t size,
			CachedObject *ret_object)
{
	_cleanup_free_ uint8_t *bytes = NULL;
	size_t plain = decompress(data, size, &bytes);

	*ret_object = (CachedObject){};
	return plain && cached_object_parse(file, bytes, plain, ret_object);
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
		.by_dwarf = tried->by_dwarf,
	};

	vec_append(bytes, (const uint8_t *)&head, sizeof(head));
	vec_append(bytes, (const uint8_t *)tried->path, length);
	vec_append(bytes, (const uint8_t *)"\0\0\0\0\0\0\0", padding);
}

static const uint8_t zeros[8];

static size_t note_size(const CachedObject *object)
{
	return object->note ? (strlen(object->note) + 1 + 7) & ~7UL : 0;
}

static void append_note(Bytes *bytes, const CachedObject *object)
{
	size_t length = object->note ? strlen(object->note) : 0;

	if (!object->note)
		return;
	vec_append(bytes, (const uint8_t *)object->note, length);
	vec_append(bytes, zeros, note_size(object) - length);
}

static Bytes serialize(const MappedFile *file, const CachedObject *object)
{
	struct cache_header header = {
		.version = WALLPROF_VERSION,
		.build_id_len = file->build_id_len,
		.size = file->size,
		.mtime_ns = file->mtime_ns,
		.ctime_ns = file->ctime_ns,
		.device = file->device,
		.inode = file->inode,
		.asked_debuginfod = object->asked_debuginfod,
		.tried = object->tried.count,
		.note = note_size(object),
		.records = object->records.count,
	};
	Bytes bytes = {};

	memcpy(header.magic, MAGIC, MAGIC_LENGTH);
	memcpy(header.build_id, file->build_id, sizeof(header.build_id));
	vec_append(&bytes, (const uint8_t *)&header, sizeof(header));
	for (size_t i = 0; i < object->tried.count; i++)
		append_tried(&bytes, &object->tried.items[i]);
	append_note(&bytes, object);
	if (object->records.count)
		vec_append(&bytes, object->records.items, object->records.count);
	return bytes;
}

/* Adds a checksum against errors of the disk. Returns the size, or 0. */
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

int cached_object_write(const MappedFile *file, const CachedObject *object, void **ret_data,
			size_t *ret_size)
{
	Bytes bytes = serialize(file, object);
	size_t room = ZSTD_compressBound(bytes.count), size = 0;
	_cleanup_free_ void *compressed = NULL;
	int r = -EFBIG;

	if (bytes.count <= OBJECT_MAX) {
		compressed = xmalloc(room);
		size = compress(&bytes, compressed, room);
		r = size ? 0 : -ENOMEM;
	}
	vec_free(&bytes);
	if (r < 0)
		return r;
	*ret_data = compressed;
	*ret_size = size;
	compressed = NULL;
	return 0;
}
