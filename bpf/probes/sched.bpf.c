/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sched.bpf.c - context switches, wakeups and births.
 *
 * The programs are tp_btf, so tasks are read by plain loads (except pointers in them, see
 * wallprof.bpf.h). sched_switch has had its fourth argument, prev_state, since 5.18; a waker may
 * already have reset prev->__state itself.
 */
#include "budget.bpf.h"
#include "cgroup.bpf.h"
#include "cost.bpf.h"
#include "cpu_wait.bpf.h"
#include "fault.bpf.h"
#include "irq_context.bpf.h"
#include "object.bpf.h"
#include "script_programs.bpf.h"
#include "syscall.bpf.h"
#include "unwind_process.bpf.h"

static __always_inline u16 switch_seq(struct task_struct *task)
{
	return task->nvcsw + task->nivcsw;
}

/*
 * Stores the system call of the current task, which is being switched out. Returns the descriptor
 * that the call waits for, or -1. This is a global function, as is switch_object(): the verifier
 * does not follow each of its results through the rest of the program, and its stack frame is not
 * below those of other calls.
 */
__noinline int switch_call(struct rec_switch *record, u32 blocks)
{
	struct task_struct *prev = bpf_get_current_task_btf();
	struct syscall_info info;
	bool sampled;

	if (!record)
		return -1;
	syscall_info(prev, &info);
	sampled = budget_samples_switch(record, prev, info.number, info.args[0], blocks);
	if (blocks && info.number == SYSCALL_FUTEX)
		lock_info(&info);
	else if (blocks && info.number >= 0 && sampled)
		descriptor_info(prev, CURRENT_TASK, &info);
	record->h.flags |= info.compat ? SWITCH_COMPAT : 0;
	record->syscall = info.number;
	record->args[0] = info.args[0];
	record->args[1] = info.args[1];
	record->args[2] = info.args[2];
	record->fd_kind = info.fd_kind;
	record->fd_count = info.fd_count;
	record->owner = info.owner;
	record->timeout_ns = info.timeout_ns;
	return info.fd;
}

/* The file of the request that an io_uring worker works on; 0 = none. */
static __always_inline u64 ring_file(struct task_struct *worker)
{
	struct io_worker *state = BPF_CORE_READ(worker, worker_private);
	u64 work, request;

	if (!bpf_core_type_exists(struct io_worker) || !bpf_core_type_exists(struct io_kiocb) ||
	    !state)
		return 0;
	work = (u64)BPF_CORE_READ(state, cur_work);
	request = work - bpf_core_field_offset(struct io_kiocb, work);
	return work ? (u64)BPF_CORE_READ((struct io_kiocb *)request, file) : 0;
}

/* Returns the open file that a blocked thread waits for; 0 = none. */
static __always_inline u64 switch_file(struct task_struct *prev, s32 fd)
{
	if (prev->flags & PF_IO_WORKER)
		return ring_file(prev);
	return fd >= 0 ? fd_file(files_of(prev), fd) : 0;
}

/*
 * Sends the address that a Unix socket connects or sends to. The socket itself does not have it
 * while a connection or a message waits for space in the peer's queue.
 */
static __always_inline void emit_peer_address(struct task_struct *prev,
					      const struct rec_switch *record, u64 file)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(prev);
	u64 name[2] = {record->args[1],
		       record->args[2]}; /* address and length of the destination */

	switch (record->syscall) {
	case SYSCALL_CONNECT:
		break;
	case SYSCALL_SENDTO:
		name[0] = regs->r8;
		name[1] = regs->r9;
		break;
	case SYSCALL_SENDMSG: /* the first two words of a struct msghdr */
		if (bpf_probe_read_user(name, sizeof(name), (void *)record->args[1]))
			return;
		break;
	default:
		return;
	}
	socket_emit_destination(file, name[0], name[1]);
}

