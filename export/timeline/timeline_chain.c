/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The state chain of one thread, record by record.
 *
 * A contradiction between records is not resolved here, because losses are reported only after the
 * fact. A mark says that something is missing (MARK_GAP: the switch does not have the next sequence
 * number; MARK_UNWOKEN: a wait ended without a wakeup), and timeline_resolve.c resolves it when all
 * losses are known.
 */
#include "timeline_builder_private.h"
#include <linux/futex.h>

#define TASK_DEAD 0x80

Interval *chain_push(BuildThread *target, uint64_t ns, enum thread_state state)
{
	Thread *thread = &target->thread;
	size_t count = thread->intervals.count;
	Interval *interval;

	if (count)
		ns = MAX(ns, thread->intervals.items[count - 1].start_ns);
	interval = vec_push(&thread->intervals);
	*interval = (Interval){
		.start_ns = ns,
		.user_stack = STACK_NONE,
		.kernel_stack = STACK_NONE,
		.waker = THREAD_NONE,
		.cpu_user = THREAD_NONE,
		.syscall = -1,
		.state = state,
	};
	return interval;
}

static void set_reason(Interval *interval, enum reason reason, enum reason_rule rule)
{
	interval->reason = reason;
	interval->rule = rule;
}

static void set_waker(Interval *interval, Waker waker)
{
	interval->waker = waker.task;
	interval->cpu = waker.cpu;
	interval->flags &= ~INTERVAL_WAKER_IRQ;
	if (waker.irq)
		interval->flags |= INTERVAL_WAKER_IRQ;
}

/* ---- birth -------------------------------------------------------------------- */

static void set_creator(TimelineBuilder *builder, BuildThread *target, uint32_t creator)
{
	if (creator)
		target->thread.creator = tasks_reference(builder, creator);
}

static void set_newborn(BuildThread *target, Interval *first)
{
	first->state = STATE_RUNNABLE;
	set_reason(first, REASON_WOKEN, RULE_SCHEDULER);
	first->waker = target->thread.creator;
	if (target->thread.intervals.count == 1) {
		target->seq_known = true;
		target->seq = 0;
	}
}

void chain_begin(TimelineBuilder *builder, BuildThread *target, uint64_t ns, uint32_t creator)
{
	Interval *first = chain_push(target, ns, STATE_UNKNOWN);

	set_creator(builder, target, creator);
	if (target->born)
		set_newborn(target, first);
}

void chain_begin_late(TimelineBuilder *builder, BuildThread *target, uint64_t ns, uint32_t creator)
{
	Interval *first = &target->thread.intervals.items[0];

	set_creator(builder, target, creator);
	if (target->thread.intervals.count == 1 ? first->state == STATE_UNKNOWN
						: target->seq_at_birth)
		set_newborn(target, first);
	target->born = true;
	target->first_ns = ns;
	first->start_ns = ns;
}

/* ---- switches ------------------------------------------------------------------ */

bool chain_fits(const BuildThread *target, const SwitchSide *side)
{
	bool running = chain_last(target)->state == STATE_RUNNING;

	if (target->ended || !target->seq_known || running != side->out)
		return false;
	return side->seq == (uint16_t)(target->seq + side->out);
}

/* The snapshot was taken while the thread switched; the switch says what it was before. */
static void correct_snapshot(BuildThread *target, const SwitchSide *side)
{
	Interval *last = chain_last(target);

	last->user_stack = last->kernel_stack = STACK_NONE;
	last->syscall = -1;
	last->cpu_user = THREAD_NONE;
	last->cpu = side->cpu;
	last->state = side->out ? STATE_RUNNING : STATE_UNKNOWN;
	set_reason(last, REASON_NONE, RULE_NONE);
}

/*
 * A switch-out has the next sequence number, but the thread was not running: exactly one switch-in
 * is missing, and the thread has run since. The first tick that hit it is the latest time at which
 * it can have begun.
 */
