/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A stack is resolved once, however many waits it has: its chain, and the functions in it. Sums by
 * function are then sums over stacks.
 */
#include "wait_groups.h"
#include "functions.h"
#include "kernel_rules.h"
#include "runtime_functions.h"
#include "wait_fields.h"
#include "wait_groups_private.h"

/* Threads come one after another. */
static void add_thread(ThreadList *list, uint32_t thread)
{
	if (list->count == 0 || list->items[list->count - 1] != thread)
		*vec_push(list) = thread;
}

/* ---- stacks -------------------------------------------------------------------------------- */

static bool has_function(const StackWaits *stack, uint32_t function)
{
	for (size_t i = 0; i < stack->functions.count; i++)
		if (stack->functions.items[i] == function)
			return true;
	return false;
}

/* Reads the functions of a stack. A recursive function counts once. */
static void look(struct WaitGroupsPrivate *private, const Timeline *timeline, const StackRef *ref,
		 StackWaits *stack)
{
	const uint32_t *indexes = NULL;
	_cleanup_free_ char *chain = NULL;
	Map seen = {};
	size_t count = 0, entry;

	if (ref->user_stack != STACK_NONE)
		count = frames_resolve(private->frames, timeline, ref->ns_tgid, ref->ns,
				       ref->user_stack, STACK_NONE, false, &indexes);
	entry = runtime_entry(private->frames, indexes, count);
	stack->own = MAP_NONE;
	for (size_t i = 0; i < count; i++) {
		const Frame *frame = &private->frames->list.items[indexes[i]];
		uint32_t function = functions_number(&private->functions, frame);
		bool of_runtime = runtime_is_frame(private->frames, frame);

		while (private->of_runtime.count <= function)
			*vec_push(&private->of_runtime) = false;
		private->of_runtime.items[function] = of_runtime;
		if (frame->lib != LIBRARY_NONE && !of_runtime)
			stack->own = function;
		if (map_get(&seen, function) != MAP_NONE)
			continue;
		map_set(&seen, function, 1);
		*vec_push(&stack->functions) = function;
		if (i < entry)
			stack->shown = stack->functions.count;
	}
	map_free(&seen);
	chain = chain_add_user(xstrdup(""), private->frames, indexes, count);
	stack->chain = strings_intern(&private->chains, chain);
}

static StackWaits *stack_of(struct WaitGroupsPrivate *private, const Timeline *timeline,
			    const Thread *thread, size_t i)
{
	StackRef ref = wait_stack(timeline, thread, i);
	uint64_t key = (uint64_t)thread->process << 32 | ref.user_stack;
	uint32_t number = map_get(&private->stack_index, key);

	if (number == MAP_NONE) {
		number = private->stacks.count;
		map_set(&private->stack_index, key, number);
		*vec_push(&private->stacks) = (StackWaits){};
		look(private, timeline, &ref, &private->stacks.items[number]);
	}
	return &private->stacks.items[number];
}

/* ---- groups -------------------------------------------------------------------------------- */

static uint32_t basis_of(const Timeline *timeline, const Interval *wait)
{
	return wait->kernel_stack < timeline->stacks.count
		       ? timeline->stacks.items[wait->kernel_stack].basis
		       : 0;
}

static uint64_t group_key(const Timeline *timeline, const Interval *wait, uint32_t object,
			  uint32_t chain)
{
	return hash_mix((uint64_t)wait_reason(wait) << 32 | basis_of(timeline, wait),
			(uint64_t)object << 32 | chain);
}

static WaitGroup *group_of(WaitGroups *groups, const Timeline *timeline, const Interval *wait,
			   uint32_t object, uint32_t chain)
{
	uint32_t basis = basis_of(timeline, wait);
	uint64_t key = group_key(timeline, wait, object, chain);
	uint32_t number = map_get(&groups->private->group_index, key);

	if (number == MAP_NONE) {
		number = groups->list.count;
		map_set(&groups->private->group_index, key, number);
		*vec_push(&groups->list) = (WaitGroup){
			.reason = wait_reason(wait),
			.basis = basis ? strings_get(&timeline->basis, basis - 1) : NULL,
			.object = object,
			.objects = object != OBJECT_NONE,
			.chain = strings_get(&groups->private->chains, chain),
			.number = number,
		};
	}
	return &groups->list.items[number];
}

