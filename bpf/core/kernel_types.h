/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * kernel_types.h - the kernel types that the BPF programs read, each with only the fields used.
 *
 * The file is maintained by hand, so that the build needs neither a kernel with BTF nor kernel
 * headers. preserve_access_index lets libbpf find the real offsets at load time (CO-RE). A field
 * whose offset or name differs between kernels has a flavour (struct name___suffix) with the
 * versions in its comment.
 */
#ifndef WALLPROF_KERNEL_TYPES_H
#define WALLPROF_KERNEL_TYPES_H

#include <linux/types.h>
#include <stdbool.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s16 s16;
typedef __s32 s32;
typedef __s64 s64;

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct pid_namespace;
struct vm_fault;

struct upid {
	int nr;
};

struct pid {
	unsigned int level;
	struct upid numbers[1];
};

struct rq {
	u64 prev_irq_time;	/* CONFIG_IRQ_TIME_ACCOUNTING */
	u64 prev_steal_time_rq; /* CONFIG_PARAVIRT_TIME_ACCOUNTING */
};

struct mutex {
	struct {
		s64 counter;
	} owner;
};

struct rw_semaphore {
	struct {
		s64 counter;
	} owner;
};

struct cfs_rq {
	struct rq *rq;	    /* CONFIG_FAIR_GROUP_SCHED */
	int throttle_count; /* CONFIG_CFS_BANDWIDTH: of it and the groups above */
};

struct sched_entity {
	u64 exec_start, sum_exec_runtime;
	struct cfs_rq *cfs_rq; /* CONFIG_FAIR_GROUP_SCHED */
};

struct sched_info {
	unsigned long long run_delay; /* CONFIG_SCHED_INFO */
};

struct block_device;

struct super_block {
	u32 s_dev; /* dev_t: major << 20 | minor */
	struct block_device *s_bdev;
	unsigned long s_magic;
};

struct hlist_node {
	struct hlist_node *next;
};

struct hlist_head {
	struct hlist_node *first;
};

struct inode;

struct address_space {
	struct inode *host;
};

struct inode {
	unsigned short i_mode;
	struct address_space *i_mapping;
	unsigned int i_nlink; /* in a union with __i_nlink */
	u32 i_generation;
	u32 i_rdev;
	struct super_block *i_sb;
	unsigned long i_ino; /* u64 in 7.2 */
	long long i_size;
	struct hlist_head i_dentry; /* in a union with i_rcu */
	struct address_space i_data;
};

struct qstr {
	u64 hash_len; /* in unions */
	const unsigned char *name;
};

struct dentry {
	struct dentry *d_parent;
	struct super_block *d_sb;
	struct qstr d_name; /* in a union since 6.16 */
	union {
		struct hlist_node d_alias;
	} d_u;
};

struct dentry___alias {
	struct hlist_node d_alias; /* 7.2 and later, in a union without a name */
};

struct page {
	unsigned long compound_head;
};

struct page___info {
	unsigned long compound_info; /* 7.1 and later */
};

struct folio {
	struct address_space *mapping;
	unsigned long index;
};

struct kiocb {
	struct file *ki_filp;
	int ki_flags;
};

struct iomap_dio {
	struct kiocb *iocb;
};

struct gendisk {
	struct block_device *part0;
	int flags;
};

struct block_device {
	struct gendisk *bd_disk;
	u32 bd_dev;
};

struct bio_vec {
	struct page *bv_page;
};

struct bvec_iter {
	u64 bi_sector;
	unsigned int bi_size;
	unsigned int bi_idx;
};

struct bio {
	struct bio *bi_next;
	struct block_device *bi_bdev;
	u32 bi_opf;
	u8 bi_status;
	struct bvec_iter bi_iter;
	struct bio_vec *bi_io_vec;
	void *bi_private;
};

struct request_queue {
	struct gendisk *disk;
};

struct request {
	struct request_queue *q;
	u32 cmd_flags;
	unsigned int __data_len;
	u64 __sector;
	struct bio *bio;
	u64 start_time_ns;
};

struct vfsmount {
	struct dentry *mnt_root;
};

struct mount {
	struct mount *mnt_parent;
	struct dentry *mnt_mountpoint;
	struct vfsmount mnt;
};

struct path {
	struct vfsmount *mnt;
	struct dentry *dentry;
};

struct file_operations;

struct file {
	struct inode *f_inode;
	struct address_space *f_mapping;
	unsigned int f_mode; /* FMODE_* */
	struct path f_path;
	const struct file_operations *f_op;
	void *private_data;
};

/* 6.8 and later: the mapped file behind an open file of an overlay. */
struct backing_file {
	struct file file;
	struct path user_path;
};

struct pipe_inode_info {
	unsigned int head, tail, max_usage;
};

