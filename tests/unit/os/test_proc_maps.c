/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "proc_maps.h"
#include "util.h"
#include <fcntl.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

/* The line is copied to its exact size, so that the sanitizer sees a step too far. */
static bool parse(const char *text, char **ret_line, ProcMapping *ret_mapping)
{
	*ret_line = xstrdup(text);
	return proc_maps_parse(*ret_line, ret_mapping);
}

static void expect_path(const char *text, const char *path)
{
	_cleanup_free_ char *line = NULL;
	ProcMapping mapping;

	assert_true(parse(text, &line, &mapping));
	assert_string_equal(mapping.path, path);
}

static void expect_none(const char *text)
{
	_cleanup_free_ char *line = NULL;
	ProcMapping mapping;

	if (parse(text, &line, &mapping))
		fail_msg("taken for a mapping: %s", text);
}

static void test_fields(void **state)
{
	_cleanup_free_ char *line = NULL;
	ProcMapping mapping;

	(void)state;
	assert_true(parse("7f0000001000-7f0000003000 r-xp 0001f000 fe:01 1837        /lib/x.so\n",
			  &line, &mapping));
	assert_int_equal(mapping.start, 0x7f0000001000);
	assert_int_equal(mapping.end, 0x7f0000003000);
	assert_int_equal(mapping.pgoff, 0x1f000);
	assert_int_equal(mapping.inode, 1837);
	assert_true(mapping.exec);
	assert_string_equal(mapping.path, "/lib/x.so");
}

static void test_permissions(void **state)
{
	static const char *const without[] = {"rw-p", "---p", "r--s"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(without); i++) {
		_cleanup_free_ char *text = xasprintf("1000-2000 %s 0 00:00 0", without[i]);
		_cleanup_free_ char *line = NULL;
		ProcMapping mapping;

		assert_true(parse(text, &line, &mapping));
		assert_false(mapping.exec);
	}
	expect_none("1000-2000 r-x 0 00:00 0");
	expect_none("1000-2000 r-xpp 0 00:00 0");
	expect_none("1000-2000 \r-xp 0 00:00 0");
}

static void test_paths(void **state)
{
	(void)state;
	expect_path("1000-2000 r-xp 0 00:00 0 \n", "");
	expect_path("1000-2000 r-xp 0 00:00 0", "");
	expect_path("1000-2000 r-xp 0 00:00 0    [vdso]\n", "[vdso]");
	expect_path("1000-2000 r-xp 0 00:00 9    /a b (deleted)\n", "/a b (deleted)");
	expect_path("1000-2000 r-xp 0 00:00 9    /a\\012\\012b\\01\n", "/a\n\nb\\01");
	/* What comes of an escape is not looked at again. */
	expect_path("1000-2000 r-xp 0 00:00 9    /\\\\012012", "/\\\n012");
}

static void test_nonsense(void **state)
{
	static const char *const lines[] = {
		"",
		"\n",
		"1000",
		"1000-",
		"-2000 r-xp 0 00:00 0",
		"2000-1000 r-xp 0 00:00 0 /x",
		"1000-1000 r-xp 0 00:00 0 /x",
		"0x1000-0x2000 r-xp 0 00:00 0 /x",
		"1000-10000000000000000 r-xp 0 00:00 0 /x",
		"1000-2000 r-xp",
		"1000-2000 r-xp ",
		"1000-2000 r-xp 0 0000 0 /x",
		"1000-2000 r-xp 0 00:00",
		"1000-2000 r-xp 0 00:00 99999999999999999999 /x",
		"1000-2000 r-xp 0 00:00 12a /x",
		"1000-2000 r-xp -5 00:00 0 /x",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(lines); i++)
		expect_none(lines[i]);
}

typedef struct Found {
	FILE *maps;
	int objects;
} Found;

/* The executable segment of an object that the loader knows is in /proc/self/maps. */
static int expect_mapped(struct dl_phdr_info *object, size_t size, void *user)
{
	Found *found = user;

	(void)size;
	for (int i = 0; i < object->dlpi_phnum; i++) {
		uint64_t start = object->dlpi_addr + object->dlpi_phdr[i].p_vaddr;
		_cleanup_free_ char *line = NULL;
		size_t capacity = 0;
		bool mapped = false;

		if (object->dlpi_phdr[i].p_type != PT_LOAD ||
		    !(object->dlpi_phdr[i].p_flags & PF_X))
			continue;
		rewind(found->maps);
		while (getline(&line, &capacity, found->maps) > 0) {
			ProcMapping mapping;

			assert_true(proc_maps_parse(line, &mapping));
			mapped |= mapping.exec && mapping.start <= start && start < mapping.end &&
				  (!*object->dlpi_name || strstr(mapping.path, ".so") ||
				   !strcmp(mapping.path, "[vdso]"));
		}
		assert_true(mapped);
		found->objects++;
	}
	return 0;
}

/* Every line of the kernel's is understood, and says what the dynamic loader knows too. */
static void test_our_own(void **state)
{
	Found found = {.maps = fopen("/proc/self/maps", "re")};

	(void)state;
	assert_non_null(found.maps);
	dl_iterate_phdr(expect_mapped, &found);
	fclose(found.maps);
	assert_true(found.objects > 2);
}

/* The kernel writes a path with a newline as we read it. */
static void test_newline_in_a_path(void **state)
{
	char path[] = "/tmp/wallprof\ntest-XXXXXX";
	_cleanup_free_ char *line = NULL;
	int fd = mkstemp(path);
	size_t capacity = 0;
	FILE *maps;
	void *mapped;
	int seen = 0;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 4096), 0);
	mapped = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	assert_ptr_not_equal(mapped, MAP_FAILED);
	maps = fopen("/proc/self/maps", "re");
	assert_non_null(maps);
	while (getline(&line, &capacity, maps) > 0) {
		ProcMapping mapping;

		assert_true(proc_maps_parse(line, &mapping));
		if (mapping.start == (uintptr_t)mapped) {
			assert_string_equal(mapping.path, path);
			seen++;
		}
	}
	fclose(maps);
	munmap(mapped, 4096);
	unlink(path);
	close(fd);
	assert_int_equal(seen, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fields),	cmocka_unit_test(test_permissions),
		cmocka_unit_test(test_paths),	cmocka_unit_test(test_nonsense),
		cmocka_unit_test(test_our_own), cmocka_unit_test(test_newline_in_a_path),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
