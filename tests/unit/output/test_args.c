/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Argument lists of programs of each kind, titles, and lists of any bytes. */
#include "test_tools.h"

#include "args.h"
#include "json_writer.h"
#include "util.h"

/* The list as the kernel keeps it, from words that are separated by '|'. */
static Args list_of(char *text)
{
	size_t size = strlen(text) + 1;

	for (char *c = text; *c; c++)
		if (*c == '|')
			*c = '\0';
	return (Args){.text = text, .size = size};
}

static void check_label(const char *name, const char *words, const char *wanted)
{
	_cleanup_free_ char *text = xstrdup(words), *label = args_label(name, list_of(text));

	assert_string_equal(label, wanted);
}

static void test_compilers(void **state)
{
	(void)state;
	check_label(
		"cc1",
		"/usr/lib/gcc/cc1|-quiet|-imultiarch|x86_64-linux-gnu|../src/lvm.c|-dumpbase|lvm.c",
		"cc1 lvm.c");
	check_label("cc1plus", "cc1plus|-o|/tmp/ccAbc.s|engine.cpp", "cc1plus engine.cpp");
	check_label("gcc", "x86_64-linux-gnu-gcc-12|-O2|-MF|a.d|-c|-o|a.o|lib/a.c", "gcc a.c");
	check_label("gcc", "gcc|-o|prog|a.c|b.c|c.c", "gcc a.c +2");
	check_label("gcc", "gcc|-o|build/prog|a.o|b.o", "gcc prog");
	check_label("clang-14", "clang-14|-cc1|-o|x.o|x.c", "clang-14 x.c");
	check_label("rustc", "rustc|--crate-name|serde_json|--edition=2021|src/lib.rs",
		    "rustc serde_json");
	check_label("as", "as|-I|.|-o|obj/lvm.o|/tmp/ccXyz.s", "as lvm.o");
	check_label("gcc", "gcc|--version", "gcc --version");
}

static void test_linkers(void **state)
{
	(void)state;
	check_label("ld", "/usr/bin/ld|-plugin|p.so|-o|out/lua|crt1.o", "ld lua");
	check_label("ld.bfd", "ld.bfd|-o|a.out", "ld.bfd a.out");
	check_label("collect2", "collect2|-o|luac|x.o", "collect2 luac");
	check_label("ar", "ar|rcs|libs/liblua.a|x.o|y.o", "ar liblua.a");
}

static void test_interpreters(void **state)
{
	(void)state;
	check_label("python3", "python3|/srv/app/worker.py|--queue|mail",
		    "python3 worker.py --queue mail");
	check_label("python3", "python3.11|-u|-W|ignore|-m|http.server|8000",
		    "python3 -m http.server 8000");
	check_label("python3", "python3|-c|print(1)|x", "python3 -c print(1) x");
	check_label("python3", "python3", "python3");
	/* The kernel has named the process after the script, with at most 15 bytes. */
	check_label("pytest", "/usr/bin/python3|/usr/bin/pytest|-q", "pytest -q");
	check_label("ansible-playboo", "/usr/bin/python3|/usr/bin/ansible-playbook|x.yml",
		    "ansible-playbook x.yml");
	check_label("abcdefghijklmn\xc3", "/usr/bin/python3|/bin/abcdefghijklmn\xc3\xa9.py|x",
		    "abcdefghijklmn\xc3\xa9.py x");
	check_label("py", "/usr/bin/python3|/usr/bin/pytest", "py pytest");
	check_label("build.sh", "/bin/sh|./build.sh|all", "build.sh all");
	check_label("sh", "sh|-c|make -C lib && make install", "sh -c make -C lib && make install");
	check_label("sh", "/bin/sh|-ec|true", "sh -ec true");
	check_label("bash", "bash|-o|pipefail|--|./run-tests.sh|fast", "bash run-tests.sh fast");
	check_label("bash", "-bash", "bash");
	check_label("perl", "perl|-I|lib|-ne|print if /x/", "perl -ne print if /x/");
	check_label("perl", "perl|-I|lib|/usr/bin/ack|x", "perl ack x");
	check_label("node", "node|--require|ts-node|server.js", "node server.js");
	check_label("java", "java|-Xmx1g|-cp|a.jar:b.jar|-jar|build/app.jar|--port=80",
		    "java app.jar --port=80");
	check_label("sh", "sh|-c|0123456789012345678901234567890123456789012345",
		    "sh -c 012345678901234567890123456789012345678…");
}

