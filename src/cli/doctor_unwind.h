/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * doctor_unwind.h - `wallprof doctor --unwind PID|FILE`: how much of the code of an ELF file, or of
 * all files that a process has mapped, unwind tables cover.
 */
#ifndef WALLPROF_DOCTOR_UNWIND_H
#define WALLPROF_DOCTOR_UNWIND_H

/*
 * what is a path or a process ID. Prints to stdout. Returns 0 or a negative errno, logged; it is an
 * error if no file of the process could be opened.
 */
int doctor_unwind(const char *what);

#endif
