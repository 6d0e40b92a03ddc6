/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "signals.h"
#include "util.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define SECOND_SIGNAL SIGUSR1
/* timeout(1) sends its signals within milliseconds; a person needs longer to press Ctrl-C again. */
#define REQUEST_NS (NSEC_PER_SEC / 2)

enum lookup { LOOKUP_NONE, LOOKUP_RUNS, LOOKUP_STOPPED };

/* Signal handlers have no user pointer, so this is global. */
static struct {
	sigset_t inherited_mask;
	struct sigaction inherited_sigchld, inherited_sigpipe, inherited_sigxfsz;
	volatile sig_atomic_t count;	/* requests so far */
	volatile sig_atomic_t lookup;	/* enum lookup */
	volatile uint64_t requested_ns; /* the time of the last request; 0 if there was none */
	uint64_t none_pending_ns;	/* the last time at which no signal was pending */
	char *volatile unfinished; /* a copy: a signal may come after the caller freed its own */
	pid_t pid;		   /* the process that deletes the file: children inherit this */
	char message[8192];
} state;

/* A user who started wallprof with nohup(1) wants it to outlive the terminal. */
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

/* Whether a signal that came at this time, or later, belongs to the last request. */
static bool is_of_last_request(uint64_t ns)
{
	return state.requested_ns && ns - MIN(state.requested_ns, ns) < REQUEST_NS;
}

/* Async-signal-safe, as clock_gettime(2) is. */
static void count_request(void)
{
	state.requested_ns = now_ns();
	state.count++;
}

void signals_ignore_file_limit(void)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN};

	sigaction(SIGXFSZ, &ignore, &state.inherited_sigxfsz);
}

void signals_begin(void)
{
	struct sigaction standard = {.sa_handler = SIG_DFL}, ignore = {.sa_handler = SIG_IGN};
	sigset_t signals = our_signals();

	sigaddset(&signals, SECOND_SIGNAL);
	sigprocmask(SIG_BLOCK, &signals, &state.inherited_mask);
	/* If it were ignored, the kernel would reap the command before its status is read. */
	sigaction(SIGCHLD, &standard, &state.inherited_sigchld);
	sigaction(SIGPIPE, &ignore, &state.inherited_sigpipe);
}

void signals_restore(void)
{
	sigaction(SIGCHLD, &state.inherited_sigchld, NULL);
	sigaction(SIGPIPE, &state.inherited_sigpipe, NULL);
	sigaction(SIGXFSZ, &state.inherited_sigxfsz, NULL);
	sigprocmask(SIG_SETMASK, &state.inherited_mask, NULL);
}

int signals_open(void)
{
	sigset_t signals = our_signals();
	int fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);

	return fd < 0 ? -errno : fd;
}

int signals_open_second(void)
{
	sigset_t signals;
	int fd;

	sigemptyset(&signals);
	sigaddset(&signals, SECOND_SIGNAL);
	fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

bool signals_consume(int fd, bool *ret_from_terminal)
{
	struct signalfd_siginfo info;

	while (read(fd, &info, sizeof(info)) == sizeof(info)) {
		if (is_of_last_request(state.none_pending_ns))
			continue;
		count_request();
		if (ret_from_terminal)
			*ret_from_terminal = info.ssi_code == SI_KERNEL;
		return true;
	}
	state.none_pending_ns = now_ns();
	return false;
}

bool signals_consume_second(int fd)
{
	struct signalfd_siginfo info;

	return read(fd, &info, sizeof(info)) == sizeof(info);
}

void signals_note_time(void)
{
	sigset_t signals = our_signals(), pending;
	uint64_t now = now_ns();

	if (sigpending(&pending) || sigandset(&pending, &pending, &signals) ||
	    sigisemptyset(&pending))
		state.none_pending_ns = now;
}

#define NAMES_STOPPED                                                                              \
	"wallprof: no more names are looked up; writing the profile; interrupt again to abort\n"
#define STILL_WRITING "wallprof: still writing the profile; interrupt again to abort\n"

static void write_text(const char *text)
{
	/* An error cannot be handled here. */
	if (write(STDERR_FILENO, text, strlen(text)) < 0)
		return;
}

/* Only async-signal-safe calls: clock_gettime, write, unlink, _exit. */
static void on_signal(int number)
{
	int saved = errno;

	if (is_of_last_request(now_ns()))
		return;
	if (state.lookup == LOOKUP_RUNS) {
		state.lookup = LOOKUP_STOPPED;
		state.count = 0; /* what ended the recording does not count here */
		count_request();
		write_text(NAMES_STOPPED);
		errno = saved;
		return;
	}
	count_request();
	if (state.count < 2) {
		write_text(STILL_WRITING);
		errno = saved;
		return;
	}
	if (state.unfinished)
		unlink(state.unfinished);
	write_text(state.message);
	_exit(128 + number);
}

static void on_late_signal(int number)
{
	(void)number;
	if (!is_of_last_request(now_ns()))
		count_request();
}

static void install(void (*handler)(int), int flags)
{
	sigset_t signals = our_signals();
	/* Only one handler runs at a time, because they change the same state. */
	struct sigaction action = {.sa_handler = handler, .sa_flags = flags, .sa_mask = signals};

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	if (hangup_counts())
		sigaction(SIGHUP, &action, NULL);
	sigprocmask(SIG_UNBLOCK, &signals, NULL);
}

/* A pending signal may belong to the last request, and then it must not count as a new one. */
static void drop_repeats(void)
{
	sigset_t signals = our_signals();
	struct timespec none = {};
	bool dropped = false;

	if (!is_of_last_request(state.none_pending_ns))
		return;
	while (sigtimedwait(&signals, NULL, &none) > 0)
		dropped = true;
	/* It may have been a new request after all; then the user expects an answer. */
	if (dropped && !is_of_last_request(now_ns()))
		write_text(STILL_WRITING);
}

void signals_guard(const char *capture_path)
{
	if (capture_path) {
		_cleanup_free_ char *path = shell_word(capture_path);

		mask_controls(path);
		snprintf(
			state.message, sizeof(state.message),
			"wallprof: error: writing the profile failed: interrupted; wallprof export "
			"%s\n",
			path);
	} else {
		state.count = 1;
	}
	drop_repeats();
	install(on_signal, SA_RESTART);
}

void signals_begin_lookup(void)
{
	state.lookup = LOOKUP_RUNS;
}

bool signals_lookup_stopped(void)
{
	return state.lookup == LOOKUP_STOPPED;
}

void signals_end_lookup(void)
{
	state.lookup = LOOKUP_NONE;
}

/* xmalloc() can exit at any place when memory runs out. */
static void remove_unfinished(void)
{
	if (state.unfinished && state.pid == getpid())
		unlink(state.unfinished);
}

void signals_unfinished(const char *temp_path)
{
	char *before = state.unfinished;

	if (!state.pid && !atexit(remove_unfinished))
		state.pid = getpid();
	state.unfinished = temp_path ? xstrdup(temp_path) : NULL;
	free(before);
}

void signals_release(void)
{
	signals_unfinished(NULL);
	install(on_late_signal, /* no SA_RESTART: system calls that wait must return */ 0);
}
