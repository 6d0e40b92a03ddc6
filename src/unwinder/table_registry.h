/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * table_registry.h - which mapped file has which unwind table in the memory that the walk reads:
 * wanted when a file is first mapped, made by the table service, removed when no room is left.
 */
#ifndef WALLPROF_TABLE_REGISTRY_H
#define WALLPROF_TABLE_REGISTRY_H

#include "mapped_files.h"
#include "table_memory.h"
#include "table_service.h"

/* The BPF side of it, the programs' own. */
typedef struct UnwindMaps {
	TableMemory *memory;
	int processes_fd, objects_fd;
	struct unwind_object *vdso;	      /* written here */
	const struct unwind_counts *troubles; /* counted by BPF */
} UnwindMaps;

typedef struct TableRegistry TableRegistry;

typedef struct TableRegistryCounts {
	uint64_t wanted, ready, failed; /* files: asked for, with a table, without one */
	uint64_t no_room;		/* found no room although nothing more could be dropped */
	uint64_t unread;		/* of those without: they could not be read to the end */
	uint64_t debug_unused;		/* files whose debug file was found, and did not fit */
	uint64_t evicted;		/* tables that made room */
	uint64_t objects_lost;		/* files that the map of objects had no room for */
} TableRegistryCounts;

/* Does a process that lives map the file? */
typedef bool (*FileUsed)(void *user, uint32_t file);

/*
 * Returns 0 or a negative errno. maps and files stay the caller's and must outlive this. Of files
 * that used() denies tables may be dropped to make room.
 */
int table_registry_new(const UnwindMaps *maps, MappedFiles *files, const Invoker *invoker,
		       FileUsed used, void *user, TableRegistry **ret_tables);
void table_registry_free(TableRegistry *tables);

/* The file with this id was mapped. Never waits. */
void table_registry_request(TableRegistry *tables, uint32_t file);

/* Readable when table_registry_process() has something to do. */
int table_registry_fd(const TableRegistry *tables);
/* The files whose state has changed since the last call are fresh until the next one. */
void table_registry_process(TableRegistry *tables);
bool table_registry_any_changed(const TableRegistry *tables);
bool table_registry_is_changed(const TableRegistry *tables, uint32_t file);
/* Before the window begins: until all is ready, or the deadline (CLOCK_MONOTONIC). Is it? */
bool table_registry_wait(TableRegistry *tables, uint64_t deadline_ns);

/*
 * The mapping of a file at start … last with the bias as the walk wants it: with its table,
 * or with enum unwind_no_table in its place. A table that was dropped is wanted again.
 */
struct unwind_mapping table_registry_mapping(TableRegistry *tables, uint32_t file, uint64_t start,
					     uint64_t last, uint64_t bias);

/*
 * Drops the table that was published longest ago of those that are not used. Returns false if
 * there is none.
 */
bool table_registry_drop_one(TableRegistry *tables);

/* Asks again for tables that found no room, if they would now. */
void table_registry_retry(TableRegistry *tables);

TableRegistryCounts table_registry_counts(const TableRegistry *tables);

#endif
