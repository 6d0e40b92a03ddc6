/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the stacks and objects were that --budget left out.
 *
 * A switch-out without them gets those of another one, its donor: of the same thread at the same
 * place if there is one, else in the same system call. If the thread has none, it gets the reason
 * and the kernel stack of a thread of the same program. Of all these it is one whose wait lasted
 * about as long, and of these the nearest in time. So short and long waits at one place may have
 * different stacks, and these may change. Each donor stands for its neighbours, of which there are
 * the more the smaller its chance was. States, times, wakers and lock holders are not touched. The
 * intervals keep their flag, so that everything shows that it was not seen.
 */
#include "timeline_builder_private.h"
#include <string.h>

#define CLASSES		   65 /* of durations: a power of 2 each */
#define INSERTION_SORT_MAX 16

/* A switch-out with stacks, or a wakeup with the waker's. */
typedef struct Donor {
	uint64_t key;
	uint64_t ns;	 /* of its wait's start */
	uint32_t thread; /* Timeline::threads */
	uint32_t index;	 /* Thread::intervals or Thread::waker_stacks */
	uint8_t class;
} Donor;

typedef struct Donors {
	Donor *items;
	size_t count, capacity;
} Donors;

static uint8_t class_of(uint64_t ns)
{
	return ns ? CLASSES - 1 - __builtin_clzll(ns) : 0;
}

static int compare(const Donor *x, uint64_t key, uint8_t class, uint64_t ns)
{
	if (x->key != key)
		return x->key < key ? -1 : 1;
	if (x->class != class)
		return x->class < class ? -1 : 1;
	return (x->ns > ns) - (x->ns < ns);
}

static bool is_before(const Donor *x, const Donor *y)
{
	int order = compare(x, y->key, y->class, y->ns);

	if (order != 0)
		return order < 0;
	return x->thread != y->thread ? x->thread < y->thread : x->index < y->index;
}

static void insertion_sort(Donor *items, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		Donor item = items[i];
		size_t k = i;

		for (; k > 0 && is_before(&item, &items[k - 1]); k--)
			items[k] = items[k - 1];
		items[k] = item;
	}
}

/* Moves the items so that none before the returned index belongs behind one after it. */
static size_t partition(Donor *items, size_t count)
{
	Donor pivot = items[hash_mix(count, items[0].ns) % (count - 1)];
	size_t i = 0, k = count - 1;

	for (;; i++, k--) {
		while (is_before(&items[i], &pivot))
			i++;
		while (is_before(&pivot, &items[k]))
			k--;
		if (i >= k)
			return k + 1;
		Donor swap = items[i];

		items[i] = items[k];
		items[k] = swap;
	}
}

/* Sorts in place: there are three donors for each switch-out, and qsort(3) copies all (spill.h). */
static void sort_items(Donor *items, size_t count)
{
	while (count > INSERTION_SORT_MAX) {
		size_t at = partition(items, count);

		if (at < count - at) {
			sort_items(items, at);
			items += at;
			count -= at;
		} else {
			sort_items(items + at, count - at);
			count = at;
		}
	}
	insertion_sort(items, count);
}

static void sort(Donors *donors)
{
	sort_items(donors->items, donors->count);
}

static uint64_t distance(uint64_t x, uint64_t y)
{
	return x > y ? x - y : y - x;
}

/* Returns the one of that key and class that is nearest in time, or NULL. */
static const Donor *nearest_of_class(const Donors *donors, uint64_t key, uint8_t class, uint64_t ns)
{
	size_t at = partition_point(middle, donors->count,
				    compare(&donors->items[middle], key, class, ns) < 0);
	const Donor *after = at < donors->count ? &donors->items[at] : NULL;
	const Donor *before = at > 0 ? &donors->items[at - 1] : NULL;

	if (after && (after->key != key || after->class != class))
		after = NULL;
	if (before && (before->key != key || before->class != class))
		before = NULL;
	if (before && after)
		return distance(before->ns, ns) < distance(after->ns, ns) ? before : after;
	return before ? before : after;
}

static bool has_key(const Donors *donors, uint64_t key)
{
	size_t at = partition_point(middle, donors->count, donors->items[middle].key < key);

	return at < donors->count && donors->items[at].key == key;
}

/* Returns the best donor of that key for a wait, or NULL. */
static const Donor *find_donor(const Donors *donors, uint64_t key, uint64_t ns,
			       uint64_t duration_ns)
{
	int class = class_of(duration_ns);
	const Donor *donor = NULL;

	if (!has_key(donors, key))
		return NULL;
	for (int step = 0; step < CLASSES && !donor; step++) {
		if (class >= step)
			donor = nearest_of_class(donors, key, class - step, ns);
		if (!donor && class + step < CLASSES)
			donor = nearest_of_class(donors, key, class + step, ns);
	}
	return donor;
}

