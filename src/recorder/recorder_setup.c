/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "metadata.h"
#include "preflight.h"
#include "recorder_private.h"
#include "signals.h"
#include "util.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <unistd.h>

int recording_write_failed(const Recording *recording, int error)
{
	log_error("writing %s failed: %s%s", recording->capture_path, error_text(error),
		  remedy_other_place(error));
	return error;
}

/* ---- the capture's file ---------------------------------------------------------- */

/*
 * The capture gets its name only when the window begins, so that a recording that fails to start
 * does not overwrite an older capture.
 */
static int open_capture(Recording *recording)
{
	int error = atomic_file_open(recording->capture_path, recording->invoker,
				     /* in_place= */ false, &recording->capture_file);

	if (error) {
		log_error("writing %s failed: %s%s", recording->capture_path,
			  atomic_file_error_text(error), remedy_other_place(error));
		return error;
	}
	signals_unfinished(recording->capture_file.temp_path);
	/* Others may be able to exchange the file in its folder. */
	recording->result->capture_fd = fcntl(recording->capture_file.fd, F_DUPFD_CLOEXEC, 0);
	if (recording->result->capture_fd < 0)
		return recording_write_failed(recording, -errno);
	error = capture_writer_new(recording->capture_file.fd,
				   recording->options->capture_compression,
				   recording->options->capture_threads, &recording->writer);
	recording->capture_file.fd = -1;
	return error ? recording_write_failed(recording, error) : 0;
}

/* ---- sources ------------------------------------------------------------------------ */

static int start_unwinder(Recording *recording)
{
	UnwindMaps maps = programs_unwind_maps(recording->programs);
	int error = unwinder_new(&maps, recording->files, &recording->processes, recording->invoker,
				 recording_write, recording, &recording->unwinder);

	if (error)
		log_error("setting up unwind tables failed: %s", error_text(error));
	return error ? error : recording_open_scripts(recording);
}

static int start_flight(Recording *recording)
{
	const RecordOptions *options = recording->options;
	FlightRecorderOptions flight = {
		.keep_ns = options->flight_ns,
		.capture_path = recording->capture_path,
		.level = options->capture_compression,
		.threads = options->capture_threads,
		.capture = recording->writer,
		.clock = now_ns,
	};
	int error = options->flight_ns ? flight_recorder_new(&flight, &recording->flight) : 0;

	if (error)
		log_error("writing beside %s failed: %s%s", recording->capture_path,
			  error_text(error), remedy_other_place(error));
	return error;
}

/* The size is of each ring: on a machine with many CPUs, a large one may be more than there is. */
static RingLayout layout_of_rings(const RecordOptions *options)
{
	RingLayout layout = ring_layout(options->ring_size, options->ring_cpus,
					sysconf(_SC_NPROCESSORS_ONLN), ring_memory_max());
	_cleanup_free_ char *wanted = ring_size_text(options->ring_size);
	_cleanup_free_ char *size = ring_size_text(layout.size);

	if (layout.size < options->ring_size)
		log_warn("--ring-size %s is reduced to %s: %u ring buffers may take a quarter of "
			 "the memory",
			 wanted, size, layout.groups * RINGS);
	return layout;
}

