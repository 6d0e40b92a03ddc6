/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "short_names.h"
#include "test_tools.h"
#include "timeline_fixture.h"

static void expect_label(const char *label, const char *name, const char *wanted)
{
	Timeline *t = fixture_new(NSEC_PER_MSEC);
	uint32_t process = fixture_process(t, 7, name, 0, NSEC_PER_MSEC);
	uint32_t thread = fixture_thread(t, process, 7, name, 0, NSEC_PER_MSEC);
	char *text;

	free(t->processes.items[process].label);
	t->processes.items[process].label = xstrdup(label);
	text = short_names_thread(t, &t->threads.items[thread]);
	assert_string_equal(text, wanted);
	free(text);
	timeline_free(t);
}

/* What a title says of the moment is left out; a long label is cut between characters. */
static void test_labels(void **state)
{
	(void)state;
	expect_label("cc1 slow.c", "cc1", "cc1 slow.c");
	expect_label("postgres: joe base [local] UPDATE waiting", "postgres",
		     "postgres: joe base [local]…");
	expect_label("postgres: joe base [local]", "postgres", "postgres: joe base [local]");
	expect_label("nginx: cache manager process", "nginx", "nginx: cache manager process");
	expect_label("nginx: worker process is shutting down", "nginx",
		     "nginx: worker process is…");
	expect_label("puma: cluster worker 0: 4711 [app]", "puma", "puma: cluster worker 0:…");
	expect_label("sshd: joe@pts/0", "sshd", "sshd: joe@pts/0");
	expect_label("nginx: worker process", "nginx", "nginx: worker process");
	expect_label("app one two three four five", "app", "app one two three four five");
	expect_label("app 4567890123456789012345678901234567890123456", "app",
		     "app 4567890123456789012345678901234567890123…");
	expect_label("äpp ö67890123456789012345678901234567890123456", "äpp",
		     "äpp ö678901234567890123456789012345678901234…");
}

static void expect_object(enum object_kind kind, char *name, const char *wanted, bool exists)
{
	Object object = {.kind = kind, .name = name};
	char *text = short_names_object(&object);

	assert_string_equal(text, wanted);
	assert_int_equal(short_names_exists(&object), exists);
	free(text);
}

static void test_objects(void **state)
{
	(void)state;
	expect_object(OBJECT_FILE, "/etc/passwd", "/etc/passwd", true);
	expect_object(OBJECT_FILE, "/var/lib/postgresql/15/main/pg_wal/000", "…/000", true);
	expect_object(OBJECT_SOCKET, "tcp 10.0.0.1:4711 → 10.0.0.2:80 (curl 12)",
		      "tcp → 10.0.0.2:80", true);
	expect_object(OBJECT_SOCKET, "unix:[7] (psql 1, postgres 2)",
		      "unix:[7] (psql 1, postgres 2)", true);
	expect_object(OBJECT_FUTEX, "0x4080 (app: table_lock)", "table_lock", true);
	expect_object(OBJECT_FUTEX, "0x7f00 (anonymous memory)", "0x7f00 (anonymous memory)",
		      false);
	expect_object(OBJECT_TIMER, "1 s", "1 s", false);
	expect_object(OBJECT_EPOLL, "epoll of pipe:[3], [eventfd]", "epoll of pipe:[3], [eventfd]",
		      false);
	expect_object(OBJECT_EPOLL, "epoll of tcp listening on 0.0.0.0:80",
		      "epoll of tcp listening on 0.0.0.0:80", true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_labels),
		cmocka_unit_test(test_objects),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
