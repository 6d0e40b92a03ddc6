/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The state chain of one life, record by record.
 *
 * What a record contradicts is not decided here, since losses are reported only
 * after the fact: a mark says that something is missing (MARK_GAP: the switch
 * is not the next one by its sequence number; MARK_UNWOKEN: a wait ended without a
 * waking), and timeline_resolve.c decides when all losses are known.
 */
#include "timeline_builder.h"
#include <linux/futex.h>

/* Beyond this many intervals an array grows by a quarter: less memory, still O(n). */
#define GROW_SLOWLY 4096

#define TASK_DEAD 0x80

Interval *chain_push(BuildThread *life, uint64_t ns, enum thread_state state)
{
	Thread *thread = &life->thread;
	size_t count = thread->intervals.count;
	Interval *interval;

	if (count == thread->intervals.capacity) {
		size_t more = count < GROW_SLOWLY ? MAX(count, (size_t)4) : count / 4;

		thread->intervals.capacity = count + more;
		thread->intervals.items =
			xrealloc(thread->intervals.items,
				 thread->intervals.capacity * sizeof(*thread->intervals.items));
	}
	if (count)
		ns = MAX(ns, thread->intervals.items[count - 1].start_ns);
	interval = &thread->intervals.items[thread->intervals.count++];
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

static void set_creator(TimelineBuilder *builder, BuildThread *life, uint32_t creator)
{
	if (creator)
		life->thread.creator = tasks_reference(builder, creator);
}

static void set_newborn(BuildThread *life, Interval *first)
{
	first->state = STATE_RUNNABLE;
	set_reason(first, REASON_WOKEN, RULE_SCHEDULER);
	first->waker = life->thread.creator;
	if (life->thread.intervals.count == 1) {
		life->seq_known = true;
		life->seq = 0;
	}
}

void chain_begin(TimelineBuilder *builder, BuildThread *life, uint64_t ns, uint32_t creator)
{
	Interval *first = chain_push(life, ns, STATE_UNKNOWN);

	set_creator(builder, life, creator);
	if (life->born)
		set_newborn(life, first);
}

void chain_begin_late(TimelineBuilder *builder, BuildThread *life, uint64_t ns, uint32_t creator)
{
	Interval *first = &life->thread.intervals.items[0];

	set_creator(builder, life, creator);
	if (life->thread.intervals.count == 1 ? first->state == STATE_UNKNOWN : life->seq_at_birth)
		set_newborn(life, first);
	life->born = true;
	life->first_ns = ns;
	first->start_ns = ns;
}

/* ---- switches ------------------------------------------------------------------ */

bool chain_fits(const BuildThread *life, const SwitchSide *side)
{
	bool running = chain_last(life)->state == STATE_RUNNING;

	if (life->ended || !life->seq_known || running != side->out)
		return false;
	return side->seq == (uint16_t)(life->seq + side->out);
}

/* The snapshot was taken while the thread switched: what it was before is told by that. */
static void correct_snapshot(BuildThread *life, const SwitchSide *side)
{
	Interval *last = chain_last(life);

	last->user_stack = last->kernel_stack = STACK_NONE;
	last->syscall = -1;
	last->cpu_user = THREAD_NONE;
	last->cpu = side->cpu;
	last->state = side->out ? STATE_RUNNING : STATE_UNKNOWN;
	set_reason(last, REASON_NONE, RULE_NONE);
}

/*
 * A switch-out whose number is the next one, of a thread that was not seen to run: exactly one
 * switch-in is missing, and the thread ran since. The first tick that hit it tells
 * since when at the latest.
 */
static void add_missed_switch_in(BuildThread *life, const SwitchSide *side)
{
	uint64_t off_ns = chain_last(life)->start_ns, ran_ns = side->ns;
	Interval *running;

	for (size_t i = life->thread.ticks.count; i-- > 0;) {
		if (life->thread.ticks.items[i].ns <= off_ns)
			break;
		ran_ns = life->thread.ticks.items[i].ns;
	}
	chain_push(life, ran_ns, STATE_UNKNOWN)->flags = MARK_GAP | MARK_SWITCH_IN;
	running = chain_push(life, ran_ns, STATE_RUNNING);
	running->cpu = side->cpu;
	running->flags = MARK_SWITCH_IN;
}

static bool misses_switch_in(const BuildThread *life, const SwitchSide *side)
{
	return life->seq_known && side->out && side->ns > life->snapshot_until &&
	       chain_last(life)->state != STATE_RUNNING && side->seq == (uint16_t)(life->seq + 1);
}

/* Marks what the switch proves to be missing. Returns whether nothing is. */
static bool check_switch(BuildThread *life, const SwitchSide *side)
{
	bool missed = misses_switch_in(life, side), fits;

	if (missed)
		add_missed_switch_in(life, side);
	fits = chain_fits(life, side);
	if (!life->seq_known)
		life->seq_at_birth = !side->out && side->seq == 0;
	else if (!fits && side->ns <= life->snapshot_until)
		correct_snapshot(life, side);
	else if (!fits)
		chain_push(life, side->ns, STATE_UNKNOWN)->flags = MARK_GAP;
	life->snapshot_until = 0;
	life->woken = false;
	life->seq_known = true;
	life->seq = side->seq;
	life->end_seen = false;
	return fits && !missed;
}

/*
 * A wait ended without a waking in it. If the thread was woken while it was still on
 * its way to sleep, that was the waking, and it was never asleep. Whether one
 * may have been lost is decided later.
 */
static void end_unwoken_wait(BuildThread *life, Interval *wait, uint64_t ns)
{
	if (life->early_count) {
		wait->state = STATE_RUNNABLE;
		wait->syscall = -1;
		wait->cpu_user = THREAD_NONE;
		set_reason(wait, REASON_WOKEN, RULE_SCHEDULER);
		set_waker(wait, life->early);
	}
	chain_push(life, ns, STATE_UNKNOWN)->flags = MARK_UNWOKEN;
}

/* The task on the other side of the switch. */
static uint32_t cpu_user_of(TimelineBuilder *builder, const SwitchSide *side)
{
	return side->cpu_user ? tasks_reference(builder, side->cpu_user) : CPU_IDLE;
}

/*
 * The switch-out of a thread that was preempted tells the preemptor. Of one that was woken the
 * first switch that tells anything is the one that ends the wait.
 */
static void end_queueing(TimelineBuilder *builder, BuildThread *life, const SwitchSide *side)
{
	Interval *last = chain_last(life);

	if (last->state == STATE_RUNNABLE && last->reason == REASON_WOKEN)
		last->cpu_user = cpu_user_of(builder, side);
}

void chain_switch_in(TimelineBuilder *builder, BuildThread *life, const SwitchSide *side)
{
	Interval *last = chain_last(life);
	bool fits = check_switch(life, side), counts = in_window(builder, side->ns);

	if (fits && last->state == STATE_BLOCKED) {
		if (life->early_count && counts)
			life->thread.spurious_wakings += life->early_count - 1;
		end_unwoken_wait(life, last, side->ns);
	}
	life->early_count = 0;
	end_queueing(builder, life, side);
	chain_push(life, side->ns, STATE_RUNNING)->cpu = side->cpu;
}

static ReasonInput call_input(TimelineBuilder *builder, BuildThread *life, const Call *call,
			      bool compat)
{
	bool restarted = call->syscall == SYSCALL_RESTART_SYSCALL && !compat;
	const Call *real = restarted && life->last_call.syscall >= 0 ? &life->last_call : call;

	if (!restarted && !compat)
		life->last_call = *call;
	return (ReasonInput){
		.syscall = compat ? SYSCALL_UNKNOWN : real->syscall,
		.args = {real->args[0], real->args[1], real->args[2]},
		.fd_kind = real->fd_kind,
		.fd_count = real->fd_count,
		.joins = !compat && real->syscall == SYSCALL_FUTEX &&
			 tasks_of_process(builder, life, real->args[2]) != THREAD_NONE,
		.only_thread = tasks_only_thread(builder, life),
		.kernel_thread = life->thread.kernel_only,
	};
}

static void set_blocked(Interval *interval, const ReasonInput *facts)
{
	enum reason_rule rule;
	enum reason reason = reason_classify(facts, &rule);

	interval->state = STATE_BLOCKED;
	interval->sleep = reason_sleep_state(facts);
	set_reason(interval, reason, rule);
	if (facts->syscall >= 0)
		interval->syscall = facts->syscall;
}

/*
 * The task that holds the lock, by what the lock stores: `owner`, which BPF read, or, for a robust
 * mutex, the value that the thread expects in the word
 * (Documentation/locking/robust-futex-ABI.rst). A program may store any number there, so it is used
 * only if a thread has it as its tid.
 */
static uint32_t lock_holder(TimelineBuilder *builder, const BuildThread *life,
			    const ReasonInput *facts, uint32_t owner)
{
	uint32_t command = facts->args[1] & FUTEX_CMD_MASK;
	bool futex = facts->syscall == SYSCALL_FUTEX;

	if (!owner && futex && (command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET) &&
	    facts->args[2] & FUTEX_WAITERS)
		owner = facts->args[2] & FUTEX_TID_MASK;
	if (!owner)
		return THREAD_NONE;
	return tasks_lock_holder(builder, life, owner,
				 futex && !(facts->args[1] & FUTEX_PRIVATE_FLAG));
}

static void begin_wait(TimelineBuilder *builder, BuildThread *life, Interval *interval,
		       const struct rec_switch *record)
{
	Call call = {record->syscall,
		     record->fd_kind,
		     record->fd_count,
		     {record->args[0], record->args[1], record->args[2]}};
	ReasonInput facts = call_input(builder, life, &call, record->h.flags & SWITCH_COMPAT);
	ObjectId numbers = {};

	facts.state = record->prev_state;
	facts.iowait = record->h.flags & SWITCH_IOWAIT;
	set_blocked(interval, &facts);
	if (record->owner && record->h.flags & SWITCH_KERNEL_LOCK)
		interval->cpu_user = facts.syscall == SYSCALL_FUTEX
					     ? THREAD_NONE
					     : tasks_reference(builder, record->owner);
	else
		interval->cpu_user = lock_holder(builder, life, &facts, record->owner);
	interval->lock = record->lock;
	if (record->parts & SWITCH_HAS_OBJECT)
		numbers = (ObjectId){record->inode, record->file_device, record->generation};
	waits_add_object(builder, life, interval->start_ns, &facts, &numbers);
}

/* Wakings before it slept that woke nobody. */
static void drop_early(TimelineBuilder *builder, BuildThread *life, uint64_t ns)
{
	if (in_window(builder, ns))
		life->thread.spurious_wakings += life->early_count;
	life->early_count = 0;
}

/* As __schedule() counts it: voluntary unless preempted or still runnable. */
static void count_switch(const TimelineBuilder *builder, BuildThread *life, uint64_t ns,
			 const struct rec_switch *record)
{
	if (in_window(builder, ns))
		life->thread.switch_outs++;
	else if (record->prev_state && !(record->h.flags & SWITCH_PREEMPT))
		life->outside.voluntary++;
	else
		life->outside.involuntary++;
}

/* Why a thread that could go on does not. */
static enum reason reason_off_cpu(const struct rec_switch *record)
{
	if (record->h.flags & SWITCH_THROTTLED)
		return REASON_THROTTLED;
	return record->syscall == SYSCALL_SCHED_YIELD && !(record->h.flags & SWITCH_COMPAT)
		       ? REASON_YIELDED
		       : REASON_PREEMPTED;
}

void chain_switch_out(TimelineBuilder *builder, BuildThread *life, const SwitchSide *side,
		      const struct rec_switch *record)
{
	uint32_t user_stack = stack_reference(builder, record->ustack);
	uint32_t kernel_stack = stack_reference(builder, record->kstack);
	bool blocks =
		record->prev_state && !(record->h.flags & (SWITCH_PREEMPT | SWITCH_SIGNALLED));
	/* With a switch-in lost, nobody knows whether it ran when it was woken. */
	bool woken = life->woken;
	Interval *interval;

	if (!check_switch(life, side))
		life->early_count = 0;
	else
		woken = life->early_count;
	interval = chain_last(life);
	if (interval->state == STATE_RUNNING) {
		interval->user_stack = user_stack;
		interval->kernel_stack = kernel_stack;
	}
	if (side->dead) {
		drop_early(builder, life, side->ns);
		tasks_end(builder, life, side->ns);
		return;
	}
	count_switch(builder, life, side->ns, record);
	interval = chain_push(life, side->ns, STATE_RUNNABLE);
	interval->user_stack = user_stack;
	interval->kernel_stack = kernel_stack;
	if (blocks) {
		begin_wait(builder, life, interval, record);
		if (woken)
			interval->flags |= MARK_EARLY;
		return;
	}
	drop_early(builder, life, side->ns);
	set_reason(interval, reason_off_cpu(record), RULE_SCHEDULER);
	interval->cpu = side->cpu;
	/* Who runs while a thread is throttled takes nothing from it. */
	if (interval->reason != REASON_THROTTLED)
		interval->cpu_user = cpu_user_of(builder, side);
}

/* ---- wakings ------------------------------------------------------------------- */

static Waker waker_of(TimelineBuilder *builder, const struct rec_waking *record)
{
	/*
	 * The idle task wakes nobody but by what interrupts have left to it: a CPU that polls for
	 * them is sent none (flush_smp_call_function_queue() in kernel/smp.c).
	 */
	if (record->h.flags & (WAKING_HARDIRQ | WAKING_SOFTIRQ) || !record->waker_tid)
		return (Waker){THREAD_NONE, record->h.cpu, true};
	/* Who was interrupted is not who woke. */
	if (record->h.flags & WAKING_UNKNOWN_CONTEXT)
		return (Waker){THREAD_NONE, record->h.cpu, false};
	return (Waker){tasks_reference(builder, record->waker_tid), record->h.cpu, false};
}

static void end_wait(BuildThread *life, Interval *wait, uint64_t ns, Waker waker)
{
	uint32_t user_stack = wait->user_stack, kernel_stack = wait->kernel_stack;
	Interval *interval;

	set_waker(wait, waker);
	interval = chain_push(life, ns, STATE_RUNNABLE);
	interval->user_stack = user_stack;
	interval->kernel_stack = kernel_stack;
	interval->flags = MARK_WAKING;
	set_reason(interval, REASON_WOKEN, RULE_SCHEDULER);
	set_waker(interval, waker);
}

/* By the numbers of linux/interrupt.h; vector is REC_WAKING's, which is one more. */
static uint8_t vector_source(uint8_t vector)
{
	static const uint8_t sources[] = {
		[1 + 1] = INTERRUPT_TIMER, [2 + 1] = INTERRUPT_NETWORK, [3 + 1] = INTERRUPT_NETWORK,
		[4 + 1] = INTERRUPT_BLOCK, [5 + 1] = INTERRUPT_BLOCK,	[8 + 1] = INTERRUPT_TIMER,
		[9 + 1] = INTERRUPT_RCU,
	};

	return vector < ARRAY_LEN(sources) ? sources[vector] : INTERRUPT_UNKNOWN;
}

static void keep_waker_stack(TimelineBuilder *builder, BuildThread *life, const Interval *wait,
			     const struct rec_waking *record)
{
	bool has_stacks = record->parts & WAKING_HAS_STACKS && (record->kstack || record->ustack);
	uint8_t source = vector_source(record->vector);

	if (!has_stacks && source == INTERRUPT_UNKNOWN)
		return;
	*vec_push(&life->thread.waker_stacks) = (WakerStack){
		.start_ns = wait->start_ns,
		.user_stack = stack_reference(builder, has_stacks ? record->ustack : 0),
		.kernel_stack = stack_reference(builder, has_stacks ? record->kstack : 0),
		.source = source,
	};
}

void chain_waking(TimelineBuilder *builder, BuildThread *life, const struct rec_waking *record)
{
	Interval *last = chain_last(life);

	if (life->ended)
		return;
	life->woken = true;
	if (record->h.flags & WAKING_NEW && life->thread.creator == THREAD_NONE)
		life->thread.creator = waker_of(builder, record).task;
	switch (last->state) {
	case STATE_BLOCKED:
		drop_early(builder, life, record->h.ns);
		keep_waker_stack(builder, life, last, record);
		end_wait(life, last, record->h.ns, waker_of(builder, record));
		break;
	case STATE_RUNNING:
		life->early_count++;
		life->early = waker_of(builder, record);
		break;
	case STATE_RUNNABLE:
		if (record->h.flags & WAKING_NEW)
			set_waker(last, waker_of(builder, record));
		else
			life->thread.spurious_wakings += in_window(builder, record->h.ns);
	}
}

/* ---- snapshots ------------------------------------------------------------------ */

static void set_asleep(TimelineBuilder *builder, BuildThread *life, Interval *interval,
		       const struct rec_snapshot *record)
{
	Call call = {record->syscall,
		     record->fd_kind,
		     record->fd_count,
		     {record->args[0], record->args[1], record->args[2]}};
	ReasonInput facts = call_input(builder, life, &call, record->h.flags & SNAPSHOT_COMPAT);
	ObjectId numbers = {};

	facts.state = record->state;
	facts.iowait = record->h.flags & SNAPSHOT_IOWAIT;
	set_blocked(interval, &facts);
	if (interval->reason == REASON_OTHER && facts.syscall < 0)
		interval->reason = REASON_UNSEEN;
	interval->user_stack = stack_reference(builder, record->ustack);
	interval->kernel_stack = stack_reference(builder, record->kstack);
	if (record->parts & SNAPSHOT_HAS_OBJECT)
		numbers = (ObjectId){record->inode, record->file_device, record->generation};
	waits_add_object(builder, life, record->h.ns, &facts, &numbers);
}

/* The owner may be described later than the thread that waits for it: then by the second snapshot.
 */
static void add_owner(TimelineBuilder *builder, BuildThread *life,
		      const struct rec_snapshot *record)
{
	Interval *last = chain_last(life);

	const ReasonInput facts = {
		.syscall = record->h.flags & SNAPSHOT_COMPAT ? SYSCALL_UNKNOWN : record->syscall,
		.args = {record->args[0], record->args[1], record->args[2]},
	};

	if (last->state == STATE_BLOCKED && last->cpu_user == THREAD_NONE)
		last->cpu_user =
			lock_holder(builder, life, &facts,
				    record->parts & SNAPSHOT_HAS_OWNER ? record->owner : 0);
}

/*
 * Nothing was switched since the hooks are in place, or since it is recorded: so the state is
 * older than that.
 */
static void apply_snapshot(TimelineBuilder *builder, BuildThread *life,
			   const struct rec_snapshot *record)
{
	Interval *first = chain_last(life);

	if (!life->born)
		first->start_ns = tasks_recorded_since(builder, life);
	life->seq_known = true;
	life->seq = record->seq;
	life->snapshot_until = record->ns_after;
	if (record->h.flags & SNAPSHOT_ON_CPU) {
		first->state = STATE_RUNNING;
		first->cpu = record->task_cpu;
	} else if (record->h.flags & SNAPSHOT_QUEUED || !record->state) {
		first->state = STATE_RUNNABLE;
		first->cpu = record->task_cpu;
		set_reason(first, REASON_PREEMPTED, RULE_STATE);
	} else if (record->state & TASK_DEAD) {
		tasks_end(builder, life, 0);
	} else {
		set_asleep(builder, life, first, record);
		add_owner(builder, life, record);
	}
}

/* There are two at the start: the second has the stack of who fell asleep before there were tables.
 */
static void complete_wait(TimelineBuilder *builder, BuildThread *life,
			  const struct rec_snapshot *record)
{
	Interval *last = chain_last(life);

	if (last->state != STATE_BLOCKED || life->seq != record->seq)
		return;
	if (last->user_stack == STACK_NONE)
		last->user_stack = stack_reference(builder, record->ustack);
	add_owner(builder, life, record);
}

/* Captures of versions that recorded no CPU here do not have the setting, either. */
static uint16_t snapshot_cpu(const TimelineBuilder *builder, const struct rec_snapshot *record)
{
	return timeline_meta(builder->timeline, "cpus_online") ? record->task_cpu
							       : INTERVAL_CPU_UNKNOWN;
}

void chain_snapshot(TimelineBuilder *builder, BuildThread *life, const struct rec_snapshot *record)
{
	if (life->ended)
		return;
	if (record->h.flags & SNAPSHOT_END) {
		if (record->state & TASK_DEAD) {
			life->limit_ns = MIN(life->limit_ns, record->h.ns);
			return;
		}
		life->end_seen = true;
		life->end_seq = record->seq;
		life->end_flags = record->h.flags;
		life->end_cpu = snapshot_cpu(builder, record);
	} else if (!life->seq_known) {
		apply_snapshot(builder, life, record);
	} else {
		complete_wait(builder, life, record);
	}
}
