/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "file_server.h"
#include <signal.h>

void start_server(FileServer *server, const char *folder)
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

void stop_server(FileServer *server)
{
	int status;

	if (!server->pid)
		return;
	kill(server->pid, SIGKILL);
	assert_int_equal(waitpid(server->pid, &status, 0), server->pid);
	server->pid = 0;
	free(server->url);
}
