/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * futex.bpf.c - the futex word that the current thread waits for.
 */
#include "futex.bpf.h"
#include "syscall.bpf.h"

__noinline int futex_emit(struct rec_switch *record)
{
	u64 address;

	if (!record || !record->prev_state || record->h.flags & (SWITCH_PREEMPT | SWITCH_SIGNALLED))
		return 0;
	address = futex_word(record->syscall, record->args[0], record->word);
	if (!address)
		return 0;
	return futex_emit_word(bpf_get_current_task_btf(), address);
}

char LICENSE[] SEC("license") = "GPL";
