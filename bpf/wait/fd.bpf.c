/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fd.bpf.c - the kind and identity of a task's descriptors.
 *
 * These are global functions, so that the verifier checks them once and not at each call. They take
 * the addresses of kernel objects as numbers (before 6.9 a global function can take no kernel
 * pointer), and read objects that may be closed meanwhile: the answer is then FD_NONE, or the kind
 * of what is at that address now. They return numbers, too, because only a number may be stored to
 * memory.
 *
 * No other file uses READ(): bpftool 7.1 cannot link two objects that call the same kernel
 * function.
 */
#include "fd.bpf.h"

/*
 * READ() reads kernel memory through addresses that are numbers.
 *
 * bpf_rdonly_cast() turns a number into a pointer to a kernel type. Reads through it are plain
 * loads, which survive bad addresses as the helper does, and give 0 then. A call of the helper
 * takes 20 ns and more where the kernel protects each return (SRSO), and describing a waited-for
 * object takes dozens of reads.
 *
 * Such pointers are untrusted, so the verifier does not search its list of trusted types for each
 * of them (wallprof.bpf.h, "describing tasks").
 *
 * For kernels without this function there is a second object, compiled with READ_BY_CALLS.
 */
#ifdef READ_BY_CALLS
#define READ(...) BPF_CORE_READ(__VA_ARGS__)
#else

/* The recorder makes it a call of the kernel's function (program_sections.c). */
static void *(*const rdonly_cast)(const void *address, u32 type) = (void *)CALL_RDONLY_CAST;

/* clang-format off */
#define TYPE_ID_OF(pointer)                                                                        \
	_Generic((pointer),                                                                        \
		 struct file *: setting_type_ids.file,                                             \
		 struct files_struct *: setting_type_ids.files_struct,                             \
		 struct inode *: setting_type_ids.inode,                                           \
		 struct dentry *: setting_type_ids.dentry,                                         \
		 struct socket *: setting_type_ids.socket,                                         \
		 struct sock *: setting_type_ids.sock,                                             \
		 struct eventpoll *: setting_type_ids.eventpoll,                                   \
		 struct epitem *: setting_type_ids.epitem,                                         \
		 struct rb_node *: setting_type_ids.rb_node)
/* clang-format on */

#define READ_1(a, b)		   ((a)->b)
#define READ_2(a, b, c)		   ((a)->b->c)
#define READ_3(a, b, c, d)	   ((a)->b->c->d)
#define READ_N(_1, _2, _3, N, ...) N
#define READ_PLAIN(a, ...)	   READ_N(__VA_ARGS__, READ_3, READ_2, READ_1)(a, __VA_ARGS__)

/*
 * Like BPF_CORE_READ(), for three fields at most. If the result is a pointer, it may be read
 * through, compared with NULL or offset; if it is needed as a number, it has to come from
 * BPF_CORE_READ() or from memory.
 */
#define READ(pointer, ...)                                                                         \
	READ_PLAIN((typeof(pointer))rdonly_cast(pointer, TYPE_ID_OF(pointer)), __VA_ARGS__)

#endif

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

static __always_inline int kind_of_socket(struct socket *socket)
{
	struct sock *sk = READ(socket, sk);
	u16 family = READ(sk, __sk_common.skc_family);

	/* AF_UNIX sockets use TCP's state numbers too. */
	if (READ(sk, __sk_common.skc_state) == TCP_LISTEN)
		return FD_LISTEN;
	if (family == AF_INET || family == AF_INET6)
		return FD_INET;
	return family == AF_UNIX ? FD_UNIX : FD_SOCKET;
}

/*
 * eventfd, epoll, … and pidfd, which has an inode of its own; only their mode is that of regular
 * files (6.16 and later).
 */
static __always_inline bool is_anonymous(struct file *file)
{
	u64 magic = READ(file, f_inode, i_sb, s_magic);

	return magic == ANON_INODE_FS_MAGIC || magic == PID_FS_MAGIC;
}

/*
 * The majors are from uapi linux/major.h, or have no name there. MINOR_BITS is as in the kernel's
 * dev_t.
 */
