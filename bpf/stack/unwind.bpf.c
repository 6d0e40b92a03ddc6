/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unwind.bpf.c - walking user stacks by unwind tables.
 *
 * The searches and the step are global functions: the verifier works through each once, and
 * not once per frame, which alone makes kernels from 6.12 on accept the walk.
 */
#include "unwind.bpf.h"
#include "stack_copy.bpf.h"
#include "unwind_process.bpf.h"
#include "user_side.bpf.h"

/* ---- the tables ---------------------------------------------------------------- */

/*
 * Both look-ups are code in line, not calls: that is what the chunks' common size is for.
 * NULL: the index is none, which only an entry that was torn can lead to.
 */
static __always_inline union unwind_cell *cell_at(u32 index)
{
	u32 number = index >> CHUNK_CELLS_SHIFT, key = index & (CHUNK_CELLS - 1);
	void *chunk = bpf_map_lookup_elem(&chunks, &number);

	return chunk ? bpf_map_lookup_elem(chunk, &key) : NULL;
}

/* All ones if a <= b, both below 2^63; no branch, each of which the verifier would follow. */
static __always_inline u64 at_most(u64 a, u64 b)
{
	return (s64)(a - b - 1) >> 63;
}

/*
 * Is it still the one (unwind_head)? Asked after reading what is behind it: x86-64 does not
 * exchange loads, nor the recorder's stores.
 */
static __always_inline bool has_mark(const union unwind_cell *head, u64 mark)
{
	return *(volatile const u64 *)&head->head.mark == mark;
}

/* The table of walk.mapping, if it is still there: how many rows it has. */
static __always_inline bool load_table(struct stack_slot *slot)
{
	union unwind_cell *head = cell_at((slot->walk.mapping.row >> CELL_ROWS_SHIFT) - 1);
	u32 table = slot->walk.mapping.table;

	slot->known_table = 0;
	if (!head)
		return false;
	slot->known_rows = head->head.count;
	barrier();
	if (!has_mark(head, TABLE_COOKIE | table))
		return false;
	slot->known_table = table;
	return true;
}

#define SEARCH_STEPS 31 /* enough for as many rows as there can be */

/*
 * The rule that holds at pc (relative), of the table of walk.mapping, the first row of which has
 * pc 0; -1 if the table is gone.
 */
__noinline int find_rule(struct stack_slot *slot, u64 pc)
{
	union unwind_cell *cell;
	u32 first, count;
	int rule;

	if (!slot)
		return -1;
	if (slot->known_table != slot->walk.mapping.table && !load_table(slot))
		return -1;
	first = slot->walk.mapping.row;
	count = slot->known_rows;
	for (u32 i = 0; i < SEARCH_STEPS; i++) {
		u32 half = count >> 1, middle = first + half;

		if (half == 0)
			break;
		cell = cell_at(middle >> CELL_ROWS_SHIFT);
		if (!cell)
			return -1;
		first += half & at_most(cell->rows[middle & (CELL_ROWS - 1)].pc, pc);
		count -= half;
	}
	cell = cell_at(first >> CELL_ROWS_SHIFT);
	if (!cell)
		return -1;
	rule = cell->rows[first & (CELL_ROWS - 1)].rule & (RULES_MAX - 1);
	barrier();
	if (*(volatile u64 *)&unwind_epoch == slot->epoch || load_table(slot))
		return rule;
	return -1;
}

#define LIST_STEPS 24 /* enough for as many mappings as there can be */

/* In the run of mappings that the recorder published. */
__noinline int find_in_run(struct stack_slot *slot, u64 pc)
{
	union unwind_cell *head, *cell;
	u32 first, count;

	if (!slot || slot->process.count == 0)
		return -1;
	head = cell_at(slot->process.cell);
	if (!head)
		return -1;
	first = slot->process.cell + 1;
	count = slot->process.count;
	for (u32 i = 0; i < LIST_STEPS; i++) {
		u32 half = count >> 1;

		if (half == 0)
			break;
		cell = cell_at(first + half);
		if (!cell)
			return -1;
		first += half & at_most(cell->mapping.start, pc);
		count -= half;
	}
	cell = cell_at(first);
	if (!cell || pc < cell->mapping.start || pc > cell->mapping.last)
		return -1;
	slot->walk.mapping = cell->mapping;
	barrier();
	if (has_mark(head, slot->process.run))
		return 0;
	/* The next frame must not be looked for there. */
	slot->walk.mapping.last = 0;
	return -1;
}

