/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report_sections.h"
#include "text.h"
#include "wait_fields.h"
#include <inttypes.h>

#define GAP	    2  /* between columns, so that `awk -F '  +'` divides them */
#define TIMES_WIDTH 36 /* of the times and the state, with the gaps */

/* ---- an event ------------------------------------------------------------------------------ */

/* What an event shows beside its times; texts that are NULL are not known. */
typedef struct Event {
	const char *state, *reason;
	const char *object; /* of the timeline */
	char *ended_by;	    /* a name, "timer interrupt", or why it is not known */
	uint32_t waker_tid; /* 0: not a task */
	char *holder;
	uint32_t holder_tid;
	uint32_t chain; /* EventReader::chains */
} Event;

/* Columns; without a limit to the line a longer text is not cut. */
typedef struct Widths {
	int reason, object, ended_by;
} Widths;

typedef struct EventReader {
	const Timeline *timeline;
	Frames *frames;
	const Thread *thread;
	Strings chains;
	Map chain_of; /* (user stack, kernel stack) -> chains */
	size_t tick;  /* the next one of the thread */
} EventReader;

static void reader_free(EventReader *reader)
{
	strings_free(&reader->chains);
	map_free(&reader->chain_of);
}

static void event_free(Event *event)
{
	free(event->ended_by);
	free(event->holder);
}

/* Returns the chain of a stack's user functions; of a thread without these, the kernel's leaf. */
static char *chain_text(const EventReader *reader, const StackRef *ref)
{
	bool user = ref->user_stack != STACK_NONE;
	const uint32_t *indexes = NULL;
	size_t count = frames_resolve(reader->frames, reader->timeline, ref->ns_tgid, ref->ns,
				      ref->user_stack, user ? STACK_NONE : ref->kernel_stack,
				      /* exact_kernel_leaf= */ false, &indexes);
	const Frame *leaf = count > 0 ? &reader->frames->list.items[indexes[count - 1]] : NULL;

	if (user || !leaf)
		return chain_add_user(xstrdup(""), reader->frames, indexes, count);
	return xasprintf("%s (kernel)", strings_get(&reader->frames->strings, leaf->function));
}

static uint32_t chain_of(EventReader *reader, const StackRef *ref)
{
	uint64_t key = (uint64_t)ref->user_stack << 32 | ref->kernel_stack;
	uint32_t known = map_get(&reader->chain_of, key);

	if (known == MAP_NONE) {
		_cleanup_free_ char *text = chain_text(reader, ref);

		known = strings_intern(&reader->chains, text);
		map_set(&reader->chain_of, key, known);
	}
	return known;
}

/* Of a running interval it is the stack of its first tick, or else of the switch-out at its end. */
static StackRef event_stack(EventReader *reader, size_t i)
{
	const Thread *thread = reader->thread;
	uint64_t start_ns = thread->intervals.items[i].start_ns, end_ns = interval_end(thread, i);
	StackRef ref = wait_stack(reader->timeline, thread, i);

	while (reader->tick < thread->ticks.count &&
	       thread->ticks.items[reader->tick].ns < start_ns)
		reader->tick++;
	if (thread->intervals.items[i].state == STATE_RUNNING &&
	    reader->tick < thread->ticks.count && thread->ticks.items[reader->tick].ns < end_ns)
		ref = tick_stack(reader->timeline, thread, &thread->ticks.items[reader->tick]);
	return ref;
}

static uint32_t task_tid(const Timeline *timeline, uint32_t number)
{
	const Task *task = number < timeline->tasks.count ? &timeline->tasks.items[number] : NULL;

	if (!task)
		return 0;
	return task->ns_tid ? task->ns_tid : task->tid;
}

static void read_ends(const EventReader *reader, size_t i, Event *event)
{
	const Interval *interval = &reader->thread->intervals.items[i];
	char name[COMM_LEN + 1];
	const char *text;

	if (interval->state == STATE_BLOCKED) {
		text = wait_holder(reader->timeline, interval, name);
		event->holder = text ? text_printable(text) : NULL;
		event->holder_tid = text ? task_tid(reader->timeline, interval->lock_holder) : 0;
	}
	if (interval->state == STATE_RUNNING || interval->state == STATE_UNKNOWN)
		return;
	text = wait_note(interval);
	if (!(interval->flags & INTERVAL_OPEN_END) && interval->state == STATE_BLOCKED) {
		const char *waker = wait_waker(reader->timeline, reader->thread, i, name);

		text = waker ? waker : text;
		event->waker_tid = interval->flags & INTERVAL_WAKER_IRQ
					   ? 0
					   : task_tid(reader->timeline, interval->waker);
	}
	event->ended_by = text ? text_printable(text) : NULL;
}

