/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * preflight.h - checks what recording needs of this kernel and of these privileges before anything
 * starts.
 */
#ifndef WALLPROF_PREFLIGHT_H
#define WALLPROF_PREFLIGHT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Check {
	const char *what; /* what recording needs */
	bool ok;
	const char *remedy; /* a command if there is one */
	int error;	    /* that of preflight_check() if it is missing */
} Check;

enum {
	CHECK_KERNEL,
	CHECK_BTF,
	CHECK_CPUS,
	CHECK_PROC,
	CHECK_LOCKDOWN,
	CHECK_CAP_BPF,
	CHECK_CAP_PERFMON,
	CHECK_EVENTS, /* last, because it also fails without CAP_PERFMON */
	CHECK_COUNT
};

/* The remedies are valid until the next call. */
void preflight_run(Check checks[CHECK_COUNT]);

/*
 * Returns what is missing and its remedy, "missing: CAP_BPF and CAP_PERFMON; run as root, …", or
 * NULL if recording can be tried. What the first remedy provides as well is not named again. The
 * caller frees it.
 */
char *preflight_missing(const Check checks[CHECK_COUNT]);

/* Returns the capabilities that count for recording, a bit for each. */
uint64_t preflight_capabilities(void);

/*
 * Returns 0 if recording can be tried. Otherwise logs one line, what is missing and the remedy, and
 * returns a negative errno.
 */
int preflight_check(void);

#endif