static void add_wait(WaitGroups *groups, const Timeline *timeline, uint32_t number, size_t i)
{
	const Thread *thread = &timeline->threads.items[number];
	const Interval *wait = &thread->intervals.items[i];
	uint64_t ns = interval_end(thread, i) - wait->start_ns;
	uint64_t delay_ns = wait_delay_ns(thread, i);
	StackWaits *stack = stack_of(groups->private, timeline, thread, i);
	WaitGroup *group =
		group_of(groups, timeline, wait, wait_object(timeline, thread, i), stack->chain);

	groups->total_ns += ns;
	if (reason_unexplained(wait_reason(wait)))
		groups->other_ns += ns;
	distribution_add(&group->waits, ns);
	group->delay_ns += delay_ns == UINT64_MAX ? 0 : delay_ns;
	add_thread(&group->threads, number);
	distribution_add(&stack->waits, ns);
	add_thread(&stack->threads, number);
	while (groups->private->thread_ns.count <= number)
		*vec_push(&groups->private->thread_ns) = 0;
	groups->private->thread_ns.items[number] += ns;
}

static int compare_groups(const void *a, const void *b)
{
	const WaitGroup *x = a, *y = b;
	int order;

	if (x->waits.total_ns != y->waits.total_ns)
		return x->waits.total_ns > y->waits.total_ns ? -1 : 1;
	if (x->reason != y->reason)
		return x->reason < y->reason ? -1 : 1;
	order = strcmp(x->chain, y->chain);
	return order ? order : (x->object > y->object) - (x->object < y->object);
}

WaitGroups wait_groups_make(const Timeline *timeline, Frames *frames, bool with_idle)
{
	WaitGroups groups = {.private = xcalloc(1, sizeof(*groups.private))};

	groups.private->frames = frames;
	groups.private->functions.frames = frames;
	for (uint32_t t = 0; t < timeline->threads.count; t++) {
		const Thread *thread = &timeline->threads.items[t];

		for (size_t i = 0; i < thread->intervals.count; i++) {
			const Interval *wait = &thread->intervals.items[i];

			if (wait->state == STATE_BLOCKED &&
			    interval_end(thread, i) > wait->start_ns &&
			    (with_idle ||
			     !category_is_idle(reason_info[wait_reason(wait)].category)))
				add_wait(&groups, timeline, t, i);
		}
	}
	if (groups.list.count > 1)
		qsort(groups.list.items, groups.list.count, sizeof(WaitGroup), compare_groups);
	vec_reserve(&groups.private->places, groups.list.count);
	for (size_t i = 0; i < groups.list.count; i++)
		groups.private->places.items[groups.list.items[i].number] = i;
	return groups;
}

void wait_groups_charge(WaitGroups *groups, const Timeline *timeline, uint32_t number, size_t i,
			uint64_t ns)
{
	const Thread *thread = &timeline->threads.items[number];
	const Interval *wait = &thread->intervals.items[i];
	uint64_t key = group_key(timeline, wait, wait_object(timeline, thread, i),
				 stack_of(groups->private, timeline, thread, i)->chain);
	uint32_t group = map_get(&groups->private->group_index, key);

	if (group != MAP_NONE)
		groups->list.items[groups->private->places.items[group]].path_ns += ns;
}

