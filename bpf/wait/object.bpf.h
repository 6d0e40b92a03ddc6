/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * object.bpf.h - what a thread waits for: by which numbers it is known, and telling what it is.
 *
 * Kernel pointers are passed as numbers (fd.bpf.c says why).
 */
#ifndef WALLPROF_OBJECT_BPF_H
#define WALLPROF_OBJECT_BPF_H

#include "inode.bpf.h"

#define ANONYMOUS_NAME_SIZE 32 /* "[timerfd]", and its NUL */

#define OBJECT_KEY(record) ((struct object_key *)&(record)->inode)
_Static_assert(__builtin_offsetof(struct rec_switch, file_device) -
				       __builtin_offsetof(struct rec_switch, inode) ==
			       __builtin_offsetof(struct object_key, device) &&
		       __builtin_offsetof(struct rec_switch, generation) -
				       __builtin_offsetof(struct rec_switch, inode) ==
			       __builtin_offsetof(struct object_key, generation) &&
		       __builtin_offsetof(struct rec_snapshot, generation) -
				       __builtin_offsetof(struct rec_snapshot, inode) ==
			       __builtin_offsetof(struct object_key, generation),
	       "a key lies in either");

/* object.bpf.c: an open file (struct file *), told once; returns its enum fd_kind. */
extern int object_emit(u64 file, struct object_key *ret_key);
/* socket.bpf.c: REC_SOCKET of one, if that was not done since it became what it is. */
extern int socket_emit(u64 file);
/* The same for a socket that the current thread closes and that no file leads to; FD_NONE: none. */
extern int socket_emit_closing(struct object_key *ret_key);
/*
 * socket.bpf.c: sends REC_SOCKET of a Unix socket that the current task connects or sends from,
 * with the address (struct sockaddr_un) in the task's memory; `length` is the address's length in
 * bytes.
 */
extern int socket_emit_destination(u64 file, u64 wanted, u32 length);
/*
 * epoll.bpf.c: REC_WATCH of one, if that was not done since its list became what it is. In between
 * whoever calls tells what is in the list: that is done by loops in no more functions than must be,
 * for all that call each other share 512 bytes of stack. watch_begin() returns the number of the
 * slot, or -1: it is told already.
 */
extern int watch_begin(u64 file);
extern int watch_end(const struct object_key *key, u32 slot);
/*
 * io_uring.bpf.c: the ring that the current task waits for in io_uring_enter(), and what its
 * requests wait for.
 */
extern int ring_emit(struct rec_switch *record);
/*
 * futex.bpf.c: sends REC_FUTEX of the word that the current process waits for in its system call,
 * unless it was sent lately.
 */
extern int futex_emit(struct rec_switch *record);

/*
 * Sends the record in a slot, which already has its count and entries. Returns 0 if it was written.
 */
static __always_inline int watch_send(struct stack_slot *slot, const struct object_key *key,
				      u8 flags)
{
	struct rec_watch *record = (struct rec_watch *)slot->room;
	u32 size = record->count;

	barrier_var(size);
	if (size > WATCHED_MAX)
		return -1;
	size = sizeof(*record) + size * sizeof(struct watched);
	record_init(&record->h, REC_WATCH, flags, size, bpf_ktime_get_ns());
	record->inode = key->inode;
	record->device = key->device;
	record->generation = key->generation;
	return emit(&bulk_ring, &record->h, size);
}

static __always_inline void watched_describe(u32 number)
{
	struct stack_slot *slot = bpf_map_lookup_elem(&scratch, &number);
	struct rec_watch *record;

	if (!slot)
		return;
	record = (struct rec_watch *)slot->room;
	for (u32 i = 0; i < WATCHED_MAX; i++) {
		struct object_key key = {};

		if (i >= record->count)
			break;
		record->watched[i].kind = object_emit(slot->window[i], &key);
		record->watched[i].inode = key.inode;
		record->watched[i].device = key.device;
		record->watched[i].generation = key.generation;
	}
}

/* Tells an open file, as object_emit(); of an epoll descriptor, which `watches`, what it watches.
 */
static __always_inline int object_emit_all(u64 file, bool watches, struct object_key *ret_key)
{
	int kind, slot;

	kind = object_emit(file, ret_key);
	if (!watches || kind != FD_ANON)
		return kind;
	slot = watch_begin(file);
	if (slot < 0)
		return kind;
	watched_describe(slot);
	watch_end(ret_key, slot);
	return kind;
}

#endif
