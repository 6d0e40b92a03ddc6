/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * table_service.h - the unwind tables of mapped files, while wallprof records: from the cache of
 * those that were built before, else built in sandboxed children, several at a time.
 *
 * Nothing here waits for a child: the recorder's rings fill meanwhile. What an object costs the
 * recorder is reading its file of the cache, or copying and checking what a child has
 * built. A child that crashes, hangs or lies is replaced, and its object has no table, which is
 * told. One child reads many files, so that a file that takes it over can make the tables of
 * later ones wrong; but never such that a table is not valid, nor anything else.
 */
#ifndef WALLPROF_TABLE_SERVICE_H
#define WALLPROF_TABLE_SERVICE_H

#include "launch.h"
#include "unwind_table.h"

#define TABLE_WORKERS_MAX 4

/*
 * Opens (closed by the service) a separate debug file of the object with this id: by its build id,
 * or by the name in its .gnu_debuglink if debuglink is not NULL. Returns a descriptor or a negative
 * errno. Whether it fits is seen by the child.
 */
typedef int (*TableFindDebug)(void *user, uint32_t id, const char *debuglink);

typedef struct TableServiceOptions {
	const Invoker *invoker; /* whose cache folder; NULL = no cache */
	unsigned workers;	/* 0 = one for each CPU that is online, TABLE_WORKERS_MAX at most */
	uint64_t timeout_ns;	/* CPU time that a small object may take; 0 = 2 s */
	/* For objects of whose code a large part has no call frame information; NULL = none. */
	TableFindDebug find_debug;
	void *find_user;
} TableServiceOptions;

typedef struct TableRequest {
	uint32_t id; /* of the FILE record */
	int fd;	     /* stays the caller's */
	uint64_t base_svma;
	const uint8_t *build_id;
	uint8_t build_id_len; /* 0 = none: its table is not kept in the cache */
} TableRequest;

typedef struct TableServiceCounts {
	uint64_t wanted; /* each is one of the three below in the end */
	uint64_t cached, built, failed;
	uint64_t children; /* that were started */
} TableServiceCounts;

typedef struct TableService TableService;

#define TABLE_DEBUG_USED 1

/*
 * An object is done. table is the service's, and good until this returns; NULL with a negative
 * errno if there is none, for which table_error_text() has words. debug: TABLE_DEBUG_USED; a
 * negative errno, likewise, if a debug file was found but could not be used (-ESTALE: it is not the
 * object's); or 0: there is none, or it has nothing to add. More may be wanted from here.
 */
typedef void (*TableReady)(void *user, uint32_t id, const UnwindTable *table, int error, int debug);

/* Returns 0 or a negative errno. Children are started when they are first needed. */
int table_service_new(const TableServiceOptions *options, TableService **ret_service);
/* Ends the children; who has not been answered by now is not. Writes what the cache lacks. */
void table_service_free(TableService *service);

/* Queues an object, unless one with its id waits for its answer already. Never waits. */
void table_service_request(TableService *service, const TableRequest *request);

/* Readable (epoll) when table_service_process() has something to do. */
int table_service_fd(const TableService *service);
/* Does it. Never waits; ends after some milliseconds if there is more, and stays readable. */
void table_service_process(TableService *service, TableReady ready, void *user);

/*
 * The same until all that was wanted is answered, or the deadline (CLOCK_MONOTONIC). Returns how
 * many are not answered. For the time before anything is recorded.
 */
size_t table_service_wait(TableService *service, uint64_t deadline_ns, TableReady ready,
			  void *user);

TableServiceCounts table_service_counts(const TableService *service);

/* Why an object has no table, or a debug file was not used, in words. */
const char *table_error_text(int error);

#endif
