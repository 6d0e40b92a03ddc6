/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * inode.bpf.c - sends the names of files that faults and requests refer to, before the files are
 * gone.
 *
 * The path is read from the file's own name upwards, directory by directory and mount by mount, as
 * in d_path() (fs/d_path.c), but without its locks: if a directory is renamed meanwhile, the path
 * may be part old and part new. Kernel pointers are passed as numbers (fd.bpf.c says why).
 */
#include "inode.bpf.h"

#define NAMES_MAX  64	/* names in a path */
#define NAME_SIZE  256	/* NAME_MAX and its NUL */
#define NAMES_SIZE 1024 /* a longer path lacks the names next to the root */

/*
 * The state of the walk is in the slot's memory, where the verifier does not track it: otherwise it
 * follows several turns of the loop. The record is in the slot, too.
 */
struct path_walk {
	u64 dentry, mount; /* mount: 0 = not known */
	u32 size;
};

static __always_inline struct path_walk *path_of(struct stack_slot *slot)
{
	return (struct path_walk *)slot->span;
}

static __always_inline struct rec_inode *inode_of(struct stack_slot *slot)
{
	return (struct rec_inode *)slot->buffer;
}

/* Continues at the directory on which the file system is mounted. Returns 1 if there is none. */
static __always_inline long leave_mount(struct stack_slot *slot)
{
	struct path_walk *path = path_of(slot);
	struct mount *mount = (struct mount *)path->mount;
	struct mount *parent = BPF_CORE_READ(mount, mnt_parent);

	if (parent == mount || !parent) {
		inode_of(slot)->h.flags |= INODE_FULL_PATH;
		return 1;
	}
	path->dentry = (u64)BPF_CORE_READ(mount, mnt_mountpoint);
	path->mount = (u64)parent;
	return 0;
}

static long add_name(u32 i, struct stack_slot **context)
{
	struct stack_slot *slot = *context;
	struct path_walk *path = path_of(slot);
	struct dentry *dentry = (struct dentry *)path->dentry, *parent;
	struct mount *mount = (struct mount *)path->mount;
	u32 at = path->size;
	long length;

	if (mount && BPF_CORE_READ(mount, mnt.mnt_root) == dentry)
		return leave_mount(slot);
	parent = BPF_CORE_READ(dentry, d_parent);
	if (parent == dentry || !parent) {
		inode_of(slot)->h.flags |= INODE_MOUNT;
		return 1;
	}
	if (at >= NAMES_SIZE)
		return 1;
	barrier_var(at);
	length = bpf_probe_read_kernel_str(inode_of(slot)->text + (at & (NAMES_SIZE - 1)),
					   NAME_SIZE, BPF_CORE_READ(dentry, d_name.name));
	if (length <= 0)
		return 1;
	path->size = at + length;
	path->dentry = (u64)parent;
	return 0;
}

/* The last name may begin within NAMES_SIZE and end beyond it. */
_Static_assert(sizeof(struct rec_inode) + NAMES_SIZE + NAME_SIZE <=
		       sizeof(((struct stack_slot *)0)->buffer),
	       "a path fits into a slot");

/*
 * Flags of file systems whose pages do not come from a disk of this machine. The stack does not
 * show it: functions that wait for pages are the same for all file systems, and a file system's own
 * functions may be missing because of tail calls.
 */
static __always_inline u8 server_flag(struct inode *inode)
{
	u64 magic = BPF_CORE_READ(inode, i_sb, s_magic);

	switch (magic) {
	case FUSE_MAGIC:
		return INODE_FUSE;
	case NFS_MAGIC:
	case CIFS_MAGIC:
	case SMB2_MAGIC:
	case CEPH_MAGIC:
	case V9FS_MAGIC:
	case AFS_MAGIC:
		return INODE_NETWORK;
	}
	return 0;
}

static __always_inline int emit_inode_names(struct stack_slot *slot, struct inode *inode,
					    u64 dentry, u64 mount, u32 flags)
{
	struct rec_inode *record = inode_of(slot);
	struct path_walk *path = path_of(slot);
	u32 size;

	path->dentry = dentry;
	path->mount = mount;
	path->size = 0;
	record_init(&record->h, REC_INODE, server_flag(inode) | flags, 0, bpf_ktime_get_ns());
	if (BPF_CORE_READ(inode, i_nlink) == 0)
		record->h.flags |= INODE_DELETED;
	record->device = BPF_CORE_READ(inode, i_sb, s_dev);
	record->generation = BPF_CORE_READ(inode, i_generation);
	record->inode = BPF_CORE_READ(inode, i_ino);
	record->reserved[0] = record->reserved[1] = record->reserved[2] = 0;
	bpf_loop(NAMES_MAX, add_name, &slot, 0);
	size = path->size;
	barrier_var(size);
	if (size > NAMES_SIZE + NAME_SIZE)
		return -1;
	record->size = size;
	size = (sizeof(*record) + size + 7) & ~7u;
	record->h.len = size;
	return emit(RING_BULK, &record->h, size);
}

/*
 * Marks of one file differ in these bits. fd_name_mark() sets the first, which is clear in a mark
 * of a path without mounts. The second is inverted in a mark of INODE_KERNEL.
 */
#define MARK_MOUNTS 1
#define MARK_KERNEL 2

/* Sends the inode's path unless it was sent lately. Returns 0, or -1 if it could not be sent. */
static __always_inline int emit_inode_once(struct inode *inode, u64 dentry, u64 mount, u32 flags)
{
	u64 mark = fd_name_mark((u64)inode, dentry), *sent = sent_slot(mark);
	/* What the name needs beyond one that was sent for the kernel, without mounts. */
	u64 wanted =
		(mount ? MARK_MOUNTS : 0) | (flags ^ INODE_KERNEL) / INODE_KERNEL * MARK_KERNEL;
	u64 differ = *sent ^ mark;
	struct stack_slot *slot;
	int error;

	/*
	 * A path that was sent without mounts is sent again with them, but not the other way round;
	 * the same holds for what was sent for the kernel and is now a target's.
	 */
	if (differ <= (MARK_MOUNTS | MARK_KERNEL) && !(differ & wanted))
		return 0;
	slot = slot_acquire_accounted(bpf_ktime_get_ns());
	if (!slot)
		return -1;
	error = emit_inode_names(slot, inode, dentry, mount, flags);
	if (!error)
		*sent = mark ^ MARK_MOUNTS ^ MARK_KERNEL ^ wanted;
	slot_release(slot);
	return error;
}

__noinline int inode_emit_file_as(u64 address, u32 flags)
{
	struct path *path = (struct path *)fd_path(address);
	struct vfsmount *mount = BPF_CORE_READ(path, mnt);
	struct file *file = (struct file *)fd_real_file(address);

	return emit_inode_once(BPF_CORE_READ(file, f_inode), (u64)BPF_CORE_READ(path, dentry),
			       mount ? (u64)mount - bpf_core_field_offset(struct mount, mnt) : 0,
			       flags);
}

/* Any of several names will do. The offset of d_alias in a dentry changed in 7.2. */
__noinline int inode_emit(u64 address, u32 flags)
{
	struct inode *inode = (struct inode *)address;
	u64 alias = (u64)BPF_CORE_READ(inode, i_dentry.first);
	struct dentry___alias *new = NULL;

	if (!alias)
		return -1;
	if (bpf_core_field_exists(new->d_alias))
		alias -= bpf_core_field_offset(new->d_alias);
	else
		alias -= bpf_core_field_offset(struct dentry, d_u.d_alias);
	return emit_inode_once(inode, alias, 0, flags);
}

char LICENSE[] SEC("license") = "GPL";
