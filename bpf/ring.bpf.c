/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ring.bpf.c - work that io_uring leaves to its workers: who handed it on, from where.
 *
 * A worker has no user stack, and what it does is not its own. The tracepoint comes in the thread
 * that submits, before a worker can have the work. Nobody hands on what a polling thread of the
 * ring (IORING_SETUP_SQPOLL) finds there: its requests are its own.
 */
#include "cost.bpf.h"
#include "stack.bpf.h"

SEC("tp_btf/io_uring_queue_async_work")
int BPF_PROG(on_ring_work, struct io_kiocb *request)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u64 key = (u64)request + bpf_core_field_offset(struct io_kiocb, work);
	struct ring_work work = {};
	u64 ns;

	if (!is_target(task))
		return 0;
	work.tid = task->pid;
	ns = bpf_ktime_get_ns();
	work.ustack = user_stack(ctx, task, /* in_syscall= */ true, ns);
	bpf_map_update_elem(&ring_works, &key, &work, BPF_ANY);
	cost_add(ns);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
