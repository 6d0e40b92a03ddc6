/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_tools.h - random choices that can be repeated, folders that go away, and what other
 * programs print. Include after cmocka.h's own needs.
 */
#ifndef WALLPROF_TEST_TOOLS_H
#define WALLPROF_TEST_TOOLS_H

#include "util.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* Whether slow tests run, too: `tools/test --long`. */
static inline bool is_long_run(void)
{
	return getenv("WALLPROF_LONG") != NULL;
}

/* Below limit; another sequence for each WALLPROF_SEED. */
static inline uint64_t random_below(uint64_t limit)
{
	static bool seeded;

	if (!seeded) {
		const char *seed = getenv("WALLPROF_SEED");

		srandom(seed ? strtoul(seed, NULL, 10) : 1);
		seeded = true;
	}
	return (((uint64_t)random() << 31) ^ random()) % limit;
}

/* ---- folders and files ---------------------------------------------------------------- */

/* Allocated, and to be given to remove_folder(). */
static inline char *make_folder(void)
{
	const char *folder = getenv("TMPDIR");
	char *path = xasprintf("%s/wallprof-test-XXXXXX", folder ? folder : "/tmp");

	assert_non_null(mkdtemp(path));
	assert_int_equal(chmod(path, 0755), 0);
	return path;
}

static inline void remove_folder(char *path)
{
	_cleanup_free_ char *command = xasprintf("rm -rf '%s'", path);

	assert_int_equal(system(command), 0);
	free(path);
}

static inline void write_file(const char *folder, const char *name, const char *text)
{
	_cleanup_free_ char *path = xasprintf("%s/%s", folder, name);
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

/* ---- programs ------------------------------------------------------------------------- */

static inline char *read_all(FILE *file)
{
	VEC(char) text = {};
	char chunk[4096];
	size_t got;

	while ((got = fread(chunk, 1, sizeof(chunk), file)) > 0)
		vec_append(&text, chunk, got);
	*vec_push(&text) = '\0';
	return text.items;
}

/* What a shell command prints, allocated; NULL if its status is not 0. */
__attribute__((format(printf, 1, 2))) static inline char *try_output(const char *format, ...)
{
	_cleanup_free_ char *command = NULL;
	va_list list;
	FILE *pipe;
	char *text;

	va_start(list, format);
	assert_true(vasprintf(&command, format, list) >= 0);
	va_end(list);
	pipe = popen(command, "r");
	assert_non_null(pipe);
	text = read_all(pipe);
	if (pclose(pipe) == 0)
		return text;
	free(text);
	return NULL;
}

/* The same of one that must not fail. */
#define output_of(...)                                                                             \
	({                                                                                         \
		char *output_ = try_output(__VA_ARGS__);                                           \
                                                                                                   \
		assert_non_null(output_);                                                          \
		output_;                                                                           \
	})
#define run(...) free(output_of(__VA_ARGS__))

static inline bool has_program(const char *name)
{
	_cleanup_free_ char *found = try_output("command -v %s 2>/dev/null", name);

	return found;
}

/* Skips the test that calls it, and says why. */
#define skip_because(...)                                                                          \
	do {                                                                                       \
		print_message("skipped: " __VA_ARGS__);                                            \
		print_message("\n");                                                               \
		skip();                                                                            \
	} while (0)

#endif
