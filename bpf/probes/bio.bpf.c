/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bio.bpf.c - the device and the file of a bio.
 *
 * A bio of the page cache has pages of the file. A bio of direct I/O has memory of the program; its
 * file is that of the I/O control block that the iomap code keeps with it, or of the descriptor
 * that the system call was given. Either is used only if the file lies on the bio's device.
 */
#include "block.bpf.h"
#include "inode.bpf.h"
#include "syscall.bpf.h"

#define S_IFMT	     00170000
#define S_IFBLK	     0060000
#define IOCB_DIRECT  (1 << 17) /* include/linux/fs.h */
#define REQ_OP_READ  0
#define REQ_OP_WRITE 1
#define REQ_OP_MASK  0xff

__noinline u32 block_disk_of(u64 address)
{
	struct bio *bio = (struct bio *)address;

	return BPF_CORE_READ(bio, bi_bdev, bd_disk, part0, bd_dev);
}

__noinline int block_describe_bio(struct rec_request *record, u64 address)
{
	struct bio *bio = (struct bio *)address;

	if (!record)
		return 0;
	record->device = block_disk_of(address);
	record->opf = BPF_CORE_READ(bio, bi_opf);
	record->sector = BPF_CORE_READ(bio, bi_iter.bi_sector);
	record->bytes = BPF_CORE_READ(bio, bi_iter.bi_size);
	record->offset = ~0ULL;
	return 0;
}

/*
 * Returns the first page of the folio that a page is in. Since 7.1 the field may hold a mask of the
 * address instead of the address (compound_info_has_mask() of include/linux/page-flags.h).
 */
static __always_inline u64 first_page_of(u64 page)
{
	struct page___info *new = (void *)page;
	struct page *old = (void *)page;
	u64 info = bpf_core_field_exists(new->compound_info) ? BPF_CORE_READ(new, compound_info)
							     : BPF_CORE_READ(old, compound_head);

	if (!(info & 1))
		return page;
	if (info >> 32 == 0xffffffff)
		return page & (info & ~1ULL);
	return info - 1;
}

/* fs/btrfs: BTRFS_BTREE_INODE_OBJECTID; inode numbers of files begin at 256 */
#define BTRFS_TREES 1
/* fs/f2fs: the node and meta inodes; the root directory's number follows */
#define F2FS_LAST_OWN 2

/*
 * Whether an inode stands for metadata, which is read through the block device or through an inode
 * of the file system itself.
 */
static __always_inline bool is_metadata(struct inode *inode)
{
	u64 magic = BPF_CORE_READ(inode, i_sb, s_magic), number = BPF_CORE_READ(inode, i_ino);

	return (BPF_CORE_READ(inode, i_mode) & S_IFMT) == S_IFBLK ||
	       (magic == BTRFS_MAGIC && number == BTRFS_TREES) ||
	       (magic == F2FS_MAGIC && number <= F2FS_LAST_OWN);
}

static __always_inline bool set_inode(struct rec_request *record, struct inode *inode)
{
	if (is_metadata(inode)) {
		record->h.flags |= REQUEST_METADATA;
		return true;
	}
	record->inode = BPF_CORE_READ(inode, i_ino);
	record->generation = BPF_CORE_READ(inode, i_generation);
	record->file_device = BPF_CORE_READ(inode, i_sb, s_dev);
	return true;
}

/* Whether the file lies on the bio's device, or is the device itself. */
static __always_inline bool is_on(struct inode *inode, struct bio *bio)
{
	u32 device = BPF_CORE_READ(bio, bi_bdev, bd_dev);

	if ((BPF_CORE_READ(inode, i_mode) & S_IFMT) == S_IFBLK)
		return BPF_CORE_READ(inode, i_rdev) == device;
	return BPF_CORE_READ(inode, i_sb, s_bdev, bd_dev) == device;
}