static Event read_event(EventReader *reader, size_t i)
{
	const Interval *interval = &reader->thread->intervals.items[i];
	bool waits = interval->state != STATE_RUNNING;
	uint32_t object = waits ? wait_object(reader->timeline, reader->thread, i) : OBJECT_NONE;
	StackRef ref = event_stack(reader, i);
	Event event = {
		.state = timeline_state_names[interval->state],
		.reason = waits ? reason_info[wait_reason(interval)].leaf : NULL,
		.object = object != OBJECT_NONE ? reader->timeline->objects.list.items[object].name
						: NULL,
		.chain = chain_of(reader, &ref),
	};

	read_ends(reader, i, &event);
	return event;
}

/* ---- text ---------------------------------------------------------------------------------- */

/* Returns "convoy 2 (13199), lock held by convoy 1 (13198)", or "-"; the caller frees it. */
static char *ended_text(const Event *event)
{
	_cleanup_free_ char *tid =
		event->waker_tid ? xasprintf(" (%u)", event->waker_tid) : xstrdup("");
	_cleanup_free_ char *holder =
		event->holder ? xasprintf("%slock held by %s (%u)", event->ended_by ? ", " : "",
					  event->holder, event->holder_tid)
			      : xstrdup("");

	if (!event->ended_by && !event->holder)
		return xstrdup("-");
	return xasprintf("%s%s%s", event->ended_by ? event->ended_by : "", tid, holder);
}

/* Returns the text with spaces up to the next column; the caller frees it. */
static char *column(const Page *page, const char *text, int width)
{
	if (page->width || page_columns(page, text) < width)
		return page_cell(page, text, width);
	return xstrdup(text);
}

static Widths widths_of(const Page *page)
{
	int room = page->width - TIMES_WIDTH;

	return page->width
		       ? (Widths){MIN(room * 3 / 10, 24), MIN(room * 3 / 10, 32), MIN(room / 5, 28)}
		       : (Widths){24, 32, 28};
}

static void print_event(const Page *page, const Widths *widths, EventReader *reader, size_t i)
{
	const Thread *thread = reader->thread;
	uint64_t start_ns = thread->intervals.items[i].start_ns;
	uint64_t ns = interval_end(thread, i) - start_ns;
	uint64_t since_ns = timeline_time(reader->timeline, start_ns);
	Event event = read_event(reader, i);
	_cleanup_free_ char *name = text_printable(event.object ? event.object : "-");
	_cleanup_free_ char *by = ended_text(&event);
	_cleanup_free_ char *where = text_printable(strings_get(&reader->chains, event.chain));
	_cleanup_free_ char *reason =
		column(page, event.reason ? event.reason : "-", widths->reason);
	_cleanup_free_ char *object = column(page, name, widths->object);
	_cleanup_free_ char *ended_by = column(page, by, widths->ended_by);

	page_line(
		page,
		"%" PRIu64 ".%09" PRIu64 "%*s%" PRIu64 ".%09" PRIu64 "%*s%-8s%*s%s%*s%s%*s%s%*s%s",
		(uint64_t)(since_ns / NSEC_PER_SEC), (uint64_t)(since_ns % NSEC_PER_SEC), GAP, "",
		(uint64_t)(ns / NSEC_PER_SEC), (uint64_t)(ns % NSEC_PER_SEC), GAP, "", event.state,
		GAP, "", reason, GAP, "", object, GAP, "", ended_by, GAP, "", *where ? where : "-");
	event_free(&event);
}

typedef struct Longest {
	uint64_t ns;
	size_t interval;
} Longest;

static int compare_longest(const void *a, const void *b)
{
	const Longest *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns > y->ns ? -1 : 1;
	return (x->interval > y->interval) - (x->interval < y->interval);
}

