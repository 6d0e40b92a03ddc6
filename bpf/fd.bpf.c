/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fd.bpf.c - what a descriptor of a task is.
 *
 * Global functions, so that the verifier walks them once and not at each call. They take the
 * address of the task's files_struct as a number (before 6.9 a global function can
 * take no kernel pointer) and read by
 * bpf_probe_read_kernel, which survives a file that is being closed: the answer is
 * then FD_NONE or the kind of what stands there now.
 */
#include "wallprof.bpf.h"

/* uapi: linux/stat.h, linux/socket.h, net/tcp_states.h */
#define S_IFMT	   00170000
#define S_IFSOCK   0140000
#define S_IFREG	   0100000
#define S_IFBLK	   0060000
#define S_IFDIR	   0040000
#define S_IFCHR	   0020000
#define S_IFIFO	   0010000
#define AF_UNIX	   1
#define AF_INET	   2
#define AF_INET6   10
#define TCP_LISTEN 10

static __always_inline u8 socket_kind(struct socket *socket)
{
	struct sock *sk = BPF_CORE_READ(socket, sk);
	u16 family;

	if (!sk)
		return FD_SOCKET;
	/* AF_UNIX sockets use TCP's state numbers too. */
	if (BPF_CORE_READ(sk, __sk_common.skc_state) == TCP_LISTEN)
		return FD_LISTEN;
	family = BPF_CORE_READ(sk, __sk_common.skc_family);
	if (family == AF_INET || family == AF_INET6)
		return FD_INET;
	return family == AF_UNIX ? FD_UNIX : FD_SOCKET;
}

/* eventfd, epoll, … and, with an inode each, pidfd: files only by their mode (6.16 and later). */
static __always_inline bool is_anonymous(struct file *file)
{
	u64 magic = BPF_CORE_READ(file, f_inode, i_sb, s_magic);

	return magic == ANON_INODE_FS_MAGIC || magic == PID_FS_MAGIC;
}

/* Of an open file (struct file *). */
__noinline int fd_file_kind(u64 address)
{
	struct file *file = (struct file *)address;

	switch (BPF_CORE_READ(file, f_inode, i_mode) & S_IFMT) {
	case S_IFREG:
		return is_anonymous(file) ? FD_ANON : FD_FILE;
	case S_IFDIR:
	case S_IFBLK:
		return FD_FILE;
	case S_IFCHR:
		return FD_CHAR;
	case S_IFIFO:
		return FD_PIPE;
	case S_IFSOCK:
		return socket_kind(BPF_CORE_READ(file, private_data));
	case 0:
		return FD_ANON;
	}
	return FD_NONE;
}

static __always_inline struct file *file_of(struct files_struct *files, u32 fd)
{
	struct fdtable *fdt = BPF_CORE_READ(files, fdt);
	struct file **slots, *file = NULL;

	if (!fdt || fd >= BPF_CORE_READ(fdt, max_fds))
		return NULL;
	slots = BPF_CORE_READ(fdt, fd);
	bpf_probe_read_kernel(&file, sizeof(file), slots + fd);
	return file;
}

/* The open file, as a number; 0 = none. */
__noinline u64 fd_file(u64 files, u32 fd)
{
	return (u64)file_of((struct files_struct *)files, fd);
}

__noinline int fd_kind(u64 files, u32 fd)
{
	struct file *file = file_of((struct files_struct *)files, fd);

	return file ? fd_file_kind((u64)file) : FD_NONE;
}

/*
 * What an epoll descriptor watches: FD_WATCHES(count, kind of the one at the root of its tree).
 * count is 0, 1, or 2 for several.
 */
__noinline int fd_watches(u64 files, u32 fd)
{
	struct file *file = file_of((struct files_struct *)files, fd);
	struct eventpoll *epoll;
	struct rb_node *root;
	struct epitem *item;
	u32 count;

	if (!file)
		return FD_WATCHES(2, FD_NONE);
	epoll = BPF_CORE_READ(file, private_data);
	root = BPF_CORE_READ(epoll, rbr.rb_root.rb_node);
	if (!root)
		return FD_WATCHES(0, FD_NONE);
	item = (void *)root - bpf_core_field_offset(struct epitem, rbn);
	count = BPF_CORE_READ(root, rb_left) || BPF_CORE_READ(root, rb_right) ? 2 : 1;
	file = BPF_CORE_READ(item, ffd.file);
	return FD_WATCHES(count, file ? fd_file_kind((u64)file) : FD_NONE);
}

char LICENSE[] SEC("license") = "GPL";