/* Whether the inode is shared memory, which direct I/O reads a file into or writes it from. */
static __always_inline bool is_memory(struct inode *inode)
{
	unsigned long magic = BPF_CORE_READ(inode, i_sb, s_magic);

	return magic == TMPFS_MAGIC || magic == HUGETLBFS_MAGIC;
}

/*
 * Flags for the name of a file that the current task has a request for. What a kernel thread writes
 * may be of any program.
 */
static __always_inline u32 name_flags(void)
{
	struct task_struct *task = bpf_get_current_task_btf();

	return task->flags & PF_KTHREAD ? INODE_KERNEL : 0;
}

static __always_inline bool find_by_page(struct rec_request *record, struct bio *bio)
{
	struct bio_vec *vector = BPF_CORE_READ(bio, bi_io_vec) + BPF_CORE_READ(bio, bi_iter.bi_idx);
	u64 page = (u64)BPF_CORE_READ(vector, bv_page), first;
	struct folio *folio;
	u64 mapping;
	struct inode *inode;

	if (!page)
		return false;
	first = first_page_of(page);
	folio = (struct folio *)first;
	mapping = (u64)BPF_CORE_READ(folio, mapping);
	/* The low bits are set if the memory belongs to no file (FOLIO_MAPPING_FLAGS). */
	if (!mapping || mapping & 3)
		return false;
	/*
	 * The page may belong to no file, and the field may hold something else. A file's mapping
	 * is in its inode, so the two are compared.
	 */
	inode = BPF_CORE_READ((struct address_space *)mapping, host);
	if (mapping != (u64)inode + bpf_core_field_offset(struct inode, i_data) ||
	    is_memory(inode) || !set_inode(record, inode))
		return false;
	if (record->h.flags & REQUEST_METADATA)
		return true;
	record->offset =
		(BPF_CORE_READ(folio, index) + (page - first) / bpf_core_type_size(struct page))
		<< PAGE_SHIFT;
	inode_emit((u64)inode, name_flags());
	return true;
}

static __always_inline bool find_by_file(struct rec_request *record, struct bio *bio,
					 struct file *file)
{
	struct file *real = (struct file *)fd_real_file((u64)file);
	struct inode *inode = BPF_CORE_READ(real, f_inode);

	if (!inode || !is_on(inode, bio))
		return false;
	set_inode(record, inode);
	if (!(record->h.flags & REQUEST_METADATA))
		inode_emit_file_as((u64)file, name_flags());
	return true;
}

/* Direct I/O keeps the I/O control block first in the bio's private data (fs/iomap/direct-io.c). */
static __always_inline bool find_by_control(struct rec_request *record, struct bio *bio)
{
	struct iomap_dio *direct = BPF_CORE_READ(bio, bi_private);
	struct kiocb *control;

	if (!bpf_core_type_exists(struct iomap_dio) || !direct)
		return false;
	control = BPF_CORE_READ(direct, iocb);
	if (!control || !(BPF_CORE_READ(control, ki_flags) & IOCB_DIRECT))
		return false;
	return find_by_file(record, bio, BPF_CORE_READ(control, ki_filp));
}

static __always_inline void find_by_descriptor(struct rec_request *record, struct bio *bio)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct syscall_info info;
	u64 file;

	syscall_info(task, &info);
	if (info.number < 0 || !syscall_takes_fd(info.number))
		return;
	file = fd_file(files_of(task), info.args[0]);
	if (file)
		find_by_file(record, bio, (struct file *)file);
}

__noinline int block_find_file(struct rec_request *record, u64 address)
{
	struct bio *bio = (struct bio *)address;
	u32 operation;

	if (!record)
		return 0;
	operation = record->opf & REQ_OP_MASK;
	if (!record->bytes || (operation != REQ_OP_READ && operation != REQ_OP_WRITE))
		return 0;
	/*
	 * The control block is tried before the pages, because a program may read a file directly
	 * into another file that is mapped.
	 */
	if (find_by_control(record, bio) || find_by_page(record, bio))
		return 0;
	find_by_descriptor(record, bio);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
