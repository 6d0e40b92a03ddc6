/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * globals.bpf.c - definitions of the maps and variables that wallprof.bpf.h declares. Linked first.
 */
#include "script_programs.bpf.h"

const volatile u8 setting_kernel_stacks = KERNEL_STACKS_BLOCKED;
const volatile u8 setting_user_stacks = USER_STACKS_TABLES;
const volatile u16 setting_max_stack = 127;
const volatile s32 setting_preempt_count_offset = 0;
const volatile u32 setting_hardirq_mask = 0;
const volatile bool setting_context_known = false;
const volatile s32 setting_stack_offset = 0;
const volatile s32 setting_stack_in_use_offset = 0;
const volatile bool setting_stack_known = false;
const volatile bool setting_names_known = false;
const volatile u8 setting_fault_source = FAULT_SOURCE_OFF;
const volatile u64 setting_fault_threshold_ns = FAULT_THRESHOLD_NONE;
const volatile u64 setting_waker_threshold_ns = WAKER_THRESHOLD_NONE;
const volatile bool setting_whole_system = false;
const volatile bool setting_kernel_threads = false;
const volatile bool setting_threads = false;
const volatile u64 setting_cgroup = 0;
const volatile u32 setting_cgroup_hierarchy = 0;
const volatile bool setting_taken_time = false;
const volatile bool setting_cost = false;
const volatile bool setting_budget = false;
const volatile struct kernel_type_ids setting_type_ids = {};

u64 target_bits[TARGET_WORDS];
u64 stack_sent[STACK_SENT_SLOTS];
u64 non_target_sent[NON_TARGET_SENT_SLOTS];
u64 name_sent[NAME_SENT_SLOTS];
u32 memo_tags[MEMO_SETS][MEMO_WAYS];
struct found_rule found_rules[FOUND_RULES];
struct thread_slot thread_slots[SLEEP_SLOTS];
struct stack_anchor stack_anchors[STACK_ANCHORS];
u64 softirq_callers[SOFTIRQ_CALLERS];
struct closing_socket closing_sockets[CLOSING_SLOTS];
struct fault_counts fault_counts;
struct request_counts request_counts;
u64 owners_found[SLEEP_SLOTS];
u8 kernel_memo_last[MEMO_SETS] __attribute__((aligned(2 * MEMO_SETS)));
u32 pid_ns_level;
u32 clock_ns;
u32 own_tgid;
u32 wanted_tid;
u32 wanted_found;
u32 command_tgid;
u64 command_threads;
u64 command_end_ns;
u8 tables_pending;
u8 scripts_loaded;
u8 snapshot_at_end;
u8 snapshot_sleepers;
u64 snapshot_ns;
u64 unwind_epoch;
u64 mappings_epoch;
u64 budget_rate;
struct unwind_object vdso_object;
struct unwind_mapping vsyscall_mapping;
struct unwind_counts unwind_counts;

struct script_programs_map script_on_event SEC(".maps");
struct script_programs_map script_on_function SEC(".maps");
struct open_faults_map open_faults SEC(".maps");
struct open_bios_map open_bios SEC(".maps");
struct open_requests_map open_requests SEC(".maps");
struct ring_works_map ring_works SEC(".maps");
struct ring_watches_map ring_watches SEC(".maps");
struct chunks_map chunks SEC(".maps");
struct rules_map rules SEC(".maps");
struct processes_map processes SEC(".maps");
struct objects_map objects SEC(".maps");
struct stack_memo_map stack_memos SEC(".maps");
struct kernel_memo_map kernel_memos SEC(".maps");
struct group_rings_map group_rings SEC(".maps");
struct accounts_map accounts SEC(".maps");
struct scratch_map scratch SEC(".maps");
struct copies_map copies SEC(".maps");
struct budget_map budget_places SEC(".maps");
struct budget_map budget_sleeps SEC(".maps");

__noinline int script_note(u32 event, u32 tid, u64 ns)
{
	struct cpu_account *account;

	if (!scripts_loaded || tid != (u32)bpf_get_current_pid_tgid())
		return 0;
	account = cpu_account();
	barrier_var(event);
	if (!account || event >= SCRIPT_EVENTS)
		return 0;
	account->script_notes[event].ns = ns;
	account->script_notes[event].tid = tid;
	return 0;
}

static __always_inline void add_sent(struct cpu_account *account, u32 kind)
{
	if (account)
		__sync_fetch_and_add(&account->sent[kind & (ACCOUNT_KINDS - 1)], 1);
}

static __always_inline void add_lost(struct cpu_account *account, u32 kind, u32 cause, u64 ns)
{
	kind &= ACCOUNT_KINDS - 1;
	if (!account || cause >= ACCOUNT_CAUSES)
		return;
	__sync_fetch_and_add(&account->lost[cause][kind], 1);
	if (!account->first_lost_ns[kind])
		account->first_lost_ns[kind] = ns;
	account->last_lost_ns[kind] = ns;
}

__noinline int account_sent(u32 kind)
{
	add_sent(cpu_account(), kind);
	return 0;
}

__noinline int account_lost(u32 kind, u32 cause, u64 ns)
{
	add_lost(cpu_account(), kind, cause, ns);
	return 0;
}

/*
 * It calls neither of the above: it is at the end of the deepest chain of calls, where each further
 * frame takes 32 of the 512 bytes that 6.1 allows.
 */
__noinline int stack_lost(u64 ns)
{
	struct cpu_account *account = cpu_account();

	add_sent(account, REC_STACK);
	add_lost(account, REC_STACK, LOSS_SCRATCH_BUSY, ns);
	return 0;
}

__noinline u32 stack_slot_take(u64 ns)
{
	u32 first = bpf_get_smp_processor_id() * SCRATCH_SLOTS;

	for (u32 i = 0; i < SCRATCH_SLOTS; i++) {
		u32 index = first + i;
		struct stack_slot *slot = bpf_map_lookup_elem(&scratch, &index);

		if (slot && __sync_val_compare_and_swap(&slot->busy, 0, 1) == 0) {
			slot->index = index;
			return index;
		}
	}
	stack_lost(ns);
	return ~0U;
}

#define HASH_PART 8 /* frames; the verifier follows each turn of a loop */

static long hash_part(u32 part, struct stack_slot **context)
{
	struct stack_slot *slot = *context;
	u64 hash = slot->stack.id;

	for (u32 i = 0; i < HASH_PART; i++) {
		u32 at = part * HASH_PART + i;

		if (at >= slot->stack.count || at >= MAX_FRAMES)
			break;
		barrier_var(at); /* or clang computes the address before the check */
		hash = (hash ^ slot->stack.frames[at]) * 0x9e3779b97f4a7c15ULL;
		hash ^= hash >> 29;
	}
	slot->stack.id = hash;
	return 0;
}

/* Hashes slot->stack.count frames into slot->stack.id, which holds the seed. */
__noinline int stack_hash(struct stack_slot *slot)
{
	if (!slot)
		return 0;
	bpf_loop((slot->stack.count + HASH_PART - 1) / HASH_PART, hash_part, &slot, 0);
	if (!slot->stack.id)
		slot->stack.id = 1; /* 0 means "none" */
	return 0;
}

__noinline u64 process_start(void)
{
	struct task_struct *task = bpf_get_current_task_btf();

	if (task->pid == task->tgid)
		return task->start_boottime;
	return BPF_CORE_READ(task, group_leader, start_boottime);
}

char LICENSE[] SEC("license") = "GPL";