static void add_missed_switch_in(BuildThread *target, const SwitchSide *side)
{
	uint64_t off_ns = chain_last(target)->start_ns, ran_ns = side->ns;
	Interval *running;

	for (size_t i = target->thread.ticks.count; i-- > 0;) {
		if (target->thread.ticks.items[i].ns <= off_ns)
			break;
		ran_ns = target->thread.ticks.items[i].ns;
	}
	chain_push(target, ran_ns, STATE_UNKNOWN)->flags = MARK_GAP | MARK_SWITCH_IN;
	running = chain_push(target, ran_ns, STATE_RUNNING);
	running->cpu = side->cpu;
	running->flags = MARK_SWITCH_IN;
}

static bool misses_switch_in(const BuildThread *target, const SwitchSide *side)
{
	return target->seq_known && side->out && side->ns > target->snapshot_until &&
	       chain_last(target)->state != STATE_RUNNING &&
	       side->seq == (uint16_t)(target->seq + 1);
}

/* Marks what the switch proves to be missing. Returns whether nothing is missing. */
static bool check_switch(BuildThread *target, const SwitchSide *side)
{
	bool missed = misses_switch_in(target, side), fits;

	if (missed)
		add_missed_switch_in(target, side);
	fits = chain_fits(target, side);
	if (!target->seq_known)
		target->seq_at_birth = !side->out && side->seq == 0;
	else if (!fits && side->ns <= target->snapshot_until)
		correct_snapshot(target, side);
	else if (!fits)
		chain_push(target, side->ns, STATE_UNKNOWN)->flags = MARK_GAP;
	target->snapshot_until = 0;
	target->woken = false;
	target->seq_known = true;
	target->seq = side->seq;
	target->end_seen = false;
	return fits && !missed;
}

/*
 * A wait ended without a wakeup in it. If the thread was woken on its way to sleep, that was the
 * wakeup, and the thread was never asleep. timeline_resolve.c decides whether a wakeup may have
 * been lost.
 */
static void end_unwoken_wait(BuildThread *target, Interval *wait, uint64_t ns)
{
	if (target->woken_early) {
		wait->state = STATE_RUNNABLE;
		wait->syscall = -1;
		wait->cpu_user = THREAD_NONE;
		set_reason(wait, REASON_WOKEN, RULE_SCHEDULER);
		set_waker(wait, target->early);
	}
	chain_push(target, ns, STATE_UNKNOWN)->flags = MARK_UNWOKEN;
}

/* Returns the task on the other side of the switch. */
static uint32_t cpu_user_of(TimelineBuilder *builder, const SwitchSide *side)
{
	return side->cpu_user ? tasks_reference(builder, side->cpu_user) : CPU_IDLE;
}

/*
 * The switch-out of a preempted thread names the preemptor. For a thread that was woken, the first
 * switch with a CPU user is the one that ends the wait.
 */
static void end_queueing(TimelineBuilder *builder, BuildThread *target, const SwitchSide *side)
{
	Interval *last = chain_last(target);

	if (last->state == STATE_RUNNABLE && last->reason == REASON_WOKEN)
		last->cpu_user = cpu_user_of(builder, side);
}

void chain_switch_in(TimelineBuilder *builder, BuildThread *target, const SwitchSide *side)
{
	Interval *last = chain_last(target);

	if (check_switch(target, side) && last->state == STATE_BLOCKED)
		end_unwoken_wait(target, last, side->ns);
	target->woken_early = false;
	end_queueing(builder, target, side);
	chain_push(target, side->ns, STATE_RUNNING)->cpu = side->cpu;
}

