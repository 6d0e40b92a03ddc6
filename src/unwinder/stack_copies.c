/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "stack_copies.h"
#include "walk_user.h"
#include <string.h>

struct StackCopies {
	const UnwindMaps *maps;
	const JitCodes *codes;
	RecordSink sink;
	void *user;
	VEC(struct rec_stack_copy *) list;
	size_t kept;	       /* bytes */
	uint64_t watermark_ns; /* of the last call */
	StackCopiesCounts counts;
};

/* The state of one walk. */
typedef struct CopyWalk {
	const struct rec_stack_copy *copy;
	const StackCopies *copies;
	const UnwindMaps *maps;
	const Image *image;
	TableRegistry *tables;
	bool keep;	 /* it can wait for a table */
	bool short_copy; /* the walk needed a word above the copy */
} CopyWalk;

StackCopies *stack_copies_new(const UnwindMaps *maps, const JitCodes *codes, RecordSink sink,
			      void *user)
{
	StackCopies *copies = xcalloc(1, sizeof(*copies));

	copies->maps = maps;
	copies->codes = codes;
	copies->sink = sink;
	copies->user = user;
	return copies;
}

void stack_copies_free(StackCopies *copies)
{
	if (!copies)
		return;
	for (size_t i = 0; i < copies->list.count; i++)
		free(copies->list.items[i]);
	vec_free(&copies->list);
	free(copies);
}

/* The frames that BPF could walk stay in the capture. */
static void drop(StackCopies *copies, const struct rec_stack_copy *copy)
{
	StackCopiesCounts *counts = &copies->counts;

	counts->dropped_since_ns =
		counts->dropped ? MIN(counts->dropped_since_ns, copy->h.ns) : copy->h.ns;
	counts->dropped++;
}

void stack_copies_add(StackCopies *copies, const struct rec_stack_copy *copy)
{
	size_t length = copy->h.len;
	struct rec_stack_copy *kept;

	copies->counts.taken++;
	if (length < offsetof(struct rec_stack_copy, stack) || length > sizeof(*copy) ||
	    copies->kept + length > STACK_COPIES_MAX) {
		drop(copies, copy);
		return;
	}
	copies->kept += length;
	kept = xmalloc(length);
	memcpy(kept, copy, length);
	kept->size = MIN(kept->size, length - offsetof(struct rec_stack_copy, stack));
	*vec_push(&copies->list) = kept;
}

/* Returns the copy of the byte, or NULL. The first page is that of rsp, from rsp on. */
static const uint8_t *byte_of(const struct rec_stack_copy *copy, uint64_t address)
{
	uint64_t sp = copy->regs[DWARF_RSP], page = address / MAP_PAGE - sp / MAP_PAGE, into;

	if (address < sp || page >= 64 || copy->absent >> page & 1)
		return NULL;
	into = address - sp - MAP_PAGE * __builtin_popcountll(copy->absent & ((1ULL << page) - 1));
	return into < copy->size ? copy->stack + into : NULL;
}

struct unwind_mapping stack_copies_mapping(const StackCopies *copies, TableRegistry *tables,
					   const Image *image, const ImageMapping *mapping,
					   uint64_t ns)
{
	struct unwind_mapping found = table_registry_mapping(tables, mapping->file, mapping->start,
							     mapping->last, mapping->bias);

	if (found.table == 0 && found.row == NO_TABLE_JIT &&
	    jit_processes_is_pending(copies->codes, image->ns_tgid, mapping->start, mapping->last,
				     ns))
		found.row = NO_TABLE_YET;
	return found;
}

static bool read_copy(void *user, uint64_t address, void *to, size_t size)
{
	CopyWalk *walk = user;

	for (size_t i = 0; i < size; i++) {
		const uint8_t *byte = byte_of(walk->copy, address + i);

		if (!byte) {
			walk->short_copy |= address >= walk->copy->regs[DWARF_RSP];
			return false;
		}
		((uint8_t *)to)[i] = *byte;
	}
	return true;
}

static int find_mapping(void *user, uint64_t pc, struct unwind_mapping *ret_mapping)
{
	CopyWalk *walk = user;
	const ImageMapping *mapping = image_find_at(walk->image, pc, walk->copy->h.ns);

	if (IS_VSYSCALL(pc) && walk->maps->vsyscall->table) {
		*ret_mapping = *walk->maps->vsyscall;
		return WALK_CONTINUE;
	}
	if (!mapping)
		return STACK_NO_MAPPING;
	/* If it can wait no longer, it is walked as if its process said nothing. */
	*ret_mapping = stack_copies_mapping(walk->copies, walk->tables, walk->image, mapping,
					    walk->keep ? walk->copy->h.ns : 0);
	return WALK_CONTINUE;
}

static bool find_rule(void *user, const struct unwind_mapping *mapping, uint32_t pc,
		      struct unwind_rule *ret_rule)
{
	CopyWalk *walk = user;

	return table_memory_find_rule(walk->maps->memory, mapping, pc, ret_rule);
}

