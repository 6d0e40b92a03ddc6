/* SPDX-License-Identifier: GPL-2.0-or-later */
/* wait_functions.c - which functions of the stacks of waits tell something (wait_groups.h). */
#include "wait_groups_private.h"

#define NEARLY_ALL 0.95

/* Functions that are on the same stacks. */
typedef struct FunctionClass {
	VEC(uint32_t) functions; /* WaitGroupsPrivate::functions, the outermost first */
	VEC(uint32_t) stacks;	 /* WaitGroupsPrivate::stacks, in order */
	uint64_t ns;
	uint32_t own; /* the innermost that is the program's innermost on a stack, or MAP_NONE */
	size_t depth; /* of its outermost function, on the first stack */
	bool hidden;
} FunctionClass;

typedef VEC(FunctionClass) FunctionClasses;

static void add_function(FunctionClasses *classes, Map *index, const StackWaits *stack,
			 uint32_t number, size_t depth)
{
	uint32_t function = stack->functions.items[depth], at = map_get(index, function);
	FunctionClass *class;

	if (at == MAP_NONE) {
		at = classes->count;
		map_set(index, function, at);
		*vec_push(classes) = (FunctionClass){.own = MAP_NONE, .depth = depth};
		*vec_push(&classes->items[at].functions) = function;
	}
	class = &classes->items[at];
	*vec_push(&class->stacks) = number;
	class->ns += stack->waits.total_ns;
	if (stack->own == function)
		class->own = function;
}

/* Makes a class of each function. */
static FunctionClasses classes_of_functions(const struct WaitGroupsPrivate *private)
{
	FunctionClasses classes = {};
	Map index = {};

	for (size_t i = 0; i < private->stacks.count; i++) {
		const StackWaits *stack = &private->stacks.items[i];

		/* Pseudo frames such as "[truncated: …]" are not functions. */
		for (size_t k = 0; k < stack->shown; k++)
			if (*functions_name(&private->functions, stack->functions.items[k]) != '[')
				add_function(&classes, &index, stack, i, k);
	}
	map_free(&index);
	return classes;
}

static void class_free(FunctionClass *class)
{
	vec_free(&class->functions);
	vec_free(&class->stacks);
}

static int compare_stacks(const FunctionClass *x, const FunctionClass *y)
{
	if (x->stacks.count != y->stacks.count)
		return x->stacks.count > y->stacks.count ? -1 : 1;
	for (size_t i = 0; i < x->stacks.count; i++)
		if (x->stacks.items[i] != y->stacks.items[i])
			return x->stacks.items[i] < y->stacks.items[i] ? -1 : 1;
	return 0;
}

/* The largest first; those with the same stacks are neighbours, the outermost first. */
static int compare_classes(const void *a, const void *b)
{
	const FunctionClass *x = a, *y = b;
	int order;

	if (x->ns != y->ns)
		return x->ns > y->ns ? -1 : 1;
	order = compare_stacks(x, y);
	return order ? order : (x->depth > y->depth) - (x->depth < y->depth);
}

/* Makes one class of those with the same stacks. */
static void join_classes(FunctionClasses *classes)
{
	size_t kept = 0;

	if (classes->count > 1)
		qsort(classes->items, classes->count, sizeof(FunctionClass), compare_classes);
	for (size_t i = 0; i < classes->count; i++) {
		FunctionClass *class = &classes->items[i];
		FunctionClass *last = kept > 0 ? &classes->items[kept - 1] : NULL;

		if (!last || compare_stacks(last, class) != 0) {
			classes->items[kept++] = *class;
			continue;
		}
		vec_append(&last->functions, class->functions.items, class->functions.count);
		if (class->own != MAP_NONE)
			last->own = class->own;
		class_free(class);
	}
	classes->count = kept;
}

static ThreadList threads_of(const struct WaitGroupsPrivate *private, const FunctionClass *class)
{
	ThreadList threads = {};

	for (size_t i = 0; i < class->stacks.count; i++) {
		const StackWaits *stack = &private->stacks.items[class->stacks.items[i]];

		vec_append(&threads, stack->threads.items, stack->threads.count);
	}
	wait_groups_sort_threads(&threads);
	return threads;
}