/* ---- what the recorder does not know yet -------------------------------------------- */

/* So that it need not be asked again before the recorder knows. */
static __always_inline void remember(struct task_struct *task, const struct unwind_mapping *mapping)
{
	struct unwind_process *process = process_of(task, process_start());
	u32 number;

	if (!process)
		return;
	number = __sync_fetch_and_add(&process->seed_count, 1);
	if (number >= SEEDS_MAX) {
		__sync_fetch_and_add(&unwind_counts.seed_lost, 1);
		return;
	}
	process->seeds[number].start = mapping->start;
	process->seeds[number].load = mapping->load;
	process->seeds[number].row = mapping->row;
	process->seeds[number].table = mapping->table;
	barrier();
	process->seeds[number].last = mapping->last;
}

/*
 * A miss: the kernel itself is asked. With interrupts off it can be once in a program's run: the
 * lock that it takes is given back later.
 */
__noinline int find_by_vma(struct stack_slot *slot, u64 pc)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct found_vma found = {};
	struct unwind_mapping *mapping;
	long error;

	if (!slot)
		return STACK_NO_MAPPING;
	error = bpf_find_vma(task, pc, read_vma, &found, 0);
	if (error == -EBUSY) {
		__sync_fetch_and_add(&unwind_counts.vma_busy, 1);
		return STACK_NO_MAPPING;
	}
	if (error || !found.exec)
		return STACK_BAD_PC;
	mapping = &slot->walk.mapping;
	mapping->start = found.start;
	mapping->last = found.last;
	mapping->load = found.start;
	mapping->table = 0;
	mapping->row = found.file ? NO_TABLE_YET : NO_TABLE_JIT;
	if (found.vdso)
		map_object(mapping, &vdso_object, found.start);
	else if (found.file && !map_known_object(mapping, &found))
		return WALK_CONTINUE;
	if (pc < mapping->start || pc > mapping->last)
		return STACK_BAD_PC;
	remember(task, mapping);
	return WALK_CONTINUE;
}

__noinline int find_in_seeds(struct stack_slot *slot, u64 pc)
{
	if (!slot)
		return -1;
	for (u32 i = 0; i < SEEDS_MAX; i++) {
		struct unwind_mapping *seed = &slot->process.seeds[i];

		if (i >= slot->process.seed_count)
			break;
		if (pc < seed->start || pc > seed->last)
			continue;
		slot->walk.mapping = *seed;
		return 0;
	}
	return -1;
}

/* ---- the walk --------------------------------------------------------------------- */

#define WALK_SELF struct stack_slot *self

/* What this walk has read, so that the next one need not be made (user_stack_memo.bpf.c). */
static __always_inline void memo_note_word(struct stack_slot *slot, u64 address)
{
	u64 above = address - slot->start.sp, at = above / sizeof(u64);
	struct memo_words *read = &slot->again.read;
	u32 number = read->count;

	if (number >= MEMO_WORDS || at >= MEMO_SPAN / sizeof(u64) || above & 7) {
		slot->again.unusable = 1;
		return;
	}
	read->words[number].at = at;
	read->words[number].counts = read->words[number].moves = 0;
	read->words[number].value = slot->word;
	read->count = number + 1;
	if ((at + 1) * sizeof(u64) > read->span)
		read->span = (at + 1) * sizeof(u64);
}

static __always_inline long read_window(struct stack_slot *slot)
{
	return bpf_probe_read_user(slot->window, WINDOW_SIZE, (void *)slot->window_start);
}

/* Of a thread with little above its outermost frame the stack may end within a window. */
static __always_inline long read_window_of_page(struct stack_slot *slot, u64 address)
{
	slot->window_start = address & ~(WINDOW_SIZE - 1ULL);
	return read_window(slot);
}

