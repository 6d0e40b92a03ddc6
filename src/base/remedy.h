/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * remedy.h - texts that say how to resolve an error, as commands that can be pasted into a shell.
 */
#ifndef WALLPROF_REMEDY_H
#define WALLPROF_REMEDY_H

/*
 * The command that exports the capture to another file: "wallprof export -o /other/prof.json
 * CAPTURE". The caller frees it.
 */
char *remedy_export(const char *capture_path);

/* The same for --json-summary. */
char *remedy_summary(const char *capture_path);

/* "; choose another place with -o", or "" if error_text() of the error has a remedy already. */
const char *remedy_other_place(int error);

#endif
