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
 * The stack is read once per soft interrupt, not at each wakeup, and the name of the function that
 * a return address is in is looked up once.
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

static const char format[] = "%ps";
static const char do_softirq[] = "do_softirq";
static const char local_bh_enable[] = "__local_bh_enable_ip";

#define NAME_SIZE 128 /* a longer one is cut */

/* Whether the name is `of`, or that of a part or a variant of it ("do_softirq.part.0"). */
#define IS_NAME(name, of)                                                                          \
	(!bpf_strncmp(name, sizeof(of) - 1, of) &&                                                 \
	 (name[sizeof(of) - 1] == '\0' || name[sizeof(of) - 1] == '.'))

/*
 * Returns 1 if the return address is in a function that runs soft interrupts for a task, 0 if not,
 * -1 if the kernel has no buffer for the name now.
 */
__noinline int softirq_names_caller(u64 address)
{
	u64 within = address - 1; /* the next function may begin behind the call */
	char name[NAME_SIZE] = {};

	if (bpf_snprintf(name, sizeof(name), format, &within, sizeof(within)) < 0)
		return -1;
	return IS_NAME(name, do_softirq) || IS_NAME(name, local_bh_enable);
}

static __always_inline bool is_softirq_caller(u64 address)
{
	u64 *known = &softirq_callers[(address ^ address >> 6) & (SOFTIRQ_CALLERS - 1)];
	u64 word = *known;
	int is_caller;

	if (word == address || word == SOFTIRQ_CALLER_OTHER(address))
		return word == address;
	is_caller = softirq_names_caller(address);
	if (is_caller < 0)
		return true; /* nothing shows an interrupt */
	*known = is_caller ? address : SOFTIRQ_CALLER_OTHER(address);
	return is_caller;
}

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
	if (!setting_names_known)
		return true; /* likewise */
	if (bpf_probe_read_kernel(&stack, sizeof(stack), (void *)(rq + setting_stack_offset)) ||
	    bpf_probe_read_kernel(&from, sizeof(from), (void *)(stack - sizeof(from))))
		return false;
	return is_softirq_caller(from);
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
