/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * recorder.c - the steps of a recording:
 *
 * checks, capture file, BPF programs (no targets yet), side-band; then (after a delay, during which
 * the command is already running) the targets are marked and described by the task iterator, and
 * the window begins. At its end the iterator describes them again, the programs are detached, and
 * the rest of the rings is drained; then the programs are unloaded and the symbols are added.
 */
#include "recorder.h"
#include "metadata.h"
#include "privileges.h"
#include "recorder_private.h"
#include "signals.h"
#include "sources.h"
#include "symbols.h"
#include "util.h"
#include <errno.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* The rings are drained this often, so they must hold what happens meanwhile. */
#define DRAIN_INTERVAL_MS 25
/* With --delay=signal, the signal is polled this often. */
#define SIGNAL_STEP_MS 5
/*
 * The side-band wakes the recorder for every mapping; this pause limits how often. It gets longer
 * as long as only processes that are not recorded map anything.
 */
#define SIDEBAND_COALESCE_NS	 NSEC_PER_MSEC
#define SIDEBAND_COALESCE_MAX_NS (8 * NSEC_PER_MSEC)
#define PROGRESS_INTERVAL_NS	 (NSEC_PER_SEC / 2)
/*
 * Ctrl-C on a terminal also reaches the command, which may take this long to clean up while it is
 * recorded.
 */
#define INTERRUPT_GRACE_NS NSEC_PER_SEC
/* The final switch-out of an ended command may take this long to appear. */
#define COMMAND_END_WAIT_US 100
#define COMMAND_END_TRIES   200

/* ---- the window ---------------------------------------------------------------- */

static int write_window(Recording *recording, uint8_t flags, uint64_t ns)
{
	const RecordOptions *options = recording->options;
	bool attached = !recording->launched || options->delay_ns || options->whole_system;
	struct rec_window record = {
		.h = {.len = sizeof(record),
		      .kind = REC_WINDOW,
		      .flags = flags | (attached ? WINDOW_ATTACHED : 0) |
			       (options->whole_system ? WINDOW_SYSTEM : 0),
		      .ns = ns},
	};

	record.realtime_ns = ns + realtime_offset_ns();
	return recording_write(recording, &record.h);
}

static void start_timer(Recording *recording)
{
	uint64_t end = recording->window_start_ns + recording->options->duration_ns;
	struct itimerspec timer = {
		.it_value = {.tv_sec = end / NSEC_PER_SEC, .tv_nsec = end % NSEC_PER_SEC},
	};

	if (recording->options->duration_ns)
		timerfd_settime(recording->timer_fd, TFD_TIMER_ABSTIME, &timer, NULL);
}

static int watch_stop_signal(Recording *recording)
{
	struct epoll_event event = {.events = EPOLLIN};

	event.data.fd = recording->stop_fd = signals_open_second();
	if (recording->stop_fd < 0)
		return recording->stop_fd;
	while (signals_consume_second(recording->stop_fd)) /* drop signals from before the window */
		;
	return epoll_ctl(recording->epoll_fd, EPOLL_CTL_ADD, recording->stop_fd, &event) ? -errno
											 : 0;
}

/* Gives the capture its name: from here on it is worth keeping. */
static int name_capture(Recording *recording)
{
	int error = atomic_file_commit(&recording->capture_file, /* keep_old= */ true);

	if (error)
		return recording_write_failed(recording, error);
	signals_unfinished(NULL);
	recording->named_bytes = capture_writer_file_bytes(recording->writer);
	recording->result->started = true;
	return 0;
}

static int release_command(Recording *recording)
{
	RecordResult *result = recording->result;
	int error;

	recording->launched_running = true;
	error = launch_go(&recording->launch);
	if (error) {
		log_error("running %s failed: %s", recording->options->command[0], strerror(error));
		result->command_status = error == ENOENT ? 127 : 126;
		return -ENOEXEC;
	}
	result->command_pid = recording->launch.pid;
	result->command_running = true;
	return 0;
}

/*
 * Writes the start of the window; that of a flight recorder is known only at its end. After the
 * flush all targets are in the file, even if it is cut off at once.
 */
static int write_window_start(Recording *recording)
{
	int error = recording->flight ? 0
				      : metadata_write_stolen("stolen_at_start_ns", recording_write,
							      recording);

	if (error)
		return error;
	recording->window_start_ns = now_ns();
	if (!recording->flight)
		error = write_window(recording, WINDOW_START, recording->window_start_ns);
	return error ? error : capture_flush(recording->writer);
}