/* Returns for each interval whether it is one of the `most` longest; the caller frees it. */
static bool *longest_of(const Thread *thread, size_t most)
{
	_cleanup_free_ Longest *list = xcalloc(thread->intervals.count + 1, sizeof(*list));
	bool *wanted = xcalloc(thread->intervals.count + 1, sizeof(*wanted));

	for (size_t i = 0; i < thread->intervals.count; i++)
		list[i] =
			(Longest){interval_end(thread, i) - thread->intervals.items[i].start_ns, i};
	if (thread->intervals.count > 1)
		qsort(list, thread->intervals.count, sizeof(*list), compare_longest);
	for (size_t i = 0; i < MIN(thread->intervals.count, most); i++)
		wanted[list[i].interval] = true;
	return wanted;
}

void report_timeline_print(const Report *report, uint32_t number)
{
	const Page *page = report->page;
	const Thread *thread = &report->timeline->threads.items[number];
	EventReader reader = {
		.timeline = report->timeline, .frames = report->frames, .thread = thread};
	const Widths widths = widths_of(page);
	_cleanup_free_ bool *wanted = longest_of(thread, report->rows);
	_cleanup_free_ char *reason = column(page, "reason", widths.reason);
	_cleanup_free_ char *object = column(page, "object", widths.object);
	_cleanup_free_ char *ended_by = column(page, "ended by", widths.ended_by);

	page_line(page, "%s%-11s  %-11s  %-8s  %s  %s  %s  stack%s", page_style(page, PAGE_DIM),
		  "time (s)", "length (s)", "state", reason, object, ended_by,
		  page_style(page, PAGE_PLAIN));
	for (size_t i = 0; i < thread->intervals.count; i++)
		if (wanted[i])
			print_event(page, &widths, &reader, i);
	reader_free(&reader);
}

/* ---- JSON ---------------------------------------------------------------------------------- */

static void text_or_null(Json *json, const char *key, const char *text)
{
	if (text && *text)
		json_key_string(json, key, text);
	else
		json_key_null(json, key);
}

static void tid_or_null(Json *json, const char *key, uint32_t tid)
{
	if (tid)
		json_key_u64(json, key, tid);
	else
		json_key_null(json, key);
}

static void write_event(Json *json, EventReader *reader, size_t i)
{
	const Thread *thread = reader->thread;
	const Interval *interval = &thread->intervals.items[i];
	Event event = read_event(reader, i);

	json_begin_object(json);
	json_key_u64(json, "start_ns", timeline_time(reader->timeline, interval->start_ns));
	json_key_u64(json, "duration_ns", interval_end(thread, i) - interval->start_ns);
	json_key_string(json, "state", event.state);
	text_or_null(json, "reason", event.reason);
	text_or_null(json, "object", event.object);
	text_or_null(json, "ended_by", event.ended_by);
	tid_or_null(json, "ended_by_tid", event.waker_tid);
	text_or_null(json, "holder", event.holder);
	tid_or_null(json, "holder_tid", event.holder_tid);
	json_key_string(json, "chain", strings_get(&reader->chains, event.chain));
	json_end_object(json);
	event_free(&event);
}

void report_timeline(Json *json, const Timeline *timeline, Frames *frames, uint32_t number)
{
	const Thread *thread = &timeline->threads.items[number];
	const Process *process = &timeline->processes.items[thread->process];
	EventReader reader = {.timeline = timeline, .frames = frames, .thread = thread};

	json_key_object(json, "timeline");
	json_key_u64(json, "tid", thread->ns_tid);
	json_key_u64(json, "pid", process->ns_tgid);
	json_key_string(json, "name", thread->name ? thread->name : "");
	json_key_string(json, "process", process->label ? process->label : "");
	json_key_u64(json, "start_ns", timeline_time(timeline, thread->start_ns));
	json_key_u64(json, "lifetime_ns", thread->end_ns - MIN(thread->start_ns, thread->end_ns));
	json_key_array(json, "intervals");
	for (size_t i = 0; i < thread->intervals.count; i++)
		write_event(json, &reader, i);
	json_end_array(json);
	json_end_object(json);
	reader_free(&reader);
}
