/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "fault_fields.h"
#include "page_table.h"
#include "report_sections.h"
#include "text.h"

static const TableColumn columns[] = {
	{"took", 12, 0}, {"waited", 12, 1}, {"times", 10, 2}, {"longest", 12, 3}};

typedef struct FaultSum {
	uint32_t key; /* enum fault_class, or Timeline::objects */
	uint64_t count, ns, waited_ns, longest_ns;
} FaultSum;

static void add(FaultSum *sum, const Fault *fault)
{
	uint64_t ns = fault->end_ns - fault->start_ns;

	sum->count++;
	sum->ns += ns;
	sum->waited_ns += fault->waited_ns;
	sum->longest_ns = MAX(sum->longest_ns, ns);
}

static void add_by_class(FaultSum sums[FAULT_CLASSES], const Thread *thread)
{
	for (size_t i = 0; i < thread->faults.count; i++)
		add(&sums[fault_class(&thread->faults.items[i])], &thread->faults.items[i]);
}

/* Sorts the longest first. */
static int compare_sums(const void *a, const void *b)
{
	const FaultSum *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns > y->ns ? -1 : 1;
	return x->key < y->key ? -1 : x->key > y->key;
}

/* Returns the sums by file, as many as there are in Timeline::objects; the caller frees them. */
static FaultSum *sum_files(const Timeline *timeline)
{
	size_t count = timeline->objects.list.count;
	FaultSum *sums = xcalloc(MAX(count, (size_t)1), sizeof(*sums));

	for (size_t i = 0; i < count; i++)
		sums[i].key = i;
	for (size_t i = 0; i < timeline->threads.count; i++) {
		const Thread *thread = &timeline->threads.items[i];

		for (size_t j = 0; j < thread->faults.count; j++) {
			const Fault *fault = &thread->faults.items[j];
			uint32_t object = objects_alike(&timeline->objects, fault->file);

			if (object != OBJECT_NONE)
				add(&sums[object], fault);
		}
	}
	if (count > 1)
		qsort(sums, count, sizeof(*sums), compare_sums);
	return sums;
}

static void print_sum(const Table *table, const FaultSum *sum, const char *name)
{
	_cleanup_free_ char *text = text_printable(name);
	const char *cells[] = {DURATION(sum->ns), DURATION(sum->waited_ns), COUNT(sum->count),
			       DURATION(sum->longest_ns)};

	page_table_row(table, cells, text);
}

static void print_files(const Report *report)
{
	const Timeline *timeline = report->timeline;
	_cleanup_free_ FaultSum *sums = sum_files(timeline);
	FaultSum others = {};
	size_t left = 0;
	Table table;

	page_table_init(&table, report->page, columns, ARRAY_LEN(columns), report->max_rank);
	for (size_t i = 0; i < timeline->objects.list.count && sums[i].count > 0; i++) {
		page_table_head(&table, "page faults by file");
		if (i < report->rows) {
			print_sum(&table, &sums[i], timeline->objects.list.items[sums[i].key].name);
			continue;
		}
		others.count += sums[i].count;
		others.ns += sums[i].ns;
		others.waited_ns += sums[i].waited_ns;
		others.longest_ns = MAX(others.longest_ns, sums[i].longest_ns);
		left++;
	}
	if (left > 0) {
		_cleanup_free_ char *text = text_others(left, /* files= */ true);

		print_sum(&table, &others, text);
	}
}

void report_faults_print(const Report *report)
{
	const Timeline *timeline = report->timeline;
	FaultSum sums[FAULT_CLASSES] = {};
	Table table;

	for (size_t i = 0; i < FAULT_CLASSES; i++)
		sums[i].key = i;
	for (size_t i = 0; i < timeline->threads.count; i++)
		add_by_class(sums, &timeline->threads.items[i]);
	qsort(sums, FAULT_CLASSES, sizeof(*sums), compare_sums);
	page_table_init(&table, report->page, columns, ARRAY_LEN(columns), report->max_rank);
	for (size_t i = 0; i < FAULT_CLASSES; i++) {
		if (sums[i].count == 0 || (report->brief && i >= report->rows))
			continue;
		page_table_head(&table, "page faults by class");
		print_sum(&table, &sums[i], fault_class_label(sums[i].key));
	}
	if (!report->brief)
		print_files(report);
}

static void write_sum(Json *json, const FaultSum *sum)
{
	json_key_u64(json, "count", sum->count);
	json_key_u64(json, "ns", sum->ns);
	json_key_u64(json, "waited_ns", sum->waited_ns);
	json_key_u64(json, "longest_ns", sum->longest_ns);
}

void report_faults_of_thread(Json *json, const Thread *thread)
{
	FaultSum sums[FAULT_CLASSES] = {};

	add_by_class(sums, thread);
	json_key_object(json, "faults");
	for (size_t i = 0; i < FAULT_CLASSES; i++) {
		if (sums[i].count == 0)
			continue;
		json_key_object(json, fault_class_label(i));
		write_sum(json, &sums[i]);
		json_end_object(json);
	}
	json_end_object(json);
}

void report_faulted_files(Json *json, const Timeline *timeline)
{
	_cleanup_free_ FaultSum *sums = sum_files(timeline);

	json_key_array(json, "faulted_files");
	for (size_t i = 0; i < timeline->objects.list.count && sums[i].count > 0; i++) {
		json_begin_object(json);
		json_key_string(json, "path", timeline->objects.list.items[sums[i].key].name);
		write_sum(json, &sums[i]);
		json_end_object(json);
	}
	json_end_array(json);
}
