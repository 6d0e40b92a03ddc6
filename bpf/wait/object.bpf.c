/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * object.bpf.c - sends what the waited-for open file or futex word is.
 */
#include "object.bpf.h"
#include "futex.bpf.h"
#include "syscall.bpf.h"

/*
 * Reads the kernel's name of a file without a path; returns its length with the NUL. A pidfd's
 * dentry has no name; the kernel makes one up only when asked for it (fs/pidfs.c).
 */
static __always_inline long anonymous_name(struct file *file, char *to)
{
	if (BPF_CORE_READ(file, f_inode, i_sb, s_magic) == PID_FS_MAGIC) {
		__builtin_memcpy(to, "[pidfd]", sizeof("[pidfd]"));
		return sizeof("[pidfd]");
	}
	return bpf_probe_read_kernel_str(to, ANONYMOUS_NAME_SIZE,
					 BPF_CORE_READ(file, f_path.dentry, d_name.name));
}

/* Sends the kernel's name of a file without an inode of its own: "[eventfd]". */
static __always_inline void emit_anonymous(struct file *file, const struct object_key *key)
{
	u64 mark = anonymous_mark(key), *sent = sent_slot(mark);
	struct rec_inode *record;
	struct stack_slot *slot;
	long length;

	if (*sent == mark)
		return;
	slot = slot_acquire_accounted(bpf_ktime_get_ns());
	if (!slot)
		return;
	record = (struct rec_inode *)slot->buffer;
	__builtin_memset(record->text, 0, ANONYMOUS_NAME_SIZE);
	length = anonymous_name(file, record->text);
	if (length > 0) {
		record_init(&record->h, REC_INODE, INODE_NO_PATH,
			    sizeof(*record) + ANONYMOUS_NAME_SIZE, bpf_ktime_get_ns());
		record->device = key->device;
		record->generation = key->generation;
		record->inode = key->inode;
		record->size = length;
		record->reserved[0] = record->reserved[1] = record->reserved[2] = 0;
		if (!emit(RING_BULK, &record->h, sizeof(*record) + ANONYMOUS_NAME_SIZE))
			*sent = mark;
	}
	slot_release(slot);
}

__noinline int object_emit(u64 address, struct object_key *ret_key)
{
	int kind = FD_NONE;

	if (ret_key)
		kind = fd_file_kind(address, ret_key);
	if (!ret_key || kind == FD_NONE)
		return FD_NONE;
	if (kind == FD_ANON)
		emit_anonymous((struct file *)address, ret_key);
	else if (kind == FD_FILE || kind == FD_CHAR || kind == FD_TTY || kind == FD_PIPE)
		inode_emit_file(address);
	else
		socket_emit(address);
	return kind;
}

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
