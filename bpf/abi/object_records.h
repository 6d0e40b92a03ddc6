/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * object_records.h - the records of waited-for objects and of files of faults and requests: names
 * and addresses. Only records.h includes it.
 */
#ifndef WALLPROF_OBJECT_RECORDS_H
#define WALLPROF_OBJECT_RECORDS_H

/*
 * REC_INODE: the name of a file, at the time of the record. text holds the names one after the
 * other, each with its NUL: the file's own first, then its directory's, and so on.
 *
 * Files without an inode of their own (eventfd, timerfd, epoll, …, which share one) are identified
 * by a number made from their kernel address, with the device of the shared inode.
 */
enum inode_flags {
	INODE_FULL_PATH = 1 << 0, /* text goes up to the root of the mount namespace */
	INODE_MOUNT = 1 << 1,	  /* text goes up to the root of its file system */
	INODE_DELETED = 1 << 2,	  /* it has no name any more; text is the last one */
	INODE_NO_PATH = 1 << 3,	  /* text is the kernel's name for it: "[eventfd]" */
	INODE_FUSE = 1 << 4,	  /* a FUSE server provides its file system */
	INODE_NETWORK = 1 << 5,	  /* its file system is on the network, or on the host */
	INODE_KERNEL = 1 << 6,	  /* sent only because a kernel thread has made a request for it */
};

struct rec_inode {
	struct record h;
	u32 device;	/* super_block::s_dev: major << 20 | minor */
	u32 generation; /* inode::i_generation, which differs if the inode number is reused */
	u64 inode;
	u16 size; /* of text, bytes */
	u16 reserved[3];
	char text[];
};

/*
 * REC_SOCKET: the addresses of a socket, at the time of the record. Ports and addresses are 0 if
 * there are none; addresses are in network order, those of IPv4 in the first four bytes.
 */
enum socket_flags {
	SOCKET_LISTENS = 1 << 0,
	SOCKET_PEER_PATH = 1 << 1, /* text is the path that the peer is bound to */
	SOCKET_ABSTRACT = 1 << 2,  /* text is a name in Linux's abstract namespace */
};

struct rec_socket {
	struct record h;
	u32 device; /* device, generation and inode as in rec_inode */
	u32 generation;
	u64 inode;
	u64 peer_inode; /* AF_UNIX: the peer's inode, if it is connected; 0 = not known */
	u32 peer_tgid;	/* AF_UNIX: the process that connected or listened at the other end
			   (SO_PEERCRED) */
	u16 family;	/* AF_* */
	u16 type;	/* SOCK_* */
	u16 protocol;	/* IPPROTO_* */
	u16 local_port, remote_port;
	u16 size; /* of text, bytes; without a NUL */
	u8 local[16], remote[16];
	char text[]; /* AF_UNIX: the path or name that it is bound to, or see SOCKET_PEER_PATH */
};

/*
 * REC_WATCH: the files that an epoll descriptor watches at the time of the record, including the
 * files that epoll descriptors among these watch. `more`: the list is incomplete, or the kernel was
 * changing it.
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
	WATCH_RING = 1 << 0, /* the requests of an io_uring wait for the files */
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
 * REC_FUTEX: the memory in which a futex word of a process lies. It is sent once for each word, and
 * again if more is known, or if other objects have evicted its mark; the last record is valid.
 */
struct rec_futex {
	struct record h;
	u64 address;
	u32 tgid;
	u32 exec_id; /* as in rec_task */
	u64 inode;   /* inode, device and generation of the file that is mapped there, as in
			rec_inode; 0 = none */
	u32 device, generation;
	u8 memory; /* enum fault_memory; MEMORY_UNKNOWN: the mappings were being changed */
	u8 reserved[7];
};

#endif
