/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * args.bpf.c - the argument list of each program, at its exec.
 *
 * The kernel has just written the list into the new memory (create_elf_tables(), fs/binfmt_elf.c),
 * so its pages are there. It is sent through the ring for large records, so that a long list takes
 * no room from switches.
 */
#include "cost.bpf.h"

#define PAGE_SIZE 4096 /* the smallest of any architecture */

union args_buffer {
	struct rec_args args;
	u8 bytes[sizeof(struct rec_args) + ARGS_MAX + sizeof(u64)]; /* and alignment */
};

/* The kernel does not run a program again on the CPU on which it is interrupted. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, union args_buffer);
} args_buffers SEC(".maps");

/* Reads up to `size` bytes; returns how many were read. */
static __always_inline u32 read_args(union args_buffer *buffer, u64 start, u64 size)
{
	u32 length = size > ARGS_MAX ? ARGS_MAX : size;

	if (!bpf_probe_read_user(buffer->args.text, length, (void *)start))
		return length;
	/* A later page has been swapped out meanwhile. */
	size = PAGE_SIZE - (start & (PAGE_SIZE - 1));
	length = size > length ? length : size;
	if (length > ARGS_MAX || bpf_probe_read_user(buffer->args.text, length, (void *)start))
		return 0;
	return length;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec_args, struct task_struct *task, int old_pid)
{
	u64 begin_ns, start, end;
	union args_buffer *buffer;
	u32 key = 0, length;

	/* As in on_exec, which may run after this one. */
	if (!is_target(task) && !(setting_threads && is_target_id(old_pid)))
		return 0;
	begin_ns = bpf_ktime_get_ns();
	buffer = bpf_map_lookup_elem(&args_buffers, &key);
	if (!buffer)
		return 0;
	start = BPF_CORE_READ(task, mm, arg_start);
	end = BPF_CORE_READ(task, mm, arg_end);
	if (end <= start)
		return 0;
	length = read_args(buffer, start, end - start);
	if (length > ARGS_MAX)
		return 0;
	__builtin_memset(buffer->args.text + length, 0, sizeof(u64));
	buffer->args.tgid = task->tgid;
	buffer->args.exec_id = task->self_exec_id;
	buffer->args.total = end - start > ~0U ? ~0U : end - start;
	buffer->args.size = length;
	buffer->args.reserved = 0;
	length = (sizeof(buffer->args) + length + 7) & ~7U;
	if (length > sizeof(*buffer))
		return 0;
	record_init(&buffer->args.h, REC_ARGS, 0, length, begin_ns);
	emit(RING_BULK, &buffer->args.h, length);
	cost_add(begin_ns);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
