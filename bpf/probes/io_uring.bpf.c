/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * io_uring.bpf.c - io_uring: the work that its workers do, and what its requests wait for.
 *
 * A worker has no user stack, and it works for another thread. The tracepoint runs in the thread
 * that submits, before a worker can start the work. The polling thread of a ring
 * (IORING_SETUP_SQPOLL) finds its requests by itself, so they are attributed to it.
 *
 * If a socket or a pipe cannot serve a request at once, the request is armed for polling, which has
 * a tracepoint. A thread that waits for the ring waits for these sockets and pipes.
 */
#include "cost.bpf.h"
#include "object.bpf.h"
#include "syscall.bpf.h"

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
	work.ustack = own_user_stack(ctx, task, /* in_syscall= */ true, ns);
	bpf_map_update_elem(&ring_works, &key, &work, BPF_ANY);
	cost_add(ns);
	return 0;
}

static __always_inline bool is_same(const struct watched *a, const struct watched *b)
{
	return a->inode == b->inode && a->device == b->device && a->generation == b->generation;
}

static __always_inline void add_watched(u64 ring, const struct watched *watched)
{
	struct ring_watch *watch = bpf_map_lookup_elem(&ring_watches, &ring), first = {};

	if (!watch) {
		first.count = 1;
		first.watched[0] = *watched;
		bpf_map_update_elem(&ring_watches, &ring, &first, BPF_ANY);
		return;
	}
	for (u32 i = 0; i < RING_WATCHED_MAX; i++)
		if (is_same(&watch->watched[i], watched))
			return;
	watch->watched[watch->count & (RING_WATCHED_MAX - 1)] = *watched;
	watch->count++;
}

SEC("tp_btf/io_uring_poll_arm")
int BPF_PROG(on_ring_poll, struct io_kiocb *request)
{
	struct watched watched = {.fd = ~0U};
	struct object_key key = {};
	u64 ns;

	if (!is_target(bpf_get_current_task_btf()))
		return 0;
	ns = bpf_ktime_get_ns();
	watched.kind = object_emit((u64)BPF_CORE_READ(request, file), &key);
	watched.inode = key.inode;
	watched.device = key.device;
	watched.generation = key.generation;
	if (watched.kind != FD_NONE)
		add_watched((u64)BPF_CORE_READ(request, ctx), &watched);
	cost_add(ns);
	return 0;
}

#define IORING_ENTER_REGISTERED_RING (1U << 4)

/*
 * Returns the ring's file: fd_or_index is a descriptor, or an index into the rings that the task
 * has registered.
 */
static __always_inline u64 ring_of_call(struct task_struct *task, u32 fd_or_index)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	u64 rings, file = 0;

	if (!(regs->r10 & IORING_ENTER_REGISTERED_RING))
		return fd_file(files_of(task), fd_or_index);
	rings = (u64)BPF_CORE_READ(task, io_uring);
	if (!rings || fd_or_index >= 16)
		return 0;
	rings += bpf_core_field_offset(struct io_uring_task, registered_rings);
	bpf_probe_read_kernel(&file, sizeof(file), (void *)(rings + fd_or_index * sizeof(file)));
	return file;
}

static __always_inline void emit_ring_watch(u64 file, const struct object_key *key)
{
	u64 ring = (u64)BPF_CORE_READ((struct file *)file, private_data);
	struct ring_watch *watch = bpf_map_lookup_elem(&ring_watches, &ring);
	struct rec_watch *record;
	struct stack_slot *slot;
	u32 count;

	if (!watch || watch->reported == watch->count)
		return;
	slot = slot_acquire_accounted(bpf_ktime_get_ns());
	if (!slot)
		return;
	record = (struct rec_watch *)slot->buffer;
	count = watch->count;
	__builtin_memcpy(record->watched, watch->watched, sizeof(watch->watched));
	record->more = count > RING_WATCHED_MAX;
	record->count = count < RING_WATCHED_MAX ? count : RING_WATCHED_MAX;
	if (!watch_send(slot, key, WATCH_RING))
		watch->reported = count;
	slot_release(slot);
}

__noinline int ring_emit(struct rec_switch *record)
{
	u64 file;

	if (!record)
		return 0;
	record->generation = 0;
	file = ring_of_call(bpf_get_current_task_btf(), record->args[0]);
	if (!file)
		return 0;
	record->fd_kind = object_emit(file, OBJECT_KEY(record));
	emit_ring_watch(file, OBJECT_KEY(record));
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
