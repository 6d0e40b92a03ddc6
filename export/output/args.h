/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * args.h - argument lists of processes, as a person reads them.
 *
 * A list is the memory in which the kernel keeps it: the arguments one after another, each with its
 * NUL (proc_pid_cmdline(5)). Bytes that are not UTF-8 and control characters are replaced.
 */
#ifndef WALLPROF_ARGS_H
#define WALLPROF_ARGS_H

#include <stdbool.h>
#include <stddef.h>

typedef struct Args {
	const char *text; /* not owned; may be NULL if size is 0 */
	size_t size;	  /* bytes; the last argument may lack its NUL */
	bool is_cut;	  /* the list goes on */
} Args;

/*
 * Returns the arguments separated by spaces, quoted as a shell needs it, with "…" at the end if the
 * list is cut; NULL if there are none. The caller frees it.
 */
char *args_text(Args args);

/*
 * Returns whether the name is that of the program: the last part of the path that was executed (may
 * be NULL), or of one of the first two arguments (the second one is a script); or a title begins
 * with it. Otherwise the process has given itself another name. The kernel keeps 15 bytes of names.
 */
bool args_have_name(const char *name, const char *path, Args args);

/*
 * Returns a short text that tells a process from others of the same name: the name and, for
 * compilers and linkers, the file that they work on; for interpreters, the script, module or code,
 * and its arguments; for others their arguments; or the title that the process has given itself.
 * At most 60 columns. The caller frees it.
 */
char *args_label(const char *name, Args args);

#endif
