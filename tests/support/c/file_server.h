/* SPDX-License-Identifier: GPL-2.0-or-later */
/* file_server.h - Python's web server of a folder, on the loopback interface. */
#ifndef WALLPROF_TEST_FILE_SERVER_H
#define WALLPROF_TEST_FILE_SERVER_H

#include "test_tools.h"
#include <dlfcn.h>
#include <signal.h>

typedef struct FileServer {
	pid_t pid; /* 0 = stopped */
	char *url;
} FileServer;

/* On a port that is free. Writes its log to a file of that name in the folder. */
static inline void start_server(FileServer *server, const char *folder)
{
	_cleanup_free_ char *log = xasprintf("%s/log", folder);
	int pipes[2], port;
	char line[256];
	FILE *lines;

	assert_int_equal(pipe(pipes), 0);
	server->pid = fork();
	if (server->pid == 0) {
		dup2(pipes[1], STDOUT_FILENO);
		close(pipes[0]);
		if (!freopen(log, "w", stderr))
			_exit(1);
		execlp("python3", "python3", "-u", "-m", "http.server", "0", "--bind", "127.0.0.1",
		       "--directory", folder, NULL);
		_exit(1);
	}
	close(pipes[1]);
	lines = fdopen(pipes[0], "r");
	assert_non_null(fgets(line, sizeof(line), lines));
	assert_int_equal(sscanf(line, "Serving HTTP on 127.0.0.1 port %d", &port), 1);
	fclose(lines);
	server->url = xasprintf("http://127.0.0.1:%d", port);
}

static inline void stop_server(FileServer *server)
{
	int status;

	if (!server->pid)
		return;
	kill(server->pid, SIGKILL);
	assert_int_equal(waitpid(server->pid, &status, 0), server->pid);
	server->pid = 0;
	free(server->url);
}

#define NEEDS_LIBRARY()                                                                            \
	do {                                                                                       \
		void *library_ = dlopen("libdebuginfod.so.1", RTLD_NOW);                           \
                                                                                                   \
		if (!library_)                                                                     \
			skip_because("no libdebuginfod.so.1");                                     \
		dlclose(library_);                                                                 \
	} while (0)

#endif
