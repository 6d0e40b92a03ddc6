/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * wallprof.bpf.h - what all BPF programs share: settings, the set of targets, the ring buffers with
 * their loss accounts, scratch memory.
 *
 * Maps and variables are defined in globals.bpf.c, which must be linked first: bpftool 7.1 computes
 * wrong offsets for maps that are used before they are defined.
 */
#ifndef WALLPROF_BPF_H
#define WALLPROF_BPF_H

/* clang-format off: the types must come before libbpf's headers use them */
#include "kernel_types.h"
#include "maps.h"
#include "records.h"
#include "walk_state.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <linux/bpf.h>
/* clang-format on */
#include "memos.bpf.h"

/* ---- settings: constants for the verifier, so code that is switched off costs nothing */

extern const volatile u8 setting_kernel_stacks; /* enum kernel_stacks */
extern const volatile u8 setting_user_stacks;	/* enum user_stacks */
extern const volatile u16 setting_max_stack; /* the largest number of frames from bpf_get_stack */
/* Offsets of per-CPU variables from this CPU's `runqueues`; see irq_context.bpf.h. */
extern const volatile s32 setting_preempt_count_offset;
extern const volatile u32 setting_hardirq_mask; /* of preempt_count */
extern const volatile bool setting_context_known;
/* The same for the CPU's interrupt stack; see softirq.bpf.c. */
extern const volatile s32 setting_stack_offset;
extern const volatile s32 setting_stack_in_use_offset;
extern const volatile bool setting_stack_known;
extern const volatile bool setting_names_known; /* the kernel has the names of its functions */
extern const volatile u8 setting_fault_source;	/* enum fault_source */
extern const volatile u64 setting_fault_threshold_ns; /* or FAULT_THRESHOLD_NONE */
extern const volatile u64 setting_waker_threshold_ns; /* or WAKER_THRESHOLD_NONE */
/* What is recorded besides the marked targets. */
extern const volatile bool setting_whole_system;   /* all processes, and all switches */
extern const volatile bool setting_kernel_threads; /* kernel threads as well */
extern const volatile bool setting_threads;	   /* single threads are marked, not processes */
extern const volatile u64 setting_cgroup;	   /* the recorded cgroup's id; 0 = none */
extern const volatile u32 setting_cgroup_hierarchy;
extern const volatile bool setting_taken_time; /* the kernel may account for it */
extern const volatile bool setting_cost;       /* phases of programs are measured; cost.bpf.h */
extern const volatile bool setting_budget;     /* see budget.bpf.h */
extern const volatile struct kernel_type_ids setting_type_ids; /* see fd.bpf.c */

/* ---- state shared with user space (mapped there) --------------------------- */

extern u64 target_bits[TARGET_WORDS];
extern u64 stack_sent[STACK_SENT_SLOTS];
extern u64 non_target_sent[NON_TARGET_SENT_SLOTS];
extern u64 name_sent[NAME_SENT_SLOTS];
extern u32 memo_tags[MEMO_SETS][MEMO_WAYS]; /* of user stacks' memos */
/* Which memo of a set was found last. The small variables follow it on the same page. */
extern u8 kernel_memo_last[MEMO_SETS];
extern struct found_rule found_rules[FOUND_RULES]; /* see unwind.bpf.c */
extern struct thread_slot thread_slots[SLEEP_SLOTS];
extern struct stack_anchor stack_anchors[STACK_ANCHORS]; /* see unwind_deep.bpf.c */
extern u64 softirq_callers[SOFTIRQ_CALLERS];
extern struct closing_socket closing_sockets[CLOSING_SLOTS];
extern struct fault_counts fault_counts;
extern struct request_counts request_counts;
extern u32 pid_ns_level;    /* level of wallprof's PID namespace */
extern u32 clock_ns;	    /* the time that one reading of the clock takes */
extern u32 own_tgid;	    /* wallprof's own tgid */
extern u32 wanted_tid;	    /* with setting_threads: the thread to mark, in wallprof's namespace */
extern u32 wanted_found;    /* whether mark_target found its task */
extern u32 command_tgid;    /* the launched command, or 0 */
extern u64 command_threads; /* the number of its threads that have not ended */
extern u64 command_end_ns;  /* the latest final switch-out of one of its threads */
extern u8 tables_pending;   /* the tables of running processes are not ready yet, so stacks are not
			       copied */