/* A word of user memory, to slot->word: from the part of the stack that was copied last. */
__noinline int read_word(struct stack_slot *slot, u64 address)
{
	u64 into, start;

	if (!slot)
		return 0;
	into = address - slot->window_start;
	if (slot->window_start != NO_WINDOW && into <= WINDOW_SIZE - sizeof(u64) && !(into & 7)) {
		slot->word = slot->window[into / sizeof(u64) % (WINDOW_SIZE / sizeof(u64))];
		memo_note_word(slot, address);
		return 1;
	}
	/* What is read next lies above, or a little below. */
	start = address - slot->walk.sp < WINDOW_SIZE / 2 ? slot->walk.sp : address - 64;
	slot->window_start = address - ((address - start) & ~7ULL);
	if (!read_window(slot) || (!(address & 7) && !read_window_of_page(slot, address))) {
		into = address - slot->window_start;
		slot->word = slot->window[into / sizeof(u64) % (WINDOW_SIZE / sizeof(u64))];
		memo_note_word(slot, address);
		return 1;
	}
	slot->window_start = NO_WINDOW;
	slot->again.unusable = 1;
	return !bpf_probe_read_user(&slot->word, sizeof(slot->word), (void *)address);
}

static __always_inline void walk_word_used(WALK_SELF, u32 word)
{
	if (word)
		self->again.read.words[(word - 1) & (MEMO_WORDS - 1)].counts = 1;
}

static __always_inline bool walk_read_saved(WALK_SELF, u64 address, u64 *ret, u8 *ret_word)
{
	bool good = read_word(self, address);

	*ret = self->word;
	*ret_word = self->again.read.count;
	return good;
}

static __always_inline bool walk_read(WALK_SELF, u64 address, u64 *ret)
{
	u8 word;
	bool good = walk_read_saved(self, address, ret, &word);

	walk_word_used(self, word);
	return good;
}

static __always_inline bool walk_read_signal(WALK_SELF, u64 address)
{
	self->again.unusable = 1;
	return !bpf_probe_read_user(self->signal_regs, sizeof(self->signal_regs), (void *)address);
}

static __always_inline int walk_find_mapping(WALK_SELF, u64 pc)
{
	if (!find_in_run(self, pc) || !find_in_seeds(self, pc))
		return WALK_CONTINUE;
	return find_by_vma(self, pc);
}

static __always_inline bool walk_find_rule(WALK_SELF, u32 pc, struct unwind_rule *ret)
{
	u32 number = find_rule(self, pc);
	struct unwind_rule *rule = bpf_map_lookup_elem(&rules, &number);

	if (!rule)
		return false;
	*ret = *rule;
	return true;
}

#include "walk.h"

/* Adds the frame to the stack and goes on to its caller: WALK_CONTINUE, or how the stack ends. */
__noinline int unwind_step(struct stack_slot *slot)
{
	struct rec_stack *stack;
	u32 count;
	u64 frame;

	if (!slot)
		return STACK_FAULT;
	stack = &slot->stack;
	count = stack->count;
	if (count >= MAX_FRAMES)
		return STACK_TRUNCATED;
	frame = slot->walk.pc;
	if (slot->walk.exact && count > 0)
		frame |= FRAME_EXACT;
	if (slot->walk.guessed) {
		frame |= FRAME_GUESSED;
		stack->h.flags |= STACK_GUESSED;
	}
	stack->frames[count] = frame;
	stack->count = count + 1;
	return walk_step(slot);
}

/* x86-64 */
#define CALL_EXECVE    59
#define CALL_EXECVEAT  322
#define CALL_EXECVE_32 11

/* If the new program is one of 32-bit code, the kernel changes the number early. */
static __always_inline bool is_exec_call(struct task_struct *task, struct pt_regs *regs)
{
	if (task->thread_info.status & TS_COMPAT)
		return regs->orig_ax == CALL_EXECVE_32;
	return regs->orig_ax == CALL_EXECVE || regs->orig_ax == CALL_EXECVEAT;
}

/* A copy: the entry may be replaced while the walk goes on. */
static __always_inline void load_process(struct stack_slot *slot, struct task_struct *task)
{
	u64 start = process_start();
	struct unwind_process *process = process_of(task, start);

	slot->process.count = slot->process.seed_count = slot->process.version = 0;
	slot->process.tables_ns = slot->stack.h.ns; /* the kernel is asked now */
	if (!process)
		return;
	__builtin_memcpy(&slot->process, process, offsetof(struct unwind_process, seeds));
	if (slot->process.seed_count > 0)
		__builtin_memcpy(slot->process.seeds, process->seeds, sizeof(process->seeds));
	barrier();
	if (slot->process.version == process->version &&
	    slot->process.version == process->version_end &&
	    is_entry_of(&slot->process, task, start))
		return;
	slot->process.count = slot->process.seed_count = slot->process.version = 0;
	slot->process.tables_ns = slot->stack.h.ns;
	__sync_fetch_and_add(&unwind_counts.torn, 1);
}