static ReasonInput call_input(TimelineBuilder *builder, BuildThread *target, const Call *call,
			      bool compat)
{
	bool restarted = call->syscall == SYSCALL_RESTART_SYSCALL && !compat;
	const Call *real = restarted && target->last_call.syscall >= 0 ? &target->last_call : call;

	if (!restarted && !compat)
		target->last_call = *call;
	return (ReasonInput){
		.syscall = compat ? SYSCALL_UNKNOWN : real->syscall,
		.args = {real->args[0], real->args[1], real->args[2]},
		.fd_kind = real->fd_kind,
		.fd_count = real->fd_count,
		.joins = !compat && real->syscall == SYSCALL_FUTEX &&
			 tasks_of_process(builder, target, real->args[2]) != THREAD_NONE,
		.only_thread = tasks_only_thread(builder, target),
		.kernel_thread = target->thread.kernel_only,
	};
}

static void set_blocked(Interval *interval, const ReasonInput *input)
{
	enum reason_rule rule;
	enum reason reason = reason_classify(input, &rule);

	interval->state = STATE_BLOCKED;
	interval->sleep = reason_sleep_state(input);
	set_reason(interval, reason, rule);
	if (input->syscall >= 0)
		interval->syscall = input->syscall;
}

/*
 * Returns the task that holds the lock, by what the lock stores: `owner`, which BPF read, or, for a
 * robust mutex, the value that the thread expects in the word
 * (Documentation/locking/robust-futex-ABI.rst). A program may store any number there, so it is used
 * only if a thread has it as its tid.
 */
static uint32_t lock_holder(TimelineBuilder *builder, const BuildThread *target,
			    const ReasonInput *input, uint32_t owner)
{
	uint32_t command = input->args[1] & FUTEX_CMD_MASK;
	bool futex = input->syscall == SYSCALL_FUTEX;

	if (!owner && futex && (command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET) &&
	    input->args[2] & FUTEX_WAITERS)
		owner = input->args[2] & FUTEX_TID_MASK;
	if (!owner)
		return THREAD_NONE;
	return tasks_lock_holder(builder, target, owner,
				 futex && !(input->args[1] & FUTEX_PRIVATE_FLAG));
}

static void begin_wait(TimelineBuilder *builder, BuildThread *target, Interval *interval,
		       const struct rec_switch *record)
{
	Call call = {record->syscall,
		     record->fd_kind,
		     record->fd_count,
		     {record->args[0], record->args[1], record->args[2]}};
	ReasonInput input = call_input(builder, target, &call, record->h.flags & SWITCH_COMPAT);
	ObjectId numbers = {};

	input.state = record->prev_state;
	input.iowait = record->h.flags & SWITCH_IOWAIT;
	set_blocked(interval, &input);
	if (record->owner && record->h.flags & SWITCH_KERNEL_LOCK)
		interval->lock_holder = input.syscall == SYSCALL_FUTEX
						? THREAD_NONE
						: tasks_reference(builder, record->owner);
	else
		interval->lock_holder = lock_holder(builder, target, &input, record->owner);
	interval->lock = record->lock;
	if (record->parts & SWITCH_HAS_OBJECT)
		numbers = (ObjectId){record->inode, record->file_device, record->generation};
	waits_add_object(builder, target, interval->start_ns, &input, &numbers);
}

/* As __schedule() counts it: voluntary unless preempted or still runnable. */
static void count_switch(const TimelineBuilder *builder, BuildThread *target, uint64_t ns,
			 const struct rec_switch *record)
{
	if (in_window(builder, ns))
		target->thread.switch_outs++;
	else if (record->prev_state && !(record->h.flags & SWITCH_PREEMPT))
		target->outside.voluntary++;
	else
		target->outside.involuntary++;
}

/* The reason why a runnable thread does not run. */
static enum reason reason_off_cpu(const struct rec_switch *record)
{
	if (record->h.flags & SWITCH_THROTTLED)
		return REASON_THROTTLED;
	return record->syscall == SYSCALL_SCHED_YIELD && !(record->h.flags & SWITCH_COMPAT)
		       ? REASON_YIELDED
		       : REASON_PREEMPTED;
}

