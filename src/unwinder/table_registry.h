/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * table_registry.h - the unwind tables of mapped files in the memory that the walk reads: a table
 * is requested when its file is first mapped, made by the table service, and removed when another
 * one needs the room.
 */
#ifndef WALLPROF_TABLE_REGISTRY_H
#define WALLPROF_TABLE_REGISTRY_H

#include "mapped_files.h"
#include "table_memory.h"
#include "table_service.h"

/* The BPF maps of the unwinder; the programs own them. */
typedef struct UnwindMaps {
	TableMemory *memory;
	int processes_fd, objects_fd;
	struct unwind_object *vdso;	 /* the registry writes it, */
	struct unwind_mapping *vsyscall; /* and the mapping of the vsyscall page */
	uint64_t *mappings_epoch;	 /* counts changes of entries in the map of processes */
	const struct unwind_counts *troubles; /* BPF counts in it */
} UnwindMaps;

typedef struct TableRegistry TableRegistry;

typedef struct TableRegistryCounts {
	uint64_t wanted, ready, failed; /* files: requested, with a table, without one */
	uint64_t no_room;      /* there was no room, although nothing more could be dropped */
	uint64_t unread;       /* files without a table because they could not be read completely */
	uint64_t debug_unused; /* files with a debug file that was found and could not be used */
	uint64_t evicted;      /* tables that were dropped to make room */
	uint64_t objects_lost; /* files for which the map of objects had no room */
	uint64_t gone; /* files without a table: closed for lack of descriptors, replaced since */
	uint64_t deferred; /* times that a table had to wait for a free descriptor */
} TableRegistryCounts;

/* Returns whether a living process maps the file. */
typedef bool (*FileUsed)(void *user, uint32_t file);

/*
 * Returns 0 or a negative errno. maps and files stay the caller's and must outlive this. Tables of
 * files for which used() returns false may be dropped to make room.
 */
int table_registry_new(const UnwindMaps *maps, MappedFiles *files, const Invoker *invoker,
		       FileUsed used, void *user, TableRegistry **ret_tables);
void table_registry_free(TableRegistry *tables);
DEFINE_CLEANUP(TableRegistry *, table_registry_free)

/* Requests the table of the file with this id, which was mapped. Never waits. */
void table_registry_request(TableRegistry *tables, uint32_t file);

/* Readable when table_registry_process() has something to do. */
int table_registry_fd(const TableRegistry *tables);
/*
 * Handles the answers of the table service. Files whose state changes count as changed until the
 * next call.
 */
void table_registry_process(TableRegistry *tables);
bool table_registry_any_changed(const TableRegistry *tables);
bool table_registry_is_changed(const TableRegistry *tables, uint32_t file);
/*
 * For use before the window: waits until all tables are there, or for the deadline
 * (CLOCK_MONOTONIC). Returns whether they are.
 */
bool table_registry_wait(TableRegistry *tables, uint64_t deadline_ns);

/*
 * Returns the mapping of a file at start … last with the bias in the form of the walk: with its
 * table, or with enum unwind_no_table in place of it. A table that was dropped is requested again.
 */
struct unwind_mapping table_registry_mapping(TableRegistry *tables, uint32_t file, uint64_t start,
					     uint64_t last, uint64_t bias);

/* Drops the unused table whose last publication is the oldest. Returns false if there is none. */
bool table_registry_drop_one(TableRegistry *tables);

/* Requests tables again that had no room or no descriptor for their file, if they have now. */
void table_registry_retry(TableRegistry *tables);

TableRegistryCounts table_registry_counts(const TableRegistry *tables);

#endif
