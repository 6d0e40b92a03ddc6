/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "launch.h"
#include "privileges.h"
#include "signals.h"
#include "util.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void __attribute__((noreturn))
run_child(char *const argv[], const Invoker *invoker, int go_fd, int error_fd)
{
	char go;
	int error;

	/* End of file without a byte: wallprof failed or ended before it was ready. */
	if (TEMP_FAILURE_RETRY(read(go_fd, &go, 1)) != 1)
		_exit(125);
	error = invoker_become(invoker);
	/* Without these capabilities, execvp() cannot find the command where the user could not. */
	if (!error && privileges_of_file() && privileges_keep(0))
		error = EPERM;
	if (!error) {
		signals_restore();
		execvp(argv[0], argv);
		error = errno;
	}
	if (write(error_fd, &error, sizeof(error)) < 0)
		_exit(125);
	_exit(127);
}

static int open_pipe(int *ret_read, int *ret_write)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	*ret_read = ends[0];
	*ret_write = ends[1];
	return 0;
}

int launch_prepare(char *const argv[], const Invoker *invoker, Launch *ret_launch)
{
	_cleanup_close_ int go_read = -1, go_write = -1, error_read = -1, error_write = -1;
	int error = open_pipe(&go_read, &go_write);
	pid_t pid;

	if (error)
		return error;
	error = open_pipe(&error_read, &error_write);
	if (error)
		return error;
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0) {
		closep(&go_write);
		closep(&error_read);
		run_child(argv, invoker, go_read, error_write);
	}
	*ret_launch =
		(Launch){.pid = pid, .go_fd = take_fd(go_write), .error_fd = take_fd(error_read)};
	return 0;
}

int launch_go(Launch *launch)
{
	int error = 0;
	ssize_t got;

	/* If the child was killed meanwhile, this fails; its end is noticed like any other. */
	if (write(launch->go_fd, "g", 1) != 1)
		log_verbose("the command ended before it was started: %s", strerror(errno));
	close(launch->go_fd);
	got = TEMP_FAILURE_RETRY(read(launch->error_fd, &error, sizeof(error)));
	close(launch->error_fd);
	if (got == 0)
		return 0;
	waitpid(launch->pid, NULL, 0);
	return got == sizeof(error) && error > 0 ? error : EIO;
}

void launch_cancel(Launch *launch)
{
	close(launch->go_fd);
	close(launch->error_fd);
	waitpid(launch->pid, NULL, 0);
}
