/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "percpu_offsets.h"
#include <bpf/btf.h>
#include <string.h>

#define NOT_FOUND (-1LL)

/*
 * As in include/linux/preempt.h. From 7.3 on eight bits count how often interrupts were disabled
 * (local_interrupt_disable()); they are below those of the hard interrupts, which moved to where
 * those of NMIs were.
 */
#define HARDIRQ_MASK		    0x000f0000
#define HARDIRQ_MASK_ABOVE_DISABLED 0x0f000000

/*
 * Returns the offset in bits of member `name` of a struct, also inside its anonymous members
 * (pcpu_hot wraps its fields in a union of a struct).
 */
static long long member_bit_offset(const struct btf *btf, const struct btf_type *type,
				   const char *name)
{
	for (int i = 0; i < btf_vlen(type); i++) {
		const struct btf_member *member = btf_members(type) + i;
		const char *member_name = btf__name_by_offset(btf, member->name_off);
		const struct btf_type *inner = btf__type_by_id(btf, member->type);
		long long offset;

		if (!strcmp(member_name, name))
			return btf_member_bit_offset(type, i);
		if (*member_name || !btf_is_composite(inner))
			continue;
		offset = member_bit_offset(btf, inner, name);
		if (offset != NOT_FOUND)
			return btf_member_bit_offset(type, i) + offset;
	}
	return NOT_FOUND;
}

static long long member_offset(const struct btf *btf, const char *type, const char *name)
{
	int id = btf__find_by_name_kind(btf, type, BTF_KIND_STRUCT);
	long long bits;

	if (id < 0)
		return NOT_FOUND;
	bits = member_bit_offset(btf, btf__type_by_id(btf, id), name);
	return bits == NOT_FOUND ? NOT_FOUND : bits / 8;
}

static long long variable_offset(const struct btf *btf, const struct btf_type *section,
				 const char *name)
{
	const struct btf_var_secinfo *variable = btf_var_secinfos(section);

	for (int i = 0; i < btf_vlen(section); i++, variable++) {
		const struct btf_type *t = btf__type_by_id(btf, variable->type);

		if (!strcmp(btf__name_by_offset(btf, t->name_off), name))
			return variable->offset;
	}
	return NOT_FOUND;
}

/* It is a variable of its own, or, from 6.2 to 6.14, a member of pcpu_hot. */
static long long hot_offset(const struct btf *btf, const struct btf_type *section,
			    const char *variable, const char *member)
{
	long long offset = variable_offset(btf, section, variable), hot, within;

	if (offset != NOT_FOUND)
		return offset;
	hot = variable_offset(btf, section, "pcpu_hot");
	within = member_offset(btf, "pcpu_hot", member);
	return hot == NOT_FOUND || within == NOT_FOUND ? NOT_FOUND : hot + within;
}

bool percpu_offsets(const struct btf *btf, PercpuOffsets *ret_offsets)
{
	int id = btf__find_by_name_kind(btf, ".data..percpu", BTF_KIND_DATASEC);
	long long runqueues, preempt_count, irq_stack, in_use;
	const struct btf_type *section;

	if (id < 0)
		return false;
	section = btf__type_by_id(btf, id);
	runqueues = variable_offset(btf, section, "runqueues");
	preempt_count = hot_offset(btf, section, "__preempt_count", "preempt_count");
	irq_stack = hot_offset(btf, section, "hardirq_stack_ptr", "hardirq_stack_ptr");
	in_use = hot_offset(btf, section, "hardirq_stack_inuse", "hardirq_stack_inuse");
	/*
	 * Only a preemptible-RT kernel has softirq_ctrl. It runs soft interrupts in threads, and
	 * does not count them in preempt_count (kernel/softirq.c).
	 */
	if (runqueues == NOT_FOUND || preempt_count == NOT_FOUND ||
	    variable_offset(btf, section, "softirq_ctrl") != NOT_FOUND ||
	    member_offset(btf, "sched_entity", "cfs_rq") == NOT_FOUND)
		return false;
	*ret_offsets = (PercpuOffsets){
		.preempt_count = preempt_count - runqueues,
		.hardirq_mask =
			variable_offset(btf, section, "local_interrupt_disable_state") == NOT_FOUND
				? HARDIRQ_MASK
				: HARDIRQ_MASK_ABOVE_DISABLED,
		.irq_stack = irq_stack - runqueues,
		.irq_stack_in_use = in_use - runqueues,
		.irq_stack_known = irq_stack != NOT_FOUND && in_use != NOT_FOUND,
	};
	return true;
}