extern u8 snapshot_at_end;
extern u64 snapshot_ns;
extern u64 owners_found[SLEEP_SLOTS]; /* written by snapshot_stacks(): lock holders */
extern struct unwind_object vdso_object;
extern struct unwind_mapping vsyscall_mapping; /* table 0: it has none */
extern struct unwind_counts unwind_counts;
extern u64 unwind_epoch;     /* see unwind_head */
extern u64 mappings_epoch;   /* changes after each change of an entry in `processes` */
extern u64 budget_rate;	     /* see BUDGET_RATE() */
extern u8 snapshot_sleepers; /* the iterators visit only those that lack stacks; budget.bpf.h */

/* ---- maps --------------------------------------------------------------------- */

struct ring_map {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 16); /* placeholder: the recorder creates the rings */
};

/* The rings of all groups of CPUs, by RING_SLOT(). */
struct group_rings_map {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, RINGS); /* RINGS * number of groups, set by the recorder */
	__type(key, u32);
	__array(values, struct ring_map);
};

struct accounts_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* number of CPUs, set by the recorder */
	__type(key, u32);
	__type(value, struct cpu_account);
};

#define WINDOW_SIZE 2048 /* a power of 2, and no more than a page */
#define NO_WINDOW   ~0ULL

#define WALK_MARKS 8 /* parts of a walk whose beginnings are noted; a power of 2 */

/* A mapping that the kernel was asked for (unwind_process.bpf.h). */
struct found_vma {
	struct unwind_object_key key;
	u64 start, last, offset;
	bool exec, file, vdso;
};

/*
 * A stack under construction: the record, with space for its frames, and the state of the walk.
 * What a remembered stack needs is on the first page; see cpu_account.
 */
struct stack_slot {
	u64 busy;
	u32 index; /* its index in the map */
	u32 reserved;
	u64 kernel_from;    /* where reading of the kernel stack starts */
	u64 kernel_span;    /* bytes read from there; 0 = not read */
	u64 mappings_epoch; /* mappings_epoch + 1 before `process` was read; 0 = not read */
	struct walk_start start;
	/* The memo that was compared last: the mappings of a user stack, and the stack's id. */
	u32 memo_version, memo_seed_count;
	u64 memo_id;
	/* Larger than what is read, because the verifier adds up the largest start and length. */
	u64 span[(MEMO_SPAN + MEMO_RUN) / sizeof(u64)];
	struct walk walk;
	struct unwind_process process;
	u64 epoch;		     /* unwind_epoch when the walk began */
	u32 known_table, known_rows; /* the table that was searched last, 0 = none yet */
	union {
		u64 signal_regs[WALK_SIGNAL_REGS];
		u64 auxv[SAVED_AUXV_WORDS];
	};
	struct found_vma found;
	u32 depth;     /* frames of the walk so far, with those that were replaced */
	u32 last_part; /* unwind_deep.bpf.c decides there how the walk goes on */
	u32 left_out;  /* see struct stack_gap; 0 = none */
	u32 reserved_deep;
	u64 deep_ns; /* when the deep part of the walk began */
	struct stack_anchor marks[WALK_MARKS];
	struct kernel_memo_build build;
	struct memo_reads reads;
	u64 word;	  /* the last word that was read */
	u64 window_start; /* AVMA of the part of the stack that `window` holds, or NO_WINDOW */
	u64 window[WINDOW_SIZE / sizeof(u64)];
	union {
		struct rec_stack stack;
		u8 buffer[sizeof(struct rec_stack) + MAX_FRAMES * sizeof(u64) +
			  sizeof(struct stack_gap)];
	};
} __attribute__((aligned(MAP_PAGE)));

