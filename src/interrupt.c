/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "interrupt.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define SECOND_SIGNAL SIGUSR1

/* Signals know no user pointer, so this is global by nature. */
static struct {
	sigset_t given_mask;
	struct sigaction given_child, given_pipe;
	volatile sig_atomic_t count;
	const char *volatile unfinished;
	char message[8192];
} state;

/* Who called wallprof with nohup(1) wants it to outlive the terminal. */
static bool hangup_counts(void)
{
	struct sigaction action;

	return !sigaction(SIGHUP, NULL, &action) && action.sa_handler != SIG_IGN;
}

static sigset_t our_signals(void)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	if (hangup_counts())
		sigaddset(&signals, SIGHUP);
	return signals;
}

void interrupt_begin(void)
{
	struct sigaction standard = {.sa_handler = SIG_DFL}, ignore = {.sa_handler = SIG_IGN};
	sigset_t signals = our_signals();

	sigaddset(&signals, SECOND_SIGNAL);
	sigprocmask(SIG_BLOCK, &signals, &state.given_mask);
	/* Ignored, it would reap the command before its status is read. */
	sigaction(SIGCHLD, &standard, &state.given_child);
	sigaction(SIGPIPE, &ignore, &state.given_pipe);
}

void interrupt_restore(void)
{
	sigaction(SIGCHLD, &state.given_child, NULL);
	sigaction(SIGPIPE, &state.given_pipe, NULL);
	sigprocmask(SIG_SETMASK, &state.given_mask, NULL);
}

int interrupt_open(void)
{
	sigset_t signals = our_signals();
	int fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);

	return fd < 0 ? -errno : fd;
}

int interrupt_open_second(void)
{
	sigset_t signals;
	int fd;

	sigemptyset(&signals);
	sigaddset(&signals, SECOND_SIGNAL);
	fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

bool interrupt_take(int fd, bool *ret_from_terminal)
{
	struct signalfd_siginfo info;

	if (read(fd, &info, sizeof(info)) != sizeof(info))
		return false;
	state.count++;
	if (ret_from_terminal)
		*ret_from_terminal = info.ssi_code == SI_KERNEL;
	return true;
}

static void say(const char *text)
{
	/* Nothing can be done about an error here. */
	if (write(STDERR_FILENO, text, strlen(text)) < 0)
		return;
}

/* Only async-signal-safe calls: write, unlink, _exit. */
static void on_signal(int number)
{
	int saved = errno;

	if (++state.count < 2) {
		say("wallprof: the profile is still being written; a second interrupt gives it "
		    "up\n");
		errno = saved;
		return;
	}
	if (state.unfinished)
		unlink(state.unfinished);
	say(state.message);
	_exit(128 + number);
}

static void on_late_signal(int number)
{
	(void)number;
	state.count++;
}

static void install(void (*handler)(int), int flags)
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
	sigset_t signals = our_signals();

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	if (hangup_counts())
		sigaction(SIGHUP, &action, NULL);
	sigprocmask(SIG_UNBLOCK, &signals, NULL);
}

void interrupt_guard(const char *capture_path)
{
	if (capture_path)
		snprintf(state.message, sizeof(state.message),
			 "wallprof: given up; the recording is in %s (wallprof export %s)\n",
			 capture_path, capture_path);
	else
		state.count = 1;
	install(on_signal, SA_RESTART);
}

void interrupt_unfinished(const char *temp_path)
{
	state.unfinished = temp_path;
}

void interrupt_release(void)
{
	state.unfinished = NULL;
	install(on_late_signal, /* no SA_RESTART: waits shall end */ 0);
}

int interrupt_count(void)
{
	return state.count;
}
