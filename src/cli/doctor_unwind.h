/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * doctor_unwind.h - `wallprof doctor --unwind PID|FILE`: how much of the code of an ELF file, or of
 * all that a process has mapped, unwind tables cover.
 */
#ifndef WALLPROF_DOCTOR_UNWIND_H
#define WALLPROF_DOCTOR_UNWIND_H

/*
 * what: a path, or else a process number. Prints to stdout. Returns 0 or a negative errno, logged;
 * so if no file of the process could be opened.
 */
int doctor_unwind(const char *what);

#endif
