/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * epoll.bpf.c - what an epoll descriptor watches.
 *
 * The kernel keeps it in a tree (fs/eventpoll.c), which is walked without its lock: what is changed
 * meanwhile may be seen twice, or not. It is told again when the tree has another root, first
 * leaf, or other children of the root, or an epoll descriptor there has other such ones; changes
 * further down are not noticed.
 */
#include "object.bpf.h"

#define STEPS_MAX 32 /* of the walk: each adds one, and two nodes at most that wait */

struct watching {
	struct stack_slot *slot; /* span: nodes to be visited; window: the files */
	u64 operations;		 /* of epoll descriptors (file::f_op) */
	u32 waiting;
	u32 count;
};

/* All bits of the top byte are set in a kernel's address: watched::via stands there meanwhile. */
#define VIA_SHIFT     56
#define NODE_OF(word) ((struct rb_node *)((word) | 0xffULL << VIA_SHIFT))
#define VIA_OF(word)  ((u8)((word) >> VIA_SHIFT))

static __always_inline void push(struct watching *watching, struct rb_node *node, u8 via)
{
	u32 at = watching->waiting;

	barrier_var(at);
	if (!node || at >= STEPS_MAX)
		return;
	watching->slot->span[at] = ((u64)node & ~(0xffULL << VIA_SHIFT)) | (u64)via << VIA_SHIFT;
	watching->waiting = at + 1;
}

static __always_inline struct rb_node *root_of(struct eventpoll *epoll)
{
	return BPF_CORE_READ(epoll, rbr.rb_root.rb_node);
}

static long visit(u32 i, struct watching *watching)
{
	struct rec_watch *record = (struct rec_watch *)watching->slot->room;
	u32 at = watching->waiting - 1, count = watching->count;
	struct watched *watched;
	struct rb_node *node;
	struct epitem *item;
	struct file *file;
	u64 word;

	barrier_var(at);
	barrier_var(count);
	if (at >= STEPS_MAX || count >= WATCHED_MAX)
		return 1;
	word = watching->slot->span[at];
	node = NODE_OF(word);
	watching->waiting = at;
	item = (void *)node - bpf_core_field_offset(struct epitem, rbn);
	file = BPF_CORE_READ(item, ffd.file);
	watching->slot->window[count] = (u64)file;
	watched = &record->watched[count];
	watched->fd = BPF_CORE_READ(item, ffd.fd);
	watched->via = VIA_OF(word);
	watched->reserved[0] = watched->reserved[1] = 0;
	watching->count = count + 1;
	push(watching, BPF_CORE_READ(node, rb_left), VIA_OF(word));
	push(watching, BPF_CORE_READ(node, rb_right), VIA_OF(word));
	if ((u64)BPF_CORE_READ(file, f_op) == watching->operations)
		push(watching, root_of(BPF_CORE_READ(file, private_data)), count + 1);
	return 0;
}

/* The call says that it is one, but the descriptor may be another's by now. */
static __always_inline bool is_epoll(struct file *file)
{
	char name[sizeof("[eventpo")] = {};

	bpf_probe_read_kernel_str(name, sizeof(name),
				  BPF_CORE_READ(file, f_path.dentry, d_name.name));
	return *(u64 *)name == *(const u64 *)"[eventpo";
}

__noinline int watch_begin(u64 address)
{
	struct file *file = (struct file *)address;
	struct watching watching = {};
	struct rec_watch *record;
	u64 mark, room = 0;

	mark = fd_epoll_mark(address, &room);
	if (*sent_slot(mark) == mark || !is_epoll(file))
		return -1;
	watching.slot = slot_acquire_accounted(bpf_ktime_get_ns());
	if (!watching.slot)
		return -1;
	watching.operations = (u64)BPF_CORE_READ(file, f_op);
	push(&watching, root_of(BPF_CORE_READ(file, private_data)), 0);
	bpf_loop(STEPS_MAX, visit, &watching, 0);
	record = (struct rec_watch *)watching.slot->room;
	record->count = watching.count;
	record->more = watching.waiting > 0;
	watching.slot->word = mark; /* as it was when it was looked at */
	return watching.slot->number;
}

__noinline int watch_end(const struct object_key *key, u32 number)
{
	struct stack_slot *slot = bpf_map_lookup_elem(&scratch, &number);

	if (!slot)
		return 0;
	if (key && !watch_send(slot, key, 0))
		*sent_slot(slot->word) = slot->word;
	slot_release(slot);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