#define MINOR_BITS	  20
#define TTY_MAJOR	  4 /* consoles and serial lines */
#define TTYAUX_MAJOR	  5 /* /dev/tty, /dev/console, /dev/ptmx */
#define PTY_FIRST_MAJOR	  128
#define PTY_LAST_MAJOR	  143
#define ACM_TTY_MAJOR	  166
#define USB_TTY_MAJOR	  188
#define LOW_DENSITY_MAJOR 204 /* serial lines of other hardware */
#define HVC_MAJOR	  229 /* hypervisor consoles */

static __always_inline bool is_terminal(struct file *file)
{
	u32 major = READ(file, f_inode, i_rdev) >> MINOR_BITS;

	return major == TTY_MAJOR || major == TTYAUX_MAJOR ||
	       (major >= PTY_FIRST_MAJOR && major <= PTY_LAST_MAJOR) || major == ACM_TTY_MAJOR ||
	       major == USB_TTY_MAJOR || major == LOW_DENSITY_MAJOR || major == HVC_MAJOR;
}

static __always_inline int kind_of(struct file *file)
{
	switch (READ(file, f_inode, i_mode) & S_IFMT) {
	case S_IFREG:
		return is_anonymous(file) ? FD_ANON : FD_FILE;
	case S_IFDIR:
	case S_IFBLK:
		return FD_FILE;
	case S_IFCHR:
		return is_terminal(file) ? FD_TTY : FD_CHAR;
	case S_IFIFO:
		return FD_PIPE;
	case S_IFSOCK:
		return kind_of_socket(READ(file, private_data));
	case 0:
		return FD_ANON;
	}
	return FD_NONE;
}

/*
 * Returns the identity of an epoll, eventfd, … descriptor, all of which share one inode. It may be
 * reused for another file after this one is closed.
 */
static __always_inline u64 anonymous_number(struct file *file, u64 address)
{
	u64 number = address ^ (u64)BPF_CORE_READ(file, private_data) << 20;

	number *= 0x9e3779b97f4a7c15ULL;
	return (number ^ number >> 32) | 1;
}

/*
 * Whether the address is that of a regular file's struct file; in other memory these pointers are
 * not consistent.
 */
static __always_inline bool is_file(struct file *file)
{
	return file && (READ(file, f_inode, i_mode) & S_IFMT) == S_IFREG &&
	       READ(file, f_mapping) == READ(file, f_inode, i_mapping);
}

/*
 * Requests, pages and faults refer to the real file of an overlay's file, so that file identifies
 * it. Up to 6.12 the real file's address is the overlay file's private data; since then it is the
 * first word there.
 */
__noinline u64 fd_real_file(u64 address)
{
	struct file *file = (struct file *)address, *real, *behind = NULL;

	if (READ(file, f_inode, i_sb, s_magic) != OVERLAYFS_MAGIC)
		return address;
	real = BPF_CORE_READ(file, private_data);
	if (is_file(real))
		return (u64)real;
	bpf_probe_read_kernel(&behind, sizeof(behind), real);
	return is_file(behind) ? (u64)behind : address;
}

/*
 * FMODE_BACKING is one of these two bits, depending on the kernel; the meaning of the other one
 * depends on it, too.
 */
#define MAY_BE_BACKING (1U << 24 | 1U << 25)

/* Since 6.8 a mapped file of an overlay is followed in memory by the path that programs know. */
__noinline u64 fd_path(u64 address)
{
	struct backing_file *backing = (struct backing_file *)address;
	struct file *file = (struct file *)address;

	if (bpf_core_field_exists(backing->user_path) && READ(file, f_mode) & MAY_BE_BACKING &&
	    BPF_CORE_READ(backing, user_path.dentry, d_sb, s_magic) == OVERLAYFS_MAGIC)
		return address + bpf_core_field_offset(backing->user_path);
	return address + bpf_core_field_offset(file->f_path);
}

__noinline int fd_file_kind(u64 address, struct object_key *ret_key)
{
	struct file *file = (struct file *)address;
	int kind = kind_of(file);
	struct inode *inode;

	if (!ret_key || kind == FD_NONE)
		return FD_NONE;
	if (kind == FD_FILE)
		file = (struct file *)fd_real_file(address);
	inode = READ(file, f_inode);
	ret_key->device = READ(inode, i_sb, s_dev);
	if (kind == FD_ANON) {
		ret_key->inode = anonymous_number(file, address);
		ret_key->generation = 0;
	} else {
		ret_key->inode = READ(inode, i_ino);
		ret_key->generation = READ(inode, i_generation);
	}
	return kind;
}

