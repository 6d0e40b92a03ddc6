/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * record.c - the order of things in a recording:
 *
 * checks, capture file, BPF programs (no targets yet), side-band, then the targets are
 * marked and described by the task iterator, then the window begins. At its end the
 * iterator describes them once more, the programs are detached, and what remains in
 * the rings is drained; then the symbols are added.
 */
#include "record.h"
#include "capture.h"
#include "checks.h"
#include "files.h"
#include "loss.h"
#include "metadata.h"
#include "programs.h"
#include "sideband.h"
#include "symbols.h"
#include "util.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define COMPRESSION_LEVEL 1
/* Rings are drained this often, so they must hold what happens meanwhile. */
#define DRAIN_INTERVAL_MS 25
/* After a crash everything up to the last flush can be read. */
#define FLUSH_INTERVAL_NS NSEC_PER_SEC
/* The side-band wakes us for every mapping; this bounds how often. */
#define SIDEBAND_COALESCE_US 1000
#define PROGRESS_INTERVAL_NS (NSEC_PER_SEC / 2)
/* How long the final switch-out of an ended command may take to show. */
#define COMMAND_END_WAIT_US 100
#define COMMAND_END_TRIES   200

typedef struct Recording {
	const Options *options;
	RecordResult *result;
	CaptureWriter *writer;
	Programs *programs;
	LossMeter *losses;
	Files *files;
	Sideband *sideband;
	Launch launch;
	bool launched;
	int epoll_fd, signal_fd, timer_fd;
	VEC(int) target_fds;	     /* pidfds of attached processes that still live */
	VEC(uint32_t) new_processes; /* described since the last look, as ns_tgid */
	bool before_window;	     /* their mappings must be read from /proc */
	uint64_t window_start_ns;
	uint64_t last_flush_ns;
	uint64_t last_progress_ns; /* 0 = no live line */
	bool done;
} Recording;

static int write_record(void *user, const struct record *record)
{
	Recording *recording = user;

	return capture_write(recording->writer, record);
}

/* Drains do not parse, with one exception: a new process's mappings are wanted. */
static int take_bpf_record(void *user, const struct record *record)
{
	Recording *recording = user;
	const struct rec_task *task = (const struct rec_task *)record;

	if (record->kind == REC_TASK && !(record->flags & TASK_FOREIGN) &&
	    sideband_add_process(recording->sideband, task->ns_tgid) && recording->before_window)
		*vec_push(&recording->new_processes) = task->ns_tgid;
	return capture_write(recording->writer, record);
}

/* One round: everything older than its beginning is in the capture afterwards. */
static int drain(Recording *recording)
{
	struct rec_round round = {
		.h = {.len = sizeof(round), .kind = REC_ROUND, .ns = now_ns()},
	};
	int error = sideband_fetch(recording->sideband);

	if (!error)
		error = programs_drain(recording->programs, take_bpf_record, recording);
	if (!error)
		error = sideband_process(recording->sideband);
	if (!error)
		error = loss_poll(recording->losses, write_record, recording);
	if (!error)
		error = capture_write(recording->writer, &round.h);
	if (!error && round.h.ns - recording->last_flush_ns >= FLUSH_INTERVAL_NS) {
		recording->last_flush_ns = round.h.ns;
		error = capture_flush(recording->writer);
	}
	return error;
}

static int write_window(Recording *recording, uint8_t flags, uint64_t ns)
{
	struct timespec real;
	struct rec_window record = {
		.h = {.len = sizeof(record),
		      .kind = REC_WINDOW,
		      .flags = flags | (recording->launched ? 0 : WINDOW_ATTACHED),
		      .ns = ns},
	};
	int64_t ago = now_ns() - ns;

	clock_gettime(CLOCK_REALTIME, &real);
	record.realtime_ns = real.tv_sec * NSEC_PER_SEC + real.tv_nsec - ago;
	return capture_write(recording->writer, &record.h);
}

/* ---- setting up --------------------------------------------------------------- */

static int open_capture(Recording *recording, const Invoker *invoker, const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	int error;

	if (fd < 0) {
		error = -errno;
		log_error("cannot write %s: %s (choose another place with -o)", path,
			  strerror(-error));
		return error;
	}
	recording->result->opened = true;
	if (invoker->change && fchown(fd, invoker->uid, invoker->gid))
		log_warn("%s stays root's: %s", path, strerror(errno));
	error = capture_writer_new(fd, COMPRESSION_LEVEL, &recording->writer);
	if (error)
		log_error("cannot write %s: %s", path, strerror(-error));
	return error;
}

