/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unwind.bpf.c - walks user stacks by unwind tables.
 *
 * The searches and the step are global functions, because the verifier then checks each once and
 * not once per frame. Without that, kernels from 6.12 on do not accept the walk.
 */
#include "unwind.bpf.h"
#include "stack_copy.bpf.h"
#include "unwind_deep.bpf.h"
#include "unwind_process.bpf.h"
#include "user_side.bpf.h"

#define EBUSY 16

/* ---- the tables ---------------------------------------------------------------- */

/*
 * Both look-ups are inlined, because all chunks have one size. NULL: the index is invalid, which
 * happens only if an entry changed while it was read.
 */
static __always_inline union unwind_cell *cell_at(u32 index)
{
	u32 chunk_index = index >> CHUNK_CELLS_SHIFT, key = index & (CHUNK_CELLS - 1);
	void *chunk = bpf_map_lookup_elem(&chunks, &chunk_index);

	return chunk ? bpf_map_lookup_elem(chunk, &key) : NULL;
}

/*
 * Returns all ones if a <= b, both below 2^63. There is no branch, because the verifier would
 * follow both sides.
 */
static __always_inline u64 at_most(u64 a, u64 b)
{
	return (s64)(a - b - 1) >> 63;
}

/*
 * Whether the head still has the cookie (unwind_head). It must be called after the data behind the
 * head is read: x86-64 reorders neither loads nor the recorder's stores.
 */
static __always_inline bool has_cookie(const union unwind_cell *head, u64 mark)
{
	return *(volatile const u64 *)&head->head.cookie == mark;
}

/* Stores the row count of walk.mapping's table; false if the table was removed. */
static __always_inline bool load_table(struct stack_slot *slot)
{
	union unwind_cell *head = cell_at((slot->walk.mapping.row >> CELL_ROWS_SHIFT) - 1);
	u32 table = slot->walk.mapping.table;

	slot->known_table = 0;
	if (!head)
		return false;
	slot->known_rows = head->head.count;
	barrier();
	if (!has_cookie(head, TABLE_COOKIE | table))
		return false;
	slot->known_table = table;
	return true;
}

/*
 * The same return addresses are looked up again and again, and a search reads a dozen cells that
 * are mostly in no cache of the CPU. So the rules found last are kept by table and pc. They stay
 * true: neither the number of a table nor that of a rule is ever used for another one.
 */
#define FOUND_HASH(key) ((key)*0x9e3779b97f4a7c15ULL)

static __always_inline struct found_rule *found_rule_slot(u64 key)
{
	return &found_rules[FOUND_HASH(key) >> 48 & (FOUND_RULES - 1)];
}

/*
 * Two CPUs may write an entry at the same time. So its second word is mixed with the key: if it
 * belongs to another key, the upper bits of the result are not 0.
 */
static __always_inline u64 found_rule(u64 key)
{
	const struct found_rule *found = found_rule_slot(key);

	return found->key == key ? found->mixed_rule ^ FOUND_HASH(key) : ~0ULL;
}

static __always_inline void keep_rule(u64 key, u32 rule)
{
	struct found_rule *found = found_rule_slot(key);

	found->key = key;
	found->mixed_rule = FOUND_HASH(key) ^ rule;
}

#define SEARCH_STEPS 31 /* enough for the largest possible table */

/*
 * Returns the rule for pc (relative) in walk.mapping's table, whose first row has pc 0; -1 if the
 * table was removed.
 */
__noinline int find_rule(struct stack_slot *slot, u64 pc)
{
	union unwind_cell *cell;
	u32 first, count;
	u64 key, found;
	int rule;

	if (!slot)
		return -1;
	key = (u64)slot->walk.mapping.table << 32 | (u32)pc;
	found = found_rule(key);
	if (found < RULES_MAX)
		return found;
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
	if (*(volatile u64 *)&unwind_epoch != slot->epoch && !load_table(slot))
		return -1;
	keep_rule(key, rule);
	return rule;
}

#define LIST_STEPS 24 /* enough for the longest possible list */

/* Searches the list of mappings that the recorder published. */
__noinline int find_in_list(struct stack_slot *slot, u64 pc)
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
	if (has_cookie(head, slot->process.list_cookie))
		return 0;
	/* The next frame must not be searched in this mapping. */
	slot->walk.mapping.last = 0;
	return -1;
}

/* ---- mappings that the recorder does not know yet ------------------------------------ */

/*
 * Adds a seed, so that the kernel need not be asked again until the recorder publishes the mapping.
 */
