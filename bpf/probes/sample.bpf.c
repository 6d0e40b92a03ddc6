/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sample.bpf.c - the sampling tick: a perf event on the cpu-clock of every CPU, which is paused
 * where no target is seen (sample_timer.c).
 */
#include "cost.bpf.h"
#include "script_programs.bpf.h"
#include "user_stack.bpf.h"

/*
 * struct bpf_perf_event_data of uapi/linux/bpf_perf_event.h, with the 21 registers as user space
 * knows them. That header cannot be included together with kernel_types.h, because both define
 * pt_regs.
 */
struct tick_context {
	u64 regs[21];
	u64 sample_period;
	u64 addr;
};
#define TICK_REG_CS 17

SEC("perf_event")
int on_tick(struct tick_context *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct cpu_account *account = cpu_account();
	struct rec_sample record = {};
	u64 ns = bpf_ktime_get_ns();
	const struct pt_regs *regs;
	bool user_mode, wants_kernel;
	struct stack_slot *slot;

	/* The interrupt takes its time whatever it hits. */
	if (account)
		account->ticks++;
	if (!is_target(task))
		return 0;
	if (account)
		account->target_ns = ns;
	cost_phases_begin(COST_TICK, ns);
	user_mode = ctx->regs[TICK_REG_CS] & 3;
	record_init(&record.h, REC_SAMPLE, user_mode ? SAMPLE_USER : 0, sizeof(record), ns);
	record.tid = task->pid;
	wants_kernel = !user_mode && setting_kernel_stacks != KERNEL_STACKS_NONE;
	/*
	 * In kernel mode the task may also handle a page fault or an interrupt instead of a system
	 * call.
	 */
	regs = (struct pt_regs *)bpf_task_pt_regs(task);
	slot = stacks_acquire(wants_kernel, takes_user_stack(task), ns);
	if (slot) {
		if (wants_kernel)
			record.kstack = interrupted_kernel_stack(slot, ctx, ns);
		if (takes_user_stack(task))
			record.ustack = user_stack(slot, ctx, task,
						   !user_mode && (s64)regs->orig_ax >= 0, ns);
		slot_release(slot);
	}
	emit(RING_BULK, &record.h, sizeof(record));
	cost_phases_end(COST_RING);
	cost_of_tick(account, ns);
	if (scripts_loaded)
		bpf_tail_call(ctx, &script_on_event, SCRIPT_AFTER_TICK);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
