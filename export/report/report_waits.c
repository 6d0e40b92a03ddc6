/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "page_table.h"
#include "report_sections.h"
#include "text.h"
#include "wait_fields.h"
#include <inttypes.h>

#define OBJECTS_SHOWN 3 /* for each reason, unless all rows are wanted */

static const TableColumn columns[] = {{"waited", 12, 0}, {"times", 10, 1}, {"longest", 12, 2}};

typedef struct WaitSum {
	enum reason reason;
	/* Timeline::objects, or OBJECT_NONE: all objects of that reason. */
	uint32_t object;
	uint64_t ns, count, longest;
	uint64_t delay_ns; /* how long the threads were runnable afterwards */
	/* The part of the time in waits that name a request; files only. */
	uint64_t request_ns;
} WaitSum;

typedef struct WaitSums {
	WaitSum reasons[REASON_COUNT];
	VEC(WaitSum) objects; /* those for an object, by reason and object */
	Map index;	      /* (reason, object) -> objects */
} WaitSums;

static void add(WaitSum *sum, uint64_t ns, uint64_t delay_ns)
{
	sum->ns += ns;
	sum->delay_ns += delay_ns;
	sum->count++;
	sum->longest = MAX(sum->longest, ns);
}

static WaitSum *sum_of_object(WaitSums *sums, enum reason reason, uint32_t object)
{
	uint64_t key = (uint64_t)reason << 32 | object;
	uint32_t number = map_get(&sums->index, key);

	if (number == MAP_NONE) {
		number = sums->objects.count;
		map_set(&sums->index, key, number);
		*vec_push(&sums->objects) = (WaitSum){.reason = reason, .object = object};
	}
	return &sums->objects.items[number];
}

static void add_waits(WaitSums *sums, const Timeline *timeline, const Thread *thread)
{
	for (size_t i = 0; i < thread->intervals.count; i++) {
		const Interval *interval = &thread->intervals.items[i];
		uint64_t end = interval_end(thread, i);
		enum reason reason = wait_reason(interval);
		uint64_t delay_ns = wait_delay_ns(thread, i);
		WaitSum *of_object;
		uint32_t object;

		/* Unknown intervals are in the time by state: they are not proven to be waits. */
		if (interval->state == STATE_RUNNING || interval->state == STATE_UNKNOWN ||
		    end <= interval->start_ns)
			continue;
		if (delay_ns == UINT64_MAX)
			delay_ns = 0;
		add(&sums->reasons[reason], end - interval->start_ns, delay_ns);
		object = wait_object(timeline, thread, i);
		if (object == OBJECT_NONE)
			continue;
		of_object = sum_of_object(sums, reason, object);
		add(of_object, end - interval->start_ns, delay_ns);
		if (thread_wait_request(thread, i) != REQUEST_NONE)
			of_object->request_ns += end - interval->start_ns;
	}
}

static int compare_sums(const void *a, const void *b)
{
	const WaitSum *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns > y->ns ? -1 : 1;
	if (x->reason != y->reason)
		return x->reason < y->reason ? -1 : 1;
	return x->object < y->object ? -1 : x->object > y->object;
}

/* Sorted; Map index is of no use afterwards. */
static WaitSums sum_up(const Timeline *timeline)
{
	WaitSums sums = {};

	for (size_t i = 0; i < REASON_COUNT; i++)
		sums.reasons[i] = (WaitSum){.reason = i, .object = OBJECT_NONE};
	for (size_t i = 0; i < timeline->threads.count; i++)
		add_waits(&sums, timeline, &timeline->threads.items[i]);
	map_free(&sums.index);
	qsort(sums.reasons, REASON_COUNT, sizeof(WaitSum), compare_sums);
	if (sums.objects.count > 1)
		qsort(sums.objects.items, sums.objects.count, sizeof(WaitSum), compare_sums);
	return sums;
}

/* ---- rates --------------------------------------------------------------------------------- */

enum way { WAY_READ, WAY_WRITE, WAYS };

/* A time in which there was a request for a file, or a thread waited for one. */
typedef struct Span {
	uint32_t object;
	enum way way;
	uint64_t from_ns, to_ns;
	uint64_t bytes;
	bool ambiguous; /* the request may have been made earlier, or be for other files too */
} Span;

typedef VEC(Span) Spans;

static bool way_of(const Request *request, enum way *ret_way)
{
	*ret_way = request_is_write(request) ? WAY_WRITE : WAY_READ;
	/* A request of a lower device is counted for the request that it is a part of. */
	return request->file != OBJECT_NONE && !request->over_device &&
	       (request_is_read(request) || request_is_write(request));
}