static __always_inline void add_seed(struct task_struct *task, const struct unwind_mapping *mapping)
{
	struct unwind_process *process = process_of(task, process_start());
	u32 index;

	if (!process)
		return;
	index = __sync_fetch_and_add(&process->seed_count, 1);
	if (index >= SEEDS_MAX) {
		__sync_fetch_and_add(&unwind_counts.seed_lost, 1);
		return;
	}
	process->seeds[index].start = mapping->start;
	process->seeds[index].load = mapping->load;
	process->seeds[index].row = mapping->row;
	process->seeds[index].table = mapping->table;
	barrier();
	process->seeds[index].last = mapping->last;
	mappings_changed();
}

/*
 * Asks the kernel for a mapping that is not known. With interrupts off this works once in each run
 * of a program, because the lock that it takes is released later.
 */
__noinline int find_by_vma(struct stack_slot *slot, u64 pc)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct unwind_mapping *mapping;
	struct found_vma *found;
	long error;

	if (!slot)
		return STACK_NO_MAPPING;
	/* It is in no list: at_most() compares addresses below 2^63. */
	if (IS_VSYSCALL(pc) && vsyscall_mapping.table) {
		slot->walk.mapping = vsyscall_mapping;
		return WALK_CONTINUE;
	}
	found = &slot->found;
	error = bpf_find_vma(task, pc, read_vma, &slot, 0);
	if (error == -EBUSY) {
		__sync_fetch_and_add(&unwind_counts.vma_busy, 1);
		return STACK_NO_MAPPING;
	}
	if (error || !found->exec)
		return STACK_BAD_PC;
	mapping = &slot->walk.mapping;
	mapping->start = found->start;
	mapping->last = found->last;
	mapping->load = found->start;
	mapping->table = 0;
	mapping->row = found->file ? NO_TABLE_YET : NO_TABLE_JIT - (slot->process.may_describe & 1);
	if (found->vdso)
		map_object(mapping, &vdso_object, found->start);
	else if (found->file && !unwind_map_object(mapping, found))
		return WALK_CONTINUE;
	if (pc < mapping->start || pc > mapping->last)
		return STACK_BAD_PC;
	add_seed(task, mapping);
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

/* Notes a word that this walk has read, for the stack memo (stack_memo.bpf.c). */
static __always_inline void memo_note_word(struct stack_slot *slot, u64 address)
{
	u64 above = address - slot->start.sp, at = above / sizeof(u64);
	struct memo_reads *reads = &slot->reads;
	u32 index = reads->count;

	if (index >= MEMO_READS || at > 0xffff || above & 7) {
		reads->unusable = 1;
		return;
	}
	reads->words[index].at = at;
	reads->words[index].compared = 0;
	reads->words[index].value = slot->word;
	reads->count = index + 1;
}

static __always_inline long read_window(struct stack_slot *slot)
{
	return bpf_probe_read_user(slot->window, WINDOW_SIZE, (void *)slot->window_start);
}

/*
 * Reads an aligned window: if little lies above the outermost frame, the stack may end within an
 * unaligned one.
 */
static __always_inline long read_window_of_page(struct stack_slot *slot, u64 address)
{
	slot->window_start = address & ~(WINDOW_SIZE - 1ULL);
	return read_window(slot);
}

/* Reads a word of user memory into slot->word, from the window if it lies there. */
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
	/* The next reads are above this word, or a little below it. */
	start = address - slot->walk.sp < WINDOW_SIZE / 2 ? slot->walk.sp : address - 64;
	slot->window_start = address - ((address - start) & ~7ULL);
	if (!read_window(slot) || (!(address & 7) && !read_window_of_page(slot, address))) {
		into = address - slot->window_start;
		slot->word = slot->window[into / sizeof(u64) % (WINDOW_SIZE / sizeof(u64))];
		memo_note_word(slot, address);
		return 1;
	}
	slot->window_start = NO_WINDOW;
	slot->reads.unusable = 1;
	return !bpf_probe_read_user(&slot->word, sizeof(slot->word), (void *)address);
}

static __always_inline void walk_word_used(WALK_SELF, u32 word)
{
	/* Without a word it is the last one, which no walk reads: the verifier follows no branch.
	 */
	self->reads.words[(word - 1) & MEMO_READS].compared = 1;
}

static __always_inline bool walk_read_saved(WALK_SELF, u64 address, u64 *ret, u16 *ret_word)
{
	bool good = read_word(self, address);

	*ret = self->word;
	*ret_word = self->reads.count;
	return good;
}

static __always_inline bool walk_read(WALK_SELF, u64 address, u64 *ret)
{
	u16 word;
	bool good = walk_read_saved(self, address, ret, &word);

	walk_word_used(self, word);
	return good;
}

static __always_inline bool walk_read_signal(WALK_SELF, u64 address)
{
	self->reads.unusable = 1;
	return !bpf_probe_read_user(self->signal_regs, sizeof(self->signal_regs), (void *)address);
}