/* The result is a number for the verifier, because the helper read it. */
static __always_inline struct file *file_of(struct files_struct *files, u32 fd)
{
	struct file **slots, *file = NULL;

	if (fd >= READ(files, fdt, max_fds))
		return NULL;
	slots = READ(files, fdt, fd);
	bpf_probe_read_kernel(&file, sizeof(file), slots + fd);
	return file;
}

__noinline u64 fd_file(u64 files, u32 fd)
{
	return (u64)file_of((struct files_struct *)files, fd);
}

__noinline int fd_kind(u64 files, u32 fd)
{
	struct file *file = file_of((struct files_struct *)files, fd);

	return file ? kind_of(file) : FD_NONE;
}

enum pipe_state { NO_PIPE, PIPE_EMPTY, PIPE_USED, PIPE_FULL };

static __always_inline enum pipe_state pipe_state(struct file *file)
{
	struct pipe_inode_info *pipe;
	u32 used;

	if (!file || (READ(file, f_inode, i_mode) & S_IFMT) != S_IFIFO)
		return NO_PIPE;
	pipe = BPF_CORE_READ(file, private_data);
	used = BPF_CORE_READ(pipe, head) - BPF_CORE_READ(pipe, tail);
	if (!used)
		return PIPE_EMPTY;
	return used >= BPF_CORE_READ(pipe, max_usage) ? PIPE_FULL : PIPE_USED;
}

__noinline u64 fd_spliced(u64 files, u32 from, u32 to)
{
	enum pipe_state state = pipe_state(file_of((struct files_struct *)files, from));

	if (state == NO_PIPE)
		state = pipe_state(file_of((struct files_struct *)files, to)) == PIPE_FULL
				? PIPE_USED
				: PIPE_EMPTY;
	return state == PIPE_EMPTY ? FD_SPLICED(from, 0) : FD_SPLICED(to, 1);
}

/* An Internet socket determines the kind of the list; else it is the kind that all of them have. */
static __always_inline u32 kind_of_all(u32 kinds)
{
	if (kinds & 1U << FD_INET)
		return FD_INET;
	for (u32 kind = 0; kind <= FD_LAST; kind++)
		if (kinds == 1U << kind)
			return kind;
	return FD_NONE;
}

__noinline u64 fd_polled(u32 listed, u32 skipped, u32 kinds, u32 fd)
{
	u32 count = listed <= POLL_FDS_READ ? listed - skipped : listed;

	return FD_POLLED(count, kind_of_all(kinds), count == 1 ? fd : ~0U);
}

static __always_inline struct epitem *item_of(struct rb_node *node)
{
	return (void *)node - bpf_core_field_offset(struct epitem, rbn);
}

/* The kind is that of the entry at the root of the tree; the count is 0, 1, or 2 for several. */
__noinline int fd_watches(u64 files, u32 fd)
{
	struct file *file = file_of((struct files_struct *)files, fd);
	struct eventpoll *epoll;
	struct rb_node *root;
	u32 count;

	if (!file)
		return FD_WATCHES(2, FD_NONE);
	epoll = READ(file, private_data);
	root = READ(epoll, rbr.rb_root.rb_node);
	if (!root)
		return FD_WATCHES(0, FD_NONE);
	count = READ(root, rb_left) || READ(root, rb_right) ? 2 : 1;
	file = READ(item_of(root), ffd.file);
	return FD_WATCHES(count, file ? kind_of(file) : FD_NONE);
}

/* The mark changes if another file gets the inode number, or this file another name. */
__noinline u64 fd_name_mark(u64 inode_address, u64 dentry_address)
{
	struct dentry *dentry = (struct dentry *)dentry_address;
	struct inode *inode = (struct inode *)inode_address;
	u64 mark = mix(READ(inode, i_ino), (u64)READ(inode, i_generation) << 32);

	mark = mix(mark, READ(inode, i_sb, s_dev));
	return mix(mark, READ(dentry, d_name.hash_len)) | 1;
}