static void test_others(void **state)
{
	(void)state;
	check_label("make", "make|-j4|all", "make -j4 all");
	check_label("cat", "cat|/usr/share/some/long/folder/names/words.txt|/tmp/a",
		    "cat …/words.txt /tmp/a");
	check_label("sleep", "sleep", "sleep");
	check_label("tool", "tool|a b||c", "tool a b  c");
	check_label("ls", "ls|1234567890|1234567890|1234567890|1234567890|1234567890|1234567890",
		    "ls 1234567890 1234567890 1234567890 1234567890 1234567890 1…");
}

static bool has_name(const char *name, const char *path, const char *words)
{
	_cleanup_free_ char *text = xstrdup(words);

	return args_have_name(name, path, list_of(text));
}

static void test_names(void **state)
{
	(void)state;
	assert_true(has_name("cat", "/usr/bin/cat", "x"));
	assert_true(has_name("cat", NULL, "/bin/cat|x"));
	assert_true(has_name("bash", NULL, "-bash"));
	assert_true(has_name("run-tests.sh", NULL, "/bin/sh|./run-tests.sh|fast"));
	assert_true(has_name("a-very-long-nam", "/usr/bin/a-very-long-name-indeed", "x"));
	assert_true(has_name("nginx", NULL, "nginx: worker process"));
	assert_false(has_name("reader", "/usr/bin/program", "program|file"));
	assert_false(has_name("x", NULL, "cat|a|x"));
	assert_false(has_name("x", NULL, ""));
}

/* What a process writes over its list is one text. */
static void test_titles(void **state)
{
	(void)state;
	check_label("nginx", "nginx: worker process|||", "nginx: worker process");
	check_label("postgres", "postgres: mail [local] UPDATE waiting",
		    "postgres: mail [local] UPDATE waiting");
	check_label("sshd", "sshd: root@pts/0", "sshd: root@pts/0");
	check_label("chromium", "/usr/lib/chromium/chromium --type=renderer --lang=de",
		    "chromium --type=renderer --lang=de");
	check_label("worker", "app: mailer 3", "worker app: mailer 3");
}

static void check_text(const char *words, size_t size, bool is_cut, const char *wanted)
{
	_cleanup_free_ char *text =
		args_text((Args){.text = words, .size = size, .is_cut = is_cut});

	if (wanted)
		assert_string_equal(text, wanted);
	else
		assert_null(text);
}

static void test_text(void **state)
{
	(void)state;
	check_text("", 0, false, NULL);
	check_text(NULL, 0, false, NULL);
	check_text("\0\0", 2, false, NULL);
	check_text("ls\0/tmp", 7, false, "ls /tmp");
	check_text("ls\0/tmp\0", 8, false, "ls /tmp");
	check_text("sh\0-c\0echo 'a'\0", 15, false, "sh -c 'echo '\\''a'\\'''");
	check_text("ls\0/tm", 6, true, "ls /tm …");
	check_text("a\0\0b\0", 5, false, "a '' b");
}

static size_t columns_of(const char *text)
{
	size_t count = 0;

	for (; *text; text++)
		count += ((unsigned char)*text & 0xc0) != 0x80;
	return count;
}

/* Any bytes: the label is short and valid UTF-8, without control characters. */
static void test_any_bytes(void **state)
{
	static const char *const starts[] = {"gcc", "sh", "python3", "java", "ld", "x"};

	(void)state;
	for (int round = 0; round < 2000; round++) {
		char bytes[300];
		size_t size = random_below(sizeof(bytes));
		const char *start = starts[random_below(ARRAY_LEN(starts))];
		_cleanup_free_ char *label = NULL, *text = NULL, *invalid = NULL;
		Args args = {.text = bytes, .size = size, .is_cut = random_below(2)};

		for (size_t i = 0; i < size; i++)
			bytes[i] = random_below(4) ? (char)random_below(256)
						   : "\0-c a=."[random_below(7)];
		if (random_below(2) && size > strlen(start))
			memcpy(bytes, start, strlen(start) + 1);
		label = args_label(start, args);
		text = args_text(args);
		assert_true(columns_of(label) <= 60);
		assert_memory_equal(label, start, random_below(2) ? 1 : strlen(start));
		invalid = utf8_sanitize(label);
		assert_null(invalid);
		for (const char *c = label; *c; c++)
			assert_true((unsigned char)*c >= ' ' && *c != 0x7f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_compilers),    cmocka_unit_test(test_linkers),
		cmocka_unit_test(test_interpreters), cmocka_unit_test(test_others),
		cmocka_unit_test(test_titles),	     cmocka_unit_test(test_names),
		cmocka_unit_test(test_text),	     cmocka_unit_test(test_any_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
