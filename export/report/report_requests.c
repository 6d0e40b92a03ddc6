/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "page_table.h"
#include "report_sections.h"
#include "text.h"
#include <inttypes.h>

static const TableColumn columns[] = {{"waited", 12, 0}, {"reads", 8, 4},	{"MB read", 10, 1},
				      {"writes", 8, 4},	 {"MB written", 12, 1}, {"busy", 12, 3},
				      {"MB/s", 8, 2}};

typedef struct IoSum {
	uint32_t key; /* index of a BlockDevice, of Timeline::objects or of Timeline::threads */
	uint64_t reads, read_bytes, writes, written_bytes, others, failed;
	uint64_t queued_ns, device_ns; /* summed over its requests, which overlap */
	/* Of its requests, independent of the kernel's account. */
	uint64_t request_bytes;
	uint64_t busy_ns, busy_until; /* while it had at least one request */
	uint64_t held_ns;	      /* by cgroup limits; summed likewise */
	uint64_t waits, waited_ns;    /* of threads whose wait one of its requests ended */
} IoSum;

/* Indexes of Requests::list, sorted by the requests' start. */
typedef struct SortedRequests {
	uint32_t *numbers;
	size_t count;
} SortedRequests;

static int compare_start(const void *a, const void *b, void *user)
{
	const Requests *requests = user;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	uint64_t x_ns = request_let_go(&requests->list.items[x]);
	uint64_t y_ns = request_let_go(&requests->list.items[y]);

	if (x_ns != y_ns)
		return x_ns < y_ns ? -1 : 1;
	return x < y ? -1 : x > y;
}

static SortedRequests sorted_requests(const Requests *requests, const uint32_t *numbers,
				      size_t count)
{
	SortedRequests sorted = {.numbers = xcalloc(MAX(count, (size_t)1), sizeof(uint32_t)),
				 .count = count};

	for (size_t i = 0; i < count; i++)
		sorted.numbers[i] = numbers ? numbers[i] : i;
	if (count > 1)
		qsort_r(sorted.numbers, count, sizeof(uint32_t), compare_start, (void *)requests);
	return sorted;
}

/* To be called in order of the requests' start. */
static void add_request(IoSum *sum, const Request *request)
{
	if (request_is_read(request)) {
		sum->reads++;
		sum->read_bytes += request->bytes;
	} else if (request_is_write(request)) {
		sum->writes++;
		sum->written_bytes += request->bytes;
	} else {
		sum->others++;
	}
	sum->request_bytes += request->bytes;
	sum->failed += request->status != 0;
	sum->held_ns += request->held_ns;
	if (request->end_ns > sum->busy_until) {
		sum->busy_ns += request->end_ns - MAX(request_let_go(request), sum->busy_until);
		sum->busy_until = request->end_ns;
	}
	if (request->flags & REQUEST_BIO)
		return;
	sum->queued_ns += request_queued_ns(request);
	sum->device_ns += request_device_ns(request);
}

static void add_wait(IoSum *sum, const Thread *thread, const RequestWait *wait)
{
	sum->waits++;
	sum->waited_ns += interval_end(thread, wait->interval) -
			  thread->intervals.items[wait->interval].start_ns;
}

static bool is_empty(const IoSum *sum)
{
	return sum->reads + sum->writes + sum->others + sum->waits + sum->read_bytes +
		       sum->written_bytes ==
	       0;
}

/* Sorts by time waited, then by busy time; empty sums come last. */
static int compare_sums(const void *a, const void *b)
{
	const IoSum *x = a, *y = b;

	if (is_empty(x) != is_empty(y))
		return is_empty(x) - is_empty(y);
	if (x->waited_ns != y->waited_ns)
		return x->waited_ns > y->waited_ns ? -1 : 1;
	if (x->device_ns != y->device_ns)
		return x->device_ns > y->device_ns ? -1 : 1;
	return x->key < y->key ? -1 : x->key > y->key;
}

static IoSum *make_sums(size_t count)
{
	IoSum *sums = xcalloc(MAX(count, (size_t)1), sizeof(*sums));

	for (size_t i = 0; i < count; i++)
		sums[i].key = i;
	return sums;
}

/* Adds up all requests by a key; SIZE_MAX: the request has none. */
typedef size_t (*KeyOf)(const Timeline *timeline, const Request *request);

static size_t device_key(const Timeline *timeline, const Request *request)
{
	return map_get(&timeline->requests.device_of_number, request->device);
}

static size_t file_key(const Timeline *timeline, const Request *request)
{
	return request->file == OBJECT_NONE || request->over_device
		       ? SIZE_MAX
		       : objects_alike(&timeline->objects, request->file);
}

