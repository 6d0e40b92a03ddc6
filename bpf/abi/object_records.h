/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * object_records.h - the records of what waits, faults and requests are about: what it is called,
 * where it leads to. A part of records.h.
 */
#ifndef WALLPROF_OBJECT_RECORDS_H
#define WALLPROF_OBJECT_RECORDS_H

#include "records.h"

/*
 * REC_INODE: what a file is called, at the time of the record. The names lie in text one behind
 * the other, each with its NUL: the file's own first, then its directory's, and so on.
 *
 * What has no inode of its own (eventfd, timerfd, epoll, …: all are one) is known by a number that
 * was made from where the kernel keeps it, under the device of that one inode.
 */
enum inode_flags {
	INODE_FULL_PATH = 1 << 0, /* up to the root of the mount namespace */
	INODE_MOUNT = 1 << 1,	  /* up to the root of its file system */
	INODE_DELETED = 1 << 2,	  /* it has no name any more; this was the last */
	INODE_NO_PATH = 1 << 3,	  /* text is what the kernel calls it: "[eventfd]" */
	INODE_FUSE = 1 << 4,	  /* its file system is a FUSE server's */
	INODE_NETWORK = 1 << 5,	  /* its file system is on the network, or on the host's side */
};

struct rec_inode {
	struct record h;
	u32 device;	/* super_block::s_dev: major << 20 | minor */
	u32 generation; /* inode::i_generation: another if the number is used again */
	u64 inode;
	u16 size; /* of text, bytes */
	u16 reserved[3];
	char text[];
};

/*
 * REC_SOCKET: where a socket leads to, at the time of the record. Ports and addresses are 0 where
 * there are none; addresses are in the network's order, those of IPv4 in the first four bytes.
 */
enum socket_flags {
	SOCKET_LISTENS = 1 << 0,
	SOCKET_PEER_PATH = 1 << 1, /* text is the path that the other end is bound to */
	SOCKET_ABSTRACT = 1 << 2,  /* text is a name in Linux's abstract namespace */
};

struct rec_socket {
	struct record h;
	u32 device; /* these three as in rec_inode */
	u32 generation;
	u64 inode;
	u64 peer_inode; /* AF_UNIX: the other end's, if it is connected; 0 = not known */
	u32 peer_tgid;	/* AF_UNIX: who connected, or listened, at the other end (SO_PEERCRED) */
	u16 family;	/* AF_* */
	u16 type;	/* SOCK_* */
	u16 protocol;	/* IPPROTO_* */
	u16 local_port, remote_port;
	u16 size; /* of text, bytes; no NUL at its end */
	u8 local[16], remote[16];
	char text[]; /* AF_UNIX: the path or name that it is bound to, or see SOCKET_PEER_PATH */
};

/*
 * REC_WATCH: what an epoll descriptor watches at the time of the record, including what epoll
 * descriptors among these watch. `more`: the list is incomplete, or the kernel was changing it.
 */
struct watched {
	u64 inode; /* as in rec_switch; 0 = not known */
	u32 device, generation;
	u32 fd;
	u8 kind; /* enum fd_kind */
	/*
	 * The index + 1, in this list, of the epoll descriptor that watches this entry and precedes
	 * it; 0 = the descriptor that the record describes.
	 */
	u8 via;
	u8 reserved[2];
};
#define WATCHED_MAX 16

enum watch_flags {
	WATCH_RING = 1 << 0, /* an io_uring's requests wait for it */
};

struct rec_watch {
	struct record h;
	u64 inode; /* of the epoll descriptor, or of the ring, as in rec_switch */
	u32 device, generation;
	u32 count;
	u32 more;
	struct watched watched[];
};

/*
 * REC_FUTEX: in which memory the word lies that a process waits for. Once a word, or as often as
 * more is known, or others took its place among those that were sent; the last one counts.
 */
struct rec_futex {
	struct record h;
	u64 address;
	u32 tgid;
	u32 exec_id; /* as in rec_task */
	u64 inode;   /* these three of the file that is mapped there, as in rec_inode; 0 = none */
	u32 device, generation;
	u8 memory; /* enum fault_memory; MEMORY_UNKNOWN: the mappings were just being changed */
	u8 reserved[7];
};

#endif
