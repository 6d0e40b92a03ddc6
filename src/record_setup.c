/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "block_devices.h"
#include "checks.h"
#include "interrupt.h"
#include "metadata.h"
#include "proc_status.h"
#include "record_private.h"
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

#define COMPRESSION_LEVEL 1
/* How long the window may wait for the unwind tables of what runs already. */
#define PREPARE_NS	 (2 * NSEC_PER_SEC)
#define PREPARE_SLICE_NS (10 * NSEC_PER_MSEC)

/* ---- targets that run already ------------------------------------------------- */

/*
 * Opened before anything starts, so that no number can be used again unnoticed, and
 * none is missed when its process ends.
 */
static int open_targets(Recording *recording)
{
	const Options *options = recording->options;

	for (size_t i = 0; i < options->pid_count; i++) {
		pid_t pid = options->pids[i], tgid = proc_status_number(pid, "Tgid:");
		int fd = pidfd_open(pid, 0), error = -errno;

		if (fd >= 0) {
			*vec_push(&recording->target_fds) = fd;
			continue;
		}
		if (tgid && tgid != pid)
			log_error("%d is a thread of process %d: record that (-p %d)", pid, tgid,
				  tgid);
		else if (error == -ESRCH)
			log_error("no process has the number %d (ps -e lists them)", pid);
		else
			log_error("process %d cannot be followed: %s", pid, strerror(-error));
		return error;
	}
	return 0;
}

/* ---- the capture's file ---------------------------------------------------------- */

/*
 * Under a temporary name until the window begins: a recording that fails to start must
 * not cost an older capture.
 */
static int open_capture(Recording *recording)
{
	const Invoker *invoker = recording->invoker;
	int fd, error;

	recording->temp_path = xasprintf("%s.tmp-%d", recording->capture_path, getpid());
	fd = open(recording->temp_path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0) {
		error = -errno;
		log_error("cannot write %s: %s (choose another place with -o)",
			  recording->capture_path, strerror(-error));
		free(recording->temp_path);
		recording->temp_path = NULL;
		return error;
	}
	interrupt_unfinished(recording->temp_path);
	if (invoker->change && fchown(fd, invoker->uid, invoker->gid))
		log_warn("%s stays root's: %s", recording->capture_path, strerror(errno));
	error = capture_writer_new(fd, COMPRESSION_LEVEL, &recording->writer);
	if (error)
		log_error("cannot write %s: %s", recording->capture_path, strerror(-error));
	return error;
}

/* ---- sources ------------------------------------------------------------------------ */

static int start_unwinder(Recording *recording)
{
	UnwindMaps maps = programs_unwind_maps(recording->programs);
	int error = unwinder_new(&maps, recording->files, recording->invoker, recording_write,
				 recording, &recording->unwinder);

	if (error)
		log_error("setting up unwind tables failed: %s", strerror(-error));
	return error;
}

static int start_sources(Recording *recording)
{
	const Options *options = recording->options;
	ProgramsOptions programs = {
		.ring_size = options->ring_size,
		.kernel_stacks = options->kernel_stacks,
		.user_stacks = options->user_stacks,
		.waker_threshold_ns = options->waker_threshold_ns,
		.faults = {.source = options->fault_source,
			   .threshold_ns = options->fault_threshold_ns},
		.best_fault_source = options->best_fault_source,
		.unwind_memory = options->unwind_memory,
		.cost = options->cost,
	};
	struct cpu_account *accounts;
	size_t cpu_count;
	int error = programs_start(&programs, &recording->programs);

	if (error)
		return error;
	accounts = programs_accounts(recording->programs, &cpu_count);
	recording->losses = loss_meter_new(accounts, cpu_count);
	recording->files = files_new(recording_write_mapping, recording);
	error = sideband_open(recording->files, recording_write_mapping, recording,
			      &recording->sideband);
	if (error)
		log_error("opening perf's side-band failed: %s (see kernel.perf_event_paranoid)",
			  strerror(-error));
	if (!error && options->user_stacks == USER_STACKS_TABLES)
		error = start_unwinder(recording);
	return error;
}

/* Files are held open for their symbols. The command, forked before, keeps its own limit. */
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
		log_error("starting a process failed: %s", strerror(-error));
		return error;
	}
	recording->launched = true;
	recording->command_fd = pidfd_open(recording->launch.pid, 0);
	if (recording->command_fd < 0) {
		error = -errno;
		log_error("the command cannot be followed: %s", strerror(-error));
	}
	return error;
}

static int watch(int epoll_fd, int fd)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

	return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

static int open_events(Recording *recording)
{
	int error;

	recording->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	recording->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	if (recording->epoll_fd < 0 || recording->timer_fd < 0)
		return -errno;
	error = watch(recording->epoll_fd, recording->signal_fd);
	if (!error)
		error = watch(recording->epoll_fd, recording->timer_fd);
	if (!error)
		error = sideband_add_to_epoll(recording->sideband, recording->epoll_fd);
	if (!error && recording->unwinder)
		error = watch(recording->epoll_fd, unwinder_fd(recording->unwinder));
	if (!error && recording->launched)
		error = watch(recording->epoll_fd, recording->command_fd);
	for (size_t i = 0; i < recording->target_fds.count && !error; i++)
		error = watch(recording->epoll_fd, recording->target_fds.items[i]);
	return error;
}