static uint64_t duration_of(const Thread *thread, size_t wait)
{
	return interval_end(thread, wait) - thread->intervals.items[wait].start_ns;
}

/* ---- switch-outs ----------------------------------------------------------------- */

typedef struct Filling {
	Timeline *timeline;
	Thread *thread;
	uint32_t number; /* the thread's */
	uint64_t program;
	Donors donors;
	VEC(ObjectWait) objects; /* of waits that have got a donor's */
} Filling;

/* Where donors are searched, in this order. */
enum donor_scope { SCOPE_PLACE, SCOPE_CALL, SCOPE_PROGRAM, SCOPES };

/*
 * What is known of every switch-out: the call, in which state the thread left the CPU, and whether
 * it was in a page fault.
 */
static uint64_t key_of(const Filling *filling, enum donor_scope scope, const SwitchPlace *place,
		       const Interval *wait)
{
	uint64_t known = (uint64_t)(uint16_t)place->syscall << 16 |
			 (wait->rule == RULE_FAULT) << 12 | wait->state << 8 | wait->sleep << 4 |
			 scope;

	if (scope == SCOPE_PROGRAM)
		return hash_mix(known, filling->program);
	if (scope == SCOPE_PLACE)
		known |= (uint64_t)place->place << 32;
	return hash_mix(known, filling->number);
}

typedef void (*SwitchVisitor)(Filling *filling, const SwitchPlace *place, size_t wait);

/* Passes each interval that begins with a switch-out whose place is known. */
static void visit_switch_outs(Filling *filling, const SwitchPlaces *places, SwitchVisitor visit)
{
	const Thread *thread = filling->thread;
	size_t next = 0;

	for (size_t i = 0; i < thread->intervals.count; i++) {
		const Interval *wait = &thread->intervals.items[i];

		while (next < places->count && places->items[next].ns <= wait->start_ns)
			next++;
		/* One that began before the window has been cut. */
		if (next > 0 && interval_is_switch_out(wait) &&
		    (places->items[next - 1].ns == wait->start_ns ||
		     wait->flags & INTERVAL_OPEN_START))
			visit(filling, &places->items[next - 1], i);
	}
}

static void collect(Filling *filling, const SwitchPlace *place, size_t i)
{
	const Interval *wait = &filling->thread->intervals.items[i];
	uint64_t ns = duration_of(filling->thread, i);
	struct budget_counts *counts = &filling->timeline->budget;

	counts->switch_outs++;
	counts->unsampled += wait->unsampled;
	/* The recorder has taken the stacks of others, whatever their chance. */
	if (wait->state == STATE_BLOCKED && ns < BUDGET_LONG_NS) {
		counts->short_ns += ns;
		counts->weighted_ns +=
			wait->unsampled ? 0 : (double)ns * CHANCE_CERTAIN / place->chance;
	}
	for (int scope = 0; scope < SCOPES && !wait->unsampled; scope++)
		*vec_push(&filling->donors) = (Donor){
			.key = key_of(filling, scope, place, wait),
			.ns = wait->start_ns,
			.thread = filling->number,
			.index = i,
			.class = class_of(ns),
		};
}

static void copy_stacks(Interval *to, const Interval *from)
{
	to->user_stack = from->user_stack;
	to->kernel_stack = from->kernel_stack;
}

/*
 * Gives the wait, and the intervals beside it that have the same stacks, those of a donor of the
 * same thread.
 */
static void take_all(Filling *filling, size_t i, size_t donor)
{
	Thread *thread = filling->thread;
	Interval *wait = &thread->intervals.items[i], *next = wait + 1;
	uint32_t object;

	copy_stacks(wait, &thread->intervals.items[donor]);
	if (i > 0 && wait[-1].state == STATE_RUNNING && wait[-1].unsampled)
		copy_stacks(&wait[-1], wait);
	if (wait->state != STATE_BLOCKED)
		return;
	if (i + 1 < thread->intervals.count && next->reason == REASON_WOKEN && next->unsampled)
		copy_stacks(next, wait);
	object = thread_wait_object(thread, donor);
	if (object != OBJECT_NONE && thread_wait_object(thread, i) == OBJECT_NONE)
		*vec_push(&filling->objects) = (ObjectWait){wait->start_ns, object};
}