/*
 * One entry per CPU, because an entry is large. A program that interrupts another one while it
 * makes a copy takes none: its stack stays as BPF could walk it.
 */
struct copies_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct rec_stack_copy);
};

struct scratch_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE); /* so that it begins on a page */
	__uint(max_entries, 1);		   /* SCRATCH_SLOTS * number of CPUs, set by the recorder */
	__type(key, u32);
	__type(value, struct stack_slot);
};

/* All inner maps have one size, so the verifier turns a look-up in them into inline code. */
struct chunk_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, CHUNK_CELLS);
	__uint(key_size, sizeof(u32)); /* clang 14 loses the types of inner maps */
	__uint(value_size, sizeof(union unwind_cell));
};

struct chunks_map {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, CHUNKS_MAX);
	__type(key, u32);
	__array(values, struct chunk_map);
};

struct rules_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, RULES_MAX);
	__type(key, u32);
	__type(value, struct unwind_rule);
};

/* Entries are allocated when they are added; tracing programs may use such maps since 6.1. */
struct processes_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1); /* set by the recorder */
	__type(key, u32);	/* tgid */
	__type(value, struct unwind_process);
};

struct objects_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, struct unwind_object_key);
	__type(value, struct unwind_object);
};

struct open_faults_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, OPEN_FAULTS); /* 1 if faults are not recorded */
	__type(key, u32);
	__type(value, struct open_fault);
};

/* The key is the address of the bio. Bios that never complete are evicted. */
struct open_bios_map {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, OPEN_BIOS);
	__type(key, u64);
	__type(value, struct rec_request);
};

/* Work that a thread has queued for an io_uring worker. */
struct ring_work {
	u64 ustack;
	u32 tid, reserved;
};

/* The key is the address of its io_wq_work. Work that no worker starts is evicted. */
struct ring_works_map {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, RING_WORKS);
	__type(key, u64);
	__type(value, struct ring_work);
};

#define RING_WATCHED_MAX 4

/*
 * The sockets and pipes that polled requests of a ring wait for; only the last ones are kept.
 * `count` is the number of all so far, `reported` is `count` at the time of the last REC_WATCH.
 */
struct ring_watch {
	u32 count, reported;
	struct watched watched[RING_WATCHED_MAX];
};

/* The key is the address of the ring's context; rings that are gone are evicted. */
struct ring_watches_map {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, RING_WATCHES);
	__type(key, u64);
	__type(value, struct ring_watch);
};

/* The key is the address of the request. */
struct open_requests_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, OPEN_REQUESTS);
	__type(key, u64);
	__type(value, struct rec_request);
};

/* Values are words of maps.h; 1 entry if there is no budget. */
struct budget_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
};

extern struct open_faults_map open_faults SEC(".maps");
extern struct open_bios_map open_bios SEC(".maps");
extern struct open_requests_map open_requests SEC(".maps");
extern struct ring_works_map ring_works SEC(".maps");
extern struct ring_watches_map ring_watches SEC(".maps");
extern struct chunks_map chunks SEC(".maps");
extern struct rules_map rules SEC(".maps");
extern struct processes_map processes SEC(".maps");
extern struct objects_map objects SEC(".maps");
extern struct stack_memo_map stack_memos SEC(".maps");
extern struct kernel_memo_map kernel_memos SEC(".maps");
extern struct group_rings_map group_rings SEC(".maps");
extern struct accounts_map accounts SEC(".maps");
extern struct scratch_map scratch SEC(".maps");
extern struct copies_map copies SEC(".maps");
extern struct budget_map budget_places SEC(".maps");
extern struct budget_map budget_sleeps SEC(".maps");

/* ---- targets ------------------------------------------------------------------ */

