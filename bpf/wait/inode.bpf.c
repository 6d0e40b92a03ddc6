/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * inode.bpf.c - the names of files that faults and requests are about, before they are gone.
 *
 * From the file's own name upwards, directory by directory and mount by mount, as d_path() does
 * it (fs/d_path.c), but without its locks: who renames a directory meanwhile may be seen half way.
 * Kernel pointers are passed as numbers (fd.bpf.c says why).
 */
#include "inode.bpf.h"

#define NAMES_MAX  64	/* of a path */
#define NAME_SIZE  256	/* NAME_MAX, and its NUL */
#define NAMES_SIZE 1024 /* what is longer is cut at the root's end */

struct naming {
	struct rec_inode *record;
	u64 dentry, mount; /* mount 0: not known */
	u32 size;
};

/* Goes on where the file system is mounted. 1: there is nothing above. */
static __always_inline long leave_mount(struct naming *naming)
{
	struct mount *mount = (struct mount *)naming->mount;
	struct mount *parent = BPF_CORE_READ(mount, mnt_parent);

	if (parent == mount || !parent) {
		naming->record->h.flags |= INODE_FULL_PATH;
		return 1;
	}
	naming->dentry = (u64)BPF_CORE_READ(mount, mnt_mountpoint);
	naming->mount = (u64)parent;
	return 0;
}

static long add_name(u32 i, struct naming *naming)
{
	struct dentry *dentry = (struct dentry *)naming->dentry, *parent;
	struct mount *mount = (struct mount *)naming->mount;
	u32 at = naming->size;
	long length;

	if (mount && BPF_CORE_READ(mount, mnt.mnt_root) == dentry)
		return leave_mount(naming);
	parent = BPF_CORE_READ(dentry, d_parent);
	if (parent == dentry || !parent) {
		naming->record->h.flags |= INODE_MOUNT;
		return 1;
	}
	if (at >= NAMES_SIZE)
		return 1;
	barrier_var(at);
	length = bpf_probe_read_kernel_str(naming->record->text + (at & (NAMES_SIZE - 1)),
					   NAME_SIZE, BPF_CORE_READ(dentry, d_name.name));
	if (length <= 0)
		return 1;
	naming->size = at + length;
	naming->dentry = (u64)parent;
	return 0;
}

/* NAMES_SIZE and one more name: what is begun within the room may end behind it. */
_Static_assert(sizeof(struct rec_inode) + NAMES_SIZE + NAME_SIZE <=
		       sizeof(((struct stack_slot *)0)->room),
	       "a path has room in a slot");

/*
 * A page of such a file does not come from a disk of this machine. The functions that wait for it
 * are those of every file system, and those of the file system itself may be left by tail calls.
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
					    u64 dentry, u64 mount)
{
	struct rec_inode *record = (struct rec_inode *)slot->room;
	struct naming naming = {.record = record, .dentry = dentry, .mount = mount};
	u32 size;

	record_init(&record->h, REC_INODE, server_flag(inode), 0, bpf_ktime_get_ns());
	if (BPF_CORE_READ(inode, i_nlink) == 0)
		record->h.flags |= INODE_DELETED;
	record->device = BPF_CORE_READ(inode, i_sb, s_dev);
	record->generation = BPF_CORE_READ(inode, i_generation);
	record->inode = BPF_CORE_READ(inode, i_ino);
	record->reserved[0] = record->reserved[1] = record->reserved[2] = 0;
	bpf_loop(NAMES_MAX, add_name, &naming, 0);
	size = naming.size;
	barrier_var(size);
	if (size > NAMES_SIZE + NAME_SIZE)
		return -1;
	record->size = size;
	size = (sizeof(*record) + size + 7) & ~7u;
	record->h.len = size;
	return emit(&bulk_ring, &record->h, size);
}

/*
 * Sends what it is called, unless that was done lately. Where that is noted, even numbers are for
 * names without a mount.
 */
static __always_inline void emit_inode_once(struct inode *inode, u64 dentry, u64 mount)
{
	u64 mark = fd_name_mark((u64)inode, dentry), *sent = sent_slot(mark);
	struct stack_slot *slot;

	/* One that was sent without its mount is sent again with it, but not the other way round.
	 */
	if (*sent == mark || (!mount && *sent == (mark & ~1ULL)))
		return;
	slot = slot_acquire_accounted(bpf_ktime_get_ns());
	if (!slot)
		return;
	if (!emit_inode_names(slot, inode, dentry, mount))
		*sent = mount ? mark : mark & ~1ULL;
	slot_release(slot);
}

__noinline int inode_emit_file(u64 address)
{
	struct path *path = (struct path *)fd_path(address);
	struct vfsmount *mount = BPF_CORE_READ(path, mnt);
	struct file *file = (struct file *)fd_real_file(address);

	emit_inode_once(BPF_CORE_READ(file, f_inode), (u64)BPF_CORE_READ(path, dentry),
			mount ? (u64)mount - bpf_core_field_offset(struct mount, mnt) : 0);
	return 0;
}

/* A name of several is as good as any; its place in an entry moved in 7.2. */
__noinline int inode_emit(u64 address)
{
	struct inode *inode = (struct inode *)address;
	u64 alias = (u64)BPF_CORE_READ(inode, i_dentry.first);
	struct dentry___alias *new = NULL;

	if (!alias)
		return 0;
	if (bpf_core_field_exists(new->d_alias))
		alias -= bpf_core_field_offset(new->d_alias);
	else
		alias -= bpf_core_field_offset(struct dentry, d_u.d_alias);
	emit_inode_once(inode, alias, 0);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
