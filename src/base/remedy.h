/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * remedy.h - what to do about an error, as commands that can be pasted into a shell.
 */
#ifndef WALLPROF_REMEDY_H
#define WALLPROF_REMEDY_H

/*
 * How to make a profile of the capture in another place: "wallprof export -o /other/prof.json
 * CAPTURE". To be freed.
 */
char *remedy_export(const char *capture_path);

/* Likewise for what --json-summary writes. */
char *remedy_summary(const char *capture_path);

/* "; choose another place with -o", unless error_text() of the error says what to do already. */
const char *remedy_other_place(int error);

#endif