/* Begins the window and starts the command. Returns 0 or a negative errno, logged. */
static int start_window(Recording *recording)
{
	int error;

	if (signals_consume(recording->signal_fd, NULL)) {
		log_error("interrupted before the recording began");
		return -EINTR;
	}
	if (recording->options->whole_system)
		recording->idle_cpus = idle_cpus_begin();
	error = write_window_start(recording);
	if (error)
		return recording_write_failed(recording, error);
	recording_begin_cpu_checks(recording);
	start_timer(recording);
	recording_begin_ticks(recording);
	budget_begin(&recording->budget, recording->options->budget, recording->window_start_ns);
	error = recording->flight ? watch_stop_signal(recording) : 0;
	if (error)
		return error;
	if (recording->launched && !recording->launched_running)
		error = release_command(recording);
	return error ? error : name_capture(recording);
}

static void on_signals(Recording *recording)
{
	bool from_terminal;

	while (signals_consume(recording->signal_fd, &from_terminal)) {
		recording->result->interrupted = true;
		/*
		 * A second signal, or one that the command did not get, ends the recording at once.
		 */
		if (!from_terminal || !recording->launched || recording->grace_end_ns)
			recording->done = true;
		recording->grace_end_ns = now_ns() + INTERRUPT_GRACE_NS;
	}
}

/* Returns whether the descriptor is that of a target. */
static bool on_target_exit(Recording *recording, int fd)
{
	for (size_t i = 0; i < recording->named.count; i++) {
		if (recording->named.items[i].fd != fd)
			continue;
		close(fd);
		recording->named.items[i] = recording->named.items[--recording->named.count];
		recording->done |= recording->named.count == 0;
		return true;
	}
	return false;
}

/* Handles one event of epoll. Returns whether it came from the side-band. */
static bool on_event(Recording *recording, int fd)
{
	if (fd == recording->signal_fd) {
		on_signals(recording);
	} else if (fd == recording->timer_fd || fd == recording->stop_fd) {
		recording->done = true;
	} else if (fd == recording->command_fd) {
		recording->result->command_running = false;
		recording->done = true;
	} else if (!on_target_exit(recording, fd)) {
		/* The descriptor for the ticks needs only the drain that follows. */
		return !programs_own_fd(recording->programs, fd);
	}
	return false;
}

/* ---- the delay ----------------------------------------------------------------- */

/*
 * Returns the time to wait in ms, at least 1 and at most DRAIN_INTERVAL_MS; 0 if the delay is over.
 */
static int delay_left(const Recording *recording, uint64_t begin_ns, int start_fd)
{
	uint64_t passed = now_ns() - begin_ns, delay = recording->options->delay_ns;

	if (delay == DELAY_SIGNAL)
		return signals_consume_second(start_fd) ? 0 : SIGNAL_STEP_MS;
	if (passed >= delay)
		return 0;
	return MIN((delay - passed) / NSEC_PER_MSEC + 1, (uint64_t)DRAIN_INTERVAL_MS);
}

/*
 * Waits until the recording starts. There are no targets yet, so what the side-band reports is
 * dropped.
 */
static int wait_for_start(Recording *recording, int start_fd)
{
	uint64_t begin_ns = now_ns();
	int error, left;

	while (!recording->done && (left = delay_left(recording, begin_ns, start_fd)) > 0) {
		struct epoll_event events[16];
		int count = epoll_wait(recording->epoll_fd, events, ARRAY_LEN(events), left);

		for (int i = 0; i < count; i++)
			on_event(recording, events[i].data.fd);
		error = recording_drain(recording);
		if (error)
			return error;
	}
	if (!recording->done)
		return 0;
	log_error("%s before the recording began (--delay)",
		  recording->result->interrupted ? "interrupted"
		  : recording->launched		 ? "the command ended"
						 : "the processes ended");
	return -ECANCELED;
}

static int wait_delay(Recording *recording)
{
	_cleanup_close_ int start_fd = -1;
	int error;

	if (!recording->options->delay_ns)
		return 0;
	start_fd = signals_open_second();
	if (start_fd < 0) {
		log_error("setting up signals failed: %s", error_text(start_fd));
		return start_fd;
	}
	error = recording->launched ? release_command(recording) : 0;
	if (error)
		return error;
	if (recording->options->delay_ns == DELAY_SIGNAL)
		log_info("waiting for SIGUSR1 to start recording: kill -USR1 %d", getpid());
	return wait_for_start(recording, start_fd);
}

/* ---- during the window ----------------------------------------------------------------- */