static int check_targets(const Options *options)
{
	for (size_t i = 0; i < options->pid_count; i++) {
		if (kill(options->pids[i], 0) && errno == ESRCH) {
			log_error("no process has the number %d (ps -e lists them)",
				  options->pids[i]);
			return -ESRCH;
		}
	}
	return 0;
}

static void raise_file_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static int start_sources(Recording *recording)
{
	const Options *options = recording->options;
	ProgramsOptions programs = {
		.ring_size = options->ring_size,
		.kernel_stacks = options->kernel_stacks,
		.user_stacks = options->user_stacks,
		.cost = options->cost,
	};
	struct cpu_account *accounts;
	size_t cpu_count;
	int error = programs_start(&programs, &recording->programs);

	if (error)
		return error;
	accounts = programs_accounts(recording->programs, &cpu_count);
	recording->losses = loss_meter_new(accounts, cpu_count);
	recording->files = files_new(write_record, recording);
	error = sideband_open(recording->files, write_record, recording, &recording->sideband);
	if (error)
		log_error("opening perf's side-band failed: %s (see kernel.perf_event_paranoid)",
			  strerror(-error));
	return error;
}

static int mark_targets(Recording *recording)
{
	const Options *options = recording->options;
	int error = 0;

	if (recording->launched) {
		error = programs_mark_command(recording->programs, recording->launch.pid);
	} else {
		for (size_t i = 0; i < options->pid_count && !error; i++)
			error = programs_mark(recording->programs, options->pids[i]);
		if (!error)
			error = programs_mark_descendants(recording->programs);
	}
	if (error)
		log_error("finding the processes to record failed: %s", strerror(-error));
	return error;
}

/* Describes all targets and reads their mappings, so that their state at the start is known. */
static int describe_targets(Recording *recording)
{
	int error;

	recording->before_window = true;
	error = programs_snapshot(recording->programs, /* at_end= */ false);
	if (!error)
		error = drain(recording);
	recording->before_window = false;
	for (size_t i = 0; i < recording->new_processes.count && !error; i++) {
		pid_t pid = recording->new_processes.items[i];

		error = files_add_process(recording->files, pid);
		if (error == -ENOENT || error == -ESRCH) /* it ended meanwhile */
			error = 0;
		if (error == -EACCES || error == -EPERM) {
			log_warn("mappings of process %d may not be read: its addresses stay "
				 "without names (CAP_SYS_PTRACE)",
				 pid);
			error = 0;
		}
	}
	if (error)
		log_error("describing the processes to record failed: %s", strerror(-error));
	return error;
}

static int watch(int epoll_fd, int fd)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

	return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

static int watch_targets(Recording *recording)
{
	const Options *options = recording->options;

	for (size_t i = 0; i < options->pid_count; i++) {
		int fd = pidfd_open(options->pids[i], 0);
		int error;

		if (fd < 0 && errno == ESRCH)
			continue;
		if (fd < 0)
			return -errno;
		*vec_push(&recording->target_fds) = fd;
		error = watch(recording->epoll_fd, fd);
		if (error)
			return error;
	}
	return 0;
}

static int open_events(Recording *recording)
{
	sigset_t signals;
	int error;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGCHLD);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	recording->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	recording->signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	recording->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	if (recording->epoll_fd < 0 || recording->signal_fd < 0 || recording->timer_fd < 0)
		return -errno;
	error = watch(recording->epoll_fd, recording->signal_fd);
	if (!error)
		error = watch(recording->epoll_fd, recording->timer_fd);
	if (!error)
		error = sideband_add_to_epoll(recording->sideband, recording->epoll_fd);
	if (!error && !recording->launched)
		error = watch_targets(recording);
	return error;
}

static int write_metadata(Recording *recording)
{
	const Options *options = recording->options;
	MetadataFacts facts = {
		.options = options,
		.command_pid = recording->launched ? recording->launch.pid : 0,
	};

	return metadata_write(&facts, write_record, recording);
}

static int set_up(Recording *recording, const Invoker *invoker, const char *capture_path)
{
	const Options *options = recording->options;
	int error = check_recording_allowed();

	if (!error)
		error = check_targets(options);
	if (!error)
		error = open_capture(recording, invoker, capture_path);
	if (error)
		return error;
	raise_file_limit();
	error = start_sources(recording);
	if (error)
		return error;
	if (options->command) {
		error = launch_prepare(options->command, invoker, &recording->launch);
		if (error) {
			log_error("starting a process failed: %s", strerror(-error));
			return error;
		}
		recording->launched = true;
	}
	error = open_events(recording);
	if (error) {
		log_error("setting up the recording failed: %s", strerror(-error));
		return error;
	}
	error = write_metadata(recording);
	if (!error)
		error = mark_targets(recording);
	if (!error)
		error = programs_start_ticks(recording->programs, options->frequency);
	if (!error)
		error = describe_targets(recording);
	return error;
}