/*
 * Within exec, with the old program's registers: is its memory gone? The new one's has no stack to
 * begin with; then the count of execs is raised, for which on_exec has yet to make an entry.
 */
static __always_inline bool is_in_exec(struct task_struct *task, struct pt_regs *regs)
{
	return is_exec_call(task, regs) &&
	       (BPF_CORE_READ(task, mm, start_stack) == 0 || !process_of(task, process_start()));
}

#define CALL_CLONE   56
#define CALL_CLONE3  435
#define CLONE3_STACK 40 /* offset of clone_args::stack */

/*
 * On its way out of clone, on a stack of its own: the call's wrapper has rules for the caller's
 * side only, and would be left over the empty stack's edge.
 */
static __always_inline bool is_new_thread(struct pt_regs *regs)
{
	u64 stack = 0;

	if (regs->ax != 0)
		return false;
	if (regs->orig_ax == CALL_CLONE)
		return regs->si != 0;
	if (regs->orig_ax != CALL_CLONE3 ||
	    bpf_probe_read_user(&stack, sizeof(stack), (void *)(regs->di + CLONE3_STACK)))
		return false;
	return stack != 0;
}

__noinline int unwind_begin(struct stack_slot *slot)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	struct rec_stack *stack;

	if (!slot)
		return 0;
	stack = &slot->stack;
	slot->epoch = *(volatile u64 *)&unwind_epoch;
	slot->known_table = 0;
	load_registers(&slot->walk, regs);
	load_process(slot, task);
	slot->start.pc = slot->walk.pc;
	slot->start.sp = slot->walk.sp;
	slot->start.bp = slot->walk.bp;
	slot->start.bx = slot->walk.bx;
	slot->start.exact = slot->walk.exact;
	slot->window_start = NO_WINDOW;
	slot->again.read.count = slot->again.read.span = slot->again.unusable = 0;
	stack->h.flags = STACK_USER | (slot->walk.exact ? 0 : STACK_SYSCALL_PC);
	stack->count = 0;
	stack->tables_ns = slot->process.tables_ns;
	stack->result = WALK_CONTINUE;
	/* The flag is set before exit_mm() takes the memory away. */
	if (task->flags & PF_EXITING && !BPF_CORE_READ(task, mm)) {
		stack->result = STACK_NO_MM;
	} else if (user_cs(regs) != USER_CS) {
		stack->frames[0] = slot->walk.pc;
		stack->count = 1;
		stack->result = STACK_COMPAT;
	} else if (is_in_exec(task, regs)) {
		stack->result = STACK_EXEC;
	} else if (is_new_thread(regs)) {
		stack->frames[0] = slot->walk.pc;
		stack->count = 1;
		stack->result = STACK_COMPLETE;
	}
	return 0;
}

__noinline int unwind_walk(struct stack_slot *slot)
{
	int result;

	if (!slot)
		return 0;
	result = slot->stack.result;
	for (u32 i = 0; i <= MAX_FRAMES; i++) {
		if (result != WALK_CONTINUE)
			break;
		result = unwind_step(slot);
	}
	slot->stack.result = result;
	return 0;
}

/* ---- a copy, for the recorder to walk ---------------------------------------------- */

__noinline int unwind_copy(struct stack_slot *slot)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	struct rec_stack_copy *copy;
	u32 number;

	if (!slot)
		return 0;
	number = slot->number;
	copy = bpf_map_lookup_elem(&copies, &number);
	if (!copy)
		return 0;
	load_registers(&slot->walk, regs);
	copy->start_boottime = process_start();
	copy->tables_ns = slot->process.tables_ns;
	copy->size = copy_stack(copy, slot->walk.sp);
	return send_copy(slot, copy, task, slot->stack.h.ns);
}

char LICENSE[] SEC("license") = "GPL";