/*
 * Stores what the current task waits for and sends what it is called; fd is the descriptor of its
 * system call, or -1.
 */
__noinline int switch_object(struct rec_switch *record, s32 fd)
{
	struct task_struct *prev = bpf_get_current_task_btf();
	u64 file;
	int kind;

	if (!record)
		return 0;
	file = switch_file(prev, fd);
	if (syscall_closes_fd(record->syscall))
		record->fd_kind = socket_emit_closing(OBJECT_KEY(record));
	if (!file)
		return 0;
	kind = object_emit_all(file, syscall_multi_fd(record->syscall) == MULTI_FD_EPOLL,
			       OBJECT_KEY(record));
	prev = bpf_get_current_task_btf(); /* kept, it would need room on 6.1's stack */
	if (prev->flags & PF_IO_WORKER)
		record->fd_kind = kind;
	else if (kind == FD_UNIX)
		emit_peer_address(prev, record, file);
	return 0;
}

/*
 * SWITCH_THROTTLED if a cgroup's limit (cpu.max) keeps a runnable task from running, else 0. There
 * is no branch, because the verifier would follow it.
 */
static __always_inline u8 throttled_flag(struct task_struct *task)
{
	u32 count;

	if (!bpf_core_field_exists(task->se.cfs_rq) ||
	    !bpf_core_field_exists(((struct cfs_rq *)0)->throttle_count))
		return 0;
	count = BPF_CORE_READ(task, se.cfs_rq, throttle_count);
	return (-count >> 31) * SWITCH_THROTTLED;
}

static __always_inline bool is_unsampled(const struct rec_switch *record)
{
	return setting_budget && record->parts & SWITCH_UNSAMPLED;
}

static __always_inline void fill_switch_out(void *ctx, struct rec_switch *record,
					    struct task_struct *prev, bool preempt, u32 prev_state,
					    u64 ns)
{
	/*
	 * A concurrent waker sets __state to TASK_WAKING and then waits for this switch to end.
	 * Only __schedule() itself, when it finds a signal, has set it to 0 by now.
	 */
	bool signalled = prev_state != 0 && prev->__state == 0;
	bool blocks = prev_state != 0 && !preempt && !signalled, wants_kernel;
	struct stack_slot *slot;
	s32 fd;

	/* A thread that ends never wakes, so it has no waiting place (budget.bpf.h). */
	fd = switch_call(record, blocks & !(prev_state & TASK_DEAD));
	record->h.flags |= (preempt ? SWITCH_PREEMPT : 0) |
			   (BPF_CORE_READ_BITFIELD(prev, in_iowait) ? SWITCH_IOWAIT : 0) |
			   (signalled ? SWITCH_SIGNALLED : 0);
	record->prev_seq = switch_seq(prev);
	record->prev_state = prev_state;
	cost_phase(COST_CALL);
	if (blocks) {
		thread_slot(prev->pid)->sleep_start = SLEEP_START(prev->pid, ns);
		if (is_unsampled(record))
			;
		else if (record->syscall == SYSCALL_IO_URING_ENTER)
			ring_emit(record);
		else
			switch_object(record, fd);
	} else {
		record->h.flags |= throttled_flag(prev);
	}
	if (setting_fault_source == FAULT_SOURCE_EVENTS && blocks)
		fault_switched_out(ctx, prev);
	cost_phase(COST_OBJECT);
	if (prev_state & TASK_DEAD)
		return; /* an ended task waits for nothing, and its memory is gone */
	if (is_unsampled(record))
		return;
	wants_kernel = setting_kernel_stacks == KERNEL_STACKS_ALL ||
		       (setting_kernel_stacks == KERNEL_STACKS_BLOCKED && blocks);
	slot = stacks_acquire(wants_kernel, takes_user_stack(prev), ns);
	if (slot) {
		if (wants_kernel)
			record->kstack = kernel_stack(slot, ctx, KERNEL_PROBE_SWITCH, ns);
		if (takes_user_stack(prev))
			record->ustack = user_stack(slot, ctx, prev, record->syscall >= 0, ns);
		slot_release(slot);
	}
	/*
	 * After the walk, which may also need to find a mapping by address: that works only once.
	 */
	futex_emit(record);
	cost_phase(COST_OBJECT);
}

