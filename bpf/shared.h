/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * shared.h - memory that the BPF programs and the recorder both look into, and the
 * settings. Unlike records.h none of it ends up in a capture.
 */
#ifndef WALLPROF_SHARED_H
#define WALLPROF_SHARED_H

#include "records.h"

#define TARGET_WORDS	   (1 << 16) /* one bit for each of PID_MAX_LIMIT = 2^22 numbers */
#define STACK_SENT_SLOTS   (1 << 16)
#define FOREIGN_SENT_SLOTS (1 << 12)
#define SCRATCH_SLOTS	   4 /* stacks under construction per CPU: programs nest */
#define ACCOUNT_KINDS	   REC_BPF_MAX
#define ACCOUNT_CAUSES	   2 /* LOSS_RING_FULL, LOSS_SCRATCH_BUSY */

/* What fd_watches() of fd.bpf.c answers. */
#define FD_WATCHES(count, kind)	 ((count) << 8 | (kind))
#define FD_WATCHES_COUNT(answer) ((answer) >> 8 & 0xff)
#define FD_WATCHES_KIND(answer)	 ((answer)&0xff)

enum kernel_stacks {
	KERNEL_STACKS_NONE = 0,
	KERNEL_STACKS_BLOCKED = 1, /* at switch-outs that block, not for preempted tasks */
	KERNEL_STACKS_ALL = 2,
};

/* One CPU's account of what was sent and lost. first/last_lost_ns: see loss.c. */
struct cpu_account {
	u64 sent[ACCOUNT_KINDS];
	u64 lost[ACCOUNT_CAUSES][ACCOUNT_KINDS];
	u64 first_lost_ns[ACCOUNT_KINDS]; /* the recorder sets it back to 0 */
	u64 last_lost_ns[ACCOUNT_KINDS];
};

#endif
