/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report_places.h"
#include "functions.h"
#include "text.h"

static void add_row(void *user, const Row *row)
{
	Places *places = user;
	uint32_t function = stack_table_leaf_function(places->tables, row->stack);
	enum category category = stack_table_leaf_category(places->tables, row->stack);
	uint64_t key = (uint64_t)function << 32 | category;
	uint32_t number = map_get(&places->index, key);

	if (number == MAP_NONE) {
		number = places->list.count;
		map_set(&places->index, key, number);
		*vec_push(&places->list) = (Place){function, row->stack, category, 0};
	}
	places->list.items[number].ns += row->weight_ns;
	while (places->stack_ns.count <= row->stack)
		*vec_push(&places->stack_ns) = 0;
	places->stack_ns.items[row->stack] += row->weight_ns;
}

static int compare_places(const void *a, const void *b)
{
	const Place *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns > y->ns ? -1 : 1;
	return x->function < y->function ? -1 : x->function > y->function;
}

void report_places_init(Places *places, const Timeline *timeline, Frames *frames)
{
	*places = (Places){.tables = stack_table_new(timeline, frames)};
	row_plan_init(&places->plan, timeline, 0);
}

void report_places_add(Places *places, uint32_t thread)
{
	sample_rows_walk(places->tables, &places->plan, thread, true, add_row, places);
}

void report_places_add_all(Places *places)
{
	const Timeline *timeline = places->tables->timeline;

	for (size_t i = 0; i < timeline->threads.count; i++)
		report_places_add(places, i);
}

void report_places_free(Places *places)
{
	row_plan_free(&places->plan);
	map_free(&places->index);
	vec_free(&places->list);
	vec_free(&places->stack_ns);
	stack_table_free(places->tables);
}

uint64_t report_places_time(const Places *places, enum category category)
{
	uint64_t ns = 0;

	for (size_t i = 0; i < places->list.count; i++)
		if (places->list.items[i].category == category)
			ns += places->list.items[i].ns;
	return ns;
}

char *report_place_text(const char *function, const char *library, bool kernel)
{
	_cleanup_free_ char *text =
		kernel ? xasprintf("%s (kernel)", function) : function_text(function, library);

	return text_printable(text);
}

char *report_place_name(const Places *places, const Place *place)
{
	return report_place_text(stack_table_leaf_name(places->tables, place->stack),
				 stack_table_leaf_library(places->tables, place->stack),
				 place->category == CATEGORY_KERNEL);
}

void report_places_sort(Places *places)
{
	if (places->list.count > 1)
		qsort(places->list.items, places->list.count, sizeof(Place), compare_places);
}
