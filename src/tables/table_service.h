/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * table_service.h - the unwind tables of mapped files, while wallprof records: from the cache, or
 * built in sandboxed children, several at a time.
 *
 * Nothing here waits for a child, because the recorder's rings fill meanwhile. An object costs the
 * recorder the reading of its file in the cache, or the copying and checking of what a child has
 * built. A child that crashes, hangs or sends invalid data is replaced; its object has no table,
 * which is reported. One child reads many files, so a file that takes it over can make the tables
 * of later files wrong; but never invalid, and it can do nothing else.
 */
#ifndef WALLPROF_TABLE_SERVICE_H
#define WALLPROF_TABLE_SERVICE_H

#include "invoker.h"
#include "unwind_table.h"

#define TABLE_WORKERS_MAX 4

/*
 * Opens a separate debug file of the object with this id: by its build id, or by the name in its
 * .gnu_debuglink if debuglink is not NULL, at the path with the number `candidate` (debug_link.h).
 * Returns a descriptor, which the service closes, or a negative errno. The child checks whether the
 * file belongs to the object.
 */
typedef int (*TableFindDebug)(void *user, uint32_t id, const char *debuglink, unsigned candidate);

/* Returns whether the table of the object with this id is needed by now; others come later. */
typedef bool (*TableIsUsed)(void *user, uint32_t id);

typedef struct TableServiceOptions {
	const Invoker *invoker; /* its cache folder is used; NULL = no cache */
	unsigned workers;	/* 0 = one for each CPU that is online, at most TABLE_WORKERS_MAX */
	uint64_t timeout_ns;	/* CPU time for a small object; 0 = 2 s */
	/* For objects of which a large part has no call frame information; NULL = none. */
	TableFindDebug find_debug;
	void *find_user;
	TableIsUsed is_used; /* NULL: all are */
	void *used_user;
} TableServiceOptions;

typedef struct TableRequest {
	uint32_t id; /* of the FILE record */
	int fd;	     /* stays the caller's */
	uint64_t base_svma;
	const uint8_t *build_id;
	uint8_t build_id_len; /* 0 = none: its table is not kept in the cache */
} TableRequest;

typedef struct TableServiceCounts {
	uint64_t wanted; /* each ends in one of the three below */
	uint64_t cached, built, failed;
	uint64_t children; /* that were started */
} TableServiceCounts;

typedef struct TableService TableService;

#define TABLE_DEBUG_USED 1

/*
 * An object is done. table is valid until this returns; it is NULL if there is none, and then error
 * is a negative errno, for which table_error_text() has a text. debug is TABLE_DEBUG_USED; a
 * negative errno, likewise, if a debug file was found but could not be used (-ESTALE: it is not the
 * object's); or 0: there is none, or it adds nothing. This may request more tables.
 */
typedef void (*TableReady)(void *user, uint32_t id, const UnwindTable *table, int error, int debug);

/* Returns 0 or a negative errno. Children are started when they are first needed. */
int table_service_new(const TableServiceOptions *options, TableService **ret_service);
/* Ends the children; requests without an answer get none. Writes what is missing in the cache. */
void table_service_free(TableService *service);

/* Queues an object, unless one with its id waits already. Never waits. */
void table_service_request(TableService *service, const TableRequest *request);

/* Readable (epoll) when table_service_process() has something to do. */
int table_service_fd(const TableService *service);
/*
 * Handles what is there. Never waits; returns after some milliseconds if there is more, and then
 * the descriptor stays readable.
 */
void table_service_process(TableService *service, TableReady ready, void *user);

/*
 * Processes until all requests are answered, or until the deadline (CLOCK_MONOTONIC). Returns how
 * many are not answered. For use before the window.
 */
size_t table_service_wait(TableService *service, uint64_t deadline_ns, TableReady ready,
			  void *user);

TableServiceCounts table_service_counts(const TableService *service);

/* The reason, as a text, why an object has no table or a debug file was not used. */
const char *table_error_text(int error);

#endif