/* Returns whether nearly all waits of its threads are below it: main(), start_thread(), …. */
static bool is_shared(const struct WaitGroupsPrivate *private, const FunctionClass *class)
{
	ThreadList threads = threads_of(private, class);
	uint64_t ns = 0;

	for (size_t i = 0; i < threads.count; i++)
		ns += private->thread_ns.items[threads.items[i]];
	vec_free(&threads);
	return class->ns >= NEARLY_ALL * ns;
}

/*
 * Returns whether it has functions of the run-time system alone, each with a function of the
 * program that called it: wait4() says no more than the reason of the wait.
 */
static bool is_wrapper(const struct WaitGroupsPrivate *private, const FunctionClass *class)
{
	for (size_t i = 0; i < class->functions.count; i++)
		if (!private->of_runtime.items[class->functions.items[i]])
			return false;
	for (size_t i = 0; i < class->stacks.count; i++)
		if (private->stacks.items[class->stacks.items[i]].own == MAP_NONE)
			return false;
	return true;
}

static bool has_all_stacks(const FunctionClass *outer, const FunctionClass *inner)
{
	size_t at = 0;

	for (size_t i = 0; i < inner->stacks.count; i++, at++) {
		while (at < outer->stacks.count && outer->stacks.items[at] < inner->stacks.items[i])
			at++;
		if (at == outer->stacks.count || outer->stacks.items[at] != inner->stacks.items[i])
			return false;
	}
	return true;
}

/* Hides a class if nearly all of its waits are below another one. */
static void hide_outer(FunctionClasses *classes, size_t number)
{
	FunctionClass *outer = &classes->items[number];

	for (size_t i = number + 1; i < classes->count; i++) {
		const FunctionClass *inner = &classes->items[i];

		if (inner->ns < NEARLY_ALL * outer->ns)
			return;
		if (!inner->hidden && has_all_stacks(outer, inner)) {
			outer->hidden = true;
			return;
		}
	}
}

/* Returns the index in FunctionClass::functions of the one that tells most. */
static size_t telling_function(const struct WaitGroupsPrivate *private, const FunctionClass *class)
{
	for (size_t i = 0; i < class->functions.count; i++)
		if (class->functions.items[i] == class->own)
			return i;
	for (size_t i = class->functions.count; i-- > 0;)
		if (!private->of_runtime.items[class->functions.items[i]])
			return i;
	/* Of the run-time system's functions the program knows the outermost. */
	return 0;
}

static char *names_of_others(const struct WaitGroupsPrivate *private, const FunctionClass *class,
			     size_t telling)
{
	char *text = xstrdup("");

	for (size_t i = 0; i < class->functions.count; i++) {
		const char *name = functions_name(&private->functions, class->functions.items[i]);
		char *longer;

		if (i == telling)
			continue;
		longer = xasprintf("%s%s%s", text, *text ? ", " : "", name);
		free(text);
		text = longer;
	}
	return text;
}

static void pass_class(const struct WaitGroupsPrivate *private, const FunctionClass *class,
		       FunctionVisitor visit, void *user)
{
	size_t telling = telling_function(private, class);
	uint32_t function = class->functions.items[telling];
	ThreadList threads = threads_of(private, class);
	_cleanup_free_ char *others = names_of_others(private, class, telling);
	FunctionWaits waits = {
		.function = functions_name(&private->functions, function),
		.library = functions_library(&private->functions, function),
		.threads = threads.count,
		.others = others,
	};

	for (size_t i = 0; i < class->stacks.count; i++)
		distribution_add_all(&waits.waits,
				     &private->stacks.items[class->stacks.items[i]].waits);
	visit(user, &waits);
	distribution_free(&waits.waits);
	vec_free(&threads);
}

size_t wait_groups_telling_functions(WaitGroups *groups, size_t most, FunctionVisitor visit,
				     void *user)
{
	const struct WaitGroupsPrivate *private = groups->private;
	FunctionClasses classes = classes_of_functions(private);
	size_t count = 0;

	join_classes(&classes);
	for (size_t i = 0; i < classes.count; i++) {
		FunctionClass *class = &classes.items[i];

		class->hidden = is_wrapper(private, class) ||
				(class->own == MAP_NONE && is_shared(private, class));
	}
	for (size_t i = 0; i < classes.count; i++)
		if (!classes.items[i].hidden)
			hide_outer(&classes, i);
	for (size_t i = 0; i < classes.count; i++) {
		if (!classes.items[i].hidden && count < most) {
			pass_class(private, &classes.items[i], visit, user);
			count++;
		}
		class_free(&classes.items[i]);
	}
	vec_free(&classes);
	return count;
}
