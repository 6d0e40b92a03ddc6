/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * futex.bpf.h - in which memory the word lies that a thread waits for: REC_FUTEX.
 */
#ifndef WALLPROF_FUTEX_BPF_H
#define WALLPROF_FUTEX_BPF_H

#include "object.bpf.h"
#include "user_side.bpf.h"

struct looking {
	u64 file;
	u8 memory;
};

static long look(struct task_struct *task, struct vm_area_struct *vma, struct looking *looking)
{
	looking->memory = memory_of(vma);
	looking->file = (u64)BPF_CORE_READ(vma, vm_file);
	return 0;
}

static __always_inline void describe_file(u64 file, struct rec_futex *record)
{
	struct inode *inode = BPF_CORE_READ((struct file *)file, f_inode);

	record->inode = BPF_CORE_READ(inode, i_ino);
	record->device = BPF_CORE_READ(inode, i_sb, s_dev);
	record->generation = BPF_CORE_READ(inode, i_generation);
	inode_emit_file(file);
}

/*
 * The mapping is looked for without waiting for the lock of the address space: if another thread
 * has that just then, the word is told without it, and again when that can be told.
 */
static __always_inline int futex_emit_word(struct task_struct *task, u64 address)
{
	u64 mark = mix(mix(address, task->tgid), task->self_exec_id) | 1, *sent = sent_slot(mark);
	struct looking looking = {};
	struct rec_futex record = {};

	if (*sent == mark)
		return 0;
	if (bpf_find_vma(task, address, look, &looking, 0)) {
		mark &= ~1ULL;
		if (*sent == mark)
			return 0;
	}
	record_init(&record.h, REC_FUTEX, 0, sizeof(record), bpf_ktime_get_ns());
	record.address = address;
	record.tgid = task->tgid;
	record.exec_id = task->self_exec_id;
	record.memory = looking.memory;
	if (looking.file)
		describe_file(looking.file, &record);
	if (!emit(&bulk_ring, &record.h, sizeof(record)))
		*sent = mark;
	return 0;
}

#endif
