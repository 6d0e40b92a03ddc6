/* SPDX-License-Identifier: GPL-2.0-or-later */
/* frames_stacks.c - from stacks to frames: where stacks end, and why. */
#include "frame_address.h"
#include "frames_private.h"
#include "recursion.h"
#include "runtime_functions.h"
#include "script_frames.h"
#include "symbol_record.h"
#include <string.h>

/*
 * The depth under the leaf at which tracing's own frames may begin: a helper of the kernel may have
 * called a function of these names. A longer way there may be that of an interrupt.
 */
#define TRACING_DEPTH_MAX 1

/* This many repetitions of an address at the end of a stack mean that a frame pointer loops. */
#define LOOP_MIN 32

void frames_push_place(struct FramesPrivate *private, const Place *place)
{
	for (uint32_t i = 0; i < place->count; i++)
		*vec_push(&private->chains) = place->first + i;
}

static void push_pseudo(Frames *frames, const char *name)
{
	uint32_t frame = frames_pseudo(frames, name);

	*vec_push(&frames->private->chains) = frame;
}

/* Returns the reason why a stack is truncated, as its root frame; NULL: it is complete. */
static void push_truncation(Frames *frames, const char *words)
{
	_cleanup_free_ char *name = words ? xasprintf("[truncated: %s]", words) : NULL;

	if (name)
		push_pseudo(frames, name);
}

static enum stack_end stack_end(const StackDef *stack)
{
	if (!stack->defined)
		return STACK_END_LOST;
	return stack->result < STACK_RESULTS ? (enum stack_end)stack->result : STACK_END_UNKNOWN;
}

/* Where a thread's stack begins: with glibc, musl, Go. */
static bool is_root(const char *name)
{
	static const char *const roots[] = {
		"main",		"_start",     "_start_c",	"clone",	  "clone3",
		"start_thread", "_rt0_amd64", "runtime.rt0_go", "runtime.goexit", "runtime.mstart",
	};
	static const char *const prefixes[] = {
		"__libc_start_main", "__libc_start_call_main", "libc_start_main",
		"__clone",	     "runtime.goexit.",	       "runtime.mstart.",
	};

	for (size_t i = 0; i < ARRAY_LEN(roots); i++)
		if (!strcmp(name, roots[i]))
			return true;
	for (size_t i = 0; i < ARRAY_LEN(prefixes); i++)
		if (!strncmp(name, prefixes[i], strlen(prefixes[i])))
			return true;
	return false;
}

/* A stack while it is resolved: one process at one moment. */
typedef struct Walked {
	const Timeline *timeline;
	const StackDef *stack;
	const uint64_t *pcs;
	uint32_t ns_tgid;
	uint64_t ns;
	bool by_tables; /* stack_by_tables() */
} Walked;

static uint64_t walked_address(const Walked *walked, size_t i)
{
	return stack_user_address(walked->pcs[i], i, walked->stack->flags, walked->by_tables);
}

static const Place *walked_place(Frames *frames, const Walked *walked, size_t i)
{
	return frames_user_place(frames, walked->ns_tgid, walked->ns, walked_address(walked, i));
}

/* Returns the real function at a place, without inlined ones. */
static Frame walked_frame(Frames *frames, const Walked *walked, size_t i)
{
	uint32_t first = walked_place(frames, walked, i)->first; /* may move the list */

	return frames->list.items[first];
}

/*
 * A walk by frame pointers does not report why it ends. The stack is complete if it ends where
 * threads begin, whose functions in the C library often have no names; but if that function is the
 * leaf, it proves nothing.
 */
static bool ends_at_root(Frames *frames, const Walked *walked, size_t count)
{
	Frame frame;

	if (count == 0)
		return false;
	frame = walked_frame(frames, walked, count - 1);
	if (frame.named && !frame.nameless)
		return is_root(strings_get(&frames->strings, frame.function));
	return count > 1 && frame.lib != LIBRARY_NONE &&
	       runtime_is_c_library(frames->libraries.items[frame.lib].name);
}

/* A piece of code without symbols may have many functions in it. */
static bool is_one_function(const Frames *frames, const Frame *frame)
{
	return frame->named && strncmp(strings_get(&frames->strings, frame->function),
				       SYMBOL_GAP_PREFIX, strlen(SYMBOL_GAP_PREFIX)) != 0;
}

