/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * objects.h - what waits, faults and requests are about: files (REC_INODE), sockets (REC_SOCKET),
 * what epoll watches (REC_WATCH), words of memory (REC_FUTEX), lengths of time.
 */
#ifndef WALLPROF_OBJECTS_H
#define WALLPROF_OBJECTS_H

#include "json_writer.h"
#include "records.h"
#include "util.h"

#define OBJECT_NONE UINT32_MAX

enum object_kind {
	OBJECT_FILE = 0, /* a directory or a device, too; or not known to be anything else */
	OBJECT_PIPE,
	OBJECT_SOCKET,
	OBJECT_ANONYMOUS, /* eventfd, timerfd, signalfd, … */
	OBJECT_EPOLL,
	OBJECT_TIMER,	  /* number: the requested time in ns */
	OBJECT_FUTEX,	  /* number: the word's address; device: tgid; generation: exec_id */
	OBJECT_MMAP_LOCK, /* number: the process's, as passed to objects_mmap_lock() */
	OBJECT_KINDS
};

typedef struct Object {
	uint8_t kind;	 /* enum object_kind */
	uint8_t flags;	 /* enum inode_flags: what is known of a path */
	uint32_t device; /* major << 20 | minor */
	uint32_t generation;
	uint64_t number;
	/*
	 * "/usr/lib/libc.so.6"; "sda1:/lib/libc.so.6"; "inode 123 of device 8:1";
	 * "tcp 10.0.0.1:4711 → 10.0.0.2:80"; "pipe:[123]"; never NULL.
	 */
	char *name;
	struct record *told; /* the last REC_SOCKET or REC_FUTEX; all of REC_WATCH
				(epoll_watches.h); may be NULL */
	uint32_t alike;	     /* the first one that is called the same, see objects_find_alike */
} Object;

/* All zeros is an empty one. */
typedef struct Objects {
	VEC(Object) list;
	Map index;
} Objects;

void objects_free(Objects *objects);

/* What a descriptor of that kind leads to. */
enum object_kind object_kind_of(enum fd_kind kind);

/*
 * Take what a file is called, where a socket leads to, what epoll watches. The last word counts,
 * unless it has less of a path than an earlier one; what epoll watches is accumulated.
 */
void objects_add_inode(Objects *objects, const struct rec_inode *record);
void objects_add_socket(Objects *objects, const struct rec_socket *record);
void objects_add_watch(Objects *objects, const struct rec_watch *record);
void objects_add_futex(Objects *objects, const struct rec_futex *record);

/*
 * The place in the list of something, made if nothing was said of it yet; OBJECT_NONE for inode 0.
 * OBJECT_FILE: anything with an inode, of which another kind may be known.
 */
uint32_t objects_reference(Objects *objects, enum object_kind kind, uint32_t device,
			   uint64_t number, uint32_t generation);
/* The same of what has no inode. */
uint32_t objects_timer(Objects *objects,
		       uint64_t ns); /* as it is, if that is a round figure; else */
uint32_t objects_timer_about(Objects *objects, uint64_t ns); /* to two digits */
/* The lock of a process's mappings. number: unique to the process, not 0. */
uint32_t objects_mmap_lock(Objects *objects, uint64_t number, const char *process);
uint32_t objects_futex(Objects *objects, uint32_t tgid, uint32_t exec_id, uint64_t address);

/* Of a file whose path begins at the root of its file system (INODE_MOUNT): that root is there. */
void object_mounted(Object *object, const char *path);
/* Likewise: nobody knows where that root is. device: what the file system is on. */
void object_not_mounted(Object *object, const char *device);

/*
 * What is of one kind, device (or process) and name is one to whoever reads of it: a file that is
 * made anew for each transaction, all eventfds. To be called when all have their names; until then
 * each is its own `alike`.
 */
void objects_find_alike(Objects *objects);

/* All that an epoll descriptor was seen to watch; NULL: not an epoll descriptor, or not known. */
const struct rec_watch *object_watches(const Object *object);

/* Whether it is a socket that listens, or an epoll descriptor that watches one. */
bool object_listens(const Object *object);

/* OBJECT_NONE of none. */
static inline uint32_t objects_alike(const Objects *objects, uint32_t object)
{
	return object == OBJECT_NONE ? OBJECT_NONE : objects->list.items[object].alike;
}

/* The members "object", its name, and "object_kind": "file", "pipe", …; NULL: both null. */
void object_json(Json *json, const Object *object);

#endif
