/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unwind_memory.h - the memory in which the walk finds tables, rules and mappings
 * (bpf/shared.h): BPF maps that are written here as memory, without a system call.
 *
 * It grows by chunks. Each costs up to 20 ms before 6.19, as long as the kernel takes to be sure
 * that no program still sees the old state; so the first is made before the programs are loaded,
 * and a usual recording needs no other.
 */
#ifndef WALLPROF_UNWIND_MEMORY_H
#define WALLPROF_UNWIND_MEMORY_H

#include "shared.h"
#include "unwind_table.h"

typedef struct UnwindMemory UnwindMemory;

typedef struct UnwindMemoryCounts {
	uint64_t cells_used, cells; /* of 32 bytes */
	uint32_t chunks;	    /* added since the first */
	uint32_t rules;
	uint64_t rows_without_rule; /* that found no room for theirs: the walk ends there */
} UnwindMemoryCounts;

/*
 * Makes the maps, for the BPF object to use instead of its own (bpf_map__reuse_fd). The first
 * chunk is being put in place meanwhile: unwind_memory_ready() waits for that.
 * Returns 0 or a negative errno.
 */
int unwind_memory_new(UnwindMemory **ret_memory);
int unwind_memory_chunks_fd(const UnwindMemory *memory);
int unwind_memory_rules_fd(const UnwindMemory *memory);
int unwind_memory_ready(UnwindMemory *memory);
/* Not before the programs are gone that read it. */
void unwind_memory_free(UnwindMemory *memory);

/*
 * Puts a valid table there; *ret_row is its first row. Returns 0, or -ENOSPC: all chunks are full
 * (then something must go first), or a negative errno.
 */
int unwind_memory_add_table(UnwindMemory *memory, const UnwindTable *table, uint32_t *ret_row);
void unwind_memory_remove_table(UnwindMemory *memory, uint32_t row, uint32_t rows);

/* The same for a process's mappings, sorted by address, not overlapping; count > 0. */
int unwind_memory_add_run(UnwindMemory *memory, const struct unwind_mapping *mappings,
			  uint32_t count, uint32_t *ret_cell);
void unwind_memory_remove_run(UnwindMemory *memory, uint32_t cell, uint32_t count);

/* What the walk in BPF would find at pc (relative) in a table; false: there is no such table. */
bool unwind_memory_find_rule(const UnwindMemory *memory, const struct unwind_mapping *mapping,
			     uint32_t pc, struct unwind_rule *ret_rule);

UnwindMemoryCounts unwind_memory_counts(const UnwindMemory *memory);

#endif
