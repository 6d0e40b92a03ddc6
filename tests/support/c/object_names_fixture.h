/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * object_names_fixture.h - what object_names_find() finds for addresses of a file, without a
 * sandbox.
 */
#ifndef WALLPROF_TEST_OBJECT_NAMES_FIXTURE_H
#define WALLPROF_TEST_OBJECT_NAMES_FIXTURE_H

#include "object_names.h"

typedef struct Naming {
	const uint64_t *addresses; /* ascending, each once */
	size_t count;
	struct rec_symbol **answers; /* of each; NULL = none */
	uint64_t missing[DWARF_MISSING_KINDS];
	size_t emitted, sent; /* answers; those that were sent off before what is slow */
	/* Finds a companion; NULL: there is none. */
	int (*find)(void *user, const Companion *companion);
	void *user;
} Naming;

typedef struct NamedFrame {
	const char *name, *source;
	uint32_t line;
} NamedFrame;

/* debug_path is the file found by the build id, or NULL. Returns what object_names_find() does. */
int name_objects(Naming *naming, const char *path, const char *debug_path);
void free_naming(Naming *naming);

/* A Naming::find for .dwo and .dwp files; user is the path of the program. */
int open_split_file(void *path, const Companion *companion);

/* Returns frame n; 0 is the outermost. The strings are the symbol's. */
NamedFrame frame_of(const struct rec_symbol *symbol, uint32_t n);

/* ---- addresses -------------------------------------------------------------------------- */

/* Sorts them and leaves each once. Returns how many there are then. */
size_t sort_addresses(uint64_t *addresses, size_t count);

/* Asks readelf for start and size of a section. Returns whether it exists. */
bool find_section(const char *path, const char *name, uint64_t *ret_start, uint64_t *ret_size);

#endif
