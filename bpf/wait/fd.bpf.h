/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fd.bpf.h - what an open file is (fd.bpf.c).
 *
 * The kernel's pointers are numbers here (fd.bpf.c says why), and what cannot be read is 0.
 */
#ifndef WALLPROF_FD_BPF_H
#define WALLPROF_FD_BPF_H

#include "wallprof.bpf.h"

/* What an open file is known by; as in rec_switch and rec_snapshot. inode 0: not known. */
struct object_key {
	u64 inode;
	u32 device, generation;
};

/* The open file (struct file) that a descriptor of a struct files_struct is; 0 = none. */
extern u64 fd_file(u64 files, u32 fd);
/* enum fd_kind of a descriptor, of a file; and what that is known by. */
extern int fd_kind(u64 files, u32 fd);
/* Which of its two descriptors a splice waits for, and whether that is the one that it writes to.
 */
extern u64 fd_spliced(u64 files, u32 from, u32 to);
#define FD_SPLICED(fd, to)     ((u64)(to) << 32 | (u32)(fd))
#define FD_SPLICED_FD(spliced) ((s32)(spliced))
#define FD_SPLICED_TO(spliced) ((u8)((spliced) >> 32))
/*
 * FD_POLLED() of a poll's list; see struct polling. In one place with one answer, for the verifier
 * would follow what depends on it through all that comes.
 */
extern u64 fd_polled(u32 listed, u32 skipped, u32 kinds, u32 fd);
#define FD_POLLED(count, kind, fd) ((u64)(fd) << 32 | (u64)(kind) << 8 | (count))
#define FD_POLLED_COUNT(polled)	   ((u8)(polled))
#define FD_POLLED_KIND(polled)	   ((u8)((polled) >> 8))
#define FD_POLLED_FD(polled)	   ((s32)((polled) >> 32)) /* -1 unless it is the only one */
extern int fd_file_kind(u64 file, struct object_key *ret_key);
/* The file that a file of an overlay is read from and written to; any other file itself. */
extern u64 fd_real_file(u64 file);
/* The address of the path (struct path) by which programs know an open file. */
extern u64 fd_path(u64 file);
/* FD_WATCHES() of a descriptor that is epoll's. */
extern int fd_watches(u64 files, u32 fd);

/*
 * Marks: odd numbers that change when what was told of a file has to be told again. Of an inode
 * (struct inode) and a name of it (struct dentry); of a socket, when it is bound, connected, or
 * listens (0: there is none); of what an epoll descriptor watches, where the room is for the
 * function's own use.
 */
extern u64 fd_name_mark(u64 inode, u64 dentry);
extern u64 fd_socket_mark(u64 file);
extern u64 fd_epoll_mark(u64 file, u64 *room);

static __always_inline u64 mix(u64 a, u64 b)
{
	return (a ^ b) * 0x9e3779b97f4a7c15ULL;
}

#endif
