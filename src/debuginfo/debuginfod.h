/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * debuginfod.h - gets debug files from servers with elfutils' client library, which is loaded when
 * it is first needed: a recording without DEBUGINFOD_URLS has no cost.
 */
#ifndef WALLPROF_DEBUGINFOD_H
#define WALLPROF_DEBUGINFOD_H

#include "invoker.h"
#include "util.h"

/* Returns whether DEBUGINFOD_URLS is set. */
bool debuginfod_enabled(void);

/* Returns whether the client library can be loaded. */
bool debuginfod_is_installed(void);

/*
 * Gets the debug file of a build id from a server, or from the client's own cache, in a process of
 * the invoker. Reports on stderr what it downloads for `path`. A server may be slow, send data
 * without an end, or never answer: it has until deadline_ns (CLOCK_MONOTONIC; 0 = without limit),
 * or until the lookup is stopped (signals.h), and may send 4 GiB. Returns a descriptor, which the
 * caller closes, -ENOENT if no server has it, -ETIMEDOUT, -EINTR, or another negative errno.
 */
int debuginfod_find(const uint8_t *build_id, size_t length, const char *path,
		    const Invoker *invoker, uint64_t deadline_ns);

#endif