/*
 * These two are not inlined, because their records would be on the stack during the calls of the
 * walk.
 */
static __noinline int emit_exit(struct task_struct *task, u64 ns)
{
	struct rec_exit record = {};

	record_init(&record.h, REC_EXIT,
		    BPF_CORE_READ(task, signal, live.counter) == 0 ? EXIT_GROUP_DEAD : 0,
		    sizeof(record), ns);
	record.tid = task->pid;
	record.tgid = task->tgid;
	record.exit_code = task->exit_code;
	record.start_boottime = task->start_boottime;
	record.process_start_boottime = process_start();
	record.parts = EXIT_HAS_STARTS;
	emit(RING_SCHED, &record.h, sizeof(record));
	if (record.h.flags & EXIT_GROUP_DEAD)
		unwind_exit(task->tgid, record.process_start_boottime);
	return 0;
}

/* Reports the final switch-out. Only now are the kernel's accounts of the thread exact. */
static __noinline int emit_end(struct task_struct *task, u64 ns)
{
	emit_stats(task, false, ns);
	if ((u32)task->tgid == command_tgid) {
		command_end_ns = ns;
		__sync_fetch_and_add(&command_threads, -1);
	}
	return 0;
}

/* A global function, so that the verifier checks it once and not at both calls. */
__noinline int describe_address(u64 address, u64 ns)
{
	describe_non_target((struct task_struct *)address, ns);
	return 0;
}

/*
 * Returns a pointer to a task as a number, because before 6.9 a global function takes no kernel
 * pointer.
 */
static __always_inline u64 ptr_as_u64(struct task_struct *task)
{
	u64 address = 0;

	bpf_probe_read_kernel(&address, sizeof(address), &task);
	return address;
}

/*
 * Describes a CPU user: the task that gets the CPU instead of a target, or had it before a target.
 */
static __always_inline int describe_cpu_user(struct task_struct *task, u64 ns)
{
	return is_described(task) ? 0 : describe_address(ptr_as_u64(task), ns);
}

/*
 * Stores the holder of the kernel lock that prev contended for, and which lock it is. The owner of
 * a lock in user memory takes precedence. This is a global function because the verifier would
 * otherwise follow both branches through the rest of the program.
 */
__noinline int lock_owner(struct rec_switch *record, u32 tid)
{
	u64 word = thread_slot(tid)->lock_owner;

	if (!record || LOCK_OWNER_WAITER(word) != tid)
		return 0;
	thread_slot(tid)->lock_owner = 0;
	if (record->owner)
		return 0;
	record->owner = LOCK_OWNER_OWNER(word);
	record->lock = LOCK_OWNER_LOCK(word);
	record->h.flags |= record->owner ? SWITCH_KERNEL_LOCK : 0;
	return 0;
}

/*
 * A target gets this CPU. If sampling ticks are paused here, the recorder has to be woken, once: by
 * the record whose time is stored here. This is a global function because the verifier would
 * otherwise follow its branches through the rest of the program.
 */
__noinline int target_has_cpu(u64 ns)
{
	struct cpu_account *account = cpu_account();

	if (!account)
		return 0;
	account->target_ns = ns;
	if (account->tick_state == TICKS_PAUSED)
		account->tick_state = ns;
	return 0;
}

