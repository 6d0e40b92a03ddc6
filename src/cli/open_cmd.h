/* SPDX-License-Identifier: GPL-2.0-or-later */
/* open_cmd.h - `wallprof open`: shows a profile in the viewer. */
#ifndef WALLPROF_OPEN_CMD_H
#define WALLPROF_OPEN_CMD_H

#include "invoker.h"
#include "options.h"

/*
 * Serves the profile at path until a signal arrives, or until there was no request for
 * options->idle_timeout_ns. Prints the viewer's URL, and starts a browser if there is a desktop.
 * Returns 0 or a negative errno, logged.
 */
int open_cmd_run(const char *path, const OpenOptions *options, const Invoker *invoker);

#endif
