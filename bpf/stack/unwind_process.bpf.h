/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unwind_process.bpf.h - the mappings of a process that BPF knows or finds out, and their
 * maintenance at exec, birth and exit.
 */
#ifndef WALLPROF_UNWIND_PROCESS_BPF_H
#define WALLPROF_UNWIND_PROCESS_BPF_H

#include "wallprof.bpf.h"

/*
 * The first two functions take the slot's index, because the verifier of 6.1 accepts only a map's
 * value, not a function's argument, as the source of a map update.
 *
 * unwind_exec() makes an entry with what is known of the program that the current task has just
 * executed.
 */
extern int unwind_exec(u32 slot_index);
/* Makes an entry for a forked process: a copy of its parent's, which is the current task's. */
extern int unwind_fork(u32 slot_index, u32 tgid, u64 start_boottime);
/* Deletes the entry of a process that has ended. */
extern int unwind_exit(u32 tgid, u64 start_boottime);

/*
 * bpf_find_vma() calls it. What is found is stored in the slot, where the verifier does not track
 * it.
 */
static __attribute__((unused)) long read_vma(struct task_struct *task, struct vm_area_struct *vma,
					     struct stack_slot **context)
{
	struct found_vma *found = &(*context)->found;
	struct file *file = BPF_CORE_READ(vma, vm_file);

	found->start = vma->vm_start;
	found->last = vma->vm_end - 1;
	found->offset = vma->vm_pgoff << PAGE_SHIFT;
	found->exec = vma->vm_flags & VM_EXEC;
	found->file = file;
	found->vdso = !file && (u64)BPF_CORE_READ(task, mm, context.vdso) == found->start;
	if (file) {
		found->key.inode = BPF_CORE_READ(file, f_inode, i_ino);
		found->key.size = BPF_CORE_READ(file, f_inode, i_size);
		found->key.device = BPF_CORE_READ(file, f_inode, i_sb, s_dev);
	}
	return 0;
}

static __always_inline void map_object(struct unwind_mapping *mapping,
				       const struct unwind_object *object, u64 load)
{
	mapping->start = load + object->exec_start;
	mapping->load = load;
	mapping->row = object->row;
	mapping->table = object->table;
	barrier();
	mapping->last =
		load + object->exec_last; /* written last, because it makes the mapping valid */
}

/*
 * Finds where an object is mapped, given that the part at `offset` of its file begins at `start`.
 * Returns 1 and stores the mapping, or 0 if the object is not known.
 */
extern int unwind_map_object(struct unwind_mapping *mapping, const struct found_vma *found);

/* Tells user_memo_lookup() that an entry has changed. It is called after the change. */
static __always_inline void mappings_changed(void)
{
	__sync_fetch_and_add(&mappings_epoch, 1);
}

/* Whether the entry is for the process's present image. */
static __always_inline bool is_entry_of(const struct unwind_process *process,
					struct task_struct *task, u64 start)
{
	return process->exec_id == (u32)task->self_exec_id && process->start_boottime == start;
}

/* The entry of the current task's process, which began at `start`; NULL if there is none. */
static __always_inline struct unwind_process *process_of(struct task_struct *task, u64 start)
{
	u32 tgid = task->tgid;
	struct unwind_process *process = bpf_map_lookup_elem(&processes, &tgid);

	return process && is_entry_of(process, task, start) ? process : NULL;
}

#endif
