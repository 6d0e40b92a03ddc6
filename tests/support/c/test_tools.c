/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "test_tools.h"
#include <dirent.h>
#include <ftw.h>

bool is_long_run(void)
{
	return getenv("WALLPROF_LONG") != NULL;
}

uint64_t random_below(uint64_t limit)
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

char *make_folder(void)
{
	const char *folder = getenv("TMPDIR");
	char *path = xasprintf("%s/wallprof-test-XXXXXX", folder ? folder : "/tmp");

	assert_non_null(mkdtemp(path));
	assert_int_equal(chmod(path, 0755), 0);
	return path;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *place)
{
	(void)st;
	(void)type;
	(void)place;
	return remove(path);
}

/* A shell and rm would take 10 ms of CPU time: some tests make a folder for each input. */
void remove_folder(char *path)
{
	assert_int_equal(nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT), 0);
	free(path);
}

void write_file(const char *folder, const char *name, const char *text)
{
	_cleanup_free_ char *path = xasprintf("%s/%s", folder, name);
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

/* ---- programs ------------------------------------------------------------------------- */

static char *read_all(FILE *file)
{
	VEC(char) text = {};
	char chunk[4096];
	size_t got;

	while ((got = fread(chunk, 1, sizeof(chunk), file)) > 0)
		vec_append(&text, chunk, got);
	*vec_push(&text) = '\0';
	return text.items;
}

char *try_output(const char *format, ...)
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

bool has_program(const char *name)
{
	_cleanup_free_ char *found = try_output("command -v %s 2>/dev/null", name);

	return found;
}

size_t count_descriptors(void)
{
	DIR *folder = opendir("/proc/self/fd");
	size_t count = 0;

	assert_non_null(folder);
	while (readdir(folder))
		count++;
	closedir(folder);
	return count;
}

void expect_between(uint64_t value, uint64_t least, uint64_t most)
{
	if (value < least || value > most)
		fail_msg("%ju, not %ju to %ju", (uintmax_t)value, (uintmax_t)least,
			 (uintmax_t)most);
}
