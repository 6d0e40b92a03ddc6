/* SPDX-License-Identifier: GPL-2.0-or-later */
/* file_server.h - Python's web server of a folder, on the loopback interface. */
#ifndef WALLPROF_TEST_FILE_SERVER_H
#define WALLPROF_TEST_FILE_SERVER_H

#include "test_tools.h"
#include <dlfcn.h>

typedef struct FileServer {
	pid_t pid; /* 0 = stopped */
	char *url;
} FileServer;

/* Starts it on a port that is free. It writes its log to the file `log` in the folder. */
void start_server(FileServer *server, const char *folder);
void stop_server(FileServer *server);

/* Skips the test that calls it if debuginfod's library is missing. */
#define NEEDS_LIBRARY()                                                                            \
	do {                                                                                       \
		void *library_ = dlopen("libdebuginfod.so.1", RTLD_NOW);                           \
                                                                                                   \
		if (!library_)                                                                     \
			skip_because("no libdebuginfod.so.1");                                     \
		dlclose(library_);                                                                 \
	} while (0)

#endif
