/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stack_table_libs.c - the libraries of a profile and their ids.
 */
#include "stack_table_rows.h"
#include "text.h"

#define NONE	   UINT32_MAX
#define GUID_BYTES 16

/*
 * Breakpad's id: the build id's first 16 bytes as a GUID, whose first three
 * fields are little-endian, and an age of 0. A library without a build id gets
 * one from its path: the viewer needs the pair of name and id to be unique.
 */
static char *breakpad_id(const Library *library)
{
	static const uint8_t order[GUID_BYTES] = {3, 2, 1,  0,	5,  4,	7,  6,
						  8, 9, 10, 11, 12, 13, 14, 15};
	uint8_t id[GUID_BYTES] = {}, guid[GUID_BYTES];
	char *text = xmalloc(2 * GUID_BYTES + 2);

	if (library->build_id_len > 0) {
		memcpy(id, library->build_id, MIN((size_t)library->build_id_len, sizeof(id)));
	} else {
		uint64_t hash[2] = {};

		for (const char *p = library->path; p && *p; p++) {
			hash[0] = hash_mix(hash[0], (uint8_t)*p);
			hash[1] = hash_mix(hash[1], hash[0]);
		}
		memcpy(id, hash, sizeof(id));
	}
	for (size_t i = 0; i < GUID_BYTES; i++)
		guid[i] = id[order[i]];
	strcpy(text_hex(text, guid, GUID_BYTES, "0123456789ABCDEF"), "0");
	return text;
}

/* The viewer splits "debugName/breakpadId" at the slash. */
static char *debug_name(const Library *library)
{
	char *name = xstrdup(library->name);

	for (char *p = name; *p; p++)
		if (*p == '/')
			*p = '_';
	return name;
}

/* Two libraries of the same name and id are one file under two paths: one row. */
static uint32_t add_lib(StackTable *tables, uint32_t library)
{
	const Library *info = &tables->frames->libraries.items[library];
	LibRow row = {library, debug_name(info), breakpad_id(info)};
	_cleanup_free_ char *key = xasprintf("%s/%s", row.debug_name, row.breakpad_id);
	uint32_t number = strings_intern(&tables->lib_keys, key);

	if (number == tables->libs.count) {
		*vec_push(&tables->libs) = row;
	} else {
		free(row.debug_name);
		free(row.breakpad_id);
	}
	return number;
}

uint32_t stack_table_lib(StackTable *tables, uint32_t library)
{
	while (tables->lib_of.count <= library)
		*vec_push(&tables->lib_of) = NONE;
	if (tables->lib_of.items[library] == NONE)
		tables->lib_of.items[library] = add_lib(tables, library);
	return tables->lib_of.items[library];
}