/*
 * Looks into a bitmap over tgids (with setting_threads, over tids). The test is two loads without a
 * helper call, so a switch between two non-targets costs next to nothing. A reused id passes
 * through sched_wakeup_new, which sets or clears its bit.
 */
static __always_inline bool is_target_id(u32 id)
{
	return target_bits[(id / 64) & (TARGET_WORDS - 1)] >> (id % 64) & 1;
}

static __always_inline u32 target_id(struct task_struct *task)
{
	return setting_threads ? task->pid : task->tgid;
}

static __always_inline bool is_target(struct task_struct *task)
{
	return is_target_id(target_id(task));
}

static __always_inline void target_add(struct task_struct *task)
{
	u32 id = target_id(task);

	__sync_fetch_and_or(&target_bits[(id / 64) & (TARGET_WORDS - 1)], 1ULL << (id % 64));
}

static __always_inline void target_remove(struct task_struct *task)
{
	u32 id = target_id(task);

	__sync_fetch_and_and(&target_bits[(id / 64) & (TARGET_WORDS - 1)], ~(1ULL << (id % 64)));
}

/* What is noted of a thread from one of its events to the next. */
static __always_inline struct thread_slot *thread_slot(u32 tid)
{
	return &thread_slots[tid & (SLEEP_SLOTS - 1)];
}

/* ---- emitting records --------------------------------------------------------- */

static __always_inline void record_init(struct record *record, u8 kind, u8 flags, u32 len, u64 ns)
{
	record->len = len;
	record->kind = kind;
	record->flags = flags;
	record->cpu = bpf_get_smp_processor_id();
	record->ns = ns;
}

static __always_inline struct cpu_account *cpu_account(void)
{
	u32 cpu = bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&accounts, &cpu);
}

static __always_inline void memo_count(enum memo_kind kind, enum memo_outcome outcome)
{
	struct cpu_account *account = cpu_account();
	u32 at = outcome;

	/* clang 19 knows which values a function returns; the verifier does not. */
	barrier_var(at);
	if (account && at < MEMO_OUTCOMES)
		account->memos[kind][at]++;
}

/* Whether the stack that was just found in a memo is to be walked nevertheless. */
static __always_inline bool memo_is_checked(enum memo_kind kind)
{
	struct cpu_account *account = cpu_account();

	if (!account || account->memos[kind][MEMO_HIT] & (MEMO_CHECK - 1))
		return false;
	account->memos[kind][MEMO_CHECKED]++;
	return true;
}

/*
 * The first is called for each attempt to send a record of this kind, the second for a loss. They
 * are global functions, because each look-up of the account makes a program larger, and the
 * kernel's work with it.
 */
extern int account_sent(u32 kind);
extern int account_lost(u32 kind, u32 cause, u64 ns);

/*
 * Writes a finished record with one call. A record is never held between reserve and submit,
 * because on 7.x a program that is preempted there stops the consumer of the whole ring. `wake` is
 * BPF_RB_NO_WAKEUP or BPF_RB_FORCE_WAKEUP, for the recorder. Returns 0 if the record was written; a
 * loss is accounted.
 */
static __always_inline int emit_and(u64 wake, enum ring_index kind_of_ring, struct record *record,
				    u32 len)
{
	struct cpu_account *account = cpu_account();
	void *ring;
	int error;
	u32 slot;

	if (!account)
		return -1;
	account_sent(record->kind);
	slot = RING_SLOT(account->ring_group, kind_of_ring);
	ring = bpf_map_lookup_elem(&group_rings, &slot);
	error = ring ? bpf_ringbuf_output(ring, record, len, wake) : -1;
	if (error)
		account_lost(record->kind, LOSS_RING_FULL, record->ns);
	return error;
}

/* Sends without a wake-up: the recorder drains periodically. */
static __always_inline int emit(enum ring_index ring, struct record *record, u32 len)
{
	return emit_and(BPF_RB_NO_WAKEUP, ring, record, len);
}

