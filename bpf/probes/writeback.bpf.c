/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * writeback.bpf.c - the names of files that targets write.
 *
 * A kernel thread writes the pages of a file to the disk, long after a program has changed them.
 * The request does not say which program that was. So the name of a file is sent when a target
 * makes one of its pages dirty; the recorder withholds the names of files that only kernel threads
 * have requests for (src/recorder/file_names.h).
 */
#include "cost.bpf.h"
#include "inode.bpf.h"

#define S_IFMT	00170000
#define S_IFBLK 0060000

SEC("tp_btf/writeback_dirty_folio")
int BPF_PROG(on_folio_dirtied, struct folio *folio, struct address_space *mapping)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct cpu_account *account;
	struct inode *inode;
	u64 ns, key;

	if (!is_target(task) || task->flags & PF_KTHREAD || !mapping)
		return 0;
	account = cpu_account();
	inode = BPF_CORE_READ(mapping, host);
	if (!account || !inode)
		return 0;
	/* A program writes many pages of one file; the memory of an inode may serve another file.
	 */
	key = mix((u64)inode, BPF_CORE_READ(inode, i_ino)) ^ BPF_CORE_READ(inode, i_generation);
	if (account->dirtied == key)
		return 0;
	/* A block device's own pages, as those of metadata, are in an inode that never has a name.
	 */
	if ((BPF_CORE_READ(inode, i_mode) & S_IFMT) == S_IFBLK)
		return 0;
	ns = bpf_ktime_get_ns();
	/* A name that found no room, or that the file does not have yet, is sent with a later page.
	 */
	if (!inode_emit((u64)inode, 0))
		account->dirtied = key;
	cost_add(ns);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
