/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * table_job.h - an object that waits for its unwind table (table_service.c): its file, the debug
 * files that are tried for it, and its limits.
 */
#ifndef WALLPROF_TABLE_JOB_H
#define WALLPROF_TABLE_JOB_H

#include "table_cache.h"
#include "table_service.h"

typedef struct TableJob {
	uint32_t id;
	int fd, debug_fd; /* debug_fd: the debug file that is tried; -1 = none */
	int error;	  /* why they are missing */
	uint64_t base_svma;
	uint64_t size, rows_max; /* size: bytes of both files */
	bool retried;		 /* another object may have harmed its first worker */
	bool cacheable;
	TableKey key;
	/* The result without a debug file, while debug files are tried. */
	UnwindTable alone;
	int alone_error;
	bool alone_cached; /* it comes from the cache */
	bool alone_cacheable;
	TableKey alone_key;
	char *debuglink;	/* the name in the object's .gnu_debuglink; NULL = none */
	unsigned sources_tried; /* how many were searched for a debug file */
	int debug_error;	/* why the last debug file could not be used; 0 = it could */
} TableJob;

/* The request's descriptor is duplicated. cache: a key for the cache is needed. */
void table_job_init(const TableRequest *request, bool cache, TableJob *ret_job);
void table_job_close(TableJob *job);

/*
 * Opens the next debug file that exists, in place of the one before: first by the build id, then at
 * each path of debuglink. Returns false, and none is open, if there are no more.
 */
bool table_job_next_debug_file(TableJob *job, TableFindDebug find, void *user);

/* First in, first out. A job that is taken out belongs to the caller. */
typedef struct TableQueue {
	VEC(TableJob) jobs;
	size_t next;
} TableQueue;

bool table_queue_empty(const TableQueue *queue);
void table_queue_put(TableQueue *queue, const TableJob *job);
TableJob table_queue_get(TableQueue *queue);
/*
 * Takes out one of those that are used, or if there is none, of all (is_used: NULL = all are). It
 * is the job that takes longest, for which the size stands, so that no child works alone on it at
 * the end. A small one may wait for all larger ones; there are not that many.
 */
TableJob table_queue_get_largest(TableQueue *queue, TableIsUsed is_used, void *user);
void table_queue_free(TableQueue *queue);

#endif