/*
 * Returns how many frames are kept of a deep stack that ends with repetitions of one address: a
 * frame pointer that points at itself. If the function that it calls is the one that it is in, it
 * is a recursion, and all are kept.
 */
static size_t count_without_loop(Frames *frames, const Walked *walked)
{
	const StackDef *stack = walked->stack;
	size_t first = stack->count;
	Frame caller, callee;

	while (first > 0 && walked->pcs[first - 1] == walked->pcs[stack->count - 1])
		first--;
	if (stack->count - first < LOOP_MIN)
		return stack->count;
	if (first == 0)
		return 1;
	caller = walked_frame(frames, walked, first);
	callee = walked_frame(frames, walked, first - 1);
	if (is_one_function(frames, &caller) && callee.named && caller.lib == callee.lib &&
	    caller.function_start == callee.function_start)
		return stack->count;
	return first + 1;
}

/*
 * Returns how many frames of a user stack are valid. Code built without frame pointers uses the
 * register for something else, and the walk then reads nonsense: an address where nothing is mapped
 * proves it, for that frame and all beyond.
 */
static size_t count_believable(Frames *frames, const Walked *walked)
{
	const StackDef *stack = walked->stack;

	if (stack->result == STACK_TRUNCATED)
		return count_without_loop(frames, walked);
	if (stack->result != STACK_FRAME_POINTERS)
		return stack->count;
	for (size_t i = 1; i < stack->count; i++)
		if (!address_spaces_locate(frames->spaces, walked->ns_tgid, walked->ns,
					   stack_lookup_address(walked->pcs[i], false))
			     .file)
			return i;
	return stack->count;
}

/* Returns NULL if there are none. */
static const uint64_t *stack_frames(const Timeline *timeline, const StackDef *stack)
{
	return stack->count ? timeline->frames.items + stack->first : NULL;
}

/*
 * Returns how many frames are kept of a stack that was walked with tables of which some were out of
 * date: those up to the first in such a place, which was still found with a valid table. 0: all
 * tables were valid.
 */
static size_t count_until_stale(Frames *frames, const Walked *walked)
{
	for (size_t i = 0; i < walked->stack->count; i++)
		if (address_spaces_replaced(frames->spaces, walked->ns_tgid,
					    walked->stack->tables_ns, walked->ns,
					    walked_address(walked, i)))
			return i + 1;
	return 0;
}

static bool is_guessed(const Walked *walked, size_t i)
{
	return walked->by_tables && walked->pcs[i] & FRAME_GUESSED && !IS_VSYSCALL(walked->pcs[i]);
}

static enum code_kind code_of(const Frames *frames, uint32_t lib)
{
	const Library *library = lib == LIBRARY_NONE ? NULL : &frames->libraries.items[lib];

	if (!library)
		return CODE_NOWHERE;
	if (library->flags & (FILE_ANON | FILE_JIT | FILE_MEMORY) ||
	    !strncmp(library->name, "memfd:", 6))
		return CODE_MADE;
	return library->flags & FILE_UNREADABLE ? CODE_UNREAD : CODE_FILE;
}

/* Finds in what kind of code a stack ends, and in what kind a caller was first guessed. */
static void find_code(Frames *frames, const Walked *walked, size_t count, StackEnd *end)
{
	size_t known = 0;

	while (known < count && !is_guessed(walked, known))
		known++;
	end->code = end->reason == STACK_COMPAT ? CODE_32_BIT : code_of(frames, end->lib);
	if (known > 0 && known < count)
		end->guess = code_of(frames, walked_place(frames, walked, known - 1)->lib);
}

/* Finds the frames of C that run script code. If there is none, all script frames come first. */
static void begin_scripted(Frames *frames, const Walked *walked, size_t count, bool complete,
			   ScriptMerge *merge)
{
	const ScriptStack *script = &walked->timeline->scripts.items[walked->stack->script - 1];
	uint32_t gap = script->left_out ? recursion_gap(frames, script->left_out,
							script->result != SCRIPT_COMPLETE)
					: 0;

	script_merge_begin(frames, walked->timeline, walked->stack, gap, merge);
	merge->inner = count;
	for (size_t i = count; i-- > 0;) {
		Frame frame = walked_frame(frames, walked, i);

		if (!script_evaluated(strings_get(&frames->strings, frame.function)))
			continue;
		merge->calls++;
		merge->outer += walked->stack->leaf && i >= walked->stack->leaf;
		merge->inner = i;
		merge->lib = frame.lib;
		if (frame.lib != LIBRARY_NONE)
			frames->libraries.items[frame.lib].interpreter = true;
	}
	merge->from_root = complete;
	if (!merge->calls)
		script_merge_push_all(frames, merge);
}

