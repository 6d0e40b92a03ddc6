/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pager.h"
#include "util.h"
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* Returns a command for a shell, or NULL: no pager is wanted. */
static const char *pager_command(void)
{
	static const char *const variables[] = {"WALLPROF_PAGER", "PAGER"};
	const char *command = "less";

	for (size_t i = 0; i < ARRAY_LEN(variables); i++) {
		const char *value = getenv(variables[i]);

		if (!value)
			continue;
		command = value;
		break;
	}
	return *command && strcmp(command, "cat") != 0 ? command : NULL;
}

/* Becomes the pager. A shell reads the command, because it may have arguments. */
static _Noreturn void run_pager(const char *command, int input)
{
	dup2(input, STDIN_FILENO);
	setenv("LESS", "FRX", /* overwrite= */ 0);
	setenv("LV", "-c", /* overwrite= */ 0);
	execl("/bin/sh", "sh", "-c", command, (char *)NULL);
	_exit(127);
}

/* Without the program the text would be lost, as in a small container. */
static bool is_there(const char *command)
{
	_cleanup_free_ char *word = xasprintf("%.*s", (int)strcspn(command, " \t"), command);
	const char *path = getenv("PATH");
	_cleanup_free_ char *folders = xstrdup(path ? path : "/usr/bin:/bin");
	char *rest = folders;

	if (strchr(word, '/'))
		return access(word, X_OK) == 0;
	for (char *folder; (folder = strsep(&rest, ":"));) {
		_cleanup_free_ char *file = xasprintf("%s/%s", *folder ? folder : ".", word);

		if (access(file, X_OK) == 0)
			return true;
	}
	return false;
}

void pager_start(Pager *pager, Page *page)
{
	/* On a dumb terminal less asks for a key first. */
	bool is_screen = isatty(fileno(page->file)) && !page_is_dumb();
	const char *command = is_screen ? pager_command() : NULL;
	int ends[2];

	if (!command || !is_there(command) || pipe(ends))
		return;
	fflush(page->file);
	pager->pid = fork();
	if (pager->pid == 0) {
		close(ends[1]);
		run_pager(command, ends[0]);
	}
	close(ends[0]);
	pager->file = pager->pid > 0 ? fdopen(ends[1], "w") : NULL;
	if (!pager->file) {
		close(ends[1]);
		return;
	}
	/* The user may leave the pager before it has read all. */
	signal(SIGPIPE, SIG_IGN);
	/* Ctrl-C is for the pager, which has the terminal until the user leaves it. */
	signal(SIGINT, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	page->file = pager->file;
}

void pager_stop(Pager *pager)
{
	if (pager->file)
		fclose(pager->file);
	while (pager->pid > 0 && waitpid(pager->pid, NULL, 0) < 0 && errno == EINTR)
		;
	*pager = (Pager){};
}
