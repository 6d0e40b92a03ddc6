/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * scripts.bpf.c - the functions of programs that an interpreter runs, at each switch-out and tick
 * of a thread, and where it wakes another thread, submits a request to a device, or has a fault.
 *
 * These programs are an object of their own, which is loaded when an interpreter is first mapped.
 * on_switch_script then runs after on_switch, and so on for other tracepoints; on_tick and the ends
 * of faults go on with a program by a tail call. All but on_tick_script, which runs for targets
 * only, end at once if the program before has left no note, and all after a lookup for processes
 * without an interpreter.
 */
#include "scripts.bpf.h"
#include "cost.bpf.h"

#define SCRIPT_SENT_SLOTS (1 << 15)
/* Programs that use scratch memory at once on a CPU. */
#define SCRIPT_SCRATCHES 4

struct script_processes_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, SCRIPT_PROCESSES_MAX);
	__type(key, u32); /* tgid */
	__type(value, struct script_process);
};

struct script_scratch_map {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SCRIPT_SCRATCHES);
	__type(key, u32);
	__type(value, struct script_scratch);
};

/* The first two are those of the other programs. */
struct accounts_map accounts SEC(".maps");
struct group_rings_map group_rings SEC(".maps");
struct script_processes_map script_processes SEC(".maps");
struct script_scratch_map script_scratch SEC(".maps");

/* Ids of stacks that were sent lately, as stack_sent. */
u64 script_stacks_sent[SCRIPT_SENT_SLOTS];

static __always_inline void count_loss(struct cpu_account *account, enum loss_cause cause, u32 kind,
				       u64 ns)
{
	__sync_fetch_and_add(&account->lost[cause][kind], 1);
	if (!account->first_lost_ns[kind])
		account->first_lost_ns[kind] = ns;
	account->last_lost_ns[kind] = ns;
}

static __always_inline int emit_bulk(struct record *record, u32 len)
{
	struct cpu_account *account = cpu_account();
	u32 kind = record->kind & (ACCOUNT_KINDS - 1), slot;
	void *ring;

	if (!account)
		return -1;
	__sync_fetch_and_add(&account->sent[kind], 1);
	slot = RING_SLOT(account->ring_group, RING_BULK);
	ring = bpf_map_lookup_elem(&group_rings, &slot);
	if (ring && !bpf_ringbuf_output(ring, record, len, BPF_RB_NO_WAKEUP))
		return 0;
	count_loss(account, LOSS_RING_FULL, kind, record->ns);
	return -1;
}

/* The frames of an event are lost, because all scratch memory is in use. */
__noinline int frames_lost(u64 ns)
{
	struct cpu_account *account = cpu_account();

	if (!account)
		return 0;
	__sync_fetch_and_add(&account->sent[REC_SCRIPT], 1);
	count_loss(account, LOSS_SCRATCH_BUSY, REC_SCRIPT, ns);
	return 0;
}

__noinline int script_emit(struct script_scratch *scratch, u32 kind)
{
	struct rec_script_code *code;
	u32 len;

	if (!scratch)
		return -1;
	if (kind == REC_SCRIPT_STACK) {
		len = sizeof(scratch->stack) + scratch->stack.count * sizeof(struct script_frame);
		if (len > sizeof(scratch->stack_room))
			return -1;
		record_init(&scratch->stack.h, kind, 0, len, scratch->ns);
		return emit_bulk(&scratch->stack.h, len);
	}
	code = script_code(scratch);
	len = sizeof(*code) + code->table_bytes;
	len = (len + 7) & ~7;
	if (len > sizeof(scratch->record_room))
		return -1;
	record_init(&code->h, kind, 0, len, scratch->ns);
	return emit_bulk(&code->h, len);
}

static __always_inline u64 start_of(struct task_struct *task)
{
	return BPF_CORE_READ(task, group_leader, start_boottime);
}

/*
 * Finds the entry of the task's process. A child has the memory of its parent until it executes
 * another program, so it uses the parent's until the recorder has made one for it.
 */
static __always_inline struct script_process *process_of(struct task_struct *task)
{
	u32 tgid = task->tgid, exec_id = task->self_exec_id;
	struct script_process *process = bpf_map_lookup_elem(&script_processes, &tgid);

	if (process && process->exec_id == exec_id && process->start_boottime == start_of(task))
		return process;
	tgid = BPF_CORE_READ(task, real_parent, tgid);
	process = bpf_map_lookup_elem(&script_processes, &tgid);
	return process && process->exec_id == exec_id ? process : NULL;
}

/* Returns 0 if the stack and what describes its code were sent. */
static __always_inline int send_stack(struct script_scratch *scratch,
				      const struct script_process *process)
{
	int failures = 0;

	if (process->language == SCRIPT_PYTHON)
		failures = python_describe(scratch, process);
	return script_emit(scratch, REC_SCRIPT_STACK) | failures;
}

/*
 * Sends the frames that the current thread of the process has at an event of that time. Returns 0
 * if it has none.
 */