/* Shows the progress on a terminal that the command does not use. */
static void show_progress(Recording *recording)
{
	uint64_t now = now_ns();

	if (!recording->last_progress_ns ||
	    now - recording->last_progress_ns < PROGRESS_INTERVAL_NS)
		return;
	recording->last_progress_ns = now;
	fprintf(stderr, "\rwallprof: recording %.0f s, %.1f MB, %" PRIu64 " lost (Ctrl-C to stop) ",
		(now - recording->window_start_ns) / 1e9,
		capture_writer_file_bytes(recording->writer) / 1e6, loss_count(recording->losses));
}

/*
 * Waits a moment, because mappings come in groups and the latest one may be too recent to be
 * processed. A table that is ready ends the wait.
 */
static void coalesce(Recording *recording)
{
	struct pollfd tables = {
		.fd = recording->unwinder ? unwinder_fd(recording->unwinder) : -1,
		.events = POLLIN,
	};
	uint64_t longest_ns = MIN(2 * recording->coalesce_ns, SIDEBAND_COALESCE_MAX_NS);
	struct timespec pause = {};

	recording->coalesce_ns = sideband_was_of_targets(recording->sideband)
					 ? SIDEBAND_COALESCE_NS
					 : MAX(longest_ns, SIDEBAND_COALESCE_NS);
	pause.tv_nsec = sideband_wait_ns(recording->sideband) ?: recording->coalesce_ns;
	ppoll(&tables, 1, &pause, NULL);
}

static int wait_ms(const Recording *recording, bool sideband_pending)
{
	bool busy = (recording->flight && flight_recorder_is_busy(recording->flight)) ||
		    ring_reader_is_behind(programs_ring_reader(recording->programs));

	return sideband_pending || busy ? 0 : DRAIN_INTERVAL_MS;
}

static int record_window(Recording *recording)
{
	int error = 0;

	if (!recording->launched && log_level >= LOG_NORMAL && isatty(STDERR_FILENO))
		recording->last_progress_ns = recording->window_start_ns;
	while (!recording->done && !error) {
		struct epoll_event events[16];
		bool sideband = false;
		bool kept = sideband_wait_ns(recording->sideband);
		int count = epoll_wait(recording->epoll_fd, events, ARRAY_LEN(events),
				       wait_ms(recording, kept));

		if (count < 0 && errno != EINTR)
			return -errno;
		for (int i = 0; i < count; i++)
			sideband |= on_event(recording, events[i].data.fd);
		if (recording->grace_end_ns && now_ns() > recording->grace_end_ns)
			recording->done = true;
		if (recording->done)
			break;
		error = recording_drain(recording);
		if (!error)
			error = recording_adapt_ticks(recording);
		if (!error)
			error = recording_keep_budget(recording);
		show_progress(recording);
		if (sideband || kept)
			coalesce(recording);
	}
	if (recording->last_progress_ns)
		fputs("\r\033[K", stderr);
	return error;
}

/* Returns the end of the window: the end of the command, the end of the duration, or now. */
static uint64_t window_end(const Recording *recording)
{
	uint64_t now = now_ns(), duration = recording->options->duration_ns;
	uint64_t limit = duration ? recording->window_start_ns + duration : UINT64_MAX;

	if (recording->launched && !recording->result->command_running) {
		/* The parent is notified of the exit just before the last switch-out. */
		for (int i = 0; i < COMMAND_END_TRIES; i++) {
			uint64_t end = programs_command_end(recording->programs);

			if (end)
				return MIN(end, limit);
			usleep(COMMAND_END_WAIT_US);
		}
	}
	return MIN(now, limit);
}

static int start_kept_window(void *user, uint64_t ns)
{
	Recording *recording = user;

	recording->window_start_ns = ns;
	return write_window(recording, WINDOW_START, ns);
}

/* Appends the segments. After this, records are written directly to the capture. */
static int finish_flight(Recording *recording, uint64_t end_ns)
{
	int error = flight_recorder_finish(recording->flight, recording->window_start_ns, end_ns,
					   start_kept_window, recording);

	recording->segments_dropped = flight_recorder_segments_dropped(recording->flight);
	recording->kept_ns = end_ns - MIN(recording->window_start_ns, end_ns);
	recording->flight_empty = error == -ENOSPC || error == -EDQUOT || error == -EFBIG;
	flight_recorder_free(recording->flight);
	recording->flight = NULL;
	return error;
}