/*
 * Returns the innermost frame of C that runs script code, if the stack has no script frames though
 * others of the recording have some: the reader was not loaded yet, or does not read such stacks.
 * Code that the interpreter has made for each of its functions (python3 -X perf) has their names.
 */
static size_t find_unread(Frames *frames, const Walked *walked, size_t count)
{
	size_t i = 0;
	Frame caller;

	if (walked->stack->script || walked->timeline->scripts.count == 0)
		return count;
	while (i < count && !script_evaluated(strings_get(
				    &frames->strings, walked_frame(frames, walked, i).function)))
		i++;
	if (i + 1 >= count)
		return i;
	caller = walked_frame(frames, walked, i + 1);
	return caller.named && code_of(frames, caller.lib) == CODE_MADE ? count : i;
}

static void push_unread(Frames *frames, const Walked *walked, size_t i)
{
	Frame frame = walked_frame(frames, walked, i);
	const char *function = strings_get(&frames->strings, frame.function);
	_cleanup_free_ char *name =
		xasprintf("[%s functions not read]", script_evaluated(function)->name);

	push_pseudo(frames, name);
}

/*
 * Pushes `count` frames, the outermost first, with pseudo frames for guesses, and for what was left
 * out or not read.
 */
static void push_walked(Frames *frames, const Walked *walked, size_t count, StackEnd *end)
{
	ScriptMerge merge = {};
	size_t unread = find_unread(frames, walked, count);

	if (walked->stack->script)
		begin_scripted(frames, walked, count, end->reason == STACK_COMPLETE, &merge);
	for (size_t i = count; i-- > 0;) {
		const Place *place;

		if (i + 1 == walked->stack->leaf && count > walked->stack->leaf)
			*vec_push(&frames->private->chains) =
				recursion_gap(frames, walked->stack->left_out, end->joined);
		if (!end->guessed && is_guessed(walked, i)) {
			end->guessed = true;
			push_pseudo(frames, "[guessed]");
		}
		place = walked_place(frames, walked, i);
		if (i == count - 1)
			end->lib = place->lib;
		if (merge.calls)
			script_merge_push(frames, &merge, i, place);
		else
			frames_push_place(frames->private, place);
		if (i == unread)
			push_unread(frames, walked, i);
	}
	script_merge_free(&merge);
}

/*
 * Returns how many frames there are up to a return address that was planted by the maker of the
 * stack; 0: there is none. The walk took it for one within the function before, so what it found
 * behind it are no frames. A handler also returns to an address that no call has pushed, and the
 * frame behind that is what the signal interrupted.
 */
static size_t count_until_planted(Frames *frames, const Walked *walked)
{
	for (size_t i = 1; i < walked->stack->count; i++)
		if (!(walked->pcs[i] & FRAME_EXACT) && walked_frame(frames, walked, i).planted &&
		    (i + 1 == walked->stack->count || !(walked->pcs[i + 1] & FRAME_EXACT)))
			return i + 1;
	return 0;
}

/*
 * Returns how many frames there are up to a function with which fibers begin, if the stack ends
 * there in no valid way: it runs or calls another one itself, and what lies above it on the stack
 * cannot be a return address. A word that leads to no code may have been taken for a frame. 0: it
 * does not end so.
 */
static size_t count_until_fiber(Frames *frames, const Walked *walked, enum stack_result reason)
{
	size_t count = walked->stack->count;

	if (reason != STACK_BAD_PC && reason != STACK_NO_MAPPING && reason != STACK_END_ZERO)
		return 0;
	if (count > 0 && walked_frame(frames, walked, count - 1).begins_fiber)
		return count;
	return reason != STACK_END_ZERO && count > 1 &&
			       walked_frame(frames, walked, count - 1).lib == LIBRARY_NONE &&
			       walked_frame(frames, walked, count - 2).begins_fiber
		       ? count - 1
		       : 0;
}

