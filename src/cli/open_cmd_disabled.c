/* SPDX-License-Identifier: GPL-2.0-or-later */
/* open_cmd_disabled.c - `wallprof open` in a build without the server's libraries. */
#include "commands.h"
#include "util.h"
#include <errno.h>

char *open_cmd_local_viewer(void)
{
	return NULL;
}

int open_cmd_run(const char *path, const OpenOptions *options, const Invoker *invoker)
{
	(void)options;
	(void)invoker;
	log_error("opening %s failed: this wallprof was built without libmicrohttpd, jansson or "
		  "capstone; open https://profiler.firefox.com and drop the file there",
		  path);
	return -EOPNOTSUPP;
}