static __always_inline int walk_find_mapping(WALK_SELF, u64 pc)
{
	if (!find_in_list(self, pc) || !find_in_seeds(self, pc))
		return WALK_CONTINUE;
	return find_by_vma(self, pc);
}

static __always_inline bool walk_find_rule(WALK_SELF, u32 pc, struct unwind_rule *ret)
{
	u32 index = find_rule(self, pc);
	struct unwind_rule *rule = bpf_map_lookup_elem(&rules, &index);

	if (!rule)
		return false;
	*ret = *rule;
	return true;
}

#include "walk.h"

/* Adds the frame to the stack and finds its caller. Returns WALK_CONTINUE or how the stack ends. */
__noinline int unwind_step(struct stack_slot *slot)
{
	struct rec_stack *stack;
	u32 at;
	u64 frame;

	if (!slot)
		return STACK_FAULT;
	stack = &slot->stack;
	frame = slot->walk.pc;
	if (slot->walk.exact && slot->depth > 0)
		frame |= FRAME_EXACT;
	if (slot->walk.guessed) {
		frame |= FRAME_GUESSED;
		stack->h.flags |= STACK_GUESSED;
	}
	at = stack_frame_index(slot->depth);
	barrier_var(at); /* or clang omits the check, which the verifier needs */
	if (at >= MAX_FRAMES)
		return STACK_TRUNCATED;
	stack->frames[at] = frame;
	slot->depth++;
	return walk_step(slot);
}

/* x86-64 */
#define CALL_EXECVE    59
#define CALL_EXECVEAT  322
#define CALL_EXECVE_32 11

/* If the new program is 32-bit code, the kernel changes the number of the call early. */
static __always_inline bool is_exec_call(struct task_struct *task, struct pt_regs *regs)
{
	if (task->thread_info.status & TS_COMPAT)
		return regs->orig_ax == CALL_EXECVE_32;
	return regs->orig_ax == CALL_EXECVE || regs->orig_ax == CALL_EXECVEAT;
}

/* Copies the process's entry, because it may be replaced during the walk. */
__noinline int unwind_load_process(struct stack_slot *slot)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct unwind_process *process;
	u64 start = process_start();

	if (!slot || slot->mappings_epoch)
		return 0;
	slot->mappings_epoch = *(volatile u64 *)&mappings_epoch + 1;
	barrier();
	process = process_of(task, start);
	slot->process.count = slot->process.seed_count = slot->process.version = 0;
	slot->process.may_describe = 0;
	if (!process)
		return 0;
	__builtin_memcpy(&slot->process, process, offsetof(struct unwind_process, seeds));
	if (slot->process.seed_count > 0)
		__builtin_memcpy(slot->process.seeds, process->seeds, sizeof(process->seeds));
	barrier();
	if (slot->process.version == process->version &&
	    slot->process.version == process->version_end &&
	    is_entry_of(&slot->process, task, start))
		return 0;
	slot->process.count = slot->process.seed_count = slot->process.version = 0;
	slot->process.may_describe = 0;
	__sync_fetch_and_add(&unwind_counts.torn, 1);
	return 0;
}

/*
 * Whether the task is within exec, with the old program's registers, and the old memory is gone.
 * The new memory has no stack at first (start_stack is 0). Then exec_id is raised, and on_exec has
 * not made an entry for it yet.
 */
static __always_inline bool is_in_exec(struct task_struct *task, struct pt_regs *regs)
{
	return is_exec_call(task, regs) &&
	       (BPF_CORE_READ(task, mm, start_stack) == 0 || !process_of(task, process_start()));
}

#define CALL_CLONE   56
#define CALL_CLONE3  435
#define CLONE3_STACK 40 /* offset of clone_args::stack, bytes */

