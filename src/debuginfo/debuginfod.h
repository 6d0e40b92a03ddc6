/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * debuginfod.h - debug files from servers, by elfutils' client library, which is loaded when it
 * is first needed: a recording without DEBUGINFOD_URLS pays nothing for it.
 */
#ifndef WALLPROF_DEBUGINFOD_H
#define WALLPROF_DEBUGINFOD_H

#include "launch.h"
#include "util.h"

/* Is DEBUGINFOD_URLS set? */
bool debuginfod_enabled(void);

/*
 * Fetches the debug file of a build id, or takes it from the client's own cache, in a process of
 * the invoker. Says on stderr what it fetches for `path`. Returns a descriptor (to be closed),
 * -ENOENT if no server has it, or another negative errno.
 */
int debuginfod_find(const uint8_t *build_id, size_t length, const char *path,
		    const Invoker *invoker);

#endif