/* Recordings without a budget have neither. */
static void add_place(BuildThread *target, uint64_t ns, const struct rec_switch *record)
{
	if (record->place || record->parts >> CHANCE_SHIFT)
		*vec_push(&target->places) =
			(SwitchPlace){ns, record->syscall, record->place, CHANCE_OF(record->parts)};
}

void chain_switch_out(TimelineBuilder *builder, BuildThread *target, const SwitchSide *side,
		      const struct rec_switch *record)
{
	uint32_t user_stack = scripts_stack(builder, stack_reference(builder, record->ustack),
					    record->prev_tid, record->h.ns);
	uint32_t kernel_stack = stack_reference(builder, record->kstack);
	bool blocks =
		record->prev_state && !(record->h.flags & (SWITCH_PREEMPT | SWITCH_SIGNALLED));
	/*
	 * A switch-in is lost, so it is unknown whether the thread was running when it was woken.
	 */
	bool woken = target->woken, unsampled = record->parts & SWITCH_UNSAMPLED;
	Interval *interval;

	if (!check_switch(target, side))
		target->woken_early = false;
	else
		woken = target->woken_early;
	interval = chain_last(target);
	if (interval->state == STATE_RUNNING) {
		interval->user_stack = user_stack;
		interval->kernel_stack = kernel_stack;
		interval->unsampled = unsampled;
	}
	if (side->dead) {
		target->woken_early = false;
		tasks_end(builder, target, side->ns);
		return;
	}
	count_switch(builder, target, side->ns, record);
	interval = chain_push(target, side->ns, STATE_RUNNABLE);
	interval->user_stack = user_stack;
	interval->kernel_stack = kernel_stack;
	interval->unsampled = unsampled;
	add_place(target, side->ns, record);
	scripts_lock(builder, target, record->h.ns,
		     blocks && record->syscall == SYSCALL_FUTEX &&
				     !(record->h.flags & SWITCH_COMPAT)
			     ? record->args[0]
			     : 0);
	if (blocks) {
		begin_wait(builder, target, interval, record);
		if (woken)
			interval->flags |= MARK_EARLY;
		return;
	}
	target->woken_early = false;
	set_reason(interval, reason_off_cpu(record), RULE_SCHEDULER);
	interval->cpu = side->cpu;
	/*
	 * A throttled thread does not compete for the CPU, so the task on it is not its CPU user.
	 */
	if (interval->reason != REASON_THROTTLED)
		interval->cpu_user = cpu_user_of(builder, side);
}

/* ---- wakings ------------------------------------------------------------------- */

static Waker waker_of(TimelineBuilder *builder, const struct rec_waking *record)
{
	/*
	 * The idle task wakes threads only on behalf of interrupts: a CPU that polls is sent none
	 * (flush_smp_call_function_queue() in kernel/smp.c).
	 */
	if (record->h.flags & (WAKING_HARDIRQ | WAKING_SOFTIRQ) || !record->waker_tid)
		return (Waker){THREAD_NONE, record->h.cpu, true};
	/* The interrupted task is not the waker. */
	if (record->h.flags & WAKING_UNKNOWN_CONTEXT)
		return (Waker){THREAD_NONE, record->h.cpu, false};
	return (Waker){tasks_reference(builder, record->waker_tid), record->h.cpu, false};
}

static void end_wait(BuildThread *target, Interval *wait, uint64_t ns, Waker waker)
{
	uint32_t user_stack = wait->user_stack, kernel_stack = wait->kernel_stack;
	bool unsampled = wait->unsampled;
	Interval *interval;

	set_waker(wait, waker);
	interval = chain_push(target, ns, STATE_RUNNABLE);
	interval->user_stack = user_stack;
	interval->kernel_stack = kernel_stack;
	interval->unsampled = unsampled;
	interval->flags = MARK_WAKING;
	set_reason(interval, REASON_WOKEN, RULE_SCHEDULER);
	set_waker(interval, waker);
}

