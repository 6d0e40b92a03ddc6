/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * futex.bpf.c - the word that the current thread waits for.
 */
#include "futex.bpf.h"

__noinline int futex_tell(u64 address)
{
	return futex_tell_of(bpf_get_current_task_btf(), address);
}

char LICENSE[] SEC("license") = "GPL";
