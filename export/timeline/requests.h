/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * requests.h - requests to block devices (REC_REQUEST, REC_DEVICE), and their texts for all
 * writers.
 */
#ifndef WALLPROF_REQUESTS_H
#define WALLPROF_REQUESTS_H

#include "records.h"
#include "util.h"
#include <stdbool.h>

#define REQUEST_NONE   UINT32_MAX
#define OFFSET_UNKNOWN UINT64_MAX

typedef struct Request {
	uint64_t submit_ns; /* 0: its submission is not recorded */
	uint64_t start_ns;  /* when the kernel made the request; 0: unknown */
	/* When the driver got it, for the last time; 0: never, or not recorded. */
	uint64_t issue_ns;
	uint64_t end_ns; /* when it completed */
	uint64_t sector; /* of 512 bytes, on the disk */
	uint64_t offset; /* in the file, bytes, or OFFSET_UNKNOWN */
	/* How long a cgroup's limit held it back, from submit_ns on. */
	uint64_t held_ns;
	uint32_t bytes;
	uint32_t opf;	 /* the kernel's operation and flags */
	uint32_t device; /* major << 20 | minor */
	/* The device whose request this is a part of, or 0. */
	uint32_t over_device;
	uint32_t file;	     /* Timeline::objects, or OBJECT_NONE */
	uint32_t user_stack; /* at the submission; STACK_NONE: none was taken */
	uint32_t task;	     /* its submitter: Timeline::tasks, or THREAD_NONE */
	/* The submitter, if it is one of Timeline::threads; else THREAD_NONE. */
	uint32_t thread;
	uint16_t merges, issues, partials;
	uint16_t cpu;  /* where it completed */
	uint8_t flags; /* enum request_flags */
	uint8_t status;
	uint8_t via; /* enum request_via */
} Request;

typedef struct BlockDevice {
	uint32_t number;	/* major << 20 | minor */
	uint32_t disk;		/* of a partition, or 0 */
	char *name;		/* "nvme0n1" */
	char *lies_on;		/* "sda, sdb", or the file of a loop device; may be "" */
	char *mounted;		/* the mount point of its file system; may be "" */
	VEC(uint32_t) requests; /* Requests::list, sorted by their end */
} BlockDevice;

/* All zeros is an empty one. */
typedef struct Requests {
	/* Sorted by end_ns when the timeline is finished. */
	VEC(Request) list;
	VEC(BlockDevice) devices;
	Map device_of_number;
} Requests;

void requests_free(Requests *requests);

/* Adds the names of a device. The last record counts, unless a field is empty. */
void requests_add_device(Requests *requests, const struct rec_device *record);

/* Returns the index of a device; adds it if it is new. */
uint32_t requests_device(Requests *requests, uint32_t number);

/*
 * Returns whether it is a loop device: the disk with its file gets each of its requests once more.
 */
bool requests_lie_on_file(const Requests *requests, uint32_t number);

/* Returns "nvme0n1" or "loop0 (/tmp/image)". The caller frees it. */
char *request_device_text(const Requests *requests, uint32_t number);

/* Returns when the request began to exist: the earliest known time. */
uint64_t request_begin(const Request *request);
/* Returns from when on no cgroup's limit held it back, so that its device could have had it. */
uint64_t request_let_go(const Request *request);
/*
 * How long it took until the driver had it, without the time that a cgroup held it back, and
 * how long the driver took. Neither is known if a device passed it on (REQUEST_BIO).
 */
uint64_t request_queued_ns(const Request *request);
uint64_t request_device_ns(const Request *request);

bool request_is_read(const Request *request);
bool request_is_write(const Request *request);

/* Returns "read", "write", "flush", …. Static. */
const char *request_operation(const Request *request);
/* Returns "sync, readahead", …; may be "". The caller frees it. */
char *request_flags_text(const Request *request);
/* Returns "done" or "failed (10)". The caller frees it. */
char *request_status_text(const Request *request);
/*
 * Returns how many rows the requests need that took at least this long: one row for the device and
 * one for the thread, if it is in the timeline. ret_others: how many rows the others would need.
 */
uint64_t requests_count(const Requests *requests, uint64_t least_ns, uint64_t *ret_others);
/* Returns the shortest duration (ns) of requests that have rows; see requests_fit_rows(). */
uint64_t requests_fit(const Requests *requests, uint64_t budget);

/*
 * Returns how many rows the items need that took least_ns or longer; ret_others: how many the
 * others would need.
 */
typedef uint64_t (*CountRows)(const void *user, uint64_t least_ns, uint64_t *ret_others);

/*
 * Returns a time (ns) such that the items that took at least this long need no more rows than the
 * budget. 0 if all fit; UINT64_MAX (nothing is shown) if even the longest ones would be too many.
 */
uint64_t requests_fit_rows(CountRows count, const void *user, uint64_t budget);

/* Returns whose it is: "direct", "on behalf", …. Static. */
const char *request_origin(const Request *request);

#endif
