/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * table_worker.h - one sandboxed child that builds unwind tables, an object at a time, for as
 * long as it behaves.
 *
 * A table of megabytes comes through memory that both have (TableRegion); a socket carries the
 * rest. The child may change that memory whenever it likes and say whatever it likes, so the
 * parent copies first, and believes the copy only after unwind_table_valid().
 */
#ifndef WALLPROF_TABLE_WORKER_H
#define WALLPROF_TABLE_WORKER_H

#include "sandbox.h"
#include "unwind_table.h"

/* Rows, then rules. Only what is used takes memory. No other child than its own has it. */
typedef struct TableRegion {
	uint8_t *base;
	size_t size;
} TableRegion;

#define TABLE_LINK_MAX 256 /* no file's name is longer */

/* What the child sends when it has put a table into the region. */
typedef struct TableAnswer {
	uint32_t number; /* that came with the object */
	int32_t result;	 /* of unwind_table_build(), or another negative errno */
	uint64_t rows, rules;
	UnwindCounts counts;
	char debuglink[TABLE_LINK_MAX]; /* the name in the object's .gnu_debuglink, or "" */
} TableAnswer;

typedef struct TableWorker {
	Sandbox sandbox; /* pid 0 = not running */
	TableRegion region;
	TableAnswer answer; /* as much of it as has come */
	size_t received;
	uint32_t number;
} TableWorker;

/* Returns 0 or a negative errno. */
int table_worker_start(TableWorker *worker);
/* Ends it if it runs, and frees all; it can be started anew. Returns its status as wait(2) has it.
 */
int table_worker_end(TableWorker *worker);

/*
 * Has it build the table of fd, with debug_fd (-1: none) for what that lacks; if that is not its
 * debug file, or cannot be read, the result is -ESTALE. Both may be closed afterwards. Returns 0 or
 * a negative errno (-EPIPE: it is gone).
 */
int table_worker_send(TableWorker *worker, int fd, int debug_fd, uint64_t base_svma);

/*
 * Reads what has come, without waiting. Returns 1 if that is the answer, of which worker->answer
 * has the debuglink: *ret_result is 0 with a table, to be freed, or a negative errno; 0 if it is
 * not all there yet; -EIO: the child is gone; -EBADMSG: it says what can't be. No object has more
 * than rows_max rows, nor rules.
 */
int table_worker_receive(TableWorker *worker, uint64_t rows_max, UnwindTable *ret_table,
			 int *ret_result);

/* CPU time that it has taken in its life, ns; UINT64_MAX if that can't be told any more. */
uint64_t table_worker_cpu_ns(const TableWorker *worker);

#endif
