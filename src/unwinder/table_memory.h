/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * table_memory.h - the memory in which the walk finds tables, rules and mappings (bpf/abi/maps.h):
 * BPF maps that are written here as memory, without a system call.
 *
 * It grows by chunks. Before Linux 6.19 each costs up to 20 ms: the kernel waits until no program
 * can still see the old state. So the first is made before the programs are loaded, and a usual
 * recording needs no other.
 */
#ifndef WALLPROF_TABLE_MEMORY_H
#define WALLPROF_TABLE_MEMORY_H

#include "maps.h"
#include "unwind_table.h"

typedef struct TableMemory TableMemory;

/* The limits of the memory that a recording may use. Only whole chunks are used, at least one. */
#define TABLE_MEMORY_MIN (CHUNK_CELLS * sizeof(union unwind_cell))
#define TABLE_MEMORY_MAX (CHUNKS_MAX * TABLE_MEMORY_MIN)

typedef struct TableMemoryCounts {
	uint64_t cells_used, cells; /* a cell has 32 bytes */
	uint32_t chunks;	    /* added since the first */
	uint32_t rules;
	uint64_t rows_without_rule; /* there was no room for their rules: the walk ends there */
} TableMemoryCounts;

/*
 * Makes the maps, which the BPF object uses instead of its own (bpf_map__reuse_fd). The first chunk
 * is put in place meanwhile: table_memory_ready() waits for it. size is the limit for all of it in
 * bytes, from TABLE_MEMORY_MIN to TABLE_MEMORY_MAX. Returns 0 or a negative errno.
 */
int table_memory_new(uint64_t size, TableMemory **ret_memory);
int table_memory_chunks_fd(const TableMemory *memory);
int table_memory_rules_fd(const TableMemory *memory);
int table_memory_ready(TableMemory *memory);
/* Removals are counted in *epoch, which the programs read (unwind_epoch); NULL: nowhere. */
void table_memory_set_epoch(TableMemory *memory, uint64_t *epoch);
/*
 * May be called only when the programs that read the memory are gone. in_turn: frees its chunks one
 * by one (deferred_free.h).
 */
void table_memory_free(TableMemory *memory, bool in_turn);

/* Where a table is; table 0: there is none. */
typedef struct TableHandle {
	uint32_t row, table; /* as in unwind_mapping */
} TableHandle;

/*
 * Adds a valid table. Returns 0, -ENOSPC if the memory that tables may use is full (then another
 * table must be removed first), or another negative errno. A sixteenth of the memory is left to the
 * mappings of processes.
 */
int table_memory_add_table(TableMemory *memory, const UnwindTable *table, TableHandle *ret_handle);
/*
 * The number of cells that a table of so many rows takes, and the number of cells that tables may
 * still take, all holes added up.
 */
uint64_t table_memory_cells(size_t rows);
uint64_t table_memory_spare(const TableMemory *memory);
/* The memory may be reused at once: a walk that is reading the table notices that it is gone. */
void table_memory_remove_table(TableMemory *memory, TableHandle handle);

/* Where the mappings of a process are. */
typedef struct RunHandle {
	uint64_t mark; /* as in unwind_process::run; 0 = none */
	uint32_t cell;
} RunHandle;

/*
 * Does what table_memory_add_table() does, for the mappings of a process: sorted by address, not
 * overlapping, count > 0.
 */
int table_memory_add_run(TableMemory *memory, const struct unwind_mapping *mappings, uint32_t count,
			 RunHandle *ret_handle);
void table_memory_remove_run(TableMemory *memory, RunHandle handle);

/*
 * Finds the rule that the walk in BPF would find at pc (relative) in a table. Returns false if the
 * table is gone.
 */
bool table_memory_find_rule(const TableMemory *memory, const struct unwind_mapping *mapping,
			    uint32_t pc, struct unwind_rule *ret_rule);

TableMemoryCounts table_memory_counts(const TableMemory *memory);

#endif
