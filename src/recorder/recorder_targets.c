/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * recorder_targets.c - finds the targets, and describes them as they are when the window begins and
 * those that join later.
 */
#include "jit_code.h"
#include "moved_text.h"
#include "proc_status.h"
#include "recorder_private.h"
#include "util.h"
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

/* The window may wait this long for the unwind tables of running processes. */
#define PREPARE_NS	 (2 * NSEC_PER_SEC)
#define PREPARE_SLICE_NS (10 * NSEC_PER_MSEC)
#define DRAIN_NS	 (20 * NSEC_PER_MSEC)
/* The longest that moved text of a process is looked for at once: some 300 MiB are compared. */
#define MOVED_TEXT_FIRST_NS (100 * NSEC_PER_MSEC)
/* So long is waited for what all processes say of code that they have made. */
#define JIT_CODE_FIRST_NS (500 * NSEC_PER_MSEC)

/* ---- before anything starts ------------------------------------------------------------ */

static bool has_ended(int fd)
{
	struct pollfd poll_fd = {.fd = fd, .events = POLLIN};

	return poll(&poll_fd, 1, 0) > 0;
}

/*
 * Opens a process that is recorded, or of which the thread tid is recorded (0 = the whole process).
 */
static int open_process(Recording *recording, pid_t pid, pid_t tid)
{
	int fd = pidfd_open(pid, 0), error = fd < 0 ? -errno : 0;

	/* The pidfd of a zombie is readable at once, and there is nothing to record. */
	if (fd >= 0 && has_ended(fd)) {
		close(fd);
		log_error("process %d has ended", pid);
		return -ESRCH;
	}
	if (fd >= 0)
		*vec_push(&recording->named) = (NamedTarget){
			.fd = fd, .pid = pid, .tid = tid, .start = proc_start_ticks(tid ?: pid)};
	else if (error == -ESRCH)
		log_error("no such process: %d", pid);
	else
		log_error("opening process %d failed: %s", pid, error_text(error));
	return error;
}

static int open_named_process(Recording *recording, pid_t pid)
{
	pid_t tgid = proc_status_number(pid, "Tgid:");

	if (!tgid || tgid == pid)
		return open_process(recording, pid, /* tid= */ 0);
	log_error("%d is a thread of process %d; give -p %d, or -t %d for the thread alone", pid,
		  tgid, tgid, pid);
	return -EINVAL;
}

static int open_named_thread(Recording *recording, pid_t tid)
{
	pid_t tgid = proc_status_number(tid, "Tgid:");

	if (tgid)
		return open_process(recording, tgid, tid);
	log_error("no such thread: %d", tid);
	return -ESRCH;
}

/*
 * The targets are opened before anything starts, so that a reused ID and the end of a process are
 * noticed.
 */
int recording_open_targets(Recording *recording)
{
	const RecordOptions *options = recording->options;
	int error;

	recording->scope = (ProgramsScope){
		.whole_system = options->whole_system,
		.kernel_threads = options->kernel_threads,
		.threads = options->tid_count > 0,
	};
	for (size_t i = 0; i < options->pid_count; i++) {
		error = open_named_process(recording, options->pids[i]);
		if (error)
			return error;
	}
	for (size_t i = 0; i < options->tid_count; i++) {
		error = open_named_thread(recording, options->tids[i]);
		if (error)
			return error;
	}
	return options->cgroup ? cgroup_find(options->cgroup, &recording->scope.cgroup) : 0;
}

/* ---- finding and describing the targets ---------------------------------------------- */

static bool has_scope_targets(const ProgramsScope *scope)
{
	return scope->whole_system || scope->kernel_threads || scope->cgroup.id;
}

bool recording_has_running(const Recording *recording)
{
	const RecordOptions *options = recording->options;

	return options->pid_count || options->tid_count || options->delay_ns ||
	       has_scope_targets(&recording->scope);
}

/*
 * After a delay the target may have ended, and its ID may belong to another one. If it was the last
 * target, its pidfd ends the recording, or there is no thread to describe.
 */
static int mark_named(Recording *recording, const NamedTarget *target)
{
	int error;

	if (has_ended(target->fd) ||
	    (target->tid && proc_start_ticks(target->tid) != target->start))
		return 0;
	error = target->tid ? programs_mark_thread(recording->programs, target->tid)
			    : programs_mark(recording->programs, target->pid);
	return error == -ESRCH ? 0 : error;
}

static int mark_targets(Recording *recording)
{
	int error;

	if (recording->launched) {
		error = programs_mark_command(recording->programs, recording->launch.pid);
		if (error)
			return error;
	}
	for (size_t i = 0; i < recording->named.count; i++) {
		error = mark_named(recording, &recording->named.items[i]);
		if (error)
			return error;
	}
	error = has_scope_targets(&recording->scope)
			? programs_mark_scope_targets(recording->programs)
			: 0;
	if (error)
		return error;
	/* A command that has not been started has no descendants. */
	return recording->options->pid_count || recording->launched_running
		       ? programs_mark_descendants(recording->programs)
		       : 0;
}

static int drain_between(void *recording)
{
	return recording_drain(recording);
}