static IoSum *sum_by(const Timeline *timeline, KeyOf key_of, size_t count)
{
	const Requests *requests = &timeline->requests;
	SortedRequests sorted = sorted_requests(requests, NULL, requests->list.count);
	IoSum *sums = make_sums(count);

	for (size_t i = 0; i < sorted.count; i++) {
		const Request *request = &requests->list.items[sorted.numbers[i]];
		size_t key = key_of(timeline, request);

		if (key < count)
			add_request(&sums[key], request);
	}
	free(sorted.numbers);
	for (size_t t = 0; t < timeline->threads.count; t++) {
		const Thread *thread = &timeline->threads.items[t];

		for (size_t i = 0; i < thread->request_waits.count; i++) {
			const RequestWait *wait = &thread->request_waits.items[i];
			size_t key =
				key_of(timeline, &timeline->requests.list.items[wait->request]);

			if (key < count)
				add_wait(&sums[key], thread, wait);
		}
	}
	if (count > 1)
		qsort(sums, count, sizeof(*sums), compare_sums);
	return sums;
}

static IoSum sum_thread(const Timeline *timeline, const Thread *thread)
{
	const Requests *requests = &timeline->requests;
	SortedRequests sorted =
		sorted_requests(requests, thread->requests.items, thread->requests.count);
	IoSum sum = {};

	for (size_t i = 0; i < sorted.count; i++) {
		const Request *request = &requests->list.items[sorted.numbers[i]];

		if (!request->over_device)
			add_request(&sum, request);
	}
	free(sorted.numbers);
	for (size_t i = 0; i < thread->request_waits.count; i++)
		add_wait(&sum, thread, &thread->request_waits.items[i]);
	return sum;
}

/*
 * As in iotop: bytes count as written when they become dirty, even if another thread writes them to
 * the disk. A kernel without these accounts has zeros.
 */
static void set_account(IoSum *sum, const KernelAccount *kernel)
{
	if (!kernel->known || kernel->read_bytes + kernel->write_bytes == 0)
		return;
	sum->read_bytes = kernel->read_bytes;
	sum->written_bytes = kernel->write_bytes;
}

static IoSum *sum_threads(const Timeline *timeline)
{
	IoSum *sums = make_sums(timeline->threads.count);

	for (size_t i = 0; i < timeline->threads.count; i++) {
		sums[i] = sum_thread(timeline, &timeline->threads.items[i]);
		sums[i].key = i;
		set_account(&sums[i], &timeline->threads.items[i].kernel);
	}
	if (timeline->threads.count > 1)
		qsort(sums, timeline->threads.count, sizeof(*sums), compare_sums);
	return sums;
}

/* ---- text -------------------------------------------------------------------------------- */

static char *name_of_device(const Timeline *timeline, const IoSum *sum)
{
	return request_device_text(&timeline->requests,
				   timeline->requests.devices.items[sum->key].number);
}

static char *name_of_thread(const Timeline *timeline, const IoSum *sum)
{
	const Thread *thread = &timeline->threads.items[sum->key];

	return xasprintf("%s (%u)", thread->name ? thread->name : "", thread->ns_tid);
}

static char *name_of_file(const Timeline *timeline, const IoSum *sum)
{
	return xstrdup(timeline->objects.list.items[sum->key].name);
}

/* The rate while it was busy. */
static double megabytes_per_second(const IoSum *sum)
{
	return sum->busy_ns ? (double)sum->request_bytes * NSEC_PER_SEC / sum->busy_ns / 1e6 : 0;
}

static const char *decimal(char text[TEXT_SIZE], double number)
{
	snprintf(text, TEXT_SIZE, "%.1f", number);
	return text;
}
#define DECIMAL(number) decimal((char[TEXT_SIZE]){}, number)

static void print_line(const Table *table, const IoSum *sum, const char *busy, const char *rate,
		       const char *name)
{
	const char *cells[] = {DURATION(sum->waited_ns),
			       COUNT(sum->reads),
			       DECIMAL(sum->read_bytes / 1e6),
			       COUNT(sum->writes),
			       DECIMAL(sum->written_bytes / 1e6),
			       busy,
			       rate};

	page_table_row(table, cells, name);
}

/*
 * Prints the sum of the `left` lines that are not shown. It has no busy time, because their busy
 * times overlap.
 */
static void print_others(const Table *table, const IoSum *sums, size_t left, bool files)
{
	_cleanup_free_ char *text = text_others(left, files);
	IoSum others = {};

	for (size_t i = 0; i < left; i++) {
		others.waited_ns += sums[i].waited_ns;
		others.reads += sums[i].reads;
		others.read_bytes += sums[i].read_bytes;
		others.writes += sums[i].writes;
		others.written_bytes += sums[i].written_bytes;
	}
	print_line(table, &others, "", "", text);
}