static void add_requests(Spans *spans, const Timeline *timeline)
{
	for (size_t i = 0; i < timeline->requests.list.count; i++) {
		const Request *request = &timeline->requests.list.items[i];
		Span span = {
			.from_ns = request_begin(request),
			.to_ns = request->end_ns,
			.bytes = request->bytes,
			/*
			 * Where held-back time is not recorded, a cgroup's limit may have held back
			 * what a kernel thread passes on.
			 */
			.ambiguous = request->flags & (REQUEST_KTHREAD | REQUEST_MIXED),
		};

		if (!way_of(request, &span.way))
			continue;
		span.object = objects_alike(&timeline->objects, request->file);
		*vec_push(spans) = span;
	}
}

static void add_request_waits(Spans *spans, const Timeline *timeline, const Thread *thread)
{
	for (size_t i = 0; i < thread->request_waits.count; i++) {
		const RequestWait *wait = &thread->request_waits.items[i];
		const Request *request = &timeline->requests.list.items[wait->request];
		Span span = {};

		if (!way_of(request, &span.way))
			continue;
		span.object = objects_alike(&timeline->objects, request->file);
		span.from_ns = thread->intervals.items[wait->interval].start_ns;
		span.to_ns = interval_end(thread, wait->interval);
		*vec_push(spans) = span;
	}
}

static int compare_spans(const void *a, const void *b)
{
	const Span *x = a, *y = b;

	if (x->object != y->object)
		return x->object < y->object ? -1 : 1;
	if (x->way != y->way)
		return x->way < y->way ? -1 : 1;
	return x->from_ns < y->from_ns ? -1 : x->from_ns > y->from_ns;
}

/*
 * Merges the spans from `first` on of the same file and direction; returns the index of the next
 * ones.
 */
static size_t rate_of(const Spans *spans, size_t first, double *ret_rate)
{
	uint64_t ns = 0, until_ns = 0, bytes = 0;
	bool ambiguous = false;
	size_t i = first;

	for (; i < spans->count && spans->items[i].object == spans->items[first].object &&
	       spans->items[i].way == spans->items[first].way;
	     i++) {
		const Span *span = &spans->items[i];
		uint64_t from_ns = MAX(span->from_ns, until_ns);

		bytes += span->bytes;
		ns += span->to_ns > from_ns ? span->to_ns - from_ns : 0;
		until_ns = MAX(until_ns, span->to_ns);
		ambiguous |= span->ambiguous;
	}
	*ret_rate = ns > 0 && !ambiguous ? (double)bytes * NSEC_PER_SEC / ns / 1e6 : 0;
	return i;
}

/* Returns MB/s of Timeline::objects[i] at WAYS * i + way; 0: unknown. The caller frees it. */
static double *file_rates(const Timeline *timeline)
{
	double *rates = xcalloc(WAYS * timeline->objects.list.count + 1, sizeof(*rates));
	Spans spans = {};

	add_requests(&spans, timeline);
	for (size_t i = 0; i < timeline->threads.count; i++)
		add_request_waits(&spans, timeline, &timeline->threads.items[i]);
	if (spans.count > 1)
		qsort(spans.items, spans.count, sizeof(Span), compare_spans);
	for (size_t i = 0; i < spans.count;) {
		const Span *span = &spans.items[i];

		i = rate_of(&spans, i, &rates[WAYS * span->object + span->way]);
	}
	vec_free(&spans);
	return rates;
}

/*
 * Returns the rate for what the waits were for; 0 if that is neither reading nor writing, or if
 * most of them name no request.
 */
static double rate_of_waits(const WaitSum *sum, const double *rates)
{
	const double *of_file = &rates[WAYS * sum->object];

	if (sum->request_ns < sum->ns / 2)
		return 0;
	switch (sum->reason) {
	case REASON_DISK_READ:
	case REASON_FAULT:
	case REASON_HELD_DISK_READ:
	case REASON_HELD_FAULT:
		return of_file[WAY_READ];
	case REASON_DISK_WRITE:
	case REASON_DISK_SYNC:
	case REASON_HELD_DISK_WRITE:
	case REASON_HELD_DISK_SYNC:
		return of_file[WAY_WRITE];
	default:
		return 0;
	}
}

/* ---- text ---------------------------------------------------------------------------------- */

static void print_sum(const Table *table, const WaitSum *sum, const char *name)
{
	_cleanup_free_ char *then = text_then_runnable(sum->ns, sum->delay_ns);
	_cleanup_free_ char *text = xasprintf("%s%s", name, then);
	const char *cells[] = {DURATION(sum->ns), COUNT(sum->count), DURATION(sum->longest)};

	page_table_row(table, cells, text);
}