/* After an error, saves what was kept until then. */
static void save_flight(Recording *recording)
{
	uint64_t end = now_ns();

	if (!finish_flight(recording, end))
		write_window(recording, WINDOW_END, end);
}

static int write_idle_cpus(Recording *recording, uint64_t end_ns)
{
	_cleanup_free_ char *list =
		idle_cpus_list(recording->idle_cpus, end_ns - recording->window_start_ns);

	return *list ? metadata_write_one("cpus_idle", list, recording_write, recording) : 0;
}

/* Drains the rest, and writes what is known only at the end. */
static int write_end(Recording *recording, uint64_t end)
{
	int error = recording_drain_last(recording);

	if (error)
		return error;
	error = recording_add_all_args(recording);
	if (error)
		return error;
	error = recording->flight ? finish_flight(recording, end) : 0;
	if (error)
		return error;
	error = recording_write_ticks(recording);
	if (error)
		return error;
	error = recording_write_warnings(recording);
	if (error)
		return error;
	error = metadata_write_devices(recording_write, recording);
	if (error)
		return error;
	error = metadata_write_cpu_limit(&recording->cpu_limits, recording_write, recording);
	if (error)
		return error;
	error = write_idle_cpus(recording, end);
	if (error)
		return error;
	error = write_window(recording, WINDOW_END, end);
	if (error)
		return error;
	error = loss_poll(recording->losses, recording_write, recording);
	return error ? error : loss_totals(recording->losses, recording_write, recording);
}

static int close_window(Recording *recording)
{
	uint64_t end = window_end(recording);
	int error = 0;

	if (recording->idle_cpus)
		idle_cpus_end(recording->idle_cpus);
	if (!recording->flight)
		error = metadata_write_stolen("stolen_at_end_ns", recording_write, recording);
	recording->iterating = true;
	if (!error)
		error = recording_describe(recording, /* at_end= */ true);
	programs_stop(recording->programs);
	programs_add_misses(recording->programs, recording->losses, recording->window_start_ns);
	if (!error)
		error = write_end(recording, end);
	if (recording->options->cost)
		programs_print_cost(recording->programs, stderr, end - recording->window_start_ns);
	return error;
}

/* ---- after the window ----------------------------------------------------------- */

static int resolve_names(Recording *recording, CaptureReader *reader)
{
	const RecordOptions *options = recording->options;
	SourcesOptions reading = {.invoker = recording->invoker,
				  .open = recording_open_source,
				  .open_user = recording};
	_cleanup_(sources_freep) Sources *sources =
		options->no_source ? NULL : sources_new(&reading);
	SymbolsSink sink = {
		.open = mapped_files_open,
		.open_beside = mapped_files_open_beside,
		.open_named = mapped_files_open_named,
		.open_user = recording->files,
		.emit = recording_write,
		.user = recording,
		.jit = mapped_files_jit(recording->files),
		.sources = sources,
		.invoker = recording->invoker,
		.no_debuginfod = options->no_debuginfod,
		.deadline_ns = now_ns() + SYMBOLS_SECONDS_MAX * NSEC_PER_SEC,
	};
	SymbolsSummary symbols;
	int error = symbols_resolve(reader, &sink, /* with_kernel= */ true, &symbols);

	if (!error)
		recording_report_symbols(&symbols);
	recording_weigh_scripts(recording, sources);
	return error || !sources ? error : sources_write(sources, recording_write, recording, NULL);
}

static int add_symbols(Recording *recording)
{
	_cleanup_(capture_reader_freep) CaptureReader *reader = NULL;
	const char *message;
	int error = capture_flush(recording->writer);

	if (error)
		return error;
	error = capture_reader_open_fd(recording->result->capture_fd, &reader, &message);
	return error ? error : resolve_names(recording, reader);
}

static int finish_capture(Recording *recording)
{
	struct rec_end end = {.h = {.len = sizeof(end), .kind = REC_END, .ns = now_ns()}};
	int error;

	if (!recording->options->defer_symbols) {
		error = add_symbols(recording);
		if (error)
			return error;
		end.h.flags = END_SYMBOLS;
	}
	return recording_write(recording, &end.h);
}

bool recorder_wait(RecordResult *result, bool block)
{
	int status;

	if (!result->command_pid)
		return true;
	if (waitpid(result->command_pid, &status, block ? 0 : WNOHANG) != result->command_pid)
		return false;
	/* as in a shell */
	result->command_status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	result->command_running = false;
	result->command_pid = 0;
	return true;
}

/*
 * Returns whether the capture has no events. Then it is removed, so no message may say that it is
 * kept.
 */