/* A global function has a stack frame of its own. */
__noinline int emit_switch(struct rec_switch *record)
{
	struct cpu_account *account = cpu_account();
	u64 wake = BPF_RB_NO_WAKEUP;

	if (!record || !account)
		return 0;
	if (account->tick_state == record->h.ns)
		wake = BPF_RB_FORCE_WAKEUP;
	script_switch(account, record);
	if (record->parts & SWITCH_HAS_OBJECT)
		return emit_and(wake, RING_SCHED, &record->h, sizeof(*record));
	if (record->parts & SWITCH_HAS_OUT)
		return emit_and(wake, RING_SCHED, &record->h, SWITCH_OUT_LEN);
	return emit_and(wake, RING_SCHED, &record->h, SWITCH_SHORT_LEN);
}

/* The growth of one of the kernel's accounts; *kept is its previous value. */
static __always_inline u32 account_growth(u64 now, u64 *kept)
{
	u64 difference = *kept ? now - *kept : 0;

	*kept = now;
	return difference < ~0U ? difference : ~0U;
}

static __always_inline void read_taken_time(struct rec_switch *record, struct cpu_account *account)
{
	struct rq *rq;
	u64 now = 0;

	if (!setting_taken_time)
		return;
	rq = (struct rq *)this_rq(account);
	if (!rq)
		return;
	if (bpf_core_field_exists(rq->prev_irq_time)) {
		bpf_core_read(&now, sizeof(now), &rq->prev_irq_time);
		record->interrupts_ns = account_growth(now, &account->interrupts_ns);
	}
	if (bpf_core_field_exists(rq->prev_steal_time_rq)) {
		bpf_core_read(&now, sizeof(now), &rq->prev_steal_time_rq);
		record->stolen_ns = account_growth(now, &account->stolen_ns);
	}
}

/* Converts to the record's units, limited to what the field can hold. */
static __always_inline u32 units_of(u64 ns, u32 most)
{
	u64 units = SWITCH_UNITS(ns);

	return units < most ? units : most;
}

/*
 * Returns own_run_ns in units of 256 ns, or in coarser ones if the field cannot hold these; the
 * remainder is kept.
 */
static __always_inline u16 consume_own_run(struct cpu_account *account)
{
	u64 ns = account->own_run_ns, units = ns >> SWITCH_RUN_SHIFT;
	u64 coarse = ns >> SWITCH_RUN_COARSE_SHIFT;

	if (units < SWITCH_RUN_COARSE) {
		account->own_run_ns = ns & ((1ULL << SWITCH_RUN_SHIFT) - 1);
		return units;
	}
	account->own_run_ns = ns & ((1ULL << SWITCH_RUN_COARSE_SHIFT) - 1);
	return SWITCH_RUN_COARSE | (coarse < SWITCH_RUN_COARSE ? coarse : SWITCH_RUN_COARSE - 1);
}

/*
 * A target that is switched in ends its wait for a CPU; one that is switched out may begin a wait.
 */
static __always_inline void count_waits(struct rec_switch *record, struct cpu_account *account,
					bool runnable)
{
	u8 flags = record->h.flags;

	if (setting_whole_system)
		return;
	if (flags & SWITCH_NEXT)
		cpu_wait_end(record->next_tid);
	if (flags & SWITCH_PREV && runnable)
		cpu_wait_begin(record->prev_tid, record->h.cpu, record->h.ns);
	else if (flags & SWITCH_PREV)
		cpu_wait_end(record->prev_tid);
	if (!record->next_tid)
		account->waiting = 0;
}

/* Stores when the target that is switched in was moved to this CPU's queue. */
static __always_inline void consume_move(struct rec_switch *record)
{
	u64 *word = &thread_slot(record->next_tid)->moved, ns = MOVED_NS(*word);

	if (MOVED_TID(*word) != record->next_tid || ns >= record->h.ns)
		return;
	record->moved_before = units_of(record->h.ns - ns, ~0U);
	if (MOVED_REPEATEDLY(*word) || record->moved_before == ~0U)
		record->parts = SWITCH_MOVED_REPEATEDLY;
	*word = 0;
}