static __always_inline int send_frames_in(struct script_scratch *scratch,
					  struct script_process *process, u8 flags, u64 ns)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct rec_script record = {};
	u64 *sent, id;

	scratch->ns = ns - 1;
	scratch->fs_base = task->thread.fsbase;
	scratch->seed = (u64)task->tgid << 32 ^ process->exec_id;
	scratch->stack.tgid = task->tgid;
	scratch->stack.count = 0;
	scratch->lock = scratch->thread = 0;
	scratch->stack.language = process->language;
	if (process->language == SCRIPT_PYTHON)
		python_read(scratch, process);
	if (scratch->stack.count == 0 && !scratch->lock)
		return 0;
	if (scratch->stack.count) {
		id = scratch->stack.id = scratch->hash | 1;
		sent = &script_stacks_sent[id >> 1 & (SCRIPT_SENT_SLOTS - 1)];
		if (*sent != id && !send_stack(scratch, process))
			*sent = id;
		record.stack = id;
	}
	record_init(&record.h, REC_SCRIPT, flags, sizeof(record), ns - 1);
	record.tid = task->pid;
	record.language = process->language;
	record.thread = scratch->thread;
	if (scratch->lock) {
		record.lock = scratch->lock;
		record.holder = scratch->lock_holder;
		record.flags = scratch->lock_held ? SCRIPT_LOCK_HELD : 0;
	}
	emit_bulk(&record.h, sizeof(record));
	return 1;
}

/*
 * Acquires scratch memory, by an exchange: a tick interrupts the programs of requests and faults,
 * and from 7.0 on these are also preempted.
 */
static __always_inline struct script_scratch *scratch_take(void)
{
	for (u32 i = 0; i < SCRIPT_SCRATCHES; i++) {
		u32 key = i;
		struct script_scratch *scratch = bpf_map_lookup_elem(&script_scratch, &key);

		if (scratch && !__sync_lock_test_and_set(&scratch->busy, 1))
			return scratch;
	}
	return NULL;
}

__noinline int send_frames(u32 flags, u64 ns)
{
	struct script_process *process = process_of(bpf_get_current_task_btf());
	struct script_scratch *scratch;
	int sent;

	if (!process)
		return 0;
	scratch = scratch_take();
	if (!scratch) {
		frames_lost(ns);
		return 0;
	}
	sent = send_frames_in(scratch, process, flags, ns);
	__sync_lock_test_and_set(&scratch->busy, 0);
	return sent;
}

/*
 * Returns the time of the event that wants its frames; 0: none. The kernel may have skipped
 * the program of scripts after another event, and its note is then still there.
 */
static __always_inline u64 take_note(struct cpu_account *account, enum script_event event, u32 tid)
{
	u64 ns = account->script_notes[event].ns;

	account->script_notes[event].ns = 0;
	return account->script_notes[event].tid == tid ? ns : 0;
}

/*
 * Reads the frames for an event in the middle of a thread's run. These programs are part of its
 * time. No switch lies between the event and its program.
 */
static __always_inline int on_event(enum script_event event)
{
	struct cpu_account *account = cpu_account();
	u64 begin_ns, ns;

	if (!account || !account->script_notes[event].ns)
		return 0;
	ns = take_note(account, event, bpf_get_current_pid_tgid());
	if (!ns || account->switched_ns > ns)
		return 0;
	begin_ns = bpf_ktime_get_ns();
	send_frames(event == SCRIPT_AT_REQUEST ? SCRIPT_REQUEST : 0, ns);
	account = cpu_account();
	if (account && account->switched_ns <= begin_ns)
		account->own_run_ns += bpf_ktime_get_ns() - begin_ns;
	return 0;
}

/*
 * The time of the program belongs to the run that begins, as that of on_switch. on_switch has left
 * nothing to do if the thread is not a target, has ended, or was not sampled (--budget). The kernel
 * may have skipped this program after another thread's switch-out.
 */
SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch_script, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	struct cpu_account *account = cpu_account();
	u64 ns;

	if (!account)
		return 0;
	ns = take_note(account, SCRIPT_AT_SWITCH, prev->pid);
	if (ns && send_frames(0, ns))
		account->own_in_ns = bpf_ktime_get_ns() - ns;
	return 0;
}

SEC("tp_btf/sched_waking")
int BPF_PROG(on_waking_script, struct task_struct *task)
{
	return on_event(SCRIPT_AT_WAKING);
}

SEC("tp_btf/block_bio_queue")
int BPF_PROG(on_bio_queued_script, struct bio *bio)
{
	return on_event(SCRIPT_AT_REQUEST);
}

/* on_fault_end_stack goes on with it. */
SEC("fexit/handle_mm_fault")
int on_fault_script(void *ctx)
{
	return on_event(SCRIPT_AT_FAULT);
}

/* on_fault_accounted_stack goes on with it. */
SEC("perf_event")
int on_fault_event_script(void *ctx)
{
	return on_event(SCRIPT_AT_FAULT);
}

SEC("perf_event")
int on_tick_script(void *ctx)
{
	struct cpu_account *account = cpu_account();
	u64 begin_ns = bpf_ktime_get_ns();

	if (!account)
		return 0;
	send_frames(0, account->target_ns);
	cost_add_tick(account, bpf_ktime_get_ns() - begin_ns);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