/* Replaces the stack that BPF could walk. */
static int emit_stack(StackCopies *copies, const struct rec_stack_copy *copy, const Image *image,
		      const uint64_t *frames, size_t count, uint32_t left_out, int result)
{
	union {
		struct rec_stack stack;
		uint8_t room[sizeof(struct rec_stack) + MAX_FRAMES * sizeof(uint64_t) +
			     sizeof(struct stack_gap)];
	} record = {};
	struct stack_gap gap = {.left_out = left_out, .leaf = LEAF_FRAMES};
	uint8_t guessed = 0;

	for (size_t i = 0; i < count; i++)
		guessed |= frames[i] & FRAME_GUESSED && !IS_VSYSCALL(frames[i]) ? STACK_GUESSED : 0;
	record.stack.h = (struct record){
		.len = sizeof(record.stack) + count * sizeof(*frames) +
		       (left_out ? sizeof(gap) : 0),
		.kind = REC_STACK,
		.flags = (copy->h.flags & (STACK_USER | STACK_SYSCALL_PC)) | STACK_FROM_COPY |
			 guessed | (left_out ? STACK_DEEP : 0),
		.cpu = copy->h.cpu,
		.ns = copy->h.ns,
	};
	record.stack.id = copy->id;
	record.stack.tgid = copy->tgid;
	record.stack.count = count;
	record.stack.result = result;
	/*
	 * find_mapping() accepts no younger mapping; but the records of some mappings may be lost.
	 */
	record.stack.tables_ns =
		image->uncertain_since_ns ? MIN(copy->h.ns, image->uncertain_since_ns) : copy->h.ns;
	memcpy(record.stack.frames, frames, count * sizeof(*frames));
	if (left_out)
		memcpy(record.stack.frames + count, &gap, sizeof(gap));
	return copies->sink(copies->user, &record.stack.h);
}

/* Returns 1 if the copy is kept for later, 0 if it is done, or the sink's error. */
static int walk_copy(StackCopies *copies, const struct rec_stack_copy *copy, CopyWalk *walk,
		     bool keep)
{
	uint64_t frames[MAX_FRAMES];
	uint32_t left_out;
	size_t count;
	int result;
	WalkInput input = {
		.in_syscall = copy->h.flags & STACK_SYSCALL_PC,
		.read = read_copy,
		.find_mapping = find_mapping,
		.find_rule = find_rule,
		.user = walk,
	};

	memcpy(input.regs, copy->regs, sizeof(input.regs));
	result = walk_user(&input, frames, &count, &left_out);
	if (result == STACK_NO_TABLE && keep)
		return 1;
	if (result == STACK_FAULT && walk->short_copy)
		result = STACK_COPY_SHORT;
	if (result == STACK_COMPLETE || result == STACK_END_ZERO)
		copies->counts.walked++;
	else
		copies->counts.partly++;
	return emit_stack(copies, copy, walk->image, frames, count, left_out, result);
}

/* Returns as walk_copy(). */
static int consider(StackCopies *copies, const struct rec_stack_copy *copy, const Images *images,
		    TableRegistry *tables, uint64_t watermark_ns, enum copies_which which)
{
	CopyWalk walk = {.copy = copy, .copies = copies, .maps = copies->maps, .tables = tables};
	bool keep = which != COPIES_LAST && watermark_ns < copy->h.ns + STACK_COPIES_TIMEOUT_NS;

	walk.keep = keep;
	if (copy->h.ns >= watermark_ns && which != COPIES_LAST)
		return 1;
	if (which == COPIES_NEW && keep && copy->h.ns < copies->watermark_ns)
		return 1;
	walk.image = images_find(images, copy->tgid, copy->start_boottime, copy->exec_id);
	if (walk.image)
		return walk_copy(copies, copy, &walk, keep);
	if (!keep)
		drop(copies, copy);
	return keep;
}

int stack_copies_walk(StackCopies *copies, const Images *images, TableRegistry *tables,
		      uint64_t watermark_ns, enum copies_which which)
{
	size_t kept = 0;
	int error = 0;

	for (size_t i = 0; i < copies->list.count; i++) {
		struct rec_stack_copy *copy = copies->list.items[i];
		int r = error ? 1 : consider(copies, copy, images, tables, watermark_ns, which);

		if (r == 1) {
			copies->list.items[kept++] = copy;
			continue;
		}
		copies->kept -= copy->h.len;
		free(copy);
		error = r;
	}
	copies->list.count = kept;
	copies->watermark_ns = MAX(copies->watermark_ns, watermark_ns);
	return error;
}

uint64_t stack_copies_oldest_ns(const StackCopies *copies)
{
	uint64_t oldest = UINT64_MAX;

	for (size_t i = 0; i < copies->list.count; i++)
		oldest = MIN(oldest, copies->list.items[i]->h.ns);
	return oldest;
}

StackCopiesCounts stack_copies_counts(const StackCopies *copies)
{
	return copies->counts;
}