int recording_describe(Recording *recording, bool at_end)
{
	return programs_snapshot(recording->programs, at_end, drain_between, recording);
}

static int add_initial_mappings(Recording *recording, pid_t pid)
{
	size_t count;
	int error = mapped_files_read_process(recording->files, pid, /* ns= */ 0, &count);

	if (error == -ENOENT || error == -ESRCH) /* it has ended */
		return 0;
	if (error == -EACCES || error == -EPERM) {
		log_warn("reading the mappings of process %d failed: %s; its addresses have no "
			 "names "
			 "(CAP_SYS_PTRACE)",
			 pid, strerror(-error));
		return 0;
	}
	return error ? error : moved_text_check(recording->files, MOVED_TEXT_FIRST_NS);
}

/*
 * Reads the mappings of all new processes. That may take long, so the rings are drained meanwhile.
 */
static int add_mappings_of_all(Recording *recording)
{
	uint64_t drained_ns = now_ns();
	int error = 0;

	/* Draining may add processes. */
	for (size_t i = 0; i < recording->new_processes.count && !error; i++) {
		cgroup_cpu_limits_add(&recording->cpu_limits, recording->new_processes.items[i]);
		error = add_initial_mappings(recording, recording->new_processes.items[i]);
		if (!error)
			error = recording_add_args(recording, recording->new_processes.items[i]);
		if (error || now_ns() - drained_ns < DRAIN_NS)
			continue;
		error = recording_drain(recording);
		drained_ns = now_ns();
	}
	recording->new_processes.count = 0;
	return error;
}

/*
 * Describes all targets, so that the state of every thread at the start is known, and the processes
 * whose tables are needed.
 */
static int describe_targets(Recording *recording)
{
	int error;

	recording->before_window = recording->iterating = true;
	error = recording_describe(recording, /* at_end= */ false);
	if (!error)
		error = add_mappings_of_all(recording);
	recording->before_window = recording->iterating = false;
	if (error && error == capture_writer_error(recording->writer)) {
		/* The processes are drained while they are described, which writes the capture. */
		recording_write_failed(recording, error);
	} else if (error) {
		log_error("describing the processes to record failed: %s", error_text(error));
	} else if (recording->scope.threads && recording->threads_left == 0) {
		log_error("the threads to record have ended");
		error = -ESRCH;
	}
	return error;
}

int recording_describe_joined(Recording *recording)
{
	int error = 0;

	if (recording->new_processes.count == 0)
		return 0;
	recording->iterating = true;
	for (size_t i = 0; i < recording->new_processes.count && !error; i++) {
		pid_t pid = recording->new_processes.items[i];

		cgroup_cpu_limits_add(&recording->cpu_limits, pid);
		error = programs_snapshot_process(recording->programs, pid, drain_between,
						  recording);
		if (error == -ESRCH) /* it has ended */
			error = 0;
		if (!error)
			error = recording_add_args(recording, pid);
		sideband_rescan(recording->sideband, pid);
	}
	recording->new_processes.count = 0;
	recording->iterating = false;
	return error;
}

static void expect_file(Recording *recording, const char *path)
{
	uint32_t file;

	if (!mapped_files_add_path(recording->files, path, &file))
		unwinder_expect(recording->unwinder, file);
}

/*
 * Requests the unwind table of the command's file before it runs. The file is found as execvp(3)
 * finds it.
 */
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

/* Drains meanwhile: what was found counts when all is known that was mapped before. */
static int prepare_jit_code(Recording *recording)
{
	uint64_t deadline_ns = now_ns() + JIT_CODE_FIRST_NS;
	int error = 0;

	while (!error && now_ns() < deadline_ns &&
	       jit_code_has_new(recording->files, deadline_ns)) {
		error = recording_drain(recording);
		if (!error && jit_code_has_new(recording->files, deadline_ns))
			jit_code_wait(recording->files);
	}
	return error;
}

/* Waits for the tables of running processes, and drains ticks and switches meanwhile. */
static int prepare_tables(Recording *recording)
{
	uint64_t deadline = now_ns() + PREPARE_NS;
	bool ready = false;
	int error;

	if (recording->launched && !recording->launched_running)
		expect_program(recording);
	error = prepare_jit_code(recording);
	if (error)
		return error;
	unwinder_prepared(recording->unwinder);
	while (!ready && now_ns() < deadline) {
		ready = unwinder_wait(recording->unwinder, now_ns() + PREPARE_SLICE_NS);
		error = recording_drain(recording);
		if (error)
			return error;
	}
	return 0;
}

int recording_find_targets(Recording *recording)
{
	int error = mark_targets(recording);

	if (error) {
		log_error("finding the processes to record failed: %s", error_text(error));
		return error;
	}
	error = programs_start_ticks(recording->programs, recording->options->frequency);
	if (error)
		return error;
	error = describe_targets(recording);
	if (error)
		return error;
	error = recording->unwinder ? prepare_tables(recording) : 0;
	if (error)
		return error;
	programs_tables_ready(recording->programs);
	/* The second description has the stacks of sleeping threads. */
	return recording->unwinder && recording_has_running(recording) ? describe_targets(recording)
								       : 0;
}
