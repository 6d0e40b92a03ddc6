/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * softirq.bpf.c - which soft interrupt a CPU serves, and whether the current task raised it.
 *
 * The kernel runs soft interrupts in three contexts: at the end of a hard interrupt, in ksoftirqd,
 * and below local_bh_enable() in a system call. Only in the last one can the current task be the
 * cause: a packet that is sent over loopback is received there. But local_bh_enable() also runs
 * what interrupts have raised in the meantime, and some vectors are raised by interrupts only.
 *
 * On x86-64 the stacks show which context it is. A soft interrupt below local_bh_enable() runs on
 * the CPU's interrupt stack, to which do_softirq() changes (arch/x86/include/asm/irq_stack.h): the
 * word at hardirq_stack_ptr is the previous stack pointer, and the word below that is the return
 * address into do_softirq(), or into __local_bh_enable_ip() if the compiler has inlined the one
 * into the other. At the end of an interrupt of kernel code the return address is in that
 * interrupt's entry; after an interrupt of user mode, and in ksoftirqd, the stack is not in use.
 * The stack is read once per soft interrupt, not at each wakeup.
 */
#include "irq_context.bpf.h"
#include "wallprof.bpf.h"

/* include/linux/interrupt.h */
enum {
	HI_SOFTIRQ,
	TIMER_SOFTIRQ,
	NET_TX_SOFTIRQ,
	NET_RX_SOFTIRQ,
	BLOCK_SOFTIRQ,
	TASKLET_SOFTIRQ = 6
};

/* Vectors that a task's own system call raises and runs. */
#define TASK_VECTORS                                                                               \
	(1u << HI_SOFTIRQ | 1u << NET_TX_SOFTIRQ | 1u << NET_RX_SOFTIRQ | 1u << TASKLET_SOFTIRQ)

static __always_inline bool is_in_system_call(struct cpu_account *account)
{
	u64 rq, stack = 0, from = 0;
	u8 in_use = 0;

	if (!setting_stack_known)
		return true; /* nothing shows an interrupt */
	rq = this_rq(account);
	if (!rq)
		return true; /* likewise */
	if (bpf_probe_read_kernel(&in_use, sizeof(in_use),
				  (void *)(rq + setting_stack_in_use_offset)) ||
	    !in_use)
		return false;
	if (setting_softirq_callers[0].size == 0)
		return true; /* likewise */
	if (bpf_probe_read_kernel(&stack, sizeof(stack), (void *)(rq + setting_stack_offset)) ||
	    bpf_probe_read_kernel(&from, sizeof(from), (void *)(stack - sizeof(from))))
		return false;
	for (int i = 0; i < SOFTIRQ_CALLERS; i++)
		if (from - setting_softirq_callers[i].start < setting_softirq_callers[i].size)
			return true;
	return false;
}

SEC("tp_btf/softirq_entry")
int BPF_PROG(on_softirq, unsigned int vector)
{
	struct cpu_account *account = cpu_account();
	bool may_be_own = vector < 32 && 1u << vector & TASK_VECTORS;

	if (!account)
		return 0;
	account->softirq_own = may_be_own && is_in_system_call(account);
	account->softirq = vector + 1;
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