/*
 * The kernel counts running time by a clock of the run queue, which is not exact: if a wakeup has
 * just read it, a switch does not read it again (rq_clock_skip_update()), even if it comes much
 * later, for example because the interrupt to another CPU takes so long. Then next is charged with
 * what prev ran. Also, it leaves out interrupts and steal time where the kernel accounts for them.
 * The time at which it charges both tasks is in exec_start. Here the difference to CLOCK_MONOTONIC
 * is added up in the run that ends; the run that begins starts at next_clock_ns.
 */
static __always_inline void count_run_clock(struct cpu_account *account,
					    const struct rec_switch *record, u64 next_clock_ns)
{
	struct task_struct *prev = bpf_get_current_task_btf();
	u64 *word = &thread_slot(record->prev_tid)->clock;

	if (account->run_tid && account->run_tid == record->prev_tid &&
	    RUN_CLOCK_TID(*word) == record->prev_tid)
		*word = RUN_CLOCK_ADD(*word, RUN_CLOCK_UNITS(prev->se.exec_start - record->h.ns -
							     account->run_ahead_ns));
	account->run_tid = record->h.flags & SWITCH_NEXT ? record->next_tid : 0;
	account->run_ahead_ns = next_clock_ns - record->h.ns;
}

/*
 * Stores what the CPU's account has collected since the previous switch. runnable: prev could
 * continue. A global function has a stack frame of its own.
 */
__noinline int switch_account(struct rec_switch *record, u32 runnable, u64 next_clock_ns)
{
	struct cpu_account *account = cpu_account();
	u64 since_ns, run_ns;

	if (!record || !account)
		return 0;
	if (record->h.flags & SWITCH_NEXT)
		consume_move(record);
	run_ns = account->own_run_ns;
	record->own_in = units_of(account->own_in_ns, 0xffff);
	record->own_run = consume_own_run(account);
	budget_account(account, record, run_ns - account->own_run_ns);
	account->own_in_ns = 0;
	account->switched_ns = record->h.ns;
	/*
	 * The time since which all switches are recorded may be later than this switch's timestamp.
	 */
	since_ns = CPU_WAIT_NS(account->waiting);
	if (since_ns && since_ns < record->h.ns)
		record->complete_for = units_of(record->h.ns - since_ns, ~0U);
	read_taken_time(record, account);
	count_run_clock(account, record, next_clock_ns);
	count_waits(record, account, runnable);
	return 0;
}

static __always_inline int handle_switch(void *ctx, struct rec_switch *record, bool preempt,
					 struct task_struct *prev, struct task_struct *next,
					 unsigned int prev_state)
{
	if (!(record->h.flags & SWITCH_PREV)) {
		emit_switch(record);
		if (!(record->h.flags & SWITCH_NEXT))
			describe_cpu_user(next, record->h.ns);
		return describe_cpu_user(prev, record->h.ns);
	}
	if (prev_state & TASK_DEAD)
		emit_exit(prev, record->h.ns);
	fill_switch_out(ctx, record, prev, preempt, prev_state, record->h.ns);
	lock_owner(record, prev->pid);
	record->parts |= SWITCH_HAS_OUT | (record->inode ? SWITCH_HAS_OBJECT : 0);
	record->h.len = record->inode ? sizeof(*record) : SWITCH_OUT_LEN;
	emit_switch(record);
	cost_phase(COST_RING);
	if (prev_state & TASK_DEAD)
		emit_end(prev, record->h.ns);
	if (!(record->h.flags & SWITCH_NEXT) && (setting_whole_system || preempt || !prev_state))
		return describe_cpu_user(next, record->h.ns);
	return 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct *prev, struct task_struct *next,
	     unsigned int prev_state)
{
	bool out = is_target(prev), in = is_target(next);
	struct rec_switch record;

	if (!out && !in && !setting_whole_system && !cpu_is_awaited(next))
		return 0;
	__builtin_memset(&record, 0, sizeof(record));
	record_init(&record.h, REC_SWITCH, (in ? SWITCH_NEXT : 0) | (out ? SWITCH_PREV : 0),
		    SWITCH_SHORT_LEN, bpf_ktime_get_ns());
	record.prev_tid = prev->pid;
	record.next_tid = next->pid;
	record.next_seq = in ? switch_seq(next) : 0;
	record.syscall = -1;
	/*
	 * From here on the time is read from the record, because another variable would exceed the
	 * stack limit on 6.1.
	 */
	cost_phases_begin(COST_SWITCH, record.h.ns);
	if (in)
		target_has_cpu(record.h.ns);
	switch_account(&record, preempt || !prev_state || !prev->__state, next->se.exec_start);
	cost_phase(COST_BEGIN);
	handle_switch(ctx, &record, preempt, prev, next, prev_state);
	cost_phases_end(COST_END);
	cost_of_switch(record.h.ns);
	return 0;
}

