/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * table_job.h - an object that waits for its unwind table (table_service.c): its file, the debug
 * files that are tried for it, and what it may take.
 */
#ifndef WALLPROF_TABLE_JOB_H
#define WALLPROF_TABLE_JOB_H

#include "table_cache.h"
#include "table_service.h"

typedef struct TableJob {
	uint32_t id;
	int fd, debug_fd; /* debug_fd: the debug file that is tried; -1 = none */
	int error;	  /* why they are not there */
	uint64_t base_svma;
	uint64_t size, rows_max; /* size: bytes of both files */
	bool again;		 /* its first worker may have been spoilt by another object */
	bool cacheable;
	TableKey key;
	/* What came of the object alone, while debug files are tried. */
	UnwindTable alone;
	int alone_error;
	char *debuglink; /* the name that it has for its debug file; NULL = none */
	unsigned places; /* that a debug file was looked for in */
	int debug_error; /* why the last one that was found could not be used; 0 = it could */
} TableJob;

/* The request's descriptor is duplicated. cache: its key in the cache is wanted. */
void table_job_init(const TableRequest *request, bool cache, TableJob *ret_job);
void table_job_close(TableJob *job);

/*
 * Opens the next debug file that there is, in the place of the one before: by the build id, then by
 * debuglink. Returns false, and none is open, if there are no more.
 */
bool table_job_next_debug_file(TableJob *job, TableFindDebug find, void *user);

/* First in, first out; a job is its owner's again when it is got. */
typedef struct TableQueue {
	VEC(TableJob) jobs;
	size_t next;
} TableQueue;

bool table_queue_empty(const TableQueue *queue);
void table_queue_put(TableQueue *queue, const TableJob *job);
TableJob table_queue_get(TableQueue *queue);
/*
 * The longest to make first, for which the size stands, so that at the end no child is left alone
 * with it. A small one may wait for all that are larger; there are not that many.
 */
TableJob table_queue_get_largest(TableQueue *queue);
void table_queue_free(TableQueue *queue);

#endif
