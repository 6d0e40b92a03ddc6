/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * requests.h - requests to block devices (REC_REQUEST, REC_DEVICE), and what all writers say of
 * one.
 */
#ifndef WALLPROF_REQUESTS_H
#define WALLPROF_REQUESTS_H

#include "records.h"
#include "util.h"
#include <stdbool.h>

#define REQUEST_NONE   UINT32_MAX
#define OFFSET_UNKNOWN UINT64_MAX

typedef struct Request {
	uint64_t submit_ns; /* 0: its submission was not seen */
	uint64_t start_ns;  /* the kernel made the request; 0: not known */
	uint64_t issue_ns;  /* the driver had it, for the last time; 0: never, or not seen */
	uint64_t end_ns;    /* it completed */
	uint64_t sector;    /* of 512 bytes, on the disk */
	uint64_t offset;    /* in the file, bytes, or OFFSET_UNKNOWN */
	uint64_t held_ns;   /* that a cgroup's limit held it back for, from submit_ns on */
	uint32_t bytes;
	uint32_t opf;	      /* the kernel's operation and flags */
	uint32_t device;      /* major << 20 | minor */
	uint32_t over_device; /* the device whose request this is a part of, or 0 */
	uint32_t file;	      /* Timeline::objects, or OBJECT_NONE */
	uint32_t user_stack;  /* of the submission; STACK_NONE: none was taken */
	uint32_t task;	      /* who submitted it: Timeline::tasks, or THREAD_NONE */
	uint32_t thread;      /* Timeline::threads, if that is one of them, or THREAD_NONE */
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
	char *lies_on;		/* "sda, sdb", or the file behind a loop device; may be "" */
	char *mounted;		/* where the root of its file system is; may be "" */
	VEC(uint32_t) requests; /* Requests::list, in order of their end */
} BlockDevice;

/* All zeros is an empty one. */
typedef struct Requests {
	VEC(Request) list; /* once the timeline is made: in order of end_ns */
	VEC(BlockDevice) devices;
	Map device_of_number;
} Requests;

void requests_free(Requests *requests);

/* Takes what a device is called; the last word counts, unless there is none. */
void requests_add_device(Requests *requests, const struct rec_device *record);

/* The place in the list of a device, made if nothing was said of it. */
uint32_t requests_device(Requests *requests, uint32_t number);

/* Of a loop device: what it is asked for is asked for once more, of the disk with its file. */
bool requests_lie_on_file(const Requests *requests, uint32_t number);

/* "nvme0n1", "loop0 (/tmp/image)"; to be freed. */
char *request_device_text(const Requests *requests, uint32_t number);

/* When it came to be: the earliest that is known. */
uint64_t request_begin(const Request *request);
/* When its device could have had it: from then on no cgroup's limit held it back. */
uint64_t request_let_go(const Request *request);
/*
 * How long until the driver had it, but for what a cgroup held it back, and how long that took it.
 * Of one that a device has passed on
 * (REQUEST_BIO) neither is known.
 */
uint64_t request_queued_ns(const Request *request);
uint64_t request_device_ns(const Request *request);

bool request_is_read(const Request *request);
bool request_is_write(const Request *request);

/* "read", "write", "flush", …. Static. */
const char *request_operation(const Request *request);
/* "sync, readahead", …: to be freed; may be "". */
char *request_flags_text(const Request *request);
/* "done", "failed (10)"; to be freed. */
char *request_status_text(const Request *request);
/*
 * How many rows those take that took so long, one for the device and one for the thread if it is in
 * the timeline; ret_others: how many rows the others would.
 */
uint64_t requests_count(const Requests *requests, uint64_t least_ns, uint64_t *ret_others);
/* The least time (ns) of those that have room; see threshold_fit_rows(). */
uint64_t requests_fit(const Requests *requests, uint64_t budget);

/* Whose it is: "direct", "on behalf", …. Static. */
const char *request_origin(const Request *request);

#endif
