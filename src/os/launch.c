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

int launch_prepare(char *const argv[], const Invoker *invoker, Launch *ret_launch)
{
	int go[2], error_pipe[2];
	pid_t pid;

	if (pipe2(go, O_CLOEXEC))
		return -errno;
	if (pipe2(error_pipe, O_CLOEXEC)) {
		int error = -errno;

		close(go[0]);
		close(go[1]);
		return error;
	}
	pid = fork();
	if (pid == 0) {
		close(go[1]);
		close(error_pipe[0]);
		run_child(argv, invoker, go[0], error_pipe[1]);
	}
	int error = pid < 0 ? -errno : 0;

	close(go[0]);
	close(error_pipe[1]);
	if (error) {
		close(go[1]);
		close(error_pipe[0]);
		return error;
	}
	*ret_launch = (Launch){.pid = pid, .go_fd = go[1], .error_fd = error_pipe[0]};
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