/*
 * Returns how many frames there are before an outermost one that is no code: the walk took a word
 * for a return address, and found nothing mapped there, or data. 0: it does not end so. Code that a
 * program has just made has a name.
 */
static size_t count_until_data(Frames *frames, const Walked *walked, enum stack_result reason)
{
	size_t last = walked->stack->count - 1;
	Frame frame;

	if ((reason != STACK_BAD_PC && reason != STACK_NO_MAPPING) || walked->stack->count < 2 ||
	    walked->pcs[last] & FRAME_EXACT)
		return 0;
	frame = walked_frame(frames, walked, last);
	return frame.lib == LIBRARY_NONE && !frame.named ? last : 0;
}

static int compare_addresses(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void find_called(struct FramesPrivate *private, const Timeline *timeline)
{
	Map known = {};

	for (size_t s = 0; s < timeline->stacks.count; s++) {
		const StackDef *stack = &timeline->stacks.items[s];
		const uint64_t *pcs = stack_frames(timeline, stack);

		if (!stack_by_tables(stack->flags, stack->result, stack->tables_ns))
			continue;
		for (size_t i = 1; i + 1 < stack->count; i++) {
			uint64_t address = pcs[i] & FRAME_ADDRESS;

			if (pcs[i] & FRAME_EXACT || map_get(&known, address) != MAP_NONE)
				continue;
			map_set(&known, address, 0);
			*vec_push(&private->called) = address;
		}
	}
	map_free(&known);
	if (private->called.count)
		qsort(private->called.items, private->called.count, sizeof(uint64_t),
		      compare_addresses);
	private->called_found = true;
}

/* libgcc's unwinder changes the return address of its own frame. */
static bool is_unwinder(const Frames *frames, const Frame *frame)
{
	return !strncmp(strings_get(&frames->strings, frame->function), "_Unwind_", 8) ||
	       (frame->lib != LIBRARY_NONE &&
		!strncmp(frames->libraries.items[frame->lib].name, "libgcc_s", 8));
}

/*
 * Returns whether the outermost frame is that of a function that fibers begin with, as in Ruby and
 * D: its return address is 0, it has called another function, and no stack of the recording has a
 * caller of it where it does that.
 */
static bool ends_at_fiber(Frames *frames, const Walked *walked)
{
	struct FramesPrivate *private = frames->private;
	size_t last = walked->stack->count - 1, called;
	uint64_t address, start;
	Frame frame;

	if (walked->stack->count < 2 || walked->pcs[last] & FRAME_EXACT)
		return false;
	frame = walked_frame(frames, walked, last);
	if (frame.lib == LIBRARY_NONE || !is_one_function(frames, &frame) ||
	    is_unwinder(frames, &frame))
		return false;
	if (!private->called_found)
		find_called(private, walked->timeline);
	address = walked_address(walked, last);
	start = address - (frame.address - frame.function_start);
	called = partition_point(middle, private->called.count,
				 private->called.items[middle] <= start);
	return called == private->called.count ||
	       private->called.items[called] >
		       start + MAX(frame.function_size, address - start + 1);
}

static size_t chain_by_tables(Frames *frames, const Walked *walked, StackEnd *end)
{
	size_t until_stale = count_until_stale(frames, walked);
	size_t until_planted = count_until_planted(frames, walked);

	if (!until_planted)
		until_planted = count_until_fiber(frames, walked, end->reason);
	if (until_planted && (!until_stale || until_planted < until_stale)) {
		end->reason = STACK_COMPLETE;
		return until_planted;
	}
	if (until_stale)
		end->reason = STACK_END_STALE;
	/* A return address of 0 may also be one that was overwritten, or not yet written. */
	else if (end->reason == STACK_END_ZERO &&
		 (ends_at_root(frames, walked, walked->stack->count) ||
		  ends_at_fiber(frames, walked)))
		end->reason = STACK_COMPLETE;
	push_truncation(frames, stack_end_words(end->reason));
	return until_stale ? until_stale : walked->stack->count;
}

static size_t chain_by_frame_pointers(Frames *frames, const Walked *walked, const StackEnd *end)
{
	size_t count = count_believable(frames, walked);
	bool broken = end->reason == STACK_FRAME_POINTERS ? !ends_at_root(frames, walked, count)
							  : count < walked->stack->count;

	push_truncation(frames, broken ? "no frame pointers" : stack_end_words(end->reason));
	return count;
}

static StackEnd chain_user(Frames *frames, const Timeline *timeline, const StackDef *stack,
			   uint32_t ns_tgid, uint64_t ns)
{
	Walked walked = {
		.timeline = timeline,
		.stack = stack,
		.pcs = stack_frames(timeline, stack),
		.ns_tgid = ns_tgid,
		.ns = ns,
		.by_tables = stack_by_tables(stack->flags, stack->result, stack->tables_ns),
	};
	StackEnd end = {
		.reason = stack_end(stack),
		.from_copy = stack->flags & STACK_FROM_COPY,
		.joined = stack->flags & STACK_JOINED,
		.depth = stack->count + stack->left_out,
		.lib = LIBRARY_NONE,
		.guess = CODE_NOWHERE,
	};
	size_t first = frames->private->chains.count;
	size_t count = walked.by_tables ? chain_by_tables(frames, &walked, &end)
					: chain_by_frame_pointers(frames, &walked, &end);
	size_t until_data =
		count == stack->count ? count_until_data(frames, &walked, end.reason) : 0;

	if (until_data)
		count = until_data;
	push_walked(frames, &walked, count, &end);
	/* What the walk was led to is in no file, even if the frame before is. */
	if (until_data)
		end.lib = LIBRARY_NONE;
	find_code(frames, &walked, count, &end);
	if (!frames->unfolded)
		frames->private->chains.count =
			first + recursion_fold(frames, vec_at(&frames->private->chains, first),
					       frames->private->chains.count - first);
	return end;
}

/* Functions that stand between a hook and the program that took the stack. */
static bool is_tracing(const char *name)
{
	static const char *const prefixes[] = {
		"__traceiter_",		"__bpf_trace_",	       "bpf_trace_run",
		"__bpf_prog_",		"bpf_prog_",	       "___bpf_prog_run",
		"bpf_get_stack",	"bpf_get_task_stack",  "__bpf_get_stack",
		"bpf_trampoline_",	"__bpf_tramp_",	       "trace_call_bpf",
		"perf_trace_",		"perf_event_overflow", "__perf_event_overflow",
		"perf_swevent_",	"perf_tp_event",       "perf_prepare_sample",
		"bpf_overflow_handler", "get_perf_callchain",  "perf_callchain",
		"___perf_sw_event",	"__perf_sw_event",
	};

	for (size_t i = 0; i < ARRAY_LEN(prefixes); i++)
		if (!strncmp(name, prefixes[i], strlen(prefixes[i])))
			return true;
	return false;
}

/*
 * Returns how many frames at the leaf are the tracing's own: all up to the last of the first run of
 * its functions. BPF programs may have no name, so nameless frames do not end the run. A run
 * further out is of a program that was interrupted: what the interrupt did is not tracing.
 */
static size_t count_tracing(Frames *frames, const uint64_t *pcs, size_t count)
{
	size_t skip = 0;

	for (size_t i = 0; i < count; i++) {
		const struct rec_symbol *symbol =
			frames_symbol(frames->private, 0, stack_lookup_address(pcs[i], false));

		if (symbol && is_tracing(symbol->text + sizeof(u32)))
			skip = i + 1;
		else if (symbol && (skip > 0 || i >= TRACING_DEPTH_MAX))
			break;
	}
	return skip;
}

/*
 * Returns how many frames at the leaf of a tick are recording's own: those up to wallprof's
 * program, if the tick hit the program or a function that it called, and those between the program
 * and the hook.
 */
static size_t count_own(Frames *frames, const Timeline *timeline, const uint64_t *pcs, size_t count)
{
	size_t skip = 0;

	for (size_t i = 0; i < count; i++)
		if (timeline_is_own_code(timeline, stack_lookup_address(pcs[i], i == 0)))
			skip = i + 1;
	return skip ? skip + count_tracing(frames, pcs + skip, count - skip) : 0;
}

static void chain_kernel(Frames *frames, const Timeline *timeline, const StackDef *stack,
			 bool exact_leaf)
{
	const uint64_t *pcs = stack_frames(timeline, stack);
	/* A tick's stack begins where the tick hit, even in another tool's tracing code. */
	size_t skip = exact_leaf ? count_own(frames, timeline, pcs, stack->count)
				 : count_tracing(frames, pcs, stack->count);

	push_truncation(frames, stack_end_words(stack_end(stack)));
	for (size_t i = stack->count; i-- > skip;) {
		uint64_t avma = stack_lookup_address(pcs[i], exact_leaf && i == 0);

		frames_push_place(frames->private, frames_kernel_place(frames, avma));
	}
}

static const Resolved *find_resolved(const struct FramesPrivate *private, uint32_t first,
				     const Resolved *wanted)
{
	for (uint32_t i = first; i != MAP_NONE; i = private->resolved.items[i].next) {
		const Resolved *resolved = &private->resolved.items[i];

		if (resolved->kind == wanted->kind && resolved->stack == wanted->stack &&
		    resolved->ns_tgid == wanted->ns_tgid &&
		    resolved->generation == wanted->generation)
			return resolved;
	}
	return NULL;
}

static const Resolved *resolve(Frames *frames, const Timeline *timeline, const Resolved *wanted,
			       uint64_t ns)
{
	struct FramesPrivate *private = frames->private;
	const StackDef *stack = &timeline->stacks.items[wanted->stack];
	uint64_t hash = hash_mix((uint64_t)wanted->stack << 2 | wanted->kind,
				 (uint64_t)wanted->ns_tgid << 32 | wanted->generation);
	uint32_t same = map_get(&private->resolved_index, hash);
	const Resolved *known = find_resolved(private, same, wanted);
	Resolved resolved = *wanted;

	if (known)
		return known;
	resolved.first = private->chains.count;
	resolved.next = same;
	resolved.end =
		(StackEnd){.reason = STACK_END_LOST, .lib = LIBRARY_NONE, .code = CODE_NOWHERE};
	if (!stack->defined)
		push_pseudo(frames,
			    wanted->kind == CHAIN_USER ? "[stack lost]" : "[kernel stack lost]");
	else if (wanted->kind == CHAIN_USER)
		resolved.end = chain_user(frames, timeline, stack, wanted->ns_tgid, ns);
	else
		chain_kernel(frames, timeline, stack, wanted->kind == CHAIN_KERNEL_EXACT);
	resolved.count = private->chains.count - resolved.first;
	map_set(&private->resolved_index, hash, private->resolved.count);
	*vec_push(&private->resolved) = resolved;
	return &private->resolved.items[private->resolved.count - 1];
}

static const Resolved *resolve_user(Frames *frames, const Timeline *timeline, uint32_t ns_tgid,
				    uint64_t ns, uint32_t stack)
{
	Resolved wanted = {
		.kind = CHAIN_USER,
		.stack = stack,
		.ns_tgid = ns_tgid,
		.generation = address_spaces_generation(frames->spaces, ns_tgid, ns),
	};

	return resolve(frames, timeline, &wanted, ns);
}

StackEnd frames_stack_end(Frames *frames, const Timeline *timeline, uint32_t ns_tgid, uint64_t ns,
			  uint32_t user_stack)
{
	return resolve_user(frames, timeline, ns_tgid, ns, user_stack)->end;
}

static void append_chain(struct FramesPrivate *private, const Resolved *resolved)
{
	for (size_t i = 0; i < resolved->count; i++)
		*vec_push(&private->result) = private->chains.items[resolved->first + i];
}

size_t frames_resolve(Frames *frames, const Timeline *timeline, uint32_t ns_tgid, uint64_t ns,
		      uint32_t user_stack, uint32_t kernel_stack, bool exact_kernel_leaf,
		      const uint32_t **ret_frames)
{
	struct FramesPrivate *private = frames->private;

	private->result.count = 0;
	if (user_stack != STACK_NONE)
		append_chain(private, resolve_user(frames, timeline, ns_tgid, ns, user_stack));
	if (kernel_stack != STACK_NONE) {
		Resolved wanted = {
			.kind = exact_kernel_leaf ? CHAIN_KERNEL_EXACT : CHAIN_KERNEL,
			.stack = kernel_stack,
		};

		append_chain(private, resolve(frames, timeline, &wanted, ns));
	}
	*ret_frames = private->result.items;
	return private->result.count;
}
