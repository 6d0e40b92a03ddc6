/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * table_memory.h - the memory in which the walk finds tables, rules and mappings
 * (bpf/abi/maps.h): BPF maps that are written here as memory, without a system call.
 *
 * It grows by chunks. Each costs up to 20 ms before 6.19, as long as the kernel takes to be sure
 * that no program still sees the old state; so the first is made before the programs are loaded,
 * and a usual recording needs no other.
 */
#ifndef WALLPROF_TABLE_MEMORY_H
#define WALLPROF_TABLE_MEMORY_H

#include "maps.h"
#include "unwind_table.h"

typedef struct TableMemory TableMemory;

/* What a recording may use: whole chunks, as many as fit, of which one is always there. */
#define TABLE_MEMORY_MIN (CHUNK_CELLS * sizeof(union unwind_cell))
#define TABLE_MEMORY_MAX (CHUNKS_MAX * TABLE_MEMORY_MIN)

typedef struct TableMemoryCounts {
	uint64_t cells_used, cells; /* of 32 bytes */
	uint32_t chunks;	    /* added since the first */
	uint32_t rules;
	uint64_t rows_without_rule; /* that found no room for theirs: the walk ends there */
} TableMemoryCounts;

/*
 * Makes the maps, for the BPF object to use instead of its own (bpf_map__reuse_fd). The first
 * chunk is being put in place meanwhile: table_memory_ready() waits for that. size: bytes that
 * all of it may take, from TABLE_MEMORY_MIN to TABLE_MEMORY_MAX.
 * Returns 0 or a negative errno.
 */
int table_memory_new(uint64_t size, TableMemory **ret_memory);
int table_memory_chunks_fd(const TableMemory *memory);
int table_memory_rules_fd(const TableMemory *memory);
int table_memory_ready(TableMemory *memory);
/* Counts there what was removed, for the programs (unwind_epoch); NULL: nowhere. */
void table_memory_set_epoch(TableMemory *memory, uint64_t *epoch);
/* Not before the programs are gone that read it. in_turn: its chunks one by one (deferred_free.h).
 */
void table_memory_free(TableMemory *memory, bool in_turn);

/* A table that lies there; table 0: none. */
typedef struct TableHandle {
	uint32_t row, table; /* as in unwind_mapping */
} TableHandle;

/*
 * Puts a valid table there. Returns 0, or -ENOSPC: all that tables may take is full (then something
 * must go first), or a negative errno. A sixteenth is left to the processes' mappings.
 */
int table_memory_add_table(TableMemory *memory, const UnwindTable *table, TableHandle *ret_place);
/* How many cells a table of so many rows takes, and how many tables may still take, all holes added
 * up. */
uint64_t table_memory_cells(size_t rows);
uint64_t table_memory_spare(const TableMemory *memory);
/* Its memory may be used again at once: a walk that is reading there sees that it is gone. */
void table_memory_remove_table(TableMemory *memory, TableHandle place);

/* A process's mappings that lie there. */
typedef struct RunHandle {
	uint64_t mark; /* as in unwind_process::run; 0 = none */
	uint32_t cell;
} RunHandle;

/* The same for a process's mappings, sorted by address, not overlapping; count > 0. */
int table_memory_add_run(TableMemory *memory, const struct unwind_mapping *mappings, uint32_t count,
			 RunHandle *ret_place);
void table_memory_remove_run(TableMemory *memory, RunHandle place);

/* What the walk in BPF would find at pc (relative) in a table; false: it is not there any more. */
bool table_memory_find_rule(const TableMemory *memory, const struct unwind_mapping *mapping,
			    uint32_t pc, struct unwind_rule *ret_rule);

TableMemoryCounts table_memory_counts(const TableMemory *memory);

#endif
