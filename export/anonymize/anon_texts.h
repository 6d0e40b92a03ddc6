/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * anon_texts.h - texts that contain names: argument lists, commands, names of functions.
 */
#ifndef WALLPROF_ANON_TEXTS_H
#define WALLPROF_ANON_TEXTS_H

#include "anon_paths.h"

typedef VEC(char) AnonText;

/*
 * Appends what stands for an argument list (args.h), with as many arguments. The first one is the
 * program. Of the others, paths are replaced as paths are, options of one letter ("-c") are kept.
 */
void anon_texts_args(AnonNames *names, const char *args, size_t size, AnonText *text);

/* The same for a command, quoted as a shell needs it (shell_word()). The caller frees it. */
char *anon_texts_command(AnonNames *names, const char *command);

/*
 * Returns a function's name without the paths that are in it: "(lambda at /src/x.cc:3:1)" of
 * clang, "JS:*name file:///src/x.js:3:1" of Node.js, "py::name:/src/x.py" of CPython; and without
 * the other texts that names are made of. The rest is kept. The caller frees it.
 */
char *anon_texts_function(AnonNames *names, const char *function);

/*
 * The same for the name of a script's function, which programs also make of data. Words of it that
 * are a user or a host are replaced, too: "sync_alice" by "sync_dir1".
 */
char *anon_texts_script_function(AnonNames *names, const char *function);

#endif
