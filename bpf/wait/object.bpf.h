/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * object.bpf.h - the waited-for object: its key, and the records that say what it is.
 *
 * Kernel pointers are passed as numbers (fd.bpf.c says why).
 */
#ifndef WALLPROF_OBJECT_BPF_H
#define WALLPROF_OBJECT_BPF_H

#include "inode.bpf.h"

#define ANONYMOUS_NAME_SIZE 32 /* enough for "[timerfd]" and its NUL */

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
	       "object_key has the layout of both records");

/*
 * object.bpf.c: sends the records of an open file (struct file *) once; returns its enum fd_kind.
 */
extern int object_emit(u64 file, struct object_key *ret_key);
/* socket.bpf.c: sends REC_SOCKET of a socket unless it was sent in its present state. */
extern int socket_emit(u64 file);
/*
 * The same for a socket that the current thread is closing, to which no file leads. Returns its
 * enum fd_kind, FD_NONE if there is none.
 */
extern int socket_emit_closing(struct object_key *ret_key);
/*
 * socket.bpf.c: sends REC_SOCKET of a Unix socket that the current task connects or sends from,
 * with the address (struct sockaddr_un) in the task's memory; `length` is the address's length in
 * bytes.
 */
extern int socket_emit_destination(u64 file, u64 wanted, u32 length);
/*
 * epoll.bpf.c: sends REC_WATCH of an epoll descriptor unless it was sent with its present list.
 * watch_begin() collects the list and returns the index of a scratch slot, or -1 if nothing is to
 * be sent. The caller describes the files in the list (watched_describe()), and watch_end() sends
 * the record. The loops are in as few functions as possible, because all functions of a call chain
 * share 512 bytes of stack.
 */
extern int watch_begin(u64 file, const struct object_key *key);
extern int watch_end(const struct object_key *key, u32 slot);
/*
 * io_uring.bpf.c: sends the ring that the current task waits for in io_uring_enter(), and the files
 * that its requests wait for.
 */
extern int ring_emit(struct rec_switch *record);
/*
 * Sends REC_FUTEX of the word that the current process waits for in its system call, unless it was
 * sent lately.
 */
extern int futex_emit(struct rec_switch *record);

/* The mark that the name of a file without an inode of its own has. */
static __always_inline u64 anonymous_mark(const struct object_key *key)
{
	return mix(key->inode, key->device);
}

/*
 * Sends the record in a slot, which already has its count and entries. Returns 0 if it was written.
 */
static __always_inline int watch_send(struct stack_slot *slot, const struct object_key *key,
				      u8 flags)
{
	struct rec_watch *record = (struct rec_watch *)slot->buffer;
	u32 size = record->count;

	barrier_var(size);
	if (size > WATCHED_MAX)
		return -1;
	size = sizeof(*record) + size * sizeof(struct watched);
	record_init(&record->h, REC_WATCH, flags, size, bpf_ktime_get_ns());
	record->inode = key->inode;
	record->device = key->device;
	record->generation = key->generation;
	return emit(RING_BULK, &record->h, size);
}

static __always_inline void watched_describe(u32 slot_index)
{
	struct stack_slot *slot = bpf_map_lookup_elem(&scratch, &slot_index);
	struct rec_watch *record;

	if (!slot)
		return;
	record = (struct rec_watch *)slot->buffer;
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

/*
 * Like object_emit(), and for an epoll descriptor (if `watches`) also sends the files that it
 * watches.
 */
static __always_inline int object_emit_all(u64 file, bool watches, struct object_key *ret_key)
{
	int kind, slot;

	kind = object_emit(file, ret_key);
	if (!watches || kind != FD_ANON)
		return kind;
	slot = watch_begin(file, ret_key);
	if (slot < 0)
		return kind;
	watched_describe(slot);
	watch_end(ret_key, slot);
	return kind;
}

#endif