/*
 * Whether the task is a new thread that returns from clone on a stack of its own. The call's
 * wrapper has rules for the caller only, which would lead over the end of the empty stack.
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

__noinline int unwind_start(struct stack_slot *slot)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);

	if (!slot)
		return 0;
	slot->start.pc = regs->ip;
	slot->start.sp = regs->sp;
	slot->start.bp = regs->bp;
	slot->start.bx = regs->bx;
	slot->start.exact = is_exact(regs);
	slot->start.compat = user_cs(regs) != USER_CS;
	slot->mappings_epoch = 0;
	return task->flags & PF_EXITING;
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
	unwind_load_process(slot);
	/*
	 * Without an entry mappings are read from the kernel now. A memo may have loaded the
	 * process before the stack got its time, so this is not done there.
	 */
	if (slot->process.version == 0)
		slot->process.tables_ns = slot->stack.h.ns;
	slot->window_start = NO_WINDOW;
	slot->reads.count = slot->reads.unusable = 0;
	stack->h.flags = STACK_USER | (slot->walk.exact ? 0 : STACK_SYSCALL_PC);
	stack->count = slot->depth = slot->left_out = 0;
	slot->last_part = SURE_PARTS;
	slot->deep_ns = 0;
	stack->tables_ns = slot->process.tables_ns;
	stack->result = WALK_CONTINUE;
	/* The flag is set before exit_mm() releases the memory. */
	if (task->flags & PF_EXITING && !BPF_CORE_READ(task, mm)) {
		stack->result = STACK_NO_MM;
	} else if (slot->start.compat) {
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

/* Kernel 6.1 has no stack left for another function between this one and unwind_step(). */
static long walk_part(u32 part, struct stack_slot **context)
{
	struct stack_slot *slot = *context;
	int result = WALK_CONTINUE;

	if (part == slot->last_part && unwind_deepen(slot))
		return 1;
	if (part >= SURE_PARTS && !unwind_advances(slot, part))
		return 1;
	if (part >= SURE_PARTS - WALK_MARKS)
		unwind_mark(slot, part);
	for (u32 i = 0; i < WALK_PART; i++) {
		result = unwind_step(slot);
		if (result != WALK_CONTINUE)
			break;
	}
	slot->stack.result = result;
	return result != WALK_CONTINUE;
}

__noinline int unwind_walk(struct stack_slot *slot)
{
	if (!slot || slot->stack.result != WALK_CONTINUE)
		return 0;
	bpf_loop(WALK_PARTS, walk_part, &slot, 0);
	if (slot->stack.result == WALK_CONTINUE)
		slot->stack.result = STACK_TRUNCATED;
	slot->stack.count = slot->depth;
	if (slot->depth > MAX_FRAMES)
		unwind_deep_end(slot);
	return 0;
}

/* ---- a copy, for the recorder to walk ---------------------------------------------- */

#define STACK_MAX (8u << 20) /* the usual limit, and the size of glibc's threads' stacks */

/* The size so far is in the copy: the verifier does not track it there, and follows one turn. */
struct own_copy {
	struct rec_stack_copy *copy;
	u64 sp;
	u64 first; /* bytes of the first page */
	u64 room;  /* bytes up to the stack's end, or 0 if the end is not known */
};

static long copy_own_page(u32 index, struct own_copy *state)
{
	struct rec_stack_copy *copy = state->copy;
	u64 size = copy->size, at = state->first + index * PAGE_SIZE;

	if (size > COPY_SIZE - PAGE_SIZE)
		return 1;
	if (!bpf_probe_read_user(copy->stack + size, PAGE_SIZE, (void *)(state->sp + at))) {
		copy->size = size + PAGE_SIZE;
		return 0;
	}
	copy->absent |= 1UL << ((index + 1) & 63);
	return at >= state->room;
}

/*
 * Returns how many bytes of the stack lie above sp, or 0 if that is not known. A program's stack
 * ends below its arguments, and that of a thread where the thread's own variables begin, if the C
 * library put them there as glibc and musl do.
 */
static __always_inline u64 stack_room(struct task_struct *task, u64 sp)
{
	u64 end = task->pid == task->tgid ? BPF_CORE_READ(task, mm, start_stack)
					  : BPF_CORE_READ(task, thread.fsbase);

	return end > sp && end - sp < STACK_MAX ? end - sp : 0;
}

/*
 * Copies the current task's stack page by page. Pages may be absent: of a large array nothing may
 * have been used yet, and above the stack there may be nothing. size 0: nothing was copied.
 */
static __always_inline void copy_own_stack(struct rec_stack_copy *copy, struct task_struct *task,
					   u64 sp)
{
	struct own_copy state = {.copy = copy, .sp = sp, .room = stack_room(task, sp)};
	u64 size = PAGE_SIZE - (sp & (PAGE_SIZE - 1));

	barrier_var(size);
	state.first = size;
	copy->size = 0;
	copy->absent = 0;
	if (bpf_probe_read_user(copy->stack, size, (void *)sp))
		return;
	copy->size = size;
	bpf_loop(COPY_SIZE / PAGE_SIZE - 1, copy_own_page, &state, 0);
}

__noinline int unwind_copy(struct stack_slot *slot)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	struct rec_stack_copy *copy;

	if (!slot)
		return 0;
	copy = copy_take(slot);
	if (!copy)
		return 0;
	load_registers(&slot->walk, regs);
	copy->start_boottime = process_start();
	copy->tables_ns = slot->process.tables_ns;
	copy_own_stack(copy, task, slot->walk.sp);
	send_copy(slot, copy, task, slot->stack.h.ns);
	copy_release(copy);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
