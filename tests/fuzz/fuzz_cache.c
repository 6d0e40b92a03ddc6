/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A file of the cache of names: as it is, and what is in its zstd frame. */
#include "cached_object.h"
#include "fuzz.h"
#include "seeds.h"

static void expect_sorted(const CachedObject *object)
{
	uint64_t last = 0;

	for (size_t i = 0; i < object->offsets.count; i++) {
		const struct rec_symbol *symbol =
			(const void *)(object->records.items + object->offsets.items[i]);

		fuzz_require(symbol->address >= last);
		last = symbol->address;
		fuzz_require(cached_object_find(object, last)->address == last);
	}
}

/* What was read and is written again is the same. */
static void write_and_read(const MappedFile *file, const CachedObject *object)
{
	_cleanup_free_ void *data = NULL;
	CachedObject again;
	size_t size;

	fuzz_require(cached_object_write(file, object, &data, &size) == 0);
	fuzz_require(cached_object_read(file, data, size, &again));
	fuzz_require(again.records.count == object->records.count);
	fuzz_require(again.tried.count == object->tried.count);
	fuzz_require(again.asked_debuginfod == object->asked_debuginfod);
	for (size_t i = 0; i < again.tried.count; i++)
		fuzz_require(!strcmp(again.tried.items[i].path, object->tried.items[i].path));
	expect_sorted(&again);
	cached_object_free(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const MappedFile file = {.build_id = SEED_BUILD_ID, .build_id_len = 20};
	_cleanup_free_ uint8_t *copy = fuzz_copy(data, size);
	CachedObject object;

	if (cached_object_parse(&file, copy, size, &object)) {
		expect_sorted(&object);
		write_and_read(&file, &object);
		cached_object_free(&object);
	}
	if (cached_object_read(&file, copy, size, &object)) {
		expect_sorted(&object);
		cached_object_free(&object);
	}
	return 0;
}