/* ---- describing tasks ----------------------------------------------------------- */

/*
 * Pointers in a task are read by the helper (BPF_CORE_READ). For each plain load of a pointer the
 * verifier searches all kernel types for those that the result may be trusted as
 * (btf_nested_type_is_trusted), several times, and one search takes 2 ms on kernels that do not
 * sort the types.
 */

/*
 * Returns when the current task's process began (start_boottime of its leader). This is a global
 * function so that the verifier follows its two branches only once.
 */
extern u64 process_start(void);

/* The pid of a task in wallprof's PID namespace, 0 if it is not visible there. */
static __always_inline u32 ns_pid(struct task_struct *task)
{
	struct pid *pid = BPF_CORE_READ(task, thread_pid);
	u32 level = pid_ns_level;
	int nr = 0;

	if (!pid || BPF_CORE_READ(pid, level) < level)
		return 0;
	bpf_probe_read_kernel(&nr, sizeof(nr),
			      (void *)pid + bpf_core_field_offset(struct pid, numbers) +
				      level * bpf_core_type_size(struct upid) +
				      bpf_core_field_offset(struct upid, nr));
	return nr;
}

/* The pid of a task in its own innermost PID namespace; 0 if it cannot be read. */
static __always_inline u32 own_pid(struct task_struct *task)
{
	struct pid *pid = BPF_CORE_READ(task, thread_pid);
	u32 level;
	int nr = 0;

	if (!pid)
		return 0;
	level = BPF_CORE_READ(pid, level);
	bpf_probe_read_kernel(&nr, sizeof(nr),
			      (void *)pid + bpf_core_field_offset(struct pid, numbers) +
				      level * bpf_core_type_size(struct upid) +
				      bpf_core_field_offset(struct upid, nr));
	return nr;
}

/* `comm` is kernel memory: the task's current name or the one that it is about to get. */
static __always_inline int emit_task_named(struct task_struct *task, const char *comm, u8 flags,
					   u32 creator, u64 ns)
{
	struct rec_task record = {};
	u32 task_flags;

	record_init(&record.h, REC_TASK, flags, sizeof(record), ns);
	record.tid = BPF_CORE_READ(task, pid);
	record.tgid = BPF_CORE_READ(task, tgid);
	record.ns_tid = ns_pid(task);
	record.ns_tgid = ns_pid(BPF_CORE_READ(task, group_leader));
	record.parent_tgid = BPF_CORE_READ(task, real_parent, tgid);
	record.creator_tid = creator;
	record.start_boottime = BPF_CORE_READ(task, start_boottime);
	record.exec_id = BPF_CORE_READ(task, self_exec_id);
	record.own_tid = own_pid(task);
	task_flags = BPF_CORE_READ(task, flags);
	if (task_flags & PF_KTHREAD)
		record.h.flags |= TASK_KTHREAD;
	if (task_flags & (PF_IO_WORKER | PF_USER_WORKER))
		record.h.flags |= TASK_IO_WORKER;
	bpf_probe_read_kernel_str(record.comm, sizeof(record.comm), comm);
	return emit(RING_SCHED, &record.h, sizeof(record));
}

static __always_inline int emit_task(struct task_struct *task, u8 flags, u32 creator, u64 ns)
{
	return emit_task_named(task, task->comm, flags, creator, ns);
}

/*
 * An entry of non_target_sent, which is indexed by pid. The start time identifies the task if the
 * pid is reused.
 */
static __always_inline u64 non_target_mark(u32 pid, u64 start_boottime)
{
	return (u64)pid << 32 | (u32)(start_boottime >> 10);
}

/*
 * Whether the task needs no description. The verifier trusts the pointer, so plain loads are
 * enough.
 */
