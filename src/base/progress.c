/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "progress.h"
#include "util.h"
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#define FIRST_NS    (2 * NSEC_PER_SEC)
#define INTERVAL_NS (NSEC_PER_SEC / 2)
#define CLEAR_LINE  "\r\033[K"

static struct {
	pthread_t writer;
	pid_t pid; /* of the process that has the thread; 0: none */
	pthread_mutex_t lock;
	pthread_cond_t ended_changed;
	bool ended, shown;
	const char *what;
	uint64_t begin_ns;
	_Atomic int percent; /* -1: not known */
} progress = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* With write(2): a child of this process must never find the lock of stderr taken. */
static void put(const char *text)
{
	/* Nothing can be done about a terminal that is gone. */
	(void)!write(STDERR_FILENO, text, strlen(text));
}

static void clear_line(void)
{
	if (progress.shown)
		put(CLEAR_LINE);
	progress.shown = false;
}

static void write_line(void)
{
	char line[256], share[16] = "";

	if (progress.percent >= 0)
		snprintf(share, sizeof(share), ", %d %%", progress.percent);
	snprintf(line, sizeof(line), CLEAR_LINE "wallprof: %s, %.0f s%s ", progress.what,
		 (now_ns() - progress.begin_ns) / 1e9, share);
	put(line);
	progress.shown = true;
}

static void *write_lines(void *unused)
{
	uint64_t due = now_ns() + FIRST_NS;

	pthread_mutex_lock(&progress.lock);
	while (!progress.ended) {
		struct timespec until = {.tv_sec = due / NSEC_PER_SEC,
					 .tv_nsec = due % NSEC_PER_SEC};

		if (pthread_cond_clockwait(&progress.ended_changed, &progress.lock, CLOCK_MONOTONIC,
					   &until) != ETIMEDOUT)
			continue;
		write_line();
		due = now_ns() + INTERVAL_NS;
	}
	pthread_mutex_unlock(&progress.lock);
	return unused;
}

/* Removes the line until it is next written. */
static void clear_for_message(void)
{
	/* A child that was forked has no line, and may find the lock taken. */
	if (progress.pid != getpid())
		return;
	pthread_mutex_lock(&progress.lock);
	clear_line();
	pthread_mutex_unlock(&progress.lock);
}

void progress_begin(const char *what)
{
	sigset_t all, before;

	if (log_level < LOG_NORMAL || !isatty(STDERR_FILENO))
		return;
	pthread_mutex_lock(&progress.lock);
	progress.what = what;
	progress.begin_ns = now_ns();
	progress.percent = -1;
	pthread_mutex_unlock(&progress.lock);
	if (progress.pid)
		return;
	progress.ended = false;
	log_before_message(clear_for_message);
	/* Signals are for the main thread. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (!pthread_create(&progress.writer, NULL, write_lines, NULL))
		progress.pid = getpid();
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void progress_share(double share)
{
	progress.percent = share * 100;
}

void progress_end(void)
{
	if (progress.pid != getpid())
		return;
	pthread_mutex_lock(&progress.lock);
	progress.ended = true;
	pthread_cond_signal(&progress.ended_changed);
	pthread_mutex_unlock(&progress.lock);
	pthread_join(progress.writer, NULL);
	progress.pid = 0;
	clear_line();
}