static __always_inline u64 mix_addresses(u64 mark, struct sock *sk)
{
	if (READ(sk, __sk_common.skc_family) == AF_INET6 &&
	    bpf_core_field_exists(sk->__sk_common.skc_v6_daddr)) {
		u64 half[2] = {};

		bpf_core_read(half, sizeof(half), &sk->__sk_common.skc_v6_daddr);
		mark = mix(mix(mark, half[0]), half[1]);
	}
	return mix(mark, (u64)READ(sk, __sk_common.skc_daddr) << 32 |
				 READ(sk, __sk_common.skc_dport) << 16 |
				 READ(sk, __sk_common.skc_num));
}

__noinline u64 fd_socket_mark(u64 address)
{
	struct file *file = (struct file *)address;
	struct socket *socket = READ(file, private_data);
	struct sock *sk = READ(socket, sk);
	u64 mark = mix(READ(file, f_inode, i_ino), READ(file, f_inode, i_sb, s_dev));

	if (!sk)
		return 0;
	mark = mix(mark, READ(sk, __sk_common.skc_state) == TCP_LISTEN);
	if (READ(sk, __sk_common.skc_family) != AF_UNIX)
		return mix_addresses(mark, sk) | 1;
	if (!bpf_core_type_exists(struct unix_sock))
		return mark | 1;
	mark = mix(mark, (u64)BPF_CORE_READ((struct unix_sock *)sk, addr));
	return mix(mark, (u64)BPF_CORE_READ((struct unix_sock *)sk, peer)) | 1;
}

/*
 * Mixes a pointer in as a number: to the verifier a value read back from memory is not a pointer.
 */
static __always_inline u64 mix_pointer(u64 mark, const void *pointer, volatile u64 *scratch_word)
{
	*scratch_word = (u64)pointer;
	return mix(mark, *scratch_word);
}

/* Mixes in the upper nodes of the tree of `file`, if `file` is an epoll descriptor like `epoll`. */
static __always_inline u64 mix_inner(u64 mark, struct file *epoll, struct file *file,
				     u64 *scratch_word)
{
	struct eventpoll *inner;
	struct rb_node *root;

	if (!file || READ(file, f_op) != READ(epoll, f_op))
		return mark;
	inner = READ(file, private_data);
	root = READ(inner, rbr.rb_root.rb_node);
	if (!root)
		return mix(mark, 1);
	mark = mix_pointer(mark, root, scratch_word);
	mark = mix_pointer(mark, READ(root, rb_left), scratch_word);
	return mix_pointer(mark, READ(root, rb_right), scratch_word);
}

/*
 * Mixes in a node and the file that it watches, because the node's memory is reused as soon as the
 * file is not watched any more.
 */
static __always_inline u64 mix_node(u64 mark, struct file *epoll, struct rb_node *node,
				    u64 *scratch_word)
{
	struct file *file;

	if (!node)
		return mix(mark, 0);
	file = READ(item_of(node), ffd.file);
	mark = mix_pointer(mix_pointer(mark, node, scratch_word), file, scratch_word);
	mark = mix_inner(mark, epoll, file, scratch_word);
	return mix(mark, READ(file, f_inode, i_ino));
}

__noinline u64 fd_epoll_mark(u64 address, u64 *scratch_word)
{
	struct file *file = (struct file *)address;
	struct eventpoll *epoll = READ(file, private_data);
	struct rb_node *root = READ(epoll, rbr.rb_root.rb_node);
	struct rb_node *first = READ(epoll, rbr.rb_leftmost), *left;
	u64 mark = anonymous_number(file, address);

	if (!scratch_word)
		return 0;
	mark = mix_node(mark, file, root, scratch_word);
	if (first != root)
		mark = mix_node(mark, file, first, scratch_word);
	if (root) {
		left = READ(root, rb_left);
		if (left != first)
			mark = mix_node(mark, file, left, scratch_word);
		mark = mix_node(mark, file, READ(root, rb_right), scratch_word);
	}
	return mark | 1;
}

char LICENSE[] SEC("license") = "GPL";
