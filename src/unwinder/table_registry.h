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
	UnwindMemory *memory;
	int processes_fd, objects_fd;
	struct unwind_object *vdso;		/* written here */
	const struct unwind_troubles *troubles; /* counted by BPF */
} UnwindMaps;

typedef struct UnwindTables UnwindTables;

typedef struct UnwindTablesCounts {
	uint64_t wanted, ready, failed; /* files: asked for, with a table, without one */
	uint64_t no_room;		/* found no room although nothing more could be dropped */
	uint64_t unread;		/* of those without: they could not be read to the end */
	uint64_t debug_unused;		/* files whose debug file was found, and did not fit */
	uint64_t evicted;		/* tables that made room */
	uint64_t objects_lost;		/* files that the map of objects had no room for */
} UnwindTablesCounts;

/* Does a process that lives map the file? */
typedef bool (*FileUsed)(void *user, uint32_t file);

/*
 * Returns 0 or a negative errno. maps and files stay the caller's and must outlive this. Of files
 * that used() denies tables may be dropped to make room.
 */
int unwind_tables_new(const UnwindMaps *maps, Files *files, const Invoker *invoker, FileUsed used,
		      void *user, UnwindTables **ret_tables);
void unwind_tables_free(UnwindTables *tables);

/* The file with this id was mapped. Never waits. */
void unwind_tables_want(UnwindTables *tables, uint32_t file);

/* Readable when unwind_tables_take() has something to do. */
int unwind_tables_fd(const UnwindTables *tables);
/* The files whose state has changed since the last call are fresh until the next one. */
void unwind_tables_take(UnwindTables *tables);
bool unwind_tables_any_fresh(const UnwindTables *tables);
bool unwind_tables_is_fresh(const UnwindTables *tables, uint32_t file);
/* Before the window begins: until all is ready, or the deadline (CLOCK_MONOTONIC). Is it? */
bool unwind_tables_wait(UnwindTables *tables, uint64_t deadline_ns);

/*
 * The mapping of a file at start … last with the bias as the walk wants it: with its table,
 * or with enum unwind_no_table in its place. A table that was dropped is wanted again.
 */
struct unwind_mapping unwind_tables_mapping(UnwindTables *tables, uint32_t file, uint64_t start,
					    uint64_t last, uint64_t bias);

/*
 * Drops the table that was published longest ago of those that are not used. Returns false if
 * there is none.
 */
bool unwind_tables_drop_one(UnwindTables *tables);

/* Asks again for tables that found no room, if they would now. */
void unwind_tables_try_again(UnwindTables *tables);

UnwindTablesCounts unwind_tables_counts(const UnwindTables *tables);

#endif