/* ---- finding and describing the targets ---------------------------------------------- */

static int mark_targets(Recording *recording)
{
	const Options *options = recording->options;
	int error = 0;

	if (recording->launched)
		error = programs_mark_command(recording->programs, recording->launch.pid);
	for (size_t i = 0; i < options->pid_count && !error; i++)
		error = programs_mark(recording->programs, options->pids[i]);
	/* A command that waits to be let go has none yet. */
	if (!error && (!recording->launched || recording->launched_running))
		error = programs_mark_descendants(recording->programs);
	if (error)
		log_error("finding the processes to record failed: %s", strerror(-error));
	return error;
}

static int drain_between(void *recording)
{
	return recording_drain(recording);
}

static int add_initial_mappings(Recording *recording, pid_t pid)
{
	size_t count;
	int error = files_read_process(recording->files, pid, /* ns= */ 0, &count);

	if (error == -ENOENT || error == -ESRCH) /* it ended meanwhile */
		return 0;
	if (error == -EACCES || error == -EPERM) {
		log_warn("mappings of process %d may not be read: its addresses stay without names "
			 "(CAP_SYS_PTRACE)",
			 pid);
		return 0;
	}
	return error;
}

/* So that the state of every thread at the start is known. */
static int describe_targets(Recording *recording)
{
	int error;

	recording->before_window = true;
	error = programs_snapshot(recording->programs, /* at_end= */ false, drain_between,
				  recording);
	recording->before_window = false;
	for (size_t i = 0; i < recording->new_processes.count && !error; i++)
		error = add_initial_mappings(recording, recording->new_processes.items[i]);
	if (error)
		log_error("describing the processes to record failed: %s", strerror(-error));
	return error;
}

static void expect_file(Recording *recording, const char *path)
{
	uint32_t file;

	if (!files_add_path(recording->files, path, &file))
		unwinder_expect(recording->unwinder, file);
}

/* The command's own file, as execvp(3) will find it: its unwind table is made before it runs. */
static void expect_program(Recording *recording)
{
	const char *name = recording->options->command[0], *folders = getenv("PATH");

	if (strchr(name, '/')) {
		expect_file(recording, name);
		return;
	}
	while (folders && *folders) {
		size_t length = strcspn(folders, ":");
		_cleanup_free_ char *path =
			xasprintf("%.*s/%s", (int)length, length ? folders : ".", name);

		if (!access(path, X_OK)) {
			expect_file(recording, path);
			return;
		}
		folders += length + (folders[length] == ':');
	}
}

/* The tables of what runs already. Ticks and switches come meanwhile. */
static int prepare_tables(Recording *recording)
{
	uint64_t deadline = now_ns() + PREPARE_NS;
	bool ready = false;
	int error = 0;

	unwinder_prepared(recording->unwinder);
	while (!error && !ready && now_ns() < deadline) {
		ready = unwinder_wait(recording->unwinder, now_ns() + PREPARE_SLICE_NS);
		error = recording_drain(recording);
	}
	return error;
}

static int write_metadata(Recording *recording)
{
	_cleanup_free_ char *hooks = programs_hooks(recording->programs);
	MetadataFacts facts = {
		.options = recording->options,
		.command_pid = recording->launched ? recording->launch.pid : 0,
		.hooks = hooks,
		.faults = programs_faults(recording->programs),
	};
	int error = metadata_write(&facts, recording_write, recording);

	return error ? error : block_devices_write(recording_write, recording);
}

static int open_everything(Recording *recording)
{
	int error = check_recording_allowed();

	if (!error)
		error = open_targets(recording);
	if (!error)
		error = open_capture(recording);
	if (!error)
		error = start_sources(recording);
	if (!error && recording->options->command)
		error = prepare_command(recording);
	if (error)
		return error;
	raise_file_limit();
	error = open_events(recording);
	if (error)
		log_error("setting up the recording failed: %s", strerror(-error));
	return error;
}

int recording_open(Recording *recording)
{
	int error = open_everything(recording);

	if (error)
		return error;
	error = write_metadata(recording);
	if (error)
		log_error("cannot write %s: %s", recording->capture_path, strerror(-error));
	return error;
}

int recording_find_targets(Recording *recording)
{
	int error = mark_targets(recording);

	if (!error)
		error = programs_start_ticks(recording->programs, recording->options->frequency);
	if (!error)
		error = describe_targets(recording);
	if (!error && recording->unwinder && recording->launched && !recording->launched_running)
		expect_program(recording);
	if (!error && recording->unwinder)
		error = prepare_tables(recording);
	return error;
}