/* ---- the window ---------------------------------------------------------------- */

static void start_timer(Recording *recording)
{
	uint64_t end = recording->window_start_ns + recording->options->duration_ns;
	struct itimerspec timer = {
		.it_value = {.tv_sec = end / NSEC_PER_SEC, .tv_nsec = end % NSEC_PER_SEC},
	};

	if (recording->options->duration_ns)
		timerfd_settime(recording->timer_fd, TFD_TIMER_ABSTIME, &timer, NULL);
}

/* Begins the window. Returns 0 or a positive errno of the command's exec, or negative errno. */
static int start_window(Recording *recording)
{
	int error;

	recording->window_start_ns = now_ns();
	error = write_window(recording, WINDOW_START, recording->window_start_ns);
	if (error)
		return error;
	start_timer(recording);
	recording->result->started = true;
	return recording->launched ? launch_go(&recording->launch) : 0;
}

static void reap_command(Recording *recording)
{
	siginfo_t info = {};

	/* Not reaped yet: its number must stay its own until the window is closed. */
	if (!recording->launched ||
	    waitid(P_PID, recording->launch.pid, &info, WEXITED | WNOHANG | WNOWAIT) ||
	    info.si_pid == 0)
		return;
	recording->result->command_running = false;
	recording->done = true;
}

static void take_signals(Recording *recording)
{
	struct signalfd_siginfo info;

	while (read(recording->signal_fd, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGCHLD) {
			reap_command(recording);
		} else {
			recording->result->interrupted = true;
			recording->done = true;
		}
	}
}

static void take_event(Recording *recording, int fd, bool *ret_sideband)
{
	if (fd == recording->signal_fd) {
		take_signals(recording);
		return;
	}
	if (fd == recording->timer_fd) {
		recording->done = true;
		return;
	}
	for (size_t i = 0; i < recording->target_fds.count; i++) {
		if (recording->target_fds.items[i] != fd)
			continue;
		close(fd);
		recording->target_fds.items[i] =
			recording->target_fds.items[--recording->target_fds.count];
		recording->done = recording->target_fds.count == 0;
		return;
	}
	*ret_sideband = true;
}

/* A live line, on a terminal that is not the command's. */
static void show_progress(Recording *recording)
{
	uint64_t now = now_ns();

	if (!recording->last_progress_ns ||
	    now - recording->last_progress_ns < PROGRESS_INTERVAL_NS)
		return;
	recording->last_progress_ns = now;
	fprintf(stderr, "\rwallprof: recording %.0f s, %.1f MB, %lu lost (Ctrl-C ends it) ",
		(now - recording->window_start_ns) / 1e9,
		capture_writer_file_bytes(recording->writer) / 1e6, loss_count(recording->losses));
}

static int record_window(Recording *recording)
{
	int error = 0;

	if (!recording->launched && log_level >= LOG_NORMAL && isatty(STDERR_FILENO))
		recording->last_progress_ns = recording->window_start_ns;
	while (!recording->done && !error) {
		struct epoll_event events[16];
		bool sideband = false;
		int count = epoll_wait(recording->epoll_fd, events, ARRAY_LEN(events),
				       DRAIN_INTERVAL_MS);

		if (count < 0 && errno != EINTR)
			return -errno;
		for (int i = 0; i < count; i++)
			take_event(recording, events[i].data.fd, &sideband);
		if (recording->done)
			break;
		error = drain(recording);
		show_progress(recording);
		if (sideband)
			usleep(SIDEBAND_COALESCE_US);
	}
	if (recording->last_progress_ns)
		fputs("\r\033[K", stderr);
	return error;
}

/* When the window ended: with the command, at its time, or now. */
static uint64_t window_end(const Recording *recording)
{
	uint64_t now = now_ns(), duration = recording->options->duration_ns;
	uint64_t limit = duration ? recording->window_start_ns + duration : UINT64_MAX;

	if (recording->launched && !recording->result->command_running) {
		/* The parent learns of the death just before the last switch-out. */
		for (int i = 0; i < COMMAND_END_TRIES; i++) {
			uint64_t end = programs_command_end(recording->programs);

			if (end)
				return MIN(end, limit);
			usleep(COMMAND_END_WAIT_US);
		}
	}
	return MIN(now, limit);
}

