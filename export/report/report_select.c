/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report_select.h"
#include "report_sections.h"
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>

/* ---- reading ------------------------------------------------------------------------------- */

typedef struct Text {
	const char *start;
	size_t size;
} Text;

/* Returns the end of the string that begins at p. */
static const char *string_end(const char *p)
{
	for (p++; *p != '"'; p++)
		p += *p == '\\';
	return p + 1;
}

/* Returns the end of the value that begins at p. */
static const char *value_end(const char *p)
{
	size_t depth = 0;

	do {
		if (*p == '"') {
			p = string_end(p);
			continue;
		}
		depth += *p == '{' || *p == '[';
		depth -= *p == '}' || *p == ']';
		p++;
	} while (depth > 0 || (*p && !strchr(",]}", *p)));
	return p;
}

/* A list of the report, or a member that is not cut: it has one element. */
typedef struct List {
	Text parent, key; /* parent: of which member; empty: of the report itself */
	bool is_list, is_header;
	VEC(Text) elements;
	uint32_t *order; /* of elements: what matters most comes first; the caller frees it */
	bool *kept;	 /* by element */
	size_t taken;	 /* how many of order are decided */
	size_t count;	 /* how many are kept */
	size_t line;	 /* of the table of what matters most */
} List;

typedef VEC(List) Lists;

static bool is_text(Text text, const char *wanted)
{
	return text.size == strlen(wanted) && !memcmp(text.start, wanted, text.size);
}

static bool is_same(Text a, Text b)
{
	return a.size == b.size && !memcmp(a.start, b.start, a.size);
}

/* Returns the list's name, "critical_path.places"; the caller frees it. */
static char *list_name(const List *list)
{
	return xasprintf("%.*s%s%.*s", (int)list->parent.size, list->parent.start,
			 list->parent.size ? "." : "", (int)list->key.size, list->key.start);
}

/* Reads the elements of the array that begins at p. */
static void read_elements(List *list, const char *p)
{
	for (p++; *p != ']';) {
		const char *end = value_end(p);

		*vec_push(&list->elements) = (Text){p, end - p};
		p = end + (*end == ',');
	}
}

/* These say what the report is about and are always there. */
static bool is_header(Text key)
{
	static const char *const keys[] = {"format",	 "wallprof", "kernel",	 "command",
					   "start_time", "complete", "window_ns"};

	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		if (is_text(key, keys[i]))
			return true;
	return false;
}

/* Objects of which lists are cut; other objects are kept or left out as a whole. */
static bool has_lists(Text key)
{
	return is_text(key, "answer") || is_text(key, "critical_path") || is_text(key, "stacks") ||
	       is_text(key, "timeline");
}

/* Reads a member and returns where the next one begins, or the end of the object. */
static const char *read_member(Lists *lists, Text parent, const char *p);

static const char *read_object(Lists *lists, Text parent, const char *p)
{
	for (p++; *p != '}';)
		p = read_member(lists, parent, p);
	return p + 1;
}

static const char *read_member(Lists *lists, Text parent, const char *p)
{
	Text key = {p + 1, string_end(p) - p - 2};
	const char *value = key.start + key.size + 2, *end = value_end(value);
	List *list;

	if (*value == '{' && parent.size == 0 && has_lists(key)) {
		read_object(lists, key, value);
		return end + (*end == ',');
	}
	list = vec_push(lists);
	*list = (List){.parent = parent, .key = key, .is_list = *value == '['};
	list->is_header = parent.size == 0 && is_header(key);
	if (list->is_list)
		read_elements(list, value);
	else
		*vec_push(&list->elements) = (Text){value, end - value};
	return end + (*end == ',');
}

static void lists_free(Lists *lists)
{
	for (size_t i = 0; i < lists->count; i++) {
		vec_free(&lists->items[i].elements);
		free(lists->items[i].order);
		free(lists->items[i].kept);
	}
	vec_free(lists);
}

/* ---- what matters most --------------------------------------------------------------------- */

/*
 * In this order lists get room: in each round so many elements, from a round on. What has no line
 * here comes after them.
 */
static const struct {
	const char *name;
	size_t step, round;
} order[] = {
	{"answer.is_path", 1, 0},
	{"answer.ns", 1, 0},
	{"answer.parts", 5, 0},
	{"answer.waited_for", 1, 0},
	{"critical_path.length_ns", 1, 0},
	{"critical_path.end_tid", 1, 0},
	{"no_critical_path", 1, 0},
	{"timeline.tid", 1, 0},
	{"timeline.name", 1, 0},
	{"timeline.lifetime_ns", 1, 0},
	{"timeline.intervals", 10, 0},
	{"critical_path.places", 3, 0},
	{"critical_path.threads", 2, 0},
	{"waits", 2, 0},
	{"running_functions", 3, 0},
	{"notes", 1, 0},
	{"holders", 1, 0},
	{"threads", 1, 0},
	{"wait_functions", 1, 1},
	{"places", 3, 1},
	{"waited_objects", 1, 1},
	{"devices", 1, 1},
	{"io_files", 1, 1},
	{"processes", 1, 1},
	{"faulted_files", 1, 1},
	{"rivals", 1, 2},
	{"wakers", 1, 2},
	{"cpus", 1, 2},
	{"run_queue", 1, 3},
	{"losses", 1, 3},
	{"functions", 1, 4},
	{"totals", 1, 4},
};

