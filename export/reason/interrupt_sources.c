/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "kernel_rules.h"
#include "util.h"

/* The innermost of these functions in a waker's stack shows the source of the interrupt. */
static const struct {
	const char *function;
	enum interrupt_source source;
} interrupts[] = {
	{"hrtimer_wakeup", INTERRUPT_TIMER},
	{"hrtimer_interrupt", INTERRUPT_TIMER},
	{"__hrtimer_run_queues", INTERRUPT_TIMER},
	{"hrtimer_run_softirq", INTERRUPT_TIMER},
	{"call_timer_fn", INTERRUPT_TIMER},
	{"__run_timers", INTERRUPT_TIMER},
	{"run_timer_softirq", INTERRUPT_TIMER},
	{"process_timeout", INTERRUPT_TIMER},
	{"update_process_times", INTERRUPT_TIMER},
	{"__sysvec_apic_timer_interrupt", INTERRUPT_TIMER},
	{"sysvec_apic_timer_interrupt", INTERRUPT_TIMER},
	{"net_rx_action", INTERRUPT_NETWORK},
	{"__napi_poll", INTERRUPT_NETWORK},
	{"net_tx_action", INTERRUPT_NETWORK},
	{"bio_endio", INTERRUPT_BLOCK},
	{"blk_update_request", INTERRUPT_BLOCK},
	{"blk_mq_end_request", INTERRUPT_BLOCK},
	{"blk_mq_complete_request", INTERRUPT_BLOCK},
	{"blk_complete_reqs", INTERRUPT_BLOCK},
	{"blk_done_softirq", INTERRUPT_BLOCK},
	{"scsi_io_completion", INTERRUPT_BLOCK},
	{"nvme_irq", INTERRUPT_BLOCK},
	{"virtblk_done", INTERRUPT_BLOCK},
	{"rcu_core", INTERRUPT_RCU},
	{"rcu_core_si", INTERRUPT_RCU},
	{"__flush_smp_call_function_queue", INTERRUPT_IPI},
	{"flush_smp_call_function_queue", INTERRUPT_IPI},
	{"irq_work_run_list", INTERRUPT_IPI},
	{"irq_work_run", INTERRUPT_IPI},
	{"__sysvec_call_function_single", INTERRUPT_IPI},
	{"sysvec_call_function_single", INTERRUPT_IPI},
	{"__sysvec_call_function", INTERRUPT_IPI},
	{"sysvec_reschedule_ipi", INTERRUPT_IPI},
	{"common_interrupt", INTERRUPT_DEVICE},
	{"__common_interrupt", INTERRUPT_DEVICE},
};

enum interrupt_source kernel_interrupt(const char *function)
{
	for (size_t i = 0; i < ARRAY_LEN(interrupts); i++)
		if (kernel_is_function(interrupts[i].function, function))
			return interrupts[i].source;
	return INTERRUPT_UNKNOWN;
}
