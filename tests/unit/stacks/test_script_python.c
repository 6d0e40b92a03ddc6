/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lines of Python's code are read from each version's table, and tables with anything in them. */
#include "script_language.h"
#include "test_tools.h"
#include "util.h"
#include <string.h>

static uint32_t line_of(uint16_t version, const uint8_t *table, size_t size, int32_t at)
{
	_cleanup_free_ struct rec_script_code *code = xcalloc(1, sizeof(*code) + size);

	code->version = version;
	code->first_line = 10;
	code->table_bytes = size;
	memcpy(code->table, table, size);
	return script_python.line(code, at);
}

#define EXPECT(version, table, at, line)                                                           \
	assert_int_equal(line_of(version, table, sizeof(table), at), line)

/* Objects/lnotab_notes.txt: bytes, lines; a line before the one before is negative. */
static void test_lnotab(void **state)
{
	static const uint8_t table[] = {6, 1, 50, 2, 4, 0xff};

	(void)state;
	EXPECT(0x0308, table, -1, 10);
	EXPECT(0x0308, table, 0, 10);
	EXPECT(0x0308, table, 6, 11);
	EXPECT(0x0309, table, 55, 11);
	EXPECT(0x0309, table, 56, 13);
	EXPECT(0x0309, table, 60, 12);
}

/* PEP 626: each pair is about the bytes before; -128 is no line. */
static void test_pairs(void **state)
{
	static const uint8_t table[] = {4, 1, 8, 2, 2, 0x80, 2, 1};

	(void)state;
	EXPECT(0x030a, table, 0, 11);
	EXPECT(0x030a, table, 4, 13);
	EXPECT(0x030a, table, 12, 0);
	EXPECT(0x030a, table, 14, 14);
	EXPECT(0x030a, table, 16, 0);
}

#define ENTRY(kind, units) (0x80 | (kind) << 3 | ((units)-1))

/* Objects/locations.md */
static void test_locations(void **state)
{
	static const uint8_t table[] = {ENTRY(10, 1),
					1,
					2,
					ENTRY(11, 2),
					1,
					2,
					ENTRY(13, 1),
					6,
					ENTRY(15, 1),
					ENTRY(14, 1),
					3,
					0,
					1,
					2,
					ENTRY(3, 1),
					7};

	(void)state;
	EXPECT(0x030b, table, 0, 10);
	EXPECT(0x030b, table, 2, 11);
	EXPECT(0x030c, table, 5, 11);
	EXPECT(0x030c, table, 6, 14);
	EXPECT(0x030d, table, 8, 0);
	EXPECT(0x030d, table, 10, 13);
	EXPECT(0x030d, table, 12, 13);
	EXPECT(0x030d, table, 14, 0);
	EXPECT(0x030d, table, -2, 10);
}

/* Numbers do not end, and lines are out of range: nothing is read beyond the table. */
static void test_hostile(void **state)
{
	uint8_t table[64];

	(void)state;
	for (unsigned value = 0; value < 256; value++) {
		memset(table, value, sizeof(table));
		for (uint16_t version = 0x0308; version <= 0x030d; version++)
			for (size_t size = 0; size < sizeof(table); size++)
				line_of(version, table, size, 1 << 20);
	}
}

static void test_functions(void **state)
{
	(void)state;
	assert_true(script_python.is_evaluator("_PyEval_EvalFrameDefault"));
	assert_true(script_python.is_evaluator("_PyEval_EvalFrameDefault.cold"));
	assert_false(script_python.is_evaluator("_PyEval_EvalFrameDefaults"));
	assert_true(script_python.is_library("/usr/lib/python3.11/queue.py"));
	assert_true(script_python.is_library("/srv/py/lib/python3.13t/asyncio/base_events.py"));
	assert_true(script_python.is_library("<frozen importlib._bootstrap>"));
	assert_false(script_python.is_library("/usr/lib/python3/dist-packages/apt/cache.py"));
	assert_false(script_python.is_library("/v/lib/python3.11/site-packages/flask/app.py"));
	assert_false(script_python.is_library("/srv/python3.x/app.py"));
	assert_false(script_python.is_library("queue.py"));
	assert_true(script_is_library("/usr/lib/python3.13/lib-dynload/_queue.so"));
	assert_false(script_is_library("/usr/lib/x86_64-linux-gnu/libpython3.13.so.1.0"));
	assert_true(script_python.is_glue("_PyFunction_Vectorcall"));
	assert_false(script_python.is_glue("list_sort"));
}

#define THREADING "/usr/lib/python3.11/threading.py"
#define QUEUE	  "/usr/lib/python3.8/queue.py"
#define FUTURES	  "/usr/lib/python3.11/concurrent/futures/_base.py"

/* Each function is judged by what the one that it has called waits for. */
static void test_waits(void **state)
{
	static const struct {
		const char *function, *path;
		enum reason inner, expected;
	} cases[] = {
		{"Condition.wait", THREADING, REASON_NONE, REASON_CONDVAR},
		{"wait", THREADING, REASON_NONE, REASON_CONDVAR},
		{"Event.wait", THREADING, REASON_CONDVAR, REASON_EVENT},
		{"Barrier._wait", THREADING, REASON_CONDVAR, REASON_BARRIER},
		{"Barrier.wait", THREADING, REASON_BARRIER, REASON_BARRIER},
		{"Semaphore.acquire", THREADING, REASON_CONDVAR, REASON_SEMAPHORE},
		{"Thread.join", THREADING, REASON_NONE, REASON_JOIN},
		{"Thread.start", THREADING, REASON_EVENT, REASON_NONE},
		{"get", QUEUE, REASON_CONDVAR, REASON_QUEUE},
		{"get", QUEUE, REASON_NONE, REASON_NONE},
		{"Future.result", FUTURES, REASON_CONDVAR, REASON_FUTURE},
		/* The program's own files of these names. */
		{"get", "/srv/python3/app/queue.py", REASON_CONDVAR, REASON_NONE},
		{"get", "/srv/python3-tools/queue.py", REASON_CONDVAR, REASON_NONE},
		{"get", "/srv/python3.x/queue.py", REASON_CONDVAR, REASON_NONE},
		{"get", "/usr/lib/python3.14t/queue.py", REASON_CONDVAR, REASON_QUEUE},
		{"get", "queue.py", REASON_CONDVAR, REASON_NONE},
		{"get", "", REASON_CONDVAR, REASON_NONE},
		{"get", "/usr/lib/python3", REASON_CONDVAR, REASON_NONE},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_int_equal(
			script_python.wait_reason(cases[i].function, cases[i].path, cases[i].inner),
			cases[i].expected);
	assert_true(script_python.is_queue("simplequeue_get_impl"));
	assert_false(script_python.is_queue("lock_acquire"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lnotab),	  cmocka_unit_test(test_pairs),
		cmocka_unit_test(test_locations), cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_functions), cmocka_unit_test(test_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