static void add_sum(WaitSum *others, const WaitSum *sum)
{
	others->ns += sum->ns;
	others->delay_ns += sum->delay_ns;
	others->count += sum->count;
	others->longest = MAX(others->longest, sum->longest);
}

static void print_object(const Table *table, const Timeline *timeline, const WaitSum *sum,
			 double rate)
{
	_cleanup_free_ char *path = text_printable(timeline->objects.list.items[sum->object].name);
	_cleanup_free_ char *name =
		rate > 0 ? xasprintf("  %s at %.1f MB/s", path, rate) : xasprintf("  %s", path);

	print_sum(table, sum, name);
}

/* Prints the first objects of a reason, and the sum of the others. */
static void print_objects(const Table *table, const Report *report, const WaitSums *sums,
			  enum reason reason, const double *rates)
{
	const Timeline *timeline = report->timeline;
	size_t most = report->rows == SIZE_MAX ? SIZE_MAX : OBJECTS_SHOWN;
	WaitSum others = {};
	size_t shown = 0, more = 0;
	bool files = true;

	for (size_t i = 0; i < sums->objects.count; i++) {
		const WaitSum *sum = &sums->objects.items[i];

		if (sum->reason != reason)
			continue;
		if (shown < most) {
			print_object(table, timeline, sum, rate_of_waits(sum, rates));
			shown++;
			continue;
		}
		add_sum(&others, sum);
		files &= timeline->objects.list.items[sum->object].kind == OBJECT_FILE;
		more++;
	}
	if (more > 0) {
		_cleanup_free_ char *text = text_others(more, files);
		_cleanup_free_ char *name = xasprintf("  %s", text);

		print_sum(table, &others, name);
	}
}

/* Returns the table of a category: the one of all waits that count, or one of its own. */
static enum category table_of(enum category category)
{
	return category_is_idle(category) ? category : CATEGORY_OTHER;
}

/* Prints the largest sums of one table. */
static void print_largest(const Report *report, const WaitSums *sums, enum category category,
			  const double *rates, const char *title)
{
	WaitSum others = {};
	Table table;
	size_t shown = 0, left = 0;

	page_table_init(&table, report->page, columns, ARRAY_LEN(columns), report->max_rank);
	for (size_t i = 0; i < REASON_COUNT; i++) {
		const WaitSum *sum = &sums->reasons[i];
		const ReasonInfo *info = &reason_info[sum->reason];

		if (sum->ns == 0 || table_of(info->category) != category)
			continue;
		if (shown == report->rows) {
			add_sum(&others, sum);
			left++;
			continue;
		}
		shown++;
		page_table_head(&table, title);
		_cleanup_free_ char *name = report_reason_text(report->page, sum->reason);

		print_sum(&table, sum, name);
		print_objects(&table, report, sums, sum->reason, rates);
	}
	if (left > 0 && !report->brief) {
		_cleanup_free_ char *text = text_others(left, /* files= */ false);

		print_sum(&table, &others, text);
	}
}

void report_waits_print(const Report *report)
{
	WaitSums sums = sum_up(report->timeline);
	_cleanup_free_ double *rates = file_rates(report->timeline);

	print_largest(report, &sums, CATEGORY_OTHER, rates, "waits by reason and object");
	vec_free(&sums.objects);
}

void report_idle_print(const Report *report)
{
	WaitSums sums = sum_up(report->timeline);
	_cleanup_free_ double *rates = file_rates(report->timeline);

	print_largest(report, &sums, CATEGORY_JOBS, rates, "between jobs (not counted as waits)");
	print_largest(report, &sums, CATEGORY_IDLE, rates, "idle (not counted as waits)");
	vec_free(&sums.objects);
}

/* ---- JSON ---------------------------------------------------------------------------------- */

void report_waited_objects(Json *json, const Timeline *timeline)
{
	WaitSums sums = sum_up(timeline);

	json_key_array(json, "waited_objects");
	for (size_t i = 0; i < sums.objects.count; i++) {
		const WaitSum *sum = &sums.objects.items[i];

		json_begin_object(json);
		json_key_string(json, "reason", reason_info[sum->reason].leaf);
		object_json(json, &timeline->objects.list.items[sum->object]);
		json_key_u64(json, "count", sum->count);
		json_key_u64(json, "ns", sum->ns);
		json_key_u64(json, "longest_ns", sum->longest);
		json_key_u64(json, "then_runnable_ns", sum->delay_ns);
		json_end_object(json);
	}
	json_end_array(json);
	vec_free(&sums.objects);
}