static int compare_threads(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

void wait_groups_sort_threads(ThreadList *list)
{
	size_t kept = 0;

	if (list->count > 1)
		qsort(list->items, list->count, sizeof(uint32_t), compare_threads);
	for (size_t i = 0; i < list->count; i++)
		if (kept == 0 || list->items[kept - 1] != list->items[i])
			list->items[kept++] = list->items[i];
	list->count = kept;
}

void wait_group_add(WaitGroup *group, const WaitGroup *from)
{
	distribution_add_all(&group->waits, &from->waits);
	group->delay_ns += from->delay_ns;
	group->path_ns += from->path_ns;
	vec_append(&group->threads, from->threads.items, from->threads.count);
	group->objects += from->objects;
}

void wait_group_sort_threads(WaitGroup *group)
{
	wait_groups_sort_threads(&group->threads);
}

/* ---- groups that differ only by their objects ---------------------------------------------- */

/* Texts are interned, so pointers are compared. */
static uint64_t place_key(const WaitGroup *group)
{
	return hash_mix(hash_mix((uintptr_t)group->chain, (uintptr_t)group->basis), group->reason);
}

/* Counts the groups with an object for each reason and stack. */
static Map count_objects(const WaitGroups *groups)
{
	Map counts = {};

	for (size_t i = 0; i < groups->list.count; i++) {
		uint64_t key = place_key(&groups->list.items[i]);
		uint32_t count = map_get(&counts, key);

		if (groups->list.items[i].objects > 0)
			map_set(&counts, key, count == MAP_NONE ? 1 : count + 1);
	}
	return counts;
}

static void group_free(WaitGroup *group)
{
	distribution_free(&group->waits);
	vec_free(&group->threads);
}

void wait_groups_merge_objects(WaitGroups *groups, size_t most)
{
	Map counts = count_objects(groups), merged = {}; /* reason and stack -> the merged group */
	size_t kept = 0;

	for (size_t i = 0; i < groups->list.count; i++) {
		WaitGroup *group = &groups->list.items[i];
		uint64_t key = place_key(group);
		bool many = group->objects > 0 && map_get(&counts, key) > most;
		uint32_t number = many ? map_get(&merged, key) : MAP_NONE;

		if (number != MAP_NONE) {
			wait_group_add(&groups->list.items[number], group);
			group_free(group);
			continue;
		}
		if (many)
			map_set(&merged, key, kept);
		groups->list.items[kept++] = *group;
	}
	groups->list.count = kept;
	for (size_t i = 0; i < kept; i++)
		if (groups->list.items[i].objects > 1)
			wait_group_sort_threads(&groups->list.items[i]);
	map_free(&counts);
	map_free(&merged);
	if (kept > 1)
		qsort(groups->list.items, kept, sizeof(WaitGroup), compare_groups);
}

void wait_groups_free(WaitGroups *groups)
{
	struct WaitGroupsPrivate *private = groups->private;

	for (size_t i = 0; i < groups->list.count; i++)
		group_free(&groups->list.items[i]);
	vec_free(&groups->list);
	for (size_t i = 0; i < private->stacks.count; i++) {
		vec_free(&private->stacks.items[i].functions);
		distribution_free(&private->stacks.items[i].waits);
		vec_free(&private->stacks.items[i].threads);
	}
	vec_free(&private->stacks);
	vec_free(&private->thread_ns);
	vec_free(&private->places);
	vec_free(&private->of_runtime);
	map_free(&private->stack_index);
	map_free(&private->group_index);
	strings_free(&private->chains);
	functions_free(&private->functions);
	free(private);
}

/* ---- functions ----------------------------------------------------------------------------- */

typedef struct FunctionTotal {
	uint32_t function; /* WaitGroupsPrivate::functions */
	uint64_t ns;
} FunctionTotal;

typedef VEC(FunctionTotal) FunctionTotals;

static FunctionTotals totals_of(const struct WaitGroupsPrivate *private)
{
	FunctionTotals totals = {};
	Map index = {};

	for (size_t i = 0; i < private->stacks.count; i++) {
		const StackWaits *stack = &private->stacks.items[i];

		for (size_t k = 0; k < stack->functions.count; k++) {
			uint32_t number = map_get(&index, stack->functions.items[k]);

			if (number == MAP_NONE) {
				number = totals.count;
				map_set(&index, stack->functions.items[k], number);
				*vec_push(&totals) =
					(FunctionTotal){.function = stack->functions.items[k]};
			}
			totals.items[number].ns += stack->waits.total_ns;
		}
	}
	map_free(&index);
	return totals;
}

static int compare_totals(const void *a, const void *b)
{
	const FunctionTotal *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns > y->ns ? -1 : 1;
	return (x->function > y->function) - (x->function < y->function);
}

static FunctionWaits waits_below(const struct WaitGroupsPrivate *private, uint32_t function)
{
	FunctionWaits below = {
		.function = functions_name(&private->functions, function),
		.library = functions_library(&private->functions, function),
	};
	ThreadList threads = {};

	for (size_t i = 0; i < private->stacks.count; i++) {
		const StackWaits *stack = &private->stacks.items[i];

		if (!has_function(stack, function))
			continue;
		distribution_add_all(&below.waits, &stack->waits);
		for (size_t k = 0; k < stack->threads.count; k++)
			*vec_push(&threads) = stack->threads.items[k];
	}
	wait_groups_sort_threads(&threads);
	below.threads = threads.count;
	vec_free(&threads);
	return below;
}

/* Pseudo frames such as "[truncated: …]" are not functions. */
static bool has_name(const Functions *functions, uint32_t function, const char *name)
{
	return name ? functions_called(functions, function, name)
		    : *functions_name(functions, function) != '[';
}

size_t wait_groups_by_function(WaitGroups *groups, const char *name, size_t most,
			       FunctionVisitor visit, void *user)
{
	const struct WaitGroupsPrivate *private = groups->private;
	FunctionTotals totals = totals_of(private);
	size_t count = 0;

	if (totals.count > 1)
		qsort(totals.items, totals.count, sizeof(FunctionTotal), compare_totals);
	for (size_t i = 0; i < totals.count && count < most; i++) {
		FunctionWaits below;

		if (!has_name(&private->functions, totals.items[i].function, name))
			continue;
		below = waits_below(private, totals.items[i].function);
		visit(user, &below);
		distribution_free(&below.waits);
		count++;
	}
	vec_free(&totals);
	return count;
}