#define SAVED_AUXV_WORDS 40 /* of 2 * (AT_VECTOR_SIZE_BASE + …) words */

typedef struct {
	void *vdso;
} mm_context_t;

struct mm_struct {
	unsigned long saved_auxv[SAVED_AUXV_WORDS];
	unsigned long start_stack, start_brk, brk;
	unsigned long arg_start, arg_end;
	mm_context_t context;
	struct rw_semaphore mmap_lock;
};

struct vm_area_struct {
	unsigned long vm_start;
	unsigned long vm_end;
	unsigned long vm_flags;
	unsigned long vm_pgoff;
	struct file *vm_file;
	struct mm_struct *vm_mm;
};

struct rb_node {
	struct rb_node *rb_right;
	struct rb_node *rb_left;
};

struct rb_root {
	struct rb_node *rb_node;
};

struct rb_root_cached {
	struct rb_root rb_root;
	struct rb_node *rb_leftmost;
};

/* The tree of the files that an epoll descriptor watches; its type is struct epoll_key in 7.2. */
struct epoll_filefd {
	struct file *file;
	int fd;
};

struct epitem {
	struct rb_node rbn;
	struct epoll_filefd ffd;
};

struct eventpoll {
	struct rb_root_cached rbr;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

struct in6_addr {
	u8 s6_addr[16]; /* the only member of the struct, a union */
};

struct sock_common {
	u32 skc_daddr; /* these four in unions; addresses and skc_dport in network order */
	u32 skc_rcv_saddr;
	u16 skc_dport;
	u16 skc_num;
	unsigned short skc_family;
	volatile unsigned char skc_state;
	unsigned long skc_flags;
	struct in6_addr skc_v6_daddr; /* CONFIG_IPV6 */
	struct in6_addr skc_v6_rcv_saddr;
};

struct socket;

struct sock {
	struct sock_common __sk_common;
	u16 sk_type;
	u16 sk_protocol;
	unsigned long sk_lingertime;
	struct socket *sk_socket;
	struct pid *sk_peer_pid;
};

struct socket {
	struct sock *sk;
};

struct socket_alloc {
	struct socket socket;
	struct inode vfs_inode;
};

struct sockaddr_un {
	unsigned short sun_family;
	char sun_path[108];
};

struct unix_address {
	int len; /* length of name, bytes */
	struct sockaddr_un name[1];
};

struct unix_sock {
	struct unix_address *addr;
	struct sock *peer;
};

typedef struct {
	int counter;
} atomic_t;

struct signal_struct {
	atomic_t live;
};

struct thread_info {
	u32 status;
	u32 cpu; /* CONFIG_SMP: where it runs, is queued, or ran last */
} __attribute__((preserve_access_index));

struct kernfs_node {
	u64 id;
};

struct cgroup_root {
	int hierarchy_id;
};

struct cgroup_subsys_state {
	struct cgroup_subsys_state *parent;
};

struct cgroup {
	struct cgroup_subsys_state self; /* at offset 0 */
	struct kernfs_node *kn;
	struct cgroup_root *root;
};

struct list_head {
	struct list_head *next;
};

/* A link of a css_set, which has one cgroup in each hierarchy. */
struct css_set {
	struct list_head cgrp_links;
};

struct cgrp_cset_link {
	struct cgroup *cgrp;
	struct list_head cgrp_link;
};

struct task_io_accounting {
	u64 read_bytes; /* with CONFIG_TASK_IO_ACCOUNTING */
	u64 write_bytes;
};

struct io_uring_task;

struct thread_struct {
	unsigned long fsbase;
};

struct task_struct {
	struct thread_info thread_info;
	struct thread_struct thread;
	unsigned int __state;
	unsigned int flags;
	/* int, and u8 in 7.2: libbpf adapts the loads of unsigned fields only. */
	unsigned int on_cpu;
	unsigned int on_rq;
	struct sched_entity se;
	struct sched_info sched_info;
	int exit_code;
	unsigned in_iowait : 1;
	int pagefault_disabled;
	int pid;
	int tgid;
	struct task_struct *real_parent;
	struct task_struct *group_leader;
	struct pid *thread_pid;
	u64 utime;
	u64 stime;
	unsigned long nvcsw;
	unsigned long nivcsw;
	u64 start_boottime;
	struct task_io_accounting ioac;
	unsigned long min_flt;
	unsigned long maj_flt;
	char comm[16];
	struct files_struct *files;
	struct signal_struct *signal;
	struct io_uring_task *io_uring;
	void *worker_private; /* of PF_IO_WORKER: struct io_worker */
	u64 self_exec_id;
	struct mm_struct *mm;
	struct css_set *cgroups; /* CONFIG_CGROUPS */
};

struct io_wq_work;

struct io_worker {
	struct io_wq_work *cur_work;
};

struct io_wq_work {
	int cancel_seq;
};

struct io_uring_task {
	struct file *registered_rings[16]; /* IO_RINGFD_REG_MAX */
};

struct io_ring_ctx;

struct io_kiocb {
	struct file *file;
	struct io_ring_ctx *ctx;
	struct io_wq_work work;
};

struct linux_binprm {
	const char *filename;
};

struct pt_regs {
	unsigned long r15;
	unsigned long r14;
	unsigned long r13;
	unsigned long r12;
	unsigned long bp;
	unsigned long bx;
	unsigned long r11;
	unsigned long r10;
	unsigned long r9;
	unsigned long r8;
	unsigned long ax;
	unsigned long cx;
	unsigned long dx;
	unsigned long si;
	unsigned long di;
	unsigned long orig_ax;
	unsigned long ip;
	unsigned long cs; /* a union with a 16-bit cs since 6.9 (FRED); see user_cs() */
	unsigned long flags;
	unsigned long sp;
};

struct pt_regs___fred {
	u16 cs; /* 6.9 and later */
};

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

#pragma clang attribute pop

/* include/linux/sched.h */
#define PF_EXITING     0x00000004
#define PF_IO_WORKER   0x00000010
#define PF_USER_WORKER 0x00004000 /* 6.4 and later; a free bit in 6.1 */
#define PF_KTHREAD     0x00200000
#define TASK_DEAD      0x00000080

/* include/uapi/linux/magic.h */
#define TMPFS_MAGIC	    0x01021994
#define HUGETLBFS_MAGIC	    0x958458f6
#define ANON_INODE_FS_MAGIC 0x09041934
#define PID_FS_MAGIC	    0x50494446
#define OVERLAYFS_MAGIC	    0x794c7630
#define BTRFS_MAGIC	    0x9123683e
#define FUSE_MAGIC	    0x65735546 /* virtiofs, too */
#define NFS_MAGIC	    0x6969
#define CIFS_MAGIC	    0xff534d42
#define SMB2_MAGIC	    0xfe534d42
#define CEPH_MAGIC	    0x00c36400
#define V9FS_MAGIC	    0x01021997
#define AFS_MAGIC	    0x5346414f
#define F2FS_MAGIC	    0xf2f52010

/* include/linux/mm.h, mm_types.h */
#define VM_EXEC	     0x00000004
#define VM_SHARED    0x00000008
#define VM_GROWSDOWN 0x00000100
#define PAGE_SHIFT   12

/* include/linux/mm_types.h: enum vm_fault_reason, enum fault_flag; the same from 6.1 to 7.3 */
#define VM_FAULT_OOM		0x0001
#define VM_FAULT_SIGBUS		0x0002
#define VM_FAULT_MAJOR		0x0004
#define VM_FAULT_HWPOISON	0x0010
#define VM_FAULT_HWPOISON_LARGE 0x0020
#define VM_FAULT_SIGSEGV	0x0040
#define VM_FAULT_RETRY		0x0400
#define VM_FAULT_FALLBACK	0x0800
#define VM_FAULT_COMPLETED	0x4000
#define VM_FAULT_ERROR                                                                             \
	(VM_FAULT_OOM | VM_FAULT_SIGBUS | VM_FAULT_SIGSEGV | VM_FAULT_HWPOISON |                   \
	 VM_FAULT_HWPOISON_LARGE | VM_FAULT_FALLBACK)
#define FAULT_FLAG_WRITE       (1 << 0)
#define FAULT_FLAG_TRIED       (1 << 5)
#define FAULT_FLAG_VMA_LOCK    (1 << 12) /* 6.4 and later */
#define FAULT_FLAG_USER	       (1 << 6)
#define FAULT_FLAG_INSTRUCTION (1 << 8)

/* include/linux/blkdev.h: a path to a device (nvme multipath), which has no name of its own */
#define GENHD_FL_HIDDEN (1 << 1)

/* arch/x86/include/asm/trap_pf.h: the error code of a page fault */
#define X86_PF_PROT  (1 << 0) /* a page was there, without the right */
#define X86_PF_WRITE (1 << 1)
#define X86_PF_INSTR (1 << 4)

/* include/uapi/linux/auxvec.h */
#define AT_BASE		7
#define AT_ENTRY	9
#define AT_SYSINFO_EHDR 33

/* arch/x86/include/asm/segment.h */
#define USER_CS	  0x33
#define TS_COMPAT 2
#define USER32_CS 0x23

/* include/linux/preempt.h: the bits of preempt_count. NMIs never run our programs. */
#define SOFTIRQ_SERVING 0x00000100

#endif