static int start_sources(Recording *recording)
{
	const RecordOptions *options = recording->options;
	ProgramsOptions programs = {
		.scope = recording->scope,
		.rings = layout_of_rings(options),
		.kernel_stacks = options->kernel_stacks,
		.user_stacks = options->user_stacks,
		.waker_threshold_ns = options->waker_threshold_ns,
		.faults = {.source = options->fault_source,
			   .threshold_ns = options->fault_threshold_ns},
		.best_fault_source = options->best_fault_source,
		.unwind_memory = options->unwind_memory,
		.args = !options->no_args,
		.running = recording_has_running(recording),
		.all_files = !file_names_are_withheld(options),
		.cost = options->cost,
		.phases = log_level >= LOG_VERBOSE,
		.budget = options->budget > 0,
		.one_cpu = !options->command || options->whole_system,
	};
	struct cpu_account *accounts;
	size_t cpu_count;
	int error = programs_start(&programs, &recording->programs);

	if (error)
		return error;
	accounts = programs_accounts(recording->programs, &cpu_count);
	recording->losses = loss_meter_new(accounts, cpu_count);
	recording->online_cpus = online_cpus_open();
	recording->files = mapped_files_new(recording_write_mapping, recording);
	error = sideband_open(recording->files, &recording->processes, recording_write_mapping,
			      recording, &recording->sideband);
	if (error) {
		log_error("opening perf's side-band failed: %s",
			  error == -ENOBUFS
				  ? "the user's limit on locked memory for events is reached; end "
				    "other profilers, or raise kernel.perf_event_mlock_kb or "
				    "ulimit -l"
				  : error_text(error));
		return error;
	}
	return options->user_stacks == USER_STACKS_TABLES ? start_unwinder(recording) : 0;
}

/*
 * Files are held open for their symbols. The command is forked before, so it keeps its own limit.
 */
static void raise_file_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static int prepare_command(Recording *recording)
{
	int error =
		launch_prepare(recording->options->command, recording->invoker, &recording->launch);

	if (error) {
		log_error("starting a process failed: %s", error_text(error));
		return error;
	}
	recording->launched = true;
	recording->command_fd = pidfd_open(recording->launch.pid, 0);
	if (recording->command_fd < 0) {
		error = -errno;
		log_error("opening a pidfd of the command failed: %s", error_text(error));
	}
	return error;
}

static int watch(int epoll_fd, uint32_t events, int fd)
{
	struct epoll_event event = {.events = events, .data.fd = fd};

	return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

static int open_events(Recording *recording)
{
	int epoll_fd = recording->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	int timer_fd = recording->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	const int fds[] = {recording->signal_fd, timer_fd, recording->command_fd,
			   recording->unwinder ? unwinder_fd(recording->unwinder) : -1,
			   jit_processes_fd(mapped_files_jit_codes(recording->files))};
	int error;

	if (epoll_fd < 0 || timer_fd < 0)
		return -errno;
	for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
		error = fds[i] < 0 ? 0 : watch(epoll_fd, EPOLLIN, fds[i]);
		if (error)
			return error;
	}
	for (size_t i = 0; i < recording->named.count; i++) {
		error = watch(epoll_fd, EPOLLIN, recording->named.items[i].fd);
		if (error)
			return error;
	}
	error = programs_add_to_epoll(recording->programs, epoll_fd);
	return error ? error : sideband_add_to_epoll(recording->sideband, epoll_fd);
}

static int write_metadata(Recording *recording)
{
	_cleanup_free_ char *hooks = programs_hooks(recording->programs);
	_cleanup_free_ char *own_code = programs_own_code(recording->programs);
	MetadataInput input = {
		.options = recording->options,
		.command_pid = recording->launched ? recording->launch.pid : 0,
		.hooks = hooks,
		.waking_context = programs_waking_context(recording->programs),
		.own_code = own_code,
		.faults = programs_faults(recording->programs),
		.ticks_share = recording_ticks_share(recording->options),
		.rings = programs_ring_layout(recording->programs),
	};
	int error = metadata_write(&input, recording_write, recording);

	return error ? error : metadata_write_devices(recording_write, recording);
}

static int open_everything(Recording *recording)
{
	int error = preflight_check();

	if (error)
		return error;
	error = recording_open_targets(recording);
	if (error)
		return error;
	error = open_capture(recording);
	if (error)
		return error;
	error = start_flight(recording);
	if (error)
		return error;
	error = start_sources(recording);
	if (error)
		return error;
	error = recording->options->command ? prepare_command(recording) : 0;
	if (error)
		return error;
	raise_file_limit();
	error = open_events(recording);
	if (error)
		log_error("setting up the recording failed: %s", error_text(error));
	return error;
}

int recording_open(Recording *recording)
{
	int error = open_everything(recording);

	if (error)
		return error;
	error = write_metadata(recording);
	return error ? recording_write_failed(recording, error) : 0;
}
