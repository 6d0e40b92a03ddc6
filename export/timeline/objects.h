/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * objects.h - the objects of waits, faults and requests: files (REC_INODE), sockets (REC_SOCKET),
 * what epoll watches (REC_WATCH), words of memory (REC_FUTEX), lengths of time.
 */
#ifndef WALLPROF_OBJECTS_H
#define WALLPROF_OBJECTS_H

#include "json_writer.h"
#include "records.h"
#include "util.h"

#define OBJECT_NONE UINT32_MAX

enum object_kind {
	OBJECT_FILE = 0, /* also a directory, a device, or an inode of unknown kind */
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
	uint8_t flags;	 /* enum inode_flags: which parts of a path are known */
	bool has_path;	 /* a REC_INODE named it, whatever parts are known */
	uint32_t device; /* major << 20 | minor */
	uint32_t generation;
	uint64_t number;
	/*
	 * It is "/usr/lib/libc.so.6"; "sda1:/lib/libc.so.6"; "inode 123 of device 8:1";
	 * "tcp 10.0.0.1:4711 → 10.0.0.2:80"; "pipe:[123]"; never NULL.
	 */
	char *name;
	/* The last REC_SOCKET or REC_FUTEX, or all REC_WATCH (epoll_watches.h); may be NULL. */
	struct record *description;
	/* The first object with the same name; see objects_find_alike(). */
	uint32_t alike;
} Object;

/* All zeros is an empty one. */
typedef struct Objects {
	VEC(Object) list;
	Map index;
} Objects;

void objects_free(Objects *objects);

/* Returns the kind of object that a descriptor of this kind refers to. */
enum object_kind object_kind_of(enum fd_kind kind);

/*
 * Adds a record about a file's name, a socket's connection, or what epoll watches. The last record
 * counts, unless it has less of a path than an earlier one. What epoll watches is accumulated.
 */
void objects_add_inode(Objects *objects, const struct rec_inode *record);
void objects_add_socket(Objects *objects, const struct rec_socket *record);
void objects_add_watch(Objects *objects, const struct rec_watch *record);
void objects_add_futex(Objects *objects, const struct rec_futex *record);

/* Gives a file whose path is not known a name that all such files of its device share. */
void objects_name_by_device(Objects *objects, uint32_t place);

/*
 * Returns the index of an object; adds it if it is new. OBJECT_NONE for inode 0. OBJECT_FILE:
 * anything with an inode, whose kind may be known by another record.
 */
uint32_t objects_reference(Objects *objects, enum object_kind kind, uint32_t device,
			   uint64_t number, uint32_t generation);
/* These do the same for objects without an inode. */
uint32_t objects_timer(Objects *objects, uint64_t ns); /* exact, if it is a round time; else */
uint32_t objects_timer_about(Objects *objects, uint64_t ns); /* to two digits */
/* This is the lock of a process's mappings. number is unique to the process, and not 0. */
uint32_t objects_mmap_lock(Objects *objects, uint64_t number, const char *process);
uint32_t objects_futex(Objects *objects, uint32_t tgid, uint32_t exec_id, uint64_t address);

/*
 * The root of the file system of a file whose path begins there (INODE_MOUNT) is mounted at this
 * path.
 */
void object_mounted(Object *object, const char *path);
/* The same if the mount point is unknown. device: what the file system is on. */
void object_not_mounted(Object *object, const char *device);

/*
 * Objects of one kind, device (or process) and name are one object to the user: a file that is
 * created for each transaction, all eventfds. To be called when all have their names; until then
 * each is its own `alike`.
 */
void objects_find_alike(Objects *objects);

/*
 * Returns all that an epoll descriptor was found to watch; NULL: it is not an epoll descriptor, or
 * nothing is known.
 */
const struct rec_watch *object_watches(const Object *object);

/* Returns whether it is a listening socket, or an epoll descriptor that watches one. */
bool object_listens(const Object *object);

/* OBJECT_NONE has none. */
static inline uint32_t objects_alike(const Objects *objects, uint32_t object)
{
	return object == OBJECT_NONE ? OBJECT_NONE : objects->list.items[object].alike;
}

/*
 * Returns "tcp 10.0.0.1:4711 → 10.0.0.2:80", "tcp listening on [::]:80", "udp 0.0.0.0:53", "unix
 * /run/x.sock" or "unix:[123]". The caller frees it.
 */
char *object_socket_text(const struct rec_socket *socket);

/*
 * Returns "io_uring of …" or "epoll of tcp listening on 0.0.0.0:80, pipe:[7] and 3 more". The
 * caller frees it. It refers to objects.
 */
char *object_watch_text(Objects *objects, const struct rec_watch *watch);

/*
 * Writes the members "object", its name, and "object_kind": "file", "pipe", …; both are null for
 * OBJECT_NONE.
 */
void object_json(Json *json, const Object *object);

#endif
