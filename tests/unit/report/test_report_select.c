/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Parts of a JSON report: always valid, never too large, and what is missing is counted. */
#include "json_reader.h"
#include "report_select.h"
#include "test_tools.h"
#include <errno.h>

#define HEAD                                                                                       \
	"\"format\":2,\"wallprof\":\"1\",\"kernel\":null,\"command\":\"a \\\"b,]}\\\\\","          \
	"\"start_time\":null,\"complete\":true,\"window_ns\":9"

static int select_part(const char *json, const ReportSelection *selection, char **ret_text,
		       uint64_t *ret_smallest)
{
	size_t size;
	FILE *file = open_memstream(ret_text, &size);
	Output *output = output_for_stream(file);
	int error = report_select(output, json, selection, ret_smallest);

	assert_int_equal(output_close(output), 0);
	fclose(file);
	return error;
}

static void check_part(const char *json, const ReportSelection *selection, const char *wanted)
{
	uint64_t smallest;
	char *text;

	assert_int_equal(select_part(json, selection, &text, &smallest), 0);
	assert_string_equal(text, wanted);
	free(text);
}

static const char whole[] =
	"{" HEAD
	",\"threads\":[{\"tid\":1},{\"tid\":2}],\"waits\":[{\"chain\":\"a]\"},{\"chain\":\"b\"}],"
	"\"totals\":{\"switch\":{\"sent\":1}},\"critical_path\":{\"length_ns\":5,\"places\":[1,2,3]"
	"},"
	"\"unheard_of\":[[],{}]}\n";

static void test_all(void **state)
{
	const ReportSelection all = {.timeline = UINT32_MAX};

	(void)state;
	check_part(whole, &all,
		   "{" HEAD
		   ",\"omitted\":{},\"critical_path\":{\"length_ns\":5,\"places\":[1,2,3]},"
		   "\"waits\":[{\"chain\":\"a]\"},{\"chain\":\"b\"}],\"threads\":[{\"tid\":1},{"
		   "\"tid\":2}],"
		   "\"totals\":{\"switch\":{\"sent\":1}},\"unheard_of\":[[],{}]}\n");
}

static void test_top(void **state)
{
	const ReportSelection top = {.top = 1};

	(void)state;
	check_part(whole, &top,
		   "{" HEAD ",\"omitted\":{\"critical_path.places\":2,\"waits\":1,\"threads\":1,"
		   "\"unheard_of\":1},\"critical_path\":{\"length_ns\":5,\"places\":[1]},"
		   "\"waits\":[{\"chain\":\"a]\"}],\"threads\":[{\"tid\":1}],"
		   "\"totals\":{\"switch\":{\"sent\":1}},\"unheard_of\":[[]]}\n");
}

static void test_section(void **state)
{
	const ReportSelection waits = {.section = "waits"};

	(void)state;
	check_part(whole, &waits,
		   "{" HEAD ",\"omitted\":{},\"waits\":[{\"chain\":\"a]\"},{\"chain\":\"b\"}]}\n");
}

/* Of a timeline the longest intervals are kept, in order of time. */
static void test_timeline(void **state)
{
	static const char json[] =
		"{" HEAD
		",\"timeline\":{\"tid\":7,\"intervals\":[{\"start_ns\":0,\"duration_ns\":5},"
		"{\"start_ns\":5,\"duration_ns\":1},{\"start_ns\":6,\"duration_ns\":9}]}}\n";
	const ReportSelection top = {.top = 2};

	(void)state;
	check_part(json, &top,
		   "{" HEAD ",\"omitted\":{\"timeline.intervals\":1},\"timeline\":{\"tid\":7,"
		   "\"intervals\":[{\"start_ns\":0,\"duration_ns\":5},"
		   "{\"start_ns\":6,\"duration_ns\":9}]}}\n");
}

/* Every limit from the smallest one on is kept, and a larger one never leaves out more. */
static void test_limits(void **state)
{
	const ReportSelection tiny = {.limit = 1};
	uint64_t smallest, least;
	size_t last_size = 0;
	char *text;

	(void)state;
	assert_int_equal(select_part(whole, &tiny, &text, &smallest), -ENOSPC);
	assert_string_equal(text, "");
	free(text);
	for (uint64_t limit = smallest - 1; limit < sizeof(whole) + 50; limit++) {
		const ReportSelection selection = {.limit = limit};
		int error = select_part(whole, &selection, &text, &least);

		assert_int_equal(error, limit < smallest ? -ENOSPC : 0);
		assert_int_equal(least, smallest);
		if (!error) {
			Node *node = node_read(text);

			assert_true(strlen(text) <= limit);
			assert_non_null(node_find(node, "omitted"));
			node_free(node);
		}
		last_size = strlen(text);
		free(text);
	}
	assert_int_equal(last_size, sizeof(whole) - 1 + strlen(",\"omitted\":{}"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all),	cmocka_unit_test(test_top),
		cmocka_unit_test(test_section), cmocka_unit_test(test_timeline),
		cmocka_unit_test(test_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