/* ---- wakeups ------------------------------------------------------------------ */

static __always_inline void describe_waker(struct task_struct *waker, u8 flags, u64 ns)
{
	if (!(flags & (WAKING_HARDIRQ | WAKING_SOFTIRQ)) && !is_target(waker) &&
	    !is_described(waker))
		describe_non_target(waker, ns);
}

/* Whether the task has slept long enough for the waker's stacks to be recorded. */
static __always_inline bool slept_long(struct task_struct *task, u64 ns)
{
	u64 start = thread_slot(task->pid)->sleep_start;

	return setting_waker_threshold_ns != WAKER_THRESHOLD_NONE &&
	       SLEEP_START_TID(start) == (u32)task->pid &&
	       ns - SLEEP_START_NS(start) >= setting_waker_threshold_ns;
}

/*
 * Stores the waker's stacks: the kernel stack, and the user stack unless an interrupt is the waker.
 */
static __always_inline void waker_stacks(void *ctx, struct task_struct *waker,
					 struct rec_waking *record)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(waker);
	u8 flags = record->h.flags;
	bool wants_kernel = setting_kernel_stacks != KERNEL_STACKS_NONE, wants_user;
	struct stack_slot *slot;

	record->h.len = sizeof(*record);
	record->parts |= WAKING_HAS_STACKS;
	wants_user = !(flags & (WAKING_HARDIRQ | WAKING_SOFTIRQ | WAKING_UNKNOWN_CONTEXT)) &&
		     is_target(waker) && takes_user_stack(waker);
	slot = stacks_acquire(wants_kernel, wants_user, record->h.ns);
	if (!slot)
		return;
	if (wants_kernel)
		record->kstack = kernel_stack(slot, ctx, KERNEL_PROBE_WAKING, record->h.ns);
	if (wants_user) {
		record->ustack =
			user_stack(slot, ctx, waker, (s64)regs->orig_ax >= 0, record->h.ns);
		script_note(SCRIPT_AT_WAKING, record->waker_tid, record->h.ns);
	}
	slot_release(slot);
}

/* The CPU that the task ran on last, or is being moved to. */
static __always_inline u32 last_cpu_of(struct task_struct *task)
{
	return bpf_core_field_exists(task->thread_info.cpu) ? task->thread_info.cpu : 0;
}

