/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "page_table.h"
#include "report_sections.h"
#include "text.h"

#define FUNCTIONS_WRITTEN 1000 /* to JSON */

static const TableColumn columns[] = {{"self", 12, 0}, {"%", 7, 1}, {"total", 12, 2}, {"%", 7, 3}};

typedef struct HotFunction {
	const char *name, *library; /* of the tables; library may be NULL */
	bool kernel;
	uint64_t self_ns, total_ns;
	uint32_t stack; /* the last stack that it was counted for */
} HotFunction;

typedef struct HotFunctions {
	VEC(HotFunction) list; /* the largest self time first */
	Map index;	       /* (name, library, kernel) -> list */
	uint64_t running_ns;
} HotFunctions;

/*
 * Returns the function of a stack's leaf. The tables have each text once, so pointers are compared.
 */
static HotFunction *function_of(HotFunctions *functions, const Places *places, uint32_t stack)
{
	HotFunction wanted = {
		.name = stack_table_leaf_name(places->tables, stack),
		.library = stack_table_leaf_library(places->tables, stack),
		.kernel = stack_table_leaf_category(places->tables, stack) == CATEGORY_KERNEL,
		.stack = UINT32_MAX,
	};
	uint64_t key = hash_mix((uintptr_t)wanted.name, (uintptr_t)wanted.library ^ wanted.kernel);
	uint32_t number = map_get(&functions->index, key);

	if (number == MAP_NONE) {
		number = functions->list.count;
		map_set(&functions->index, key, number);
		*vec_push(&functions->list) = wanted;
	}
	return &functions->list.items[number];
}

/* Pseudo frames such as "[truncated: …]" and "[recursion: …]" are no functions, and call nothing.
 */
static bool is_pseudo(const Places *places, uint32_t stack)
{
	return !stack_table_leaf_library(places->tables, stack) &&
	       *stack_table_leaf_name(places->tables, stack) == '[';
}

static void add_stack(HotFunctions *functions, const Places *places, uint32_t stack, uint64_t ns)
{
	functions->running_ns += ns;
	for (uint32_t at = stack; at != UINT32_MAX;
	     at = stack_table_stack_prefix(places->tables, at)) {
		HotFunction *function;

		if (at != stack && is_pseudo(places, at))
			continue;
		function = function_of(functions, places, at);
		if (at == stack)
			function->self_ns += ns;
		if (function->stack != stack)
			function->total_ns += ns;
		function->stack = stack;
	}
}

static int compare_functions(const void *a, const void *b)
{
	const HotFunction *x = a, *y = b;
	int order;

	if (x->self_ns != y->self_ns)
		return x->self_ns > y->self_ns ? -1 : 1;
	if (x->total_ns != y->total_ns)
		return x->total_ns > y->total_ns ? -1 : 1;
	order = strcmp(x->name, y->name);
	return order ? order : strcmp(x->library ? x->library : "", y->library ? y->library : "");
}

static HotFunctions sum_up(const Places *places)
{
	HotFunctions functions = {};

	for (size_t i = 0; i < places->stack_ns.count; i++) {
		uint64_t ns = places->stack_ns.items[i];
		enum category category;

		if (ns == 0)
			continue;
		category = stack_table_leaf_category(places->tables, i);
		if (category == CATEGORY_USER || category == CATEGORY_KERNEL ||
		    category == CATEGORY_RECORDING)
			add_stack(&functions, places, i, ns);
	}
	if (functions.list.count > 1)
		qsort(functions.list.items, functions.list.count, sizeof(HotFunction),
		      compare_functions);
	return functions;
}

static void hot_functions_free(HotFunctions *functions)
{
	vec_free(&functions->list);
	map_free(&functions->index);
}

/* ---- text ---------------------------------------------------------------------------------- */

static void print_function(const Table *table, const HotFunction *function, uint64_t running_ns)
{
	_cleanup_free_ char *name =
		report_place_text(function->name, function->library, function->kernel);
	const char *cells[] = {DURATION(function->self_ns), PERCENT(function->self_ns, running_ns),
			       DURATION(function->total_ns),
			       PERCENT(function->total_ns, running_ns)};

	page_table_row(table, cells, name);
}

void report_functions_print(const Report *report)
{
	HotFunctions functions = sum_up(report->places);
	uint64_t left_ns = 0;
	size_t left = 0;
	Table table;

	page_table_init(&table, report->page, columns, ARRAY_LEN(columns), report->max_rank);
	if (functions.running_ns > 0)
		page_table_head(&table, "functions that ran");
	for (size_t i = 0; i < functions.list.count && functions.list.items[i].self_ns > 0; i++) {
		if (i < report->rows) {
			print_function(&table, &functions.list.items[i], functions.running_ns);
			continue;
		}
		left_ns += functions.list.items[i].self_ns;
		left++;
	}
	if (left > 0 && !report->brief) {
		_cleanup_free_ char *text = text_others(left, /* files= */ false);
		const char *cells[] = {DURATION(left_ns), PERCENT(left_ns, functions.running_ns),
				       "", ""};

		page_table_row(&table, cells, text);
	}
	hot_functions_free(&functions);
}

/* ---- JSON ---------------------------------------------------------------------------------- */

void report_functions(Json *json, const Places *places)
{
	HotFunctions functions = sum_up(places);

	json_key_u64(json, "running_function_count", functions.list.count);
	json_key_array(json, "running_functions");
	for (size_t i = 0; i < MIN(functions.list.count, (size_t)FUNCTIONS_WRITTEN); i++) {
		const HotFunction *function = &functions.list.items[i];

		json_begin_object(json);
		json_key_string(json, "function", function->name);
		if (function->library)
			json_key_string(json, "library", function->library);
		else
			json_key_null(json, "library");
		json_key_bool(json, "kernel", function->kernel);
		json_key_u64(json, "self_ns", function->self_ns);
		json_key_u64(json, "total_ns", function->total_ns);
		json_end_object(json);
	}
	json_end_array(json);
	hot_functions_free(&functions);
}
