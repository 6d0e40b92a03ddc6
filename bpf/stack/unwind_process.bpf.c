/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unwind_process.bpf.c - maintains the unwind entries of processes at birth, exec and exit. BPF
 * does it because user space would be too late.
 */
#include "unwind_process.bpf.h"

__noinline int unwind_map_object(struct unwind_mapping *mapping, const struct found_vma *found)
{
	struct unwind_object_key
		key; /* the verifier of 6.1 accepts no argument's memory as a key */
	struct unwind_object *object;
	u64 into;

	if (!mapping || !found)
		return 0;
	key = found->key;
	object = bpf_map_lookup_elem(&objects, &key);
	if (!object)
		return 0;
	for (u32 i = 0; i < OBJECT_LOADS_MAX; i++) {
		into = found->offset - object->loads[i].offset;
		if (i >= object->load_count || into >= object->loads[i].size ||
		    object->loads[i].exec != found->exec)
			continue;
		map_object(mapping, object, found->start - object->loads[i].relative - into);
		return 1;
	}
	return 0;
}

/* Publishes the entry that was built in the slot. The program's stack has no space for one. */
static __always_inline void publish(struct stack_slot *slot, u32 tgid)
{
	/* The recorder's versions are even. */
	slot->process.version = slot->process.version_end = bpf_get_prandom_u32() | 1;
	if (bpf_map_update_elem(&processes, &tgid, &slot->process, BPF_ANY))
		__sync_fetch_and_add(&unwind_counts.process_lost, 1);
	mappings_changed();
}

/* Returns the next free seed, or NULL if there is none. */
static __always_inline struct unwind_mapping *next_seed(struct stack_slot *slot)
{
	u64 index = slot->process.seed_count;

	if (index >= SEEDS_MAX)
		return NULL;
	barrier_var(index); /* or clang omits the mask, which 6.1's verifier needs */
	return &slot->process.seeds[index & (SEEDS_MAX - 1)];
}

/* Adds a seed for the whole object that is mapped at `address`, whichever part of it that is. */
__noinline int unwind_seed(struct stack_slot *slot, u64 address)
{
	struct unwind_mapping *mapping;

	if (!slot || !address)
		return 0;
	mapping = next_seed(slot);
	if (!mapping || bpf_find_vma(bpf_get_current_task_btf(), address, read_vma, &slot, 0) ||
	    !slot->found.file)
		return 0;
	if (unwind_map_object(mapping, &slot->found))
		slot->process.seed_count++;
	return 0;
}

static __always_inline void seed_vdso(struct stack_slot *slot, u64 address)
{
	struct unwind_mapping *mapping = next_seed(slot);

	if (!address || !mapping || !vdso_object.table)
		return;
	map_object(mapping, &vdso_object, address);
	slot->process.seed_count++;
}

/*
 * Adds seeds for the program, its loader and the vDSO, at the addresses that the kernel passes to
 * the program itself. If the objects are known from before, the first instructions have tables.
 */
__noinline int unwind_exec(u32 slot_index)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct stack_slot *slot = bpf_map_lookup_elem(&scratch, &slot_index);
	u64 entry = 0, base = 0, vdso = 0;

	if (!slot)
		return 0;
	__builtin_memset(&slot->process, 0, sizeof(slot->process));
	slot->process.exec_id = task->self_exec_id;
	slot->process.start_boottime = process_start();
	slot->process.tables_ns = bpf_ktime_get_ns();
	if (bpf_probe_read_kernel(slot->auxv, sizeof(slot->auxv),
				  BPF_CORE_READ(task, mm)->saved_auxv))
		return 0;
	for (u32 i = 0; i < SAVED_AUXV_WORDS; i += 2) {
		u64 type = slot->auxv[i], value = slot->auxv[i + 1];

		entry |= type == AT_ENTRY ? value : 0;
		base |= type == AT_BASE ? value : 0;
		vdso |= type == AT_SYSINFO_EHDR ? value : 0;
	}
	unwind_seed(slot, entry);
	unwind_seed(slot, base);
	seed_vdso(slot, vdso);
	publish(slot, task->tgid);
	return 0;
}

__noinline int unwind_fork(u32 slot_index, u32 tgid, u64 start_boottime)
{
	struct task_struct *parent = bpf_get_current_task_btf();
	struct stack_slot *slot = bpf_map_lookup_elem(&scratch, &slot_index);
	u64 start = process_start();
	struct unwind_process *process = process_of(parent, start);

	if (!slot || !process)
		return 0;
	__builtin_memcpy(&slot->process, process, sizeof(slot->process));
	barrier();
	if (slot->process.version != process->version ||
	    slot->process.version != process->version_end ||
	    !is_entry_of(&slot->process, parent, start)) {
		__sync_fetch_and_add(&unwind_counts.torn, 1);
		return 0;
	}
	slot->process.start_boottime = start_boottime;
	publish(slot, tgid);
	return 0;
}

/* The entry may already be that of another process with the same tgid. */
__noinline int unwind_exit(u32 tgid, u64 start_boottime)
{
	struct unwind_process *process = bpf_map_lookup_elem(&processes, &tgid);

	if (process && process->start_boottime == start_boottime)
		bpf_map_delete_elem(&processes, &tgid);
	mappings_changed();
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