static bool is_empty(const Recording *recording)
{
	return recording->flight_empty ||
	       capture_writer_file_bytes(recording->writer) == recording->named_bytes;
}

static void report_failure(Recording *recording, int error)
{
	_cleanup_free_ char *remedy = remedy_export(recording->capture_path);

	if (!is_empty(recording)) {
		log_error("recording failed: %s; what was recorded until then is in %s; %s",
			  error_text(error), recording->capture_path, remedy);
		return;
	}
	log_error("recording failed: nothing was recorded: %s%s", error_text(error),
		  remedy_other_place(error));
	recording->result->started = false;
	atomic_file_remove(&recording->capture_file);
}

static int begin(Recording *recording)
{
	int error = recording_open(recording);

	if (error)
		return error;
	error = wait_delay(recording);
	if (error)
		return error;
	error = recording_find_targets(recording);
	return error ? error : start_window(recording);
}

static int run(Recording *recording)
{
	int error = begin(recording), flush_error;

	if (error)
		return error;
	error = record_window(recording);
	if (!error)
		error = close_window(recording);
	if (error && recording->flight)
		save_flight(recording);
	/* After signals_guard() wallprof may be ended at any time. */
	flush_error = capture_flush(recording->writer);
	if (!error)
		error = flush_error;
	if (error)
		capture_writer_squeeze(recording->writer);
	signals_note_time();
	programs_unload(recording->programs);
	signals_note_time();
	/* Names of kernel functions are still read from /proc/kallsyms. */
	if (!error)
		error = privileges_keep(1ULL << CAP_SYSLOG);
	/*
	 * From here on, a second interrupt cancels the profile; the first one may have ended the
	 * window.
	 */
	signals_guard(recording->capture_path);
	if (!recording->result->command_running)
		recorder_wait(recording->result, /* block= */ true);
	if (!error)
		error = finish_capture(recording);
	if (error)
		report_failure(recording, error);
	return error;
}

static void tear_down(Recording *recording)
{
	if (recording->launched && !recording->launched_running)
		launch_cancel(&recording->launch);
	for (size_t i = 0; i < recording->named.count; i++)
		close(recording->named.items[i].fd);
	vec_free(&recording->named);
	vec_free(&recording->new_processes);
	map_free(&recording->threads);
	sideband_close(recording->sideband);
	flight_recorder_free(recording->flight);
	unwinder_free(recording->unwinder);
	recording_close_scripts(recording);
	mapped_files_free(recording->files);
	process_table_free(&recording->processes);
	online_cpus_close(recording->online_cpus);
	idle_cpus_close(recording->idle_cpus);
	interrupt_cost_free(&recording->ticks.cost);
	suspends_free(&recording->suspends);
	loss_meter_free(recording->losses);
	file_names_free(&recording->file_names);
	cgroup_cpu_limits_free(&recording->cpu_limits);
	closep(&recording->epoll_fd);
	closep(&recording->signal_fd);
	closep(&recording->timer_fd);
	closep(&recording->stop_fd);
	closep(&recording->command_fd);
	signals_unfinished(NULL);
	atomic_file_discard(&recording->capture_file);
}

/* Reports that the capture has all events, but not all symbols. */
static void report_missing_names(const char *capture_path, int error)
{
	_cleanup_free_ char *remedy = remedy_export(capture_path);

	log_error("writing names to %s failed: %s; %s", capture_path, error_text(error), remedy);
}

int recorder_run(const RecordOptions *options, const Invoker *invoker, const char *capture_path,
		 RecordResult *ret_result)
{
	Recording recording = {
		.options = options,
		.invoker = invoker,
		.capture_path = capture_path,
		.result = ret_result,
		.capture_file = ATOMIC_FILE_NONE,
		.epoll_fd = -1,
		.timer_fd = -1,
		.stop_fd = -1,
		.command_fd = -1,
	};
	int error, close_error = 0;

	*ret_result = (RecordResult){.capture_fd = -1};
	signals_begin();
	recording.signal_fd = signals_open();
	if (recording.signal_fd < 0) {
		log_error("setting up signals failed: %s", error_text(recording.signal_fd));
		return recording.signal_fd;
	}
	error = run(&recording);
	tear_down(&recording);
	if (recording.writer)
		close_error = capture_writer_close(recording.writer);
	/* This may take a while; the capture is complete already. */
	programs_free(recording.programs);
	if (close_error && !error)
		report_missing_names(capture_path, close_error);
	return error ? error : close_error;
}