#define LAST_ROUND 4

/* Returns the list's line in the table, or one past its end. */
static size_t line_of(const List *list)
{
	_cleanup_free_ char *name = list_name(list);
	size_t i = 0;

	while (i < ARRAY_LEN(order) && strcmp(order[i].name, name) != 0)
		i++;
	return i;
}

static int compare_lists(const void *a, const void *b)
{
	const List *x = a, *y = b;
	if (x->is_header != y->is_header)
		return x->is_header ? -1 : 1;
	if (x->line != y->line)
		return x->line < y->line ? -1 : 1;
	return (x->key.start > y->key.start) - (x->key.start < y->key.start);
}

/* Returns the duration that an interval of a timeline begins with. */
static uint64_t duration_of(Text element)
{
	static const char key[] = "\"duration_ns\":";
	const char *at = memmem(element.start, element.size, key, strlen(key));

	return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

static int compare_durations(const void *a, const void *b, void *user)
{
	const List *list = user;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	uint64_t x_ns = duration_of(list->elements.items[x]);
	uint64_t y_ns = duration_of(list->elements.items[y]);

	if (x_ns != y_ns)
		return x_ns > y_ns ? -1 : 1;
	return (x > y) - (x < y);
}

/* Lists begin with what matters most; of a timeline, which is in order of time, it is the longest.
 */
static void set_order(List *list)
{
	list->order = xcalloc(list->elements.count + 1, sizeof(*list->order));
	list->kept = xcalloc(list->elements.count + 1, sizeof(*list->kept));
	for (size_t i = 0; i < list->elements.count; i++)
		list->order[i] = i;
	if (is_text(list->parent, "timeline") && list->is_list && list->elements.count > 1)
		qsort_r(list->order, list->elements.count, sizeof(*list->order), compare_durations,
			list);
}

/* ---- sizes --------------------------------------------------------------------------------- */

typedef struct Selector {
	const ReportSelection *wanted;
	uint64_t limit; /* 0: none */
	Lists lists;
	uint64_t size; /* of all that is kept, with "omitted" */
} Selector;

/* Returns the length of the text that a function writes. */
static uint64_t written_size(const Selector *selector, void (*write)(const Selector *, FILE *))
{
	char *text = NULL;
	size_t size = 0;
	FILE *file = open_memstream(&text, &size);

	if (!file)
		return 0;
	write(selector, file);
	fclose(file);
	free(text);
	return size;
}

/* Single values of a member that has lists are not worth to be counted. */
static size_t omitted_of(const List *list)
{
	return list->parent.size > 0 && !list->is_list ? 0 : list->elements.count - list->count;
}

/* Writes ,"omitted":{"waits":312}. */
static void write_omitted(const Selector *selector, FILE *file)
{
	const char *separator = "";

	fputs(",\"omitted\":{", file);
	for (size_t i = 0; i < selector->lists.count; i++) {
		const List *list = &selector->lists.items[i];
		_cleanup_free_ char *name = list_name(list);

		if (omitted_of(list) == 0)
			continue;
		fprintf(file, "%s\"%s\":%zu", separator, name, omitted_of(list));
		separator = ",";
	}
	fputs("}", file);
}

static bool is_there(const List *list)
{
	return list->count > 0 || (list->is_list && omitted_of(list) == 0);
}

static void write_member(const List *list, FILE *file)
{
	const char *separator = "";

	fprintf(file, "\"%.*s\":%s", (int)list->key.size, list->key.start,
		list->is_list ? "[" : "");
	for (size_t i = 0; i < list->elements.count; i++) {
		if (!list->kept[i])
			continue;
		fputs(separator, file);
		fwrite(list->elements.items[i].start, 1, list->elements.items[i].size, file);
		separator = ",";
	}
	if (list->is_list)
		fputc(']', file);
}

/* Writes the members of one parent, each with a comma before it unless it is the first. */
static void write_members(const Selector *selector, Text parent, FILE *file)
{
	const char *separator = "";

	for (size_t i = 0; i < selector->lists.count; i++) {
		const List *list = &selector->lists.items[i];

		if (!is_same(list->parent, parent) || !is_there(list))
			continue;
		fputs(separator, file);
		write_member(list, file);
		separator = ",";
	}
}

/* Returns whether the list is the first one of its parent that is there. */
static bool is_first(const Selector *selector, size_t number)
{
	const List *list = &selector->lists.items[number];

	for (size_t i = 0; i < number; i++)
		if (is_same(selector->lists.items[i].parent, list->parent) &&
		    is_there(&selector->lists.items[i]))
			return false;
	return is_there(list);
}

/* The header, what is omitted, then the rest: what matters most comes first. */
static void write_report(const Selector *selector, FILE *file)
{
	bool omitted = false;
	char separator = '{';

	for (size_t i = 0; i < selector->lists.count; i++) {
		const List *list = &selector->lists.items[i];

		if (!list->is_header && !omitted) {
			write_omitted(selector, file);
			omitted = true;
		}
		if (!is_there(list) || (list->parent.size > 0 && !is_first(selector, i)))
			continue;
		fputc(separator, file);
		separator = ',';
		if (list->parent.size == 0) {
			write_member(list, file);
			continue;
		}
		fprintf(file, "\"%.*s\":{", (int)list->parent.size, list->parent.start);
		write_members(selector, list->parent, file);
		fputc('}', file);
	}
	if (!omitted)
		write_omitted(selector, file);
	fputs("}\n", file);
}

/* ---- choosing ------------------------------------------------------------------------------ */

/* Returns by how much the text grows if the list gets its next element. */
static uint64_t cost_of_next(const Selector *selector, const List *list)
{
	uint64_t cost = list->elements.items[list->order[list->taken]].size + 1; /* comma */
	bool parent_is_there = list->parent.size == 0;

	if (list->count > 0)
		return cost;
	for (size_t i = 0; i < selector->lists.count && !parent_is_there; i++)
		parent_is_there = is_same(selector->lists.items[i].parent, list->parent) &&
				  is_there(&selector->lists.items[i]);
	if (!parent_is_there)
		cost += list->parent.size + strlen("\"\":{},");
	return cost + list->key.size + strlen("\"\":") + (list->is_list ? strlen("[]") : 0);
}

/* Gives the list up to `step` more elements that fit; returns whether it can have more later. */
static bool give(Selector *selector, List *list, size_t step)
{
	size_t most = list->elements.count;

	if (selector->wanted->top && list->is_list)
		most = MIN(most, selector->wanted->top);
	for (; step > 0 && list->taken < most; step--) {
		uint64_t cost = cost_of_next(selector, list);

		if (selector->limit && selector->size + cost > selector->limit) {
			list->taken = most; /* what comes after it matters less */
			return false;
		}
		selector->size += cost;
		list->kept[list->order[list->taken++]] = true;
		list->count++;
	}
	return list->taken < most;
}

static void choose(Selector *selector)
{
	bool more = true;

	for (size_t round = 0; more || round <= LAST_ROUND; round++) {
		more = false;
		for (size_t i = 0; i < selector->lists.count; i++) {
			List *list = &selector->lists.items[i];
			bool known = list->line < ARRAY_LEN(order);

			if (list->is_header || (known && order[list->line].round > round) ||
			    (!known && round == 0))
				continue;
			more |= give(selector, list, known ? order[list->line].step : 1);
		}
	}
}

/*
 * Keeps the header alone. "omitted" is then longest, so what is chosen afterwards by its own size
 * always fits.
 */
static void choose_nothing(Selector *selector)
{
	for (size_t i = 0; i < selector->lists.count; i++) {
		List *list = &selector->lists.items[i];

		memset(list->kept, 0, list->elements.count * sizeof(*list->kept));
		list->taken = list->count = list->is_header;
		if (list->is_header)
			list->kept[0] = true;
	}
	selector->size = written_size(selector, write_report);
}

/* Leaves the members of other sections out: they are not asked for, and not counted. */
static void choose_section(Lists *lists, const char *section)
{
	size_t kept = 0;

	for (size_t i = 0; i < lists->count; i++) {
		List *list = &lists->items[i];
		Text member = list->parent.size ? list->parent : list->key;
		_cleanup_free_ char *name = xasprintf("%.*s", (int)member.size, member.start);

		if (!section || list->is_header || report_section_has_member(section, name))
			lists->items[kept++] = *list;
		else
			vec_free(&list->elements);
	}
	lists->count = kept;
}

static int write_part(const Selector *selector, Output *output)
{
	char *text = NULL;
	size_t size = 0;
	FILE *file = open_memstream(&text, &size);

	if (!file)
		return -ENOMEM;
	write_report(selector, file);
	fclose(file);
	output_write(output, text, size);
	free(text);
	return 0;
}

int report_select(Output *output, const char *json, const ReportSelection *selection,
		  uint64_t *ret_smallest)
{
	Selector selector = {.wanted = selection};
	int error = 0;

	read_object(&selector.lists, (Text){}, json);
	choose_section(&selector.lists, selection->section);
	for (size_t i = 0; i < selector.lists.count; i++)
		selector.lists.items[i].line = line_of(&selector.lists.items[i]);
	if (selector.lists.count > 1)
		qsort(selector.lists.items, selector.lists.count, sizeof(List), compare_lists);
	for (size_t i = 0; i < selector.lists.count; i++)
		set_order(&selector.lists.items[i]);
	choose_nothing(&selector);
	*ret_smallest = selector.size;
	choose(&selector);
	if (selection->limit && written_size(&selector, write_report) > selection->limit) {
		choose_nothing(&selector);
		selector.limit = selection->limit;
		if (selector.size <= selector.limit)
			choose(&selector);
		else
			error = -ENOSPC;
	}
	if (!error)
		error = write_part(&selector, output);
	lists_free(&selector.lists);
	return error;
}