static int close_window(Recording *recording)
{
	uint64_t end = window_end(recording);
	int error = programs_snapshot(recording->programs, /* at_end= */ true);

	programs_stop(recording->programs);
	if (!error)
		error = drain(recording);
	if (!error)
		error = write_window(recording, WINDOW_END, end);
	if (!error)
		error = loss_totals(recording->losses, write_record, recording);
	if (recording->options->cost)
		programs_print_cost(recording->programs, stderr, end - recording->window_start_ns);
	return error;
}

/* ---- after the window ----------------------------------------------------------- */

static int add_symbols(Recording *recording, const char *capture_path)
{
	SymbolsSink sink = {.open = files_open, .emit = write_record, .user = recording};
	SymbolsSummary summary;
	CaptureReader *reader;
	const char *message;
	int error = capture_flush(recording->writer);

	if (!error)
		error = capture_reader_open(capture_path, &reader, &message);
	if (error)
		return error;
	sink.open_user = recording->files;
	error = symbols_resolve(reader, &sink, /* with_kernel= */ true, &summary);
	capture_reader_free(reader);
	if (error)
		return error;
	log_verbose("%lu of %lu addresses have names; %u files could not be read, %u had changed",
		    summary.named, summary.addresses, summary.files_unreadable,
		    summary.files_mismatched);
	if (summary.kernel_hidden)
		log_warn("kernel functions have no names: /proc/kallsyms hides them "
			 "(kernel.kptr_restrict)");
	return 0;
}

static int finish_capture(Recording *recording, const char *capture_path)
{
	struct rec_end end = {.h = {.len = sizeof(end), .kind = REC_END, .ns = now_ns()}};
	int error = 0;

	if (!recording->options->defer_symbols) {
		error = add_symbols(recording, capture_path);
		end.h.flags = END_SYMBOLS;
	}
	if (!error)
		error = capture_write(recording->writer, &end.h);
	return error;
}

static void tear_down(Recording *recording)
{
	for (size_t i = 0; i < recording->target_fds.count; i++)
		close(recording->target_fds.items[i]);
	vec_free(&recording->target_fds);
	vec_free(&recording->new_processes);
	sideband_close(recording->sideband);
	files_free(recording->files);
	loss_meter_free(recording->losses);
	programs_free(recording->programs);
	closep(&recording->epoll_fd);
	closep(&recording->signal_fd);
	closep(&recording->timer_fd);
}

static int exec_failed(Recording *recording, int exec_error)
{
	log_error("cannot run %s: %s", recording->options->command[0], strerror(exec_error));
	recording->result->started = false;
	recording->result->command_status = exec_error == ENOENT ? 127 : 126;
	return -ENOEXEC;
}

static int status_as_shell(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

void record_wait(RecordResult *result)
{
	int status;

	if (result->command_pid && waitpid(result->command_pid, &status, 0) > 0) {
		result->command_status = status_as_shell(status);
		result->command_running = false;
	}
}

static int run(Recording *recording, const Invoker *invoker, const char *capture_path)
{
	RecordResult *result = recording->result;
	int error = set_up(recording, invoker, capture_path);

	if (error) {
		if (recording->launched)
			launch_cancel(&recording->launch);
		return error;
	}
	result->command_running = recording->launched;
	error = start_window(recording);
	if (error > 0)
		return exec_failed(recording, error);
	if (recording->launched)
		result->command_pid = recording->launch.pid;
	if (!error)
		error = record_window(recording);
	if (!error)
		error = close_window(recording);
	if (recording->launched && !result->command_running)
		record_wait(result);
	if (!error)
		error = finish_capture(recording, capture_path);
	if (error)
		log_error("recording failed: %s; what was recorded until then is kept in %s",
			  strerror(-error), capture_path);
	return error;
}

int record_run(const Options *options, const Invoker *invoker, const char *capture_path,
	       RecordResult *ret_result)
{
	Recording recording = {
		.options = options,
		.result = ret_result,
		.epoll_fd = -1,
		.signal_fd = -1,
		.timer_fd = -1,
	};
	int error, close_error = 0;

	*ret_result = (RecordResult){};
	error = run(&recording, invoker, capture_path);
	tear_down(&recording);
	if (recording.writer)
		close_error = capture_writer_close(recording.writer);
	if (close_error && !error)
		log_error("writing %s failed: %s", capture_path, strerror(-close_error));
	return error ? error : close_error;
}
