/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * open_cmd.h - `wallprof open`: a profile in the viewer.
 */
#ifndef WALLPROF_OPEN_CMD_H
#define WALLPROF_OPEN_CMD_H

#include "launch.h"
#include "options.h"

/*
 * Serves the profile at path until a signal comes, or nobody has asked for anything for so long.
 * Prints the viewer's URL, and starts a browser if there is a desktop. Returns 0 or a negative
 * errno after saying why.
 */
int open_cmd_run(const char *path, const OpenOptions *options, const Invoker *invoker);

#endif
