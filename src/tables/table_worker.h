/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * table_worker.h - one sandboxed child that builds unwind tables, one object at a time, for as long
 * as it works correctly.
 *
 * A table of megabytes comes through shared memory (TableRegion); a socket carries the rest. The
 * child may change that memory at any time and send anything, so the parent copies first, and
 * trusts the copy only after unwind_table_valid().
 */
#ifndef WALLPROF_TABLE_WORKER_H
#define WALLPROF_TABLE_WORKER_H

#include "debug_link.h"
#include "sandbox.h"
#include "table_file.h"
#include "unwind_table.h"

/* Rows, then rules. Only used parts take memory. No other child has access to it. */
typedef struct TableRegion {
	uint8_t *base;
	size_t size;
} TableRegion;

/* What the child sends when it has put a table into the region. */
typedef struct TableAnswer {
	uint32_t number; /* the number that came with the object */
	int32_t result;	 /* of unwind_table_build(), or another negative errno */
	uint64_t rows, rules;
	UnwindCounts counts;
	char debuglink[TABLE_LINK_MAX]; /* the name in the object's .gnu_debuglink, or "" */
} TableAnswer;

typedef struct TableWorker {
	Sandbox sandbox; /* pid 0 = not running */
	TableRegion region;
	TableAnswer answer; /* the part of it that has arrived */
	size_t received;
	uint32_t number;
} TableWorker;

/* What starts a child, and what the child calls. */
typedef struct TableWorkerCalls {
	int (*sandbox_start)(SandboxMain main, const int *fds, size_t fd_count,
			     const void *argument, const SandboxLimits *limits,
			     Sandbox *ret_sandbox);
	bool (*debug_link_read)(Elf *elf, Companion *ret_companion);
	int (*debug_link_check)(Elf *elf, Elf *debug, int debug_fd, int64_t size_max);
	int (*unwind_table_build)(ElfMap *file, ElfMap *debug, uint64_t base_svma,
				  UnwindTable *ret_table);
} TableWorkerCalls;

/* They are the functions of these names. A test sets others before it starts a worker. */
extern TableWorkerCalls table_worker_calls;

/* Returns 0 or a negative errno. */
int table_worker_start(TableWorker *worker);
/*
 * Ends the child if it runs, and frees all; it can be started again. Returns the child's status as
 * wait(2) has it.
 */
int table_worker_end(TableWorker *worker);

/*
 * Makes the child build the table of fd; debug_fd (-1: none) adds what fd lacks. If it is not the
 * object's debug file, or cannot be read, the result is -ESTALE. Both may be closed afterwards.
 * Returns 0 or a negative errno (-EPIPE: the child has ended).
 */
int table_worker_send(TableWorker *worker, int fd, int debug_fd, uint64_t base_svma);

/*
 * Reads what has arrived, without waiting. Returns 1 if the answer is complete: worker->answer has
 * the debuglink, and *ret_result is 0 with a table, which the caller frees, or a negative errno.
 * Returns 0 if it is incomplete; -EIO if the child has ended; -EBADMSG if the answer is impossible.
 * No object has more than rows_max rows, nor more than rows_max rules.
 */
int table_worker_receive(TableWorker *worker, uint64_t rows_max, UnwindTable *ret_table,
			 int *ret_result);

/* CPU time of the child so far, ns; UINT64_MAX if it cannot be read any more. */
uint64_t table_worker_cpu_ns(const TableWorker *worker);

#endif