static __always_inline bool is_described(struct task_struct *task)
{
	u32 pid = task->pid;

	return pid == 0 || non_target_sent[pid & (NON_TARGET_SENT_SLOTS - 1)] ==
				   non_target_mark(pid, task->start_boottime);
}

/* Describes a non-target that other records refer to, once. */
static __always_inline void describe_non_target(struct task_struct *task, u64 ns)
{
	u32 pid = BPF_CORE_READ(task, pid);
	u64 mark = non_target_mark(pid, BPF_CORE_READ(task, start_boottime));
	u64 *sent = &non_target_sent[pid & (NON_TARGET_SENT_SLOTS - 1)];

	if (*sent != mark && !emit_task(task, TASK_NON_TARGET, 0, ns))
		*sent = mark;
}

/*
 * Stores how far the scheduler's clock is ahead, if that is known. begins: it is counted from now
 * on if it was not yet. Another thread may have the slot, then it stays unknown.
 */
static __always_inline void stats_clock(struct rec_stats *record, bool begins)
{
	u64 *word = &thread_slot(record->tid)->clock;

	if (begins && RUN_CLOCK_TID(*word) != record->tid)
		*word = RUN_CLOCK_BEGIN(record->tid);
	if (RUN_CLOCK_TID(*word) != record->tid)
		return;
	record->parts |= STATS_HAS_CLOCK;
	record->clock_ahead = RUN_CLOCK_AHEAD(*word);
}

/*
 * The same for the run that goes on: the kernel has counted it up to exec_start, mostly that of the
 * last scheduler tick. A run that began before the thread was counted is counted from now on. The
 * other CPU may switch meanwhile; then one run of one thread is not counted exactly.
 */
static __always_inline void stats_present_run(struct rec_stats *record, struct task_struct *task,
					      bool begins)
{
	struct cpu_account *account;
	u64 ahead_ns;
	u32 cpu;

	if (!(record->parts & STATS_HAS_CLOCK) || !BPF_CORE_READ(task, on_cpu) ||
	    !bpf_core_field_exists(task->thread_info.cpu))
		return;
	cpu = BPF_CORE_READ(task, thread_info.cpu);
	account = bpf_map_lookup_elem(&accounts, &cpu);
	if (!account)
		return;
	ahead_ns = BPF_CORE_READ(task, se.exec_start) - record->h.ns;
	if (begins && account->run_tid != record->tid) {
		account->run_ahead_ns = ahead_ns;
		account->run_tid = record->tid;
	}
	if (account->run_tid == record->tid)
		record->clock_ahead += (s64)(ahead_ns - account->run_ahead_ns);
}

static __always_inline void emit_stats(struct task_struct *task, bool begins, u64 ns)
{
	struct rec_stats record = {};

	record_init(&record.h, REC_STATS, 0, sizeof(record), ns);
	record.tid = BPF_CORE_READ(task, pid);
	record.parts = STATS_HAS_BYTES;
	record.sum_exec_runtime = BPF_CORE_READ(task, se.sum_exec_runtime);
	record.run_delay = bpf_core_field_exists(task->sched_info.run_delay)
				   ? BPF_CORE_READ(task, sched_info.run_delay)
				   : ~0ULL;
	record.utime = BPF_CORE_READ(task, utime);
	record.stime = BPF_CORE_READ(task, stime);
	record.nvcsw = BPF_CORE_READ(task, nvcsw);
	record.nivcsw = BPF_CORE_READ(task, nivcsw);
	record.min_flt = BPF_CORE_READ(task, min_flt);
	record.maj_flt = BPF_CORE_READ(task, maj_flt);
	if (bpf_core_field_exists(task->ioac.read_bytes)) {
		record.read_bytes = BPF_CORE_READ(task, ioac.read_bytes);
		record.write_bytes = BPF_CORE_READ(task, ioac.write_bytes);
	}
	stats_clock(&record, begins);
	stats_present_run(&record, task, begins);
	emit(RING_SCHED, &record.h, sizeof(record));
}

#endif
