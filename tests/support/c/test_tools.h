/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_tools.h - random choices that can be repeated, folders that go away, what other programs
 * print, and cmocka.h with the headers that it needs.
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

/* Fails the test, and tells the value, unless least <= value <= most. */
void expect_between(uint64_t value, uint64_t least, uint64_t most);

/* Whether slow tests run, too: `tools/test --long`. */
bool is_long_run(void);

/* Returns a number below limit. Each WALLPROF_SEED has its own sequence. */
uint64_t random_below(uint64_t limit);

/* ---- folders and files ---------------------------------------------------------------- */

/* Returns the path of a new folder, which remove_folder() removes and frees. */
char *make_folder(void);
void remove_folder(char *path);
void write_file(const char *folder, const char *name, const char *text);

/* ---- programs ------------------------------------------------------------------------- */

/* Returns what a shell command prints, which the caller frees; NULL if its status is not 0. */
__attribute__((format(printf, 1, 2))) char *try_output(const char *format, ...);

/* The same of one that must not fail. */
#define output_of(...)                                                                             \
	({                                                                                         \
		char *output_ = try_output(__VA_ARGS__);                                           \
                                                                                                   \
		assert_non_null(output_);                                                          \
		output_;                                                                           \
	})
#define run(...) free(output_of(__VA_ARGS__))

bool has_program(const char *name);

/*
 * nm for files of this machine. With a target of its own it does not load LLVM, as a plugin that
 * reads objects of LTO: that takes ten times as long as the rest (bfd-plugins, ld(1)).
 */
#define NM "nm --target=elf64-little"

/* Returns how many descriptors are open here, and a few more. Two counts can be compared. */
size_t count_descriptors(void);

/* Skips the test that calls it, and says why. */
#define skip_because(...)                                                                          \
	do {                                                                                       \
		print_message("skipped: " __VA_ARGS__);                                            \
		print_message("\n");                                                               \
		skip();                                                                            \
	} while (0)

#endif
