/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fd.bpf.h - the kind and identity of an open file (fd.bpf.c).
 *
 * Kernel pointers are passed as numbers (fd.bpf.c says why); what cannot be read is 0.
 */
#ifndef WALLPROF_FD_BPF_H
#define WALLPROF_FD_BPF_H

#include "wallprof.bpf.h"

/* Identifies an open file, as in rec_switch and rec_snapshot. inode 0: not known. */
struct object_key {
	u64 inode;
	u32 device, generation;
};

/* Returns the open file (struct file) of a descriptor in a struct files_struct; 0 = none. */
extern u64 fd_file(u64 files, u32 fd);
/* Returns the enum fd_kind of a descriptor. */
extern int fd_kind(u64 files, u32 fd);
/* Returns which of its two descriptors a splice waits for, and whether it writes to that one. */
extern u64 fd_spliced(u64 files, u32 from, u32 to);
#define FD_SPLICED(fd, to)     ((u64)(to) << 32 | (u32)(fd))
#define FD_SPLICED_FD(spliced) ((s32)(spliced))
#define FD_SPLICED_TO(spliced) ((u8)((spliced) >> 32))
/*
 * Returns FD_POLLED() for a poll's list; see struct poll_scan. One function returns all three
 * values, because the verifier would follow each branch that they depend on through the rest of the
 * program.
 */
extern u64 fd_polled(u32 listed, u32 skipped, u32 kinds, u32 fd);
#define FD_POLLED(count, kind, fd) ((u64)(fd) << 32 | (u64)(kind) << 8 | (count))
#define FD_POLLED_COUNT(polled)	   ((u8)(polled))
#define FD_POLLED_KIND(polled)	   ((u8)((polled) >> 8))
#define FD_POLLED_FD(polled)	   ((s32)((polled) >> 32)) /* -1 unless it is the only one */
extern int fd_file_kind(u64 file, struct object_key *ret_key);
/* Returns the real file that an overlay's file is read from and written to; any other file itself.
 */
extern u64 fd_real_file(u64 file);
/* Returns the address of the path (struct path) by which programs know an open file. */
extern u64 fd_path(u64 file);
/* Returns FD_WATCHES() for an epoll descriptor. */
extern int fd_watches(u64 files, u32 fd);

/*
 * Marks: odd numbers that change when the record of a file has to be sent again. fd_name_mark() is
 * for an inode (struct inode) and one of its names (struct dentry). fd_socket_mark() changes when a
 * socket is bound, connected, or listens (0: there is no socket). fd_epoll_mark() changes with the
 * files that an epoll descriptor watches; *scratch_word is for the function's own use.
 */
extern u64 fd_name_mark(u64 inode, u64 dentry);
extern u64 fd_socket_mark(u64 file);
extern u64 fd_epoll_mark(u64 file, u64 *scratch_word);

static __always_inline u64 mix(u64 a, u64 b)
{
	return (a ^ b) * 0x9e3779b97f4a7c15ULL;
}

#endif
