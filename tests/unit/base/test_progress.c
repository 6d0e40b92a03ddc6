/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "progress.h"
#include "test_tools.h"
#include <fcntl.h>

#define SHOWN_NS   (2 * NSEC_PER_SEC)
#define GIVE_UP_NS (60 * NSEC_PER_SEC)

typedef struct Terminal {
	int fd, stderr_before;
	char text[4096];
	size_t size;
} Terminal;

/* Makes a terminal standard error. */
static void open_terminal(Terminal *terminal)
{
	int other;

	*terminal = (Terminal){.fd = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC)};
	assert_true(terminal->fd >= 0 && !grantpt(terminal->fd) && !unlockpt(terminal->fd));
	other = open(ptsname(terminal->fd), O_RDWR | O_NOCTTY | O_CLOEXEC);
	assert_true(other >= 0);
	terminal->stderr_before = dup(STDERR_FILENO);
	assert_true(dup2(other, STDERR_FILENO) >= 0);
	close(other);
}

/* Reads what was written since. */
static void read_terminal(Terminal *terminal)
{
	ssize_t n;

	while ((n = read(terminal->fd, terminal->text + terminal->size,
			 sizeof(terminal->text) - 1 - terminal->size)) > 0)
		terminal->size += n;
}

/* Returns all that was written. */
static const char *close_terminal(Terminal *terminal)
{
	read_terminal(terminal);
	dup2(terminal->stderr_before, STDERR_FILENO);
	close(terminal->stderr_before);
	close(terminal->fd);
	return terminal->text;
}

/* Waits until `text` was written. */
static void wait_for(Terminal *terminal, const char *text)
{
	for (uint64_t end = now_ns() + GIVE_UP_NS; now_ns() < end; usleep(10 * 1000)) {
		read_terminal(terminal);
		if (strstr(terminal->text, text))
			return;
	}
	fail_msg("not written: %s", text);
}

static void check_shown(void)
{
	const char *text, *line, *message;
	Terminal terminal;
	uint64_t begin;

	open_terminal(&terminal);
	begin = now_ns();
	progress_begin("reading");
	progress_share(0.42);
	wait_for(&terminal, "reading");
	assert_true(now_ns() - begin >= SHOWN_NS);
	log_info("a message");
	progress_begin("writing");
	wait_for(&terminal, "writing");
	progress_end();
	text = close_terminal(&terminal);
	line = strstr(text, "\r\033[Kwallprof: reading, ");
	assert_non_null(line);
	assert_non_null(strstr(line, " s, 42 % "));
	/* The message has a line of its own, and the next step the line behind it. */
	message = strstr(line, "\r\033[Kwallprof: a message\r\n");
	assert_non_null(message);
	assert_non_null(strstr(message, "wallprof: writing, "));
	assert_null(strstr(strstr(message, "writing"), "%"));
	assert_true(text_ends_with(text, " \r\033[K"));
}

/* Where a line would be too much: after a short step, and with -q until the pipe is closed. */
static bool stays_silent(int pipe_end)
{
	Terminal terminal;
	bool silent;
	char byte;

	open_terminal(&terminal);
	progress_begin("reading");
	usleep(300 * 1000);
	progress_end();
	silent = !*close_terminal(&terminal);
	log_level = LOG_QUIET;
	open_terminal(&terminal);
	progress_begin("reading");
	(void)!read(pipe_end, &byte, 1);
	progress_end();
	return silent && !*close_terminal(&terminal);
}

/* Another process shows nothing beside this one, which thus says how long that must hold. */
static void test_shown_and_not_shown(void **state)
{
	int ends[2], status;
	pid_t child;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		close(ends[1]);
		_exit(stays_silent(ends[0]) ? 0 : 1);
	}
	close(ends[0]);
	check_shown();
	close(ends[1]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shown_and_not_shown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