static void fill(Filling *filling, const SwitchPlace *place, size_t i)
{
	Interval *wait = &filling->thread->intervals.items[i];
	const Donor *donor = NULL;
	const Interval *from;
	int scope = 0;

	for (; wait->unsampled && !donor && scope < SCOPES; scope++)
		donor = find_donor(&filling->donors, key_of(filling, scope, place, wait),
				   wait->start_ns, duration_of(filling->thread, i));
	if (!donor)
		return;
	from = &filling->timeline->threads.items[donor->thread].intervals.items[donor->index];
	if (scope <= SCOPE_PROGRAM)
		take_all(filling, i, donor->index);
	else
		wait->kernel_stack = from->kernel_stack;
	if (wait->state == STATE_BLOCKED && wait->rule != RULE_FAULT)
		thread_explain(filling->thread, i, from->reason, from->rule);
}

static int compare_objects(const void *a, const void *b)
{
	const ObjectWait *x = a, *y = b;

	return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

static void add_objects(Filling *filling)
{
	Thread *thread = filling->thread;

	if (filling->objects.count == 0)
		return;
	vec_append(&thread->object_waits, filling->objects.items, filling->objects.count);
	qsort(thread->object_waits.items, thread->object_waits.count, sizeof(ObjectWait),
	      compare_objects);
	filling->objects.count = 0;
}

/* ---- wakeups ----------------------------------------------------------------------- */

/* Returns the index of the wait that the waker's stacks belong to, or the number of intervals. */
static size_t wait_of(const Thread *thread, const WakerStack *stack)
{
	return partition_point(middle, thread->intervals.count,
			       thread->intervals.items[middle].start_ns < stack->start_ns);
}

static uint64_t waker_key(const Interval *wait, const WakerStack *stack)
{
	return (uint64_t)wait->waker << 16 | (wait->flags & INTERVAL_WAKER_IRQ) << 8 |
	       stack->source;
}

/* Does the same for the stacks of wakers; donors are wakeups of this thread by the same waker. */
static void fill_wakers(Thread *thread)
{
	Donors donors = {};

	for (size_t k = 0; k < thread->waker_stacks.count; k++) {
		const WakerStack *stack = &thread->waker_stacks.items[k];
		size_t i = wait_of(thread, stack);

		if (!stack->unsampled && i < thread->intervals.count &&
		    (stack->user_stack != STACK_NONE || stack->kernel_stack != STACK_NONE))
			*vec_push(&donors) = (Donor){
				.key = waker_key(&thread->intervals.items[i], stack),
				.ns = stack->start_ns,
				.index = k,
				.class = class_of(duration_of(thread, i)),
			};
	}
	sort(&donors);
	for (size_t k = 0; k < thread->waker_stacks.count; k++) {
		WakerStack *stack = &thread->waker_stacks.items[k];
		size_t i = wait_of(thread, stack);
		const Donor *donor;

		if (!stack->unsampled || i == thread->intervals.count)
			continue;
		donor = find_donor(&donors, waker_key(&thread->intervals.items[i], stack),
				   stack->start_ns, duration_of(thread, i));
		if (!donor)
			continue;
		stack->user_stack = thread->waker_stacks.items[donor->index].user_stack;
		stack->kernel_stack = thread->waker_stacks.items[donor->index].kernel_stack;
	}
	vec_free(&donors);
}

/* ---- all --------------------------------------------------------------------------- */

/* Threads of one program have donors for each other. */
static uint64_t program_of(const TimelineBuilder *builder, const BuildThread *target,
			   const Thread *thread)
{
	const char *name = target->process == INDEX_NONE
				   ? NULL
				   : builder->processes.items[target->process].process.name;
	uint64_t hash = 0;

	for (const char *p = name ? name : thread->name; p && *p; p++)
		hash = hash_mix(hash, (uint8_t)*p);
	return hash;
}

static void begin_thread(Filling *filling, const TimelineBuilder *builder, size_t target,
			 uint32_t number)
{
	filling->number = number;
	filling->thread = &filling->timeline->threads.items[number];
	filling->program = program_of(builder, builder->targets.items[target], filling->thread);
}

void unsampled_fill(TimelineBuilder *builder, const uint32_t *numbers)
{
	Filling filling = {.timeline = builder->timeline};

	for (size_t i = 0; i < builder->targets.count; i++) {
		if (numbers[i] == THREAD_NONE || builder->targets.items[i]->places.count == 0)
			continue;
		begin_thread(&filling, builder, i, numbers[i]);
		visit_switch_outs(&filling, &builder->targets.items[i]->places, collect);
	}
	sort(&filling.donors);
	for (size_t i = 0; i < builder->targets.count; i++) {
		if (numbers[i] == THREAD_NONE || builder->targets.items[i]->places.count == 0)
			continue;
		begin_thread(&filling, builder, i, numbers[i]);
		visit_switch_outs(&filling, &builder->targets.items[i]->places, fill);
		add_objects(&filling);
		fill_wakers(filling.thread);
	}
	vec_free(&filling.objects);
	vec_free(&filling.donors);
}
