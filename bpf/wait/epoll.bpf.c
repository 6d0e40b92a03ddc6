/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * epoll.bpf.c - the files that an epoll descriptor watches.
 *
 * The kernel keeps them in a tree (fs/eventpoll.c), which is walked without its lock: an entry that
 * changes meanwhile may be seen twice, or not at all. The list is sent again when the tree has
 * another root, another first leaf or other children of the root, or when this is so for an epoll
 * descriptor in the tree; changes further down are not noticed.
 */
#include "object.bpf.h"

#define STEPS_MAX 32 /* steps of the walk: each adds one file and at most two pending nodes */

/*
 * The state of the walk, in the slot's memory, where the verifier does not track it: otherwise it
 * follows several turns of the loop. The record is in the slot's buffer.
 */
struct epoll_walk {
	u64 nodes[STEPS_MAX]; /* pending */
	u64 operations;	      /* file::f_op of epoll descriptors */
	u32 pending, count;
};

static __always_inline struct epoll_walk *walk_of(struct stack_slot *slot)
{
	return (struct epoll_walk *)slot->span;
}

/*
 * All bits of the top byte are set in a kernel address, so it holds watched::via while the node is
 * pending.
 */
#define VIA_SHIFT     56
#define NODE_OF(word) ((struct rb_node *)((word) | 0xffULL << VIA_SHIFT))
#define VIA_OF(word)  ((u8)((word) >> VIA_SHIFT))

static __always_inline void push(struct epoll_walk *walk, struct rb_node *node, u8 via)
{
	u32 at = walk->pending;

	barrier_var(at);
	if (!node || at >= STEPS_MAX)
		return;
	walk->nodes[at] = ((u64)node & ~(0xffULL << VIA_SHIFT)) | (u64)via << VIA_SHIFT;
	walk->pending = at + 1;
}

static __always_inline struct rb_node *root_of(struct eventpoll *epoll)
{
	return BPF_CORE_READ(epoll, rbr.rb_root.rb_node);
}

static long visit_node(u32 i, struct stack_slot **context)
{
	struct stack_slot *slot = *context;
	struct epoll_walk *walk = walk_of(slot);
	struct rec_watch *record = (struct rec_watch *)slot->buffer;
	u32 at = walk->pending - 1, count = walk->count;
	struct watched *watched;
	struct rb_node *node;
	struct epitem *item;
	struct file *file;
	u64 word;

	barrier_var(at);
	barrier_var(count);
	if (at >= STEPS_MAX || count >= WATCHED_MAX)
		return 1;
	word = walk->nodes[at];
	node = NODE_OF(word);
	walk->pending = at;
	item = (void *)node - bpf_core_field_offset(struct epitem, rbn);
	file = BPF_CORE_READ(item, ffd.file);
	slot->window[count] = (u64)file; /* for watched_describe() */
	watched = &record->watched[count];
	watched->fd = BPF_CORE_READ(item, ffd.fd);
	watched->via = VIA_OF(word);
	watched->reserved[0] = watched->reserved[1] = 0;
	walk->count = count + 1;
	push(walk, BPF_CORE_READ(node, rb_left), VIA_OF(word));
	push(walk, BPF_CORE_READ(node, rb_right), VIA_OF(word));
	if ((u64)BPF_CORE_READ(file, f_op) == walk->operations)
		push(walk, root_of(BPF_CORE_READ(file, private_data)), count + 1);
	return 0;
}

/* The call was made with an epoll descriptor, but the descriptor may be another file's by now. */
static __always_inline bool is_epoll(struct file *file)
{
	char name[sizeof("[eventpo")] = {};

	bpf_probe_read_kernel_str(name, sizeof(name),
				  BPF_CORE_READ(file, f_path.dentry, d_name.name));
	return *(u64 *)name == *(const u64 *)"[eventpo";
}

__noinline int watch_begin(u64 address, const struct object_key *key)
{
	struct file *file = (struct file *)address;
	struct stack_slot *slot;
	struct epoll_walk *walk;
	struct rec_watch *record;
	u64 mark, scratch_word = 0;

	if (!key)
		return -1;
	mark = fd_epoll_mark(address, &scratch_word);
	if (*sent_beside(anonymous_mark(key)) == mark || !is_epoll(file))
		return -1;
	slot = slot_acquire_accounted(bpf_ktime_get_ns());
	if (!slot)
		return -1;
	walk = walk_of(slot);
	walk->operations = (u64)BPF_CORE_READ(file, f_op);
	walk->pending = walk->count = 0;
	push(walk, root_of(BPF_CORE_READ(file, private_data)), 0);
	bpf_loop(STEPS_MAX, visit_node, &slot, 0);
	record = (struct rec_watch *)slot->buffer;
	record->count = walk->count;
	record->more = walk->pending > 0;
	slot->word = mark; /* the mark before the walk */
	return slot->index;
}

__noinline int watch_end(const struct object_key *key, u32 slot_index)
{
	struct stack_slot *slot = bpf_map_lookup_elem(&scratch, &slot_index);

	if (!slot)
		return 0;
	if (key && !watch_send(slot, key, 0))
		*sent_beside(anonymous_mark(key)) = slot->word;
	slot_release(slot);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
