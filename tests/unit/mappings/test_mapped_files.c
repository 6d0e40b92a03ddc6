/* SPDX-License-Identifier: GPL-2.0-or-later */
/* More files are mapped than the process may have open. */
#include "mapped_files.h"
#include "test_tools.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>

#define FILES	 150
#define FREE_FDS 256 /* that the held files leave */
#define HELD	 40

static int ignore(void *user, const struct record *record)
{
	(void)user;
	return record->kind == REC_FILE ? 0 : -EINVAL;
}

/* Returns what opening it gives: whether it is the file of that inode, or a negative errno. */
static int open_held(MappedFiles *files, uint32_t id, ino_t inode)
{
	int fd = mapped_files_open(files, &(MappedFile){.id = id});
	struct stat st;

	if (fd < 0)
		return fd;
	assert_int_equal(fstat(fd, &st), 0);
	close(fd);
	return st.st_ino == inode;
}

/* Makes a copy of a program, and returns its inode. */
static ino_t copy_program(const char *path)
{
	static char bytes[1 << 20];
	FILE *from = fopen("/bin/true", "re"), *to = fopen(path, "we");
	size_t size;
	struct stat st;

	assert_non_null(from);
	assert_non_null(to);
	size = fread(bytes, 1, sizeof(bytes), from);
	assert_int_equal(fwrite(bytes, 1, size, to), size);
	fclose(from);
	fclose(to);
	assert_int_equal(stat(path, &st), 0);
	return st.st_ino;
}

static void test_few_descriptors(void **state)
{
	char *folder = make_folder(), *paths[FILES];
	MappedFiles *files = mapped_files_new(ignore, NULL);
	struct rlimit before, limit;
	ino_t inodes[FILES];
	uint32_t ids[FILES];

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	limit = before;
	limit.rlim_cur = count_descriptors() + FREE_FDS + HELD;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	for (size_t i = 0; i < FILES; i++) {
		paths[i] = xasprintf("%s/%zu", folder, i);
		inodes[i] = copy_program(paths[i]);
		assert_int_equal(mapped_files_add_path(files, paths[i], &ids[i]), 0);
		assert_uint_in_range(count_descriptors(), 0, limit.rlim_cur - FREE_FDS + 8);
		/* No path leads to these, so they stay open. */
		if (i % 10 == 0)
			assert_int_equal(unlink(paths[i]), 0);
	}
	assert_int_equal(mapped_files_unopened(files, -EMFILE), 0);
	/* This one is replaced after it was closed. */
	assert_int_equal(rename(paths[2], paths[1]), 0);
	for (size_t i = 0; i < FILES; i++)
		assert_int_equal(open_held(files, ids[i], inodes[i]), i == 1   ? -ESTALE
								      : i == 2 ? -ENOENT
									       : 1);
	/* A table may be made of one that was closed. */
	assert_true(mapped_files_view(files, ids[3]).fd >= 0);
	assert_false(mapped_files_view(files, ids[3]).gone);
	for (size_t i = 1; i <= 2; i++) {
		assert_int_equal(mapped_files_view(files, ids[i]).fd, -1);
		assert_true(mapped_files_view(files, ids[i]).gone);
		assert_false(mapped_files_view(files, ids[i]).closed);
	}
	/* Nor is one gone for which there is no descriptor at the moment. */
	limit.rlim_cur = 3;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_true(mapped_files_view(files, ids[4]).closed);
	assert_false(mapped_files_view(files, ids[4]).gone);
	mapped_files_free(files);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	for (size_t i = 0; i < FILES; i++)
		free(paths[i]);
	remove_folder(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_few_descriptors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
