/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * futex.bpf.h - the memory in which the word lies that a thread waits for: REC_FUTEX.
 */
#ifndef WALLPROF_FUTEX_BPF_H
#define WALLPROF_FUTEX_BPF_H

#include "inode.bpf.h"
#include "user_side.bpf.h"

struct futex_mapping {
	u64 file;
	u8 memory;
};

static long read_futex_mapping(struct task_struct *task, struct vm_area_struct *vma,
			       struct futex_mapping *mapping)
{
	mapping->memory = memory_of(vma);
	mapping->file = (u64)BPF_CORE_READ(vma, vm_file);
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
 * The mapping is found without waiting for the lock of the address space. If another thread has the
 * lock, the word is sent without its memory, and sent again when that is known.
 */
static __always_inline int futex_emit_word(struct task_struct *task, u64 address)
{
	u64 mark = mix(mix(address, task->tgid), task->self_exec_id) | 1, *sent = sent_slot(mark);
	struct futex_mapping mapping = {};
	struct rec_futex record = {};

	if (*sent == mark)
		return 0;
	if (bpf_find_vma(task, address, read_futex_mapping, &mapping, 0)) {
		mark &= ~1ULL;
		if (*sent == mark)
			return 0;
	}
	record_init(&record.h, REC_FUTEX, 0, sizeof(record), bpf_ktime_get_ns());
	record.address = address;
	record.tgid = task->tgid;
	record.exec_id = task->self_exec_id;
	record.memory = mapping.memory;
	if (mapping.file)
		describe_file(mapping.file, &record);
	if (!emit(RING_BULK, &record.h, sizeof(record)))
		*sent = mark;
	return 0;
}

#endif