SEC("tp_btf/sched_waking")
int BPF_PROG(on_waking, struct task_struct *task)
{
	struct task_struct *waker = bpf_get_current_task_btf();
	struct rec_waking record = {};
	u64 begin_ns, ns;
	u8 vector;

	if (!is_target(task))
		return 0;
	begin_ns = ns = bpf_ktime_get_ns();
	cost_phases_begin(COST_WAKING, ns);
	/*
	 * The clock is read again, so that the wait does not begin before the switches of that CPU
	 * are recorded.
	 */
	if (!setting_whole_system) {
		cpu_wait_begin(task->pid, last_cpu_of(task), 0);
		ns = bpf_ktime_get_ns();
	}
	record_init(&record.h, REC_WAKING, waking_context(&vector), WAKING_SHORT_LEN, ns);
	record.vector = vector;
	record.tid = task->pid;
	record.waker_tid = waker->pid;
	cost_phase(COST_BEGIN);
	if (slept_long(task, ns) && budget_samples_waking(&record, task))
		waker_stacks(ctx, waker, &record);
	budget_learn(task, ns);
	emit(RING_SCHED, &record.h,
	     record.parts & WAKING_HAS_STACKS ? sizeof(record) : WAKING_SHORT_LEN);
	cost_phase(COST_RING);
	describe_waker(waker, record.h.flags, ns);
	cost_phases_end(COST_END);
	cost_add(begin_ns);
	return 0;
}

/* Sends the first wakeup of a new thread. */
static __always_inline void emit_waking_new(struct task_struct *task, u64 ns)
{
	struct task_struct *waker = bpf_get_current_task_btf();
	struct rec_waking record = {};
	u8 vector;

	record_init(&record.h, REC_WAKING, WAKING_NEW | waking_context(&vector), WAKING_SHORT_LEN,
		    ns);
	record.vector = vector;
	record.tid = task->pid;
	record.waker_tid = waker->pid;
	emit(RING_SCHED, &record.h, WAKING_SHORT_LEN);
	describe_waker(waker, record.h.flags, ns);
}

static __always_inline void fork_tables(struct task_struct *task)
{
	struct stack_slot *slot;

	if (setting_user_stacks != USER_STACKS_TABLES)
		return;
	slot = slot_acquire_accounted(bpf_ktime_get_ns());
	if (!slot)
		return;
	unwind_fork(slot->index, task->tgid, task->start_boottime);
	slot_release(slot);
}

/*
 * Whether a new process (with setting_threads: thread) is a target. In a recording of the whole
 * system all processes are targets except wallprof and its children, so the child of another
 * non-target is wallprof's, or a program that the kernel itself runs.
 */
static __always_inline bool is_target_at_birth(struct task_struct *task,
					       struct task_struct *creator)
{
	if (setting_threads || (u32)creator->tgid == own_tgid)
		return false;
	if (creator->flags & PF_KTHREAD)
		return task->flags & PF_KTHREAD ? setting_kernel_threads : setting_whole_system;
	return is_target(creator) || is_in_cgroup(task);
}

/*
 * Records a birth. sched_process_fork is not used: it runs preemptibly from 7.0 on, and the kernel
 * does not run a program that is already running on that CPU. This tracepoint runs with interrupts
 * off, for every new task (io_uring and vhost workers do not even pass sched_process_fork), with
 * the creator as the current task.
 */
SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(on_wakeup_new, struct task_struct *task)
{
	struct task_struct *creator = bpf_get_current_task_btf();
	u64 begin_ns;

	if (task->tgid != creator->tgid || setting_threads) {
		/* The tid or tgid may be reused. */
		if (!is_target_at_birth(task, creator)) {
			if (is_target(task))
				target_remove(task);
			return 0;
		}
		target_add(task);
		begin_ns = bpf_ktime_get_ns();
		fork_tables(task);
	} else if (is_target(task)) {
		begin_ns = bpf_ktime_get_ns();
	} else {
		return 0;
	}
	if ((u32)task->tgid == command_tgid)
		__sync_fetch_and_add(&command_threads, 1);
	if (!setting_whole_system)
		cpu_wait_begin(task->pid, last_cpu_of(task), 0);
	thread_slot(task->pid)->clock = RUN_CLOCK_BEGIN(task->pid);
	emit_task(task, TASK_BIRTH, creator->pid, bpf_ktime_get_ns());
	emit_waking_new(task, bpf_ktime_get_ns());
	cost_add(begin_ns);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