/* Indexed by the vectors of linux/interrupt.h; REC_WAKING's vector is one higher. */
static uint8_t vector_source(uint8_t vector)
{
	static const uint8_t sources[] = {
		[1 + 1] = INTERRUPT_TIMER, [2 + 1] = INTERRUPT_NETWORK, [3 + 1] = INTERRUPT_NETWORK,
		[4 + 1] = INTERRUPT_BLOCK, [5 + 1] = INTERRUPT_BLOCK,	[8 + 1] = INTERRUPT_TIMER,
		[9 + 1] = INTERRUPT_RCU,
	};

	return vector < ARRAY_LEN(sources) ? sources[vector] : INTERRUPT_UNKNOWN;
}

static void keep_waker_stack(TimelineBuilder *builder, BuildThread *target, const Interval *wait,
			     const struct rec_waking *record)
{
	bool has_stacks = record->parts & WAKING_HAS_STACKS && (record->kstack || record->ustack);
	uint8_t source = vector_source(record->vector);
	bool unsampled = record->parts & WAKING_UNSAMPLED;

	if (!has_stacks && !unsampled && source == INTERRUPT_UNKNOWN)
		return;
	*vec_push(&target->thread.waker_stacks) = (WakerStack){
		.start_ns = wait->start_ns,
		.user_stack = scripts_stack(
			builder, stack_reference(builder, has_stacks ? record->ustack : 0),
			record->waker_tid, record->h.ns),
		.kernel_stack = stack_reference(builder, has_stacks ? record->kstack : 0),
		.source = source,
		.unsampled = unsampled,
	};
}

void chain_waking(TimelineBuilder *builder, BuildThread *target, const struct rec_waking *record)
{
	Interval *last = chain_last(target);

	if (target->ended)
		return;
	target->woken = true;
	if (record->h.flags & WAKING_NEW && target->thread.creator == THREAD_NONE)
		target->thread.creator = waker_of(builder, record).task;
	switch (last->state) {
	case STATE_BLOCKED:
		target->woken_early = false;
		keep_waker_stack(builder, target, last, record);
		end_wait(target, last, record->h.ns, waker_of(builder, record));
		break;
	case STATE_RUNNING:
		target->woken_early = true;
		target->early = waker_of(builder, record);
		break;
	case STATE_RUNNABLE:
		if (record->h.flags & WAKING_NEW)
			set_waker(last, waker_of(builder, record));
	}
}

/* ---- snapshots ------------------------------------------------------------------ */

static void set_asleep(TimelineBuilder *builder, BuildThread *target, Interval *interval,
		       const struct rec_snapshot *record)
{
	Call call = {record->syscall,
		     record->fd_kind,
		     record->fd_count,
		     {record->args[0], record->args[1], record->args[2]}};
	ReasonInput input = call_input(builder, target, &call, record->h.flags & SNAPSHOT_COMPAT);
	ObjectId numbers = {};

	input.state = record->state;
	input.iowait = record->h.flags & SNAPSHOT_IOWAIT;
	set_blocked(interval, &input);
	if (interval->reason == REASON_OTHER && input.syscall < 0)
		interval->reason = REASON_UNSEEN;
	interval->user_stack = stack_reference(builder, record->ustack);
	interval->kernel_stack = stack_reference(builder, record->kstack);
	if (record->parts & SNAPSHOT_HAS_OBJECT)
		numbers = (ObjectId){record->inode, record->file_device, record->generation};
	waits_add_object(builder, target, record->h.ns, &input, &numbers);
}

/*
 * The lock's owner may be described later than the thread that waits for it; then the second
 * snapshot resolves it.
 */