static void print_table(const Report *report, const IoSum *sums, size_t count, const char *title,
			char *(*name_of)(const Timeline *, const IoSum *))
{
	size_t used = 0;
	Table table;

	while (used < count && !is_empty(&sums[used]))
		used++;
	page_table_init(&table, report->page, columns, ARRAY_LEN(columns), report->max_rank);
	for (size_t i = 0; i < MIN(used, report->rows); i++) {
		_cleanup_free_ char *name = name_of(report->timeline, &sums[i]);
		_cleanup_free_ char *text = text_printable(name);

		page_table_head(&table, title);
		print_line(&table, &sums[i], DURATION(sums[i].busy_ns),
			   DECIMAL(megabytes_per_second(&sums[i])), text);
	}
	if (used > report->rows && !report->brief)
		print_others(&table, sums + report->rows, used - report->rows,
			     name_of == name_of_file);
}

static void print_held(const Page *page, const Requests *requests)
{
	uint64_t count = 0, ns = 0;

	for (size_t i = 0; i < requests->list.count; i++) {
		count += requests->list.items[i].held_ns > 0;
		ns += requests->list.items[i].held_ns;
	}
	if (count > 0)
		page_line(page, "held back by cgroup limits: %" PRIu64 " request%s, %s in total",
			  count, count == 1 ? "" : "s", DURATION(ns));
}

/*
 * Counts requests whose submitter is unknown: made before the recording began, too many in flight,
 * or made by a driver of other requests.
 */
static uint64_t count_ownerless(const Requests *requests)
{
	uint64_t count = 0;

	for (size_t i = 0; i < requests->list.count; i++) {
		const Request *request = &requests->list.items[i];

		count += !(request->flags & REQUEST_SUBMITTED) && request->bytes > 0 &&
			 (request_is_read(request) || request_is_write(request));
	}
	return count;
}

void report_requests_print(const Report *report)
{
	const Timeline *timeline = report->timeline;
	size_t devices = timeline->requests.devices.count, files = timeline->objects.list.count;
	_cleanup_free_ IoSum *by_device = sum_by(timeline, device_key, devices);
	_cleanup_free_ IoSum *by_file = sum_by(timeline, file_key, files);
	_cleanup_free_ IoSum *by_thread = sum_threads(timeline);
	uint64_t ownerless = count_ownerless(&timeline->requests);

	print_table(report, by_device, devices, "block I/O by device", name_of_device);
	if (report->brief)
		return;
	print_table(report, by_thread, timeline->threads.count, "block I/O by thread",
		    name_of_thread);
	print_table(report, by_file, files, "block I/O by file", name_of_file);
	print_held(report->page, &timeline->requests);
	if (ownerless > 0)
		page_line(report->page, "submitter unknown: %" PRIu64 " request%s", ownerless,
			  ownerless == 1 ? "" : "s");
}

/* ---- JSON -------------------------------------------------------------------------------- */

static void write_sum(Json *json, const IoSum *sum)
{
	json_key_u64(json, "reads", sum->reads);
	json_key_u64(json, "read_bytes", sum->read_bytes);
	json_key_u64(json, "writes", sum->writes);
	json_key_u64(json, "written_bytes", sum->written_bytes);
	json_key_u64(json, "others", sum->others);
	json_key_u64(json, "failed", sum->failed);
	json_key_u64(json, "held_ns", sum->held_ns);
	json_key_u64(json, "queued_ns", sum->queued_ns);
	json_key_u64(json, "device_ns", sum->device_ns);
	json_key_u64(json, "busy_ns", sum->busy_ns);
	json_key_u64(json, "waits", sum->waits);
	json_key_u64(json, "waited_ns", sum->waited_ns);
}

void report_requests_of_thread(Json *json, const Timeline *timeline, const Thread *thread)
{
	IoSum sum = sum_thread(timeline, thread);

	json_key_object(json, "io");
	write_sum(json, &sum);
	json_end_object(json);
}

static void write_table(Json *json, const char *key, const Timeline *timeline, const IoSum *sums,
			size_t count, const char *name_key,
			char *(*name_of)(const Timeline *, const IoSum *))
{
	json_key_array(json, key);
	for (size_t i = 0; i < count && !is_empty(&sums[i]); i++) {
		_cleanup_free_ char *name = name_of(timeline, &sums[i]);

		json_begin_object(json);
		json_key_string(json, name_key, name);
		write_sum(json, &sums[i]);
		json_end_object(json);
	}
	json_end_array(json);
}

static char *bare_device(const Timeline *timeline, const IoSum *sum)
{
	return xstrdup(timeline->requests.devices.items[sum->key].name);
}

void report_requests(Json *json, const Timeline *timeline)
{
	size_t devices = timeline->requests.devices.count, files = timeline->objects.list.count;
	_cleanup_free_ IoSum *by_device = sum_by(timeline, device_key, devices);
	_cleanup_free_ IoSum *by_file = sum_by(timeline, file_key, files);

	write_table(json, "devices", timeline, by_device, devices, "name", bare_device);
	write_table(json, "io_files", timeline, by_file, files, "path", name_of_file);
	json_key_u64(json, "ownerless_requests", count_ownerless(&timeline->requests));
}
