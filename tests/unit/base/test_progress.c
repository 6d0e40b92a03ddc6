/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "progress.h"
#include "test_tools.h"
#include <fcntl.h>

/* Two seconds, and what a busy machine needs. */
#define SHOWN_MS 3200

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

/* Returns all that was written. */
static const char *close_terminal(Terminal *terminal)
{
	ssize_t n;

	while ((n = read(terminal->fd, terminal->text + terminal->size,
			 sizeof(terminal->text) - 1 - terminal->size)) > 0)
		terminal->size += n;
	dup2(terminal->stderr_before, STDERR_FILENO);
	close(terminal->stderr_before);
	close(terminal->fd);
	return terminal->text;
}

static void test_shown(void **state)
{
	const char *text, *line, *message;
	Terminal terminal;

	(void)state;
	open_terminal(&terminal);
	progress_begin("reading");
	progress_share(0.42);
	usleep(SHOWN_MS * 1000);
	log_info("a message");
	progress_begin("writing");
	usleep(1000 * 1000);
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

/* A short step shows nothing, and neither does -q; what is no terminal gets nothing. */
static void test_not_shown(void **state)
{
	Terminal terminal;

	(void)state;
	open_terminal(&terminal);
	progress_begin("reading");
	usleep(300 * 1000);
	progress_end();
	assert_string_equal(close_terminal(&terminal), "");
	open_terminal(&terminal);
	log_level = LOG_QUIET;
	progress_begin("reading");
	usleep(SHOWN_MS * 1000);
	progress_end();
	log_level = LOG_NORMAL;
	assert_string_equal(close_terminal(&terminal), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shown),
		cmocka_unit_test(test_not_shown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
