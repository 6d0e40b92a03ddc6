/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whose argument list is whose: through execs, forks, titles, and records that are lost. */
#include "test_tools.h"

#include "make_record.h"
#include "timeline_builder.h"

#define START 1000

static TimelineBuilder *builder;

static void add(void *record, uint64_t ns)
{
	((struct record *)record)->ns = START + ns;
	timeline_builder_add(builder, record);
	free(record);
}

static void add_process(uint32_t pid, uint32_t parent, uint64_t ns)
{
	struct rec_task *task = (struct rec_task *)make_task(pid, pid, pid);

	task->h.flags = parent ? TASK_BIRTH : 0;
	task->parent_tgid = parent;
	task->creator_tid = parent;
	strcpy(task->comm, "old");
	add(task, ns);
}

static void add_exec(uint32_t pid, uint32_t exec_id, uint64_t ns)
{
	struct rec_exec *exec = make_record(REC_EXEC, 0, 0, sizeof(*exec), NULL, 0);

	exec->tid = exec->old_tid = exec->tgid = pid;
	exec->exec_id = exec_id;
	strcpy(exec->comm, "new");
	add(exec, ns);
}

static void add_args(uint32_t pid, uint32_t exec_id, int flags, const char *text, uint64_t ns)
{
	size_t size = strlen(text) + 1;
	struct rec_args *args =
		make_record(REC_ARGS, flags, 0, offsetof(struct rec_args, text), text, size);

	args->tgid = pid;
	args->exec_id = exec_id;
	args->size = size;
	args->total = size + (size > 10);
	add(args, ns);
}

static void add_window(int flags, uint64_t ns)
{
	struct rec_window *window = make_record(REC_WINDOW, flags, 0, sizeof(*window), NULL, 0);

	add(window, ns);
}

static void begin(void)
{
	builder = timeline_builder_new();
	add_window(WINDOW_START | WINDOW_ATTACHED, 0);
	add_process(10, 0, 1);
}

static Timeline *finish(void)
{
	add_window(WINDOW_END, 100);
	return timeline_builder_finish(builder);
}

/* args: args_text(); NULL: it must have none. */
static void check(const Timeline *timeline, uint32_t pid, const char *args, bool is_inherited,
		  const char *label)
{
	for (size_t i = 0; i < timeline->processes.count; i++) {
		const Process *process = &timeline->processes.items[i];
		_cleanup_free_ char *text = args_text(process->args);

		if (process->tgid != pid)
			continue;
		if (args)
			assert_string_equal(text, args);
		else
			assert_null(text);
		assert_int_equal(process->args_inherited, is_inherited);
		assert_string_equal(process->label, label);
		return;
	}
	fail();
}

/* BPF's two records of an exec come in either order. */
static void test_exec(void **state)
{
	Timeline *timeline;

	(void)state;
	for (uint64_t late = 0; late < 2; late++) {
		begin();
		add_args(10, 0, ARGS_FROM_PROC, "first", 2);
		add_args(10, 5, 0, "new a b", 20 + 2 * late);
		add_exec(10, 5, 21);
		timeline = finish();
		check(timeline, 10, "'new a b'", false, "new a b");
		assert_int_equal(timeline->totals[REC_ARGS].received, 1);
		timeline_free(timeline);
	}
}

/* The list of the program before is not that of this one. */
static void test_lost(void **state)
{
	Timeline *timeline;

	(void)state;
	begin();
	add_args(10, 4, 0, "before", 2);
	add_exec(10, 5, 20);
	timeline = finish();
	check(timeline, 10, NULL, false, "new");
	timeline_free(timeline);
}

static void test_fork(void **state)
{
	Timeline *timeline;

	(void)state;
	begin();
	add_args(10, 0, ARGS_FROM_PROC, "old x", 2);
	add_process(11, 10, 5);
	add_process(12, 10, 6);
	add_args(12, 7, 0, "new y", 7);
	add_exec(12, 7, 8);
	add_process(13, 10, 9);
	/* What /proc shows of a forked process at the end is known already, or is a title. */
	add_args(11, 0, ARGS_FROM_PROC, "old x", 90);
	add_args(13, 0, ARGS_FROM_PROC, "old: busy", 90);
	timeline = finish();
	check(timeline, 10, "'old x'", false, "old x");
	check(timeline, 11, "'old x'", true, "old x (forked)");
	check(timeline, 12, "'new y'", false, "new y");
	check(timeline, 13, "'old: busy'", false, "old: busy");
	timeline_free(timeline);
}

/* A process has given itself a name that is not that of its program: both are in its label. */
static void test_own_name(void **state)
{
	static const char *const lists[][2] = {
		{"other x\0\0\0", "old other x"}, /* a title */
		{"/bin/old", "old"},
		{"/bin/other\0x", "old (other x)"},
		{"python3\0/srv/app.py\0--queue\0mail", "old (python3 app.py --queue mail)"},
		{"other", "old"}, /* without arguments */
	};
	static const size_t sizes[] = {10, 8, 12, 32, 5};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		Process process = {.name = (char *)"old", .args = {lists[i][0], sizes[i], false}};
		_cleanup_free_ char *label = process_make_label(&process), *forked = NULL;

		assert_string_equal(label, lists[i][1]);
		process.args_inherited = true;
		forked = process_make_label(&process);
		assert_string_equal(forked, i == 1 ? "old (forked)" : "old");
	}
}

/* The path that was executed is the program's, whatever its first argument says. */
static void test_own_name_and_path(void **state)
{
	Process process = {.name = (char *)"mailer",
			   .path = (char *)"/usr/bin/python3.13",
			   .args = {"python3\0app.py", 14, false}};
	_cleanup_free_ char *label = process_make_label(&process);

	(void)state;
	assert_string_equal(label, "mailer (python3.13 app.py)");
}

/* Labels are printed to terminals. */
static void test_control_characters(void **state)
{
	static const char *const lists[] = {"x", "a\x1b[2J: busy", "other: busy"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		Process process = {.name = (char *)"a\x1b[2J",
				   .args = {.text = lists[i], .size = strlen(lists[i])}};
		_cleanup_free_ char *label = process_make_label(&process);

		assert_memory_equal(label, "a?[2J", 5);
		assert_null(strchr(label, '\x1b'));
	}
}

static void test_cut(void **state)
{
	Timeline *timeline;

	(void)state;
	begin();
	add_args(10, 0, ARGS_FROM_PROC, "old longer than ten", 2);
	add_args(99, 0, 0, "of no process", 3);
	timeline = finish();
	check(timeline, 10, "'old longer than ten' …", false, "old longer than ten");
	timeline_free(timeline);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exec),
		cmocka_unit_test(test_lost),
		cmocka_unit_test(test_fork),
		cmocka_unit_test(test_own_name),
		cmocka_unit_test(test_own_name_and_path),
		cmocka_unit_test(test_control_characters),
		cmocka_unit_test(test_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