static void add_owner(TimelineBuilder *builder, BuildThread *target,
		      const struct rec_snapshot *record)
{
	Interval *last = chain_last(target);

	const ReasonInput input = {
		.syscall = record->h.flags & SNAPSHOT_COMPAT ? SYSCALL_UNKNOWN : record->syscall,
		.args = {record->args[0], record->args[1], record->args[2]},
	};

	if (last->state == STATE_BLOCKED && last->lock_holder == THREAD_NONE)
		last->lock_holder =
			lock_holder(builder, target, &input,
				    record->parts & SNAPSHOT_HAS_OWNER ? record->owner : 0);
}

/*
 * There was no switch since the hooks are attached, or since the thread is recorded, so its state
 * is older.
 */
static void apply_snapshot(TimelineBuilder *builder, BuildThread *target,
			   const struct rec_snapshot *record)
{
	Interval *first = chain_last(target);

	if (!target->born)
		first->start_ns = tasks_recorded_since(builder, target);
	target->seq_known = true;
	target->seq = record->seq;
	target->snapshot_until = record->ns_after;
	if (record->h.flags & SNAPSHOT_ON_CPU) {
		first->state = STATE_RUNNING;
		first->cpu = record->task_cpu;
	} else if (record->h.flags & SNAPSHOT_QUEUED || !record->state) {
		first->state = STATE_RUNNABLE;
		first->cpu = record->task_cpu;
		set_reason(first, REASON_PREEMPTED, RULE_STATE);
	} else if (record->state & TASK_DEAD) {
		tasks_end(builder, target, 0);
	} else {
		set_asleep(builder, target, first, record);
		add_owner(builder, target, record);
	}
}

/*
 * The recorder has taken the stacks of a thread that sleeps for long, which were left out when it
 * fell asleep (--budget).
 */
static void sample_late(TimelineBuilder *builder, BuildThread *target,
			const struct rec_snapshot *record)
{
	Thread *thread = &target->thread;
	Interval *wait = chain_last(target),
		 *before = thread->intervals.count > 1 ? wait - 1 : NULL;

	/* A futex is known by its address alone; now more may be known of it. */
	if (thread->object_waits.count > 0 &&
	    thread->object_waits.items[thread->object_waits.count - 1].start_ns == wait->start_ns)
		thread->object_waits.count--;
	set_asleep(builder, target, wait, record);
	add_owner(builder, target, record);
	wait->unsampled = false;
	if (!before || before->state != STATE_RUNNING || !before->unsampled)
		return;
	before->unsampled = false;
	before->user_stack = wait->user_stack;
	before->kernel_stack = wait->kernel_stack;
}

/*
 * There are two snapshots at the start: the second has the stacks of threads that fell asleep
 * before the unwind tables were ready.
 */
static void complete_wait(TimelineBuilder *builder, BuildThread *target,
			  const struct rec_snapshot *record)
{
	Interval *last = chain_last(target);

	if (last->state != STATE_BLOCKED || target->seq != record->seq)
		return;
	if (last->unsampled) {
		sample_late(builder, target, record);
		return;
	}
	if (last->user_stack == STACK_NONE)
		last->user_stack = stack_reference(builder, record->ustack);
	add_owner(builder, target, record);
}

/* Captures of versions that recorded no CPU here do not have the setting either. */
static uint16_t snapshot_cpu(const TimelineBuilder *builder, const struct rec_snapshot *record)
{
	return timeline_meta(builder->timeline, "cpus_online") ? record->task_cpu
							       : INTERVAL_CPU_UNKNOWN;
}

void chain_snapshot(TimelineBuilder *builder, BuildThread *target,
		    const struct rec_snapshot *record)
{
	if (target->ended)
		return;
	if (record->h.flags & SNAPSHOT_END) {
		if (record->state & TASK_DEAD) {
			target->limit_ns = MIN(target->limit_ns, record->h.ns);
			return;
		}
		target->end_seen = true;
		target->end_seq = record->seq;
		target->end_flags = record->h.flags;
		target->end_cpu = snapshot_cpu(builder, record);
	} else if (!target->seq_known) {
		apply_snapshot(builder, target, record);
	} else {
		complete_wait(builder, target, record);
	}
}
