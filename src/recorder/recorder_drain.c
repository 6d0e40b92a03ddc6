/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "jit_code.h"
#include "moved_text.h"
#include "recorder_private.h"
#include "script_text.h"
#include "signals.h"
#include "util.h"
#include <inttypes.h>
#include <unistd.h>

/* After a crash, everything up to the last flush can be read. */
#define FLUSH_INTERVAL_NS NSEC_PER_SEC
/* Events of processes that ended so long ago no longer come. */
#define FORGET_AFTER_NS (30 * NSEC_PER_SEC)
/* How often the list of online CPUs is compared. */
#define CPUS_INTERVAL_NS NSEC_PER_SEC
/* So long is looked for moved text in a drain. */
#define MOVED_TEXT_NS (4 * NSEC_PER_MSEC)
/* So long it is looked at what processes say of code that they have made. */
#define JIT_CODE_NS (4 * NSEC_PER_MSEC)
/* The last drain waits so often, and so long, for a record that is still being written. */
#define LAST_TRIES   100
#define LAST_WAIT_US 1000

int recording_write(void *user, const struct record *record)
{
	Recording *recording = user;

	return recording->flight ? flight_recorder_write(recording->flight, record)
				 : capture_write(recording->writer, record);
}

int recording_write_mapping(void *user, const struct record *record)
{
	Recording *recording = user;

	if (recording->unwinder)
		unwinder_on_record(recording->unwinder, record);
	if (record->kind == REC_SPACE)
		jit_processes_on_space(mapped_files_jit_codes(recording->files),
				       (const struct rec_space *)record);
	return recording_write(recording, record);
}

static bool is_for_unwinder(const struct record *record)
{
	return record->kind == REC_TASK || record->kind == REC_EXEC || record->kind == REC_EXIT ||
	       record->kind == REC_STACK_COPY;
}

static void on_task(Recording *recording, const struct rec_task *task)
{
	if (task->h.flags & TASK_NON_TARGET)
		return;
	if (task->h.flags & TASK_JOINED)
		programs_enable_ticks(recording->programs, task->h.ns);
	if (recording->scope.threads && map_get(&recording->threads, task->tid) == MAP_NONE) {
		map_set(&recording->threads, task->tid, 0);
		recording->threads_left++;
	}
	if (task->h.flags & TASK_KTHREAD) /* it has no mappings */
		return;
	process_table_describe(&recording->processes, task);
	if (sideband_add_process(recording->sideband, task->ns_tgid, task->h.ns) &&
	    (recording->before_window || task->h.flags & TASK_JOINED))
		*vec_push(&recording->new_processes) = task->ns_tgid;
}

static void on_exit_record(Recording *recording, const struct rec_exit *exit)
{
	const Process *process = process_table_find_tgid(&recording->processes, exit->tgid);

	if (recording->scope.threads && map_get(&recording->threads, exit->tid) != MAP_NONE)
		recording->done |= --recording->threads_left == 0;
	/* Another process may already have the same ID. */
	if (exit->h.flags & EXIT_GROUP_DEAD && process &&
	    process->start_boottime == exit->process_start_boottime) {
		process_table_end(&recording->processes, process->ns_tgid, exit->h.ns);
		jit_processes_on_exit(mapped_files_jit_codes(recording->files), process->ns_tgid);
	}
}

/*
 * If only threads are recorded, the leader still describes the mappings of the process, so the
 * unwinder gets it like a target.
 */
static void on_leader(Recording *recording, const struct rec_task *task)
{
	struct rec_task leader = *task;

	if (!(task->h.flags & TASK_NON_TARGET) || task->tid != task->tgid)
		return;
	leader.h.flags &= ~TASK_NON_TARGET;
	unwinder_on_record(recording->unwinder, &leader.h);
}

/* A forked process is in its parent's cgroup; a program is started in one of its own. */
static void on_exec_record(Recording *recording, const struct rec_exec *exec)
{
	const Process *process = process_table_find_tgid(&recording->processes, exec->tgid);

	if (process)
		cgroup_cpu_limits_add(&recording->cpu_limits, process->ns_tgid);
}

/* Returns the pc of the frame with which the stack ends. */
static uint64_t outermost(const struct rec_stack *stack)
{
	const struct stack_gap *gap = (const struct stack_gap *)(stack->frames + stack->count);
	uint32_t last = stack->count - 1;

	if (stack->h.flags & STACK_DEEP)
		last = stack_frame_index(stack->count + gap->left_out - 1);
	return stack->frames[last] & ~(FRAME_EXACT | FRAME_GUESSED);
}

/* A process may describe code in which a stack ends, or is guessed. */
static void on_stack(Recording *recording, const struct rec_stack *stack)
{
	JitCodes *codes = mapped_files_jit_codes(recording->files);
	bool waits = stack->result == STACK_NO_TABLE && stack->count > 0;
	const Process *process;

	if (!(stack->h.flags & STACK_USER) ||
	    (!(stack->h.flags & STACK_GUESSED) && stack->result != STACK_NO_CFI && !waits))
		return;
	process = process_table_find_tgid(&recording->processes, stack->tgid);
	if (process && waits)
		jit_processes_want_at(codes, process->ns_tgid, outermost(stack), stack->h.ns);
	else if (process)
		jit_processes_want(codes, process->ns_tgid);
}

/* A record without the name is still written, because what was sent and received is compared. */
static int write_file_name(Recording *recording, const struct rec_inode *record)
{
	struct rec_inode nameless = *record;

	if (file_names_add(&recording->file_names, record))
		return recording_write(recording, &record->h);
	nameless.h.len = sizeof(nameless);
	nameless.h.flags = INODE_KERNEL;
	nameless.size = 0;
	return recording_write(recording, &nameless.h);
}

/*
 * Drains do not parse records, with seven exceptions: the side-band must know whose mappings are
 * needed, the unwinder follows births and exits, argument lists are compared with later ones, names
 * of files may be withheld, limits of cgroups are looked up, code without tables is noticed, and
 * sources of scripts are noted.
 * Copies of stacks go only to the unwinder.
 */
static int on_bpf_record(void *user, const struct record *record)
{
	Recording *recording = user;

	if (record->kind == REC_TASK)
		on_task(recording, (const struct rec_task *)record);
	else if (record->kind == REC_EXIT)
		on_exit_record(recording, (const struct rec_exit *)record);
	else if (record->kind == REC_EXEC)
		on_exec_record(recording, (const struct rec_exec *)record);
	else if (record->kind == REC_ARGS)
		recording_on_args(recording, (const struct rec_args *)record);
	else if (record->kind == REC_STACK)
		on_stack(recording, (const struct rec_stack *)record);
	else if (record->kind == REC_SCRIPT_CODE)
		recording_on_script_code(recording, (const struct rec_script_code *)record);
	if (recording->unwinder && is_for_unwinder(record))
		unwinder_on_record(recording->unwinder, record);
	if (recording->unwinder && recording->scope.threads && record->kind == REC_TASK)
		on_leader(recording, (const struct rec_task *)record);
	if (record->kind == REC_STACK_COPY)
		return 0;
	if (record->kind == REC_INODE && file_names_are_withheld(recording->options))
		return write_file_name(recording, (const struct rec_inode *)record);
	return recording_write(recording, record);
}

/* Also reads the mappings of processes again that BPF has found to be known only in part. */
static int run_unwinder_round(Recording *recording)
{
	int error = unwinder_round(recording->unwinder, sideband_watermark_ns(recording->sideband));
	uint32_t ns_tgid;

	if (error)
		return error;
	recording_load_scripts(recording);
	while (unwinder_next_unknown(recording->unwinder, &ns_tgid))
		sideband_rescan(recording->sideband, ns_tgid);
	return 0;
}

/* Brings what was drained into the file. */
static int flush_in_time(Recording *recording, uint64_t now)
{
	int error = recording->flight ? flight_recorder_step(recording->flight) : 0;

	if (error || now - recording->last_flush_ns < FLUSH_INTERVAL_NS)
		return error;
	recording->last_flush_ns = now;
	process_table_forget(&recording->processes, now - MIN(now, FORGET_AFTER_NS));
	return recording->flight ? flight_recorder_flush(recording->flight)
				 : capture_flush(recording->writer);
}

static bool check_suspend(Recording *recording)
{
	SuspendClocks clocks = suspends_read_clocks();

	return suspends_check(&recording->suspends, &clocks);
}

void recording_begin_cpu_checks(Recording *recording)
{
	check_suspend(recording);
	recording->cpus_checked_ns = recording->window_start_ns;
}

/* Opens the events of CPUs that have come online again; a recording goes on without them, too. */
static void reopen_cpus(Recording *recording)
{
	ReopenedCpus reopened = {};

	sideband_reopen(recording->sideband, recording->epoll_fd, &reopened);
	for (size_t i = 0; i < reopened.cpus.count; i++) {
		int error = programs_reopen_cpu(recording->programs, reopened.cpus.items[i],
						recording->cpus_checked_ns);

		if (error)
			recording->cpus_failed++;
		else
			recording->cpus_reopened++;
	}
	recording->cpus_failed += reopened.failed;
	vec_free(&reopened.cpus);
}

/* Is called between sideband_fetch() and sideband_process(). */
static void check_cpus(Recording *recording, uint64_t now, bool last)
{
	bool due = now - recording->cpus_checked_ns >= CPUS_INTERVAL_NS;
	bool changed = check_suspend(recording);

	if (due && recording->online_cpus)
		changed |= online_cpus_check(recording->online_cpus);
	if (changed && !last) /* the programs are detached before the last drain */
		reopen_cpus(recording);
	if (due || changed)
		recording->cpus_checked_ns = now;
}

static int drain(Recording *recording, bool last)
{
	uint64_t begin = now_ns();
	struct rec_watermark watermark = {.h = {.len = sizeof(watermark), .kind = REC_WATERMARK}};
	int error;

	signals_note_time();
	programs_review_ticks(recording->programs);
	sideband_fetch(recording->sideband);
	check_cpus(recording, begin, last);
	error = programs_drain(recording->programs, on_bpf_record, recording);
	if (error)
		return error;
	/*
	 * The drain may have brought the switch that should have woken the recorder to enable a
	 * timer.
	 */
	programs_review_ticks(recording->programs);
	error = sideband_process(recording->sideband, last);
	if (error)
		return error;
	error = recording->iterating ? 0 : recording_describe_joined(recording);
	if (error)
		return error;
	error = moved_text_check(recording->files, MOVED_TEXT_NS);
	if (!error)
		error = jit_code_check(recording->files, JIT_CODE_NS,
				       sideband_watermark_ns(recording->sideband));
	if (error)
		return error;
	error = recording->unwinder ? run_unwinder_round(recording) : 0;
	if (error)
		return error;
	/*
	 * The latest mappings, and those that replace lost ones, are written later; so is what
	 * follows a record that was still being written.
	 */
	watermark.h.ns = MIN(ring_reader_watermark_ns(programs_ring_reader(recording->programs)),
			     sideband_rescan_watermark_ns(recording->sideband));
	jit_files_retry(mapped_files_jit(recording->files), begin);
	error = loss_poll(recording->losses, recording_write, recording);
	if (error)
		return error;
	error = recording_write(recording, &watermark.h);
	return error ? error : flush_in_time(recording, begin);
}

int recording_drain(Recording *recording)
{
	return drain(recording, /* last= */ false);
}

/*
 * A program may still be writing a record, and the hypervisor may have stopped its CPU meanwhile.
 * What follows that record in all rings of its kind is drained when it is complete.
 */
int recording_drain_last(Recording *recording)
{
	const RingReader *reader = programs_ring_reader(recording->programs);
	uint64_t begin_ns = now_ns();
	int error = drain(recording, /* last= */ true);

	for (int i = 0; i < LAST_TRIES && !error && ring_reader_watermark_ns(reader) < begin_ns;
	     i++) {
		usleep(LAST_WAIT_US);
		error = drain(recording, /* last= */ true);
	}
	return error;
}

/* ---- functions of programs that an interpreter runs ---------------------------------- */

/* Writes what was read of a sleeping thread. */
static int write_sleeper(void *user, const struct record *record)
{
	if (record->kind == REC_SCRIPT_CODE)
		recording_on_script_code(user, (const struct rec_script_code *)record);
	return recording_write(user, record);
}

int recording_open_scripts(Recording *recording)
{
	RecordedScripts *scripts = &recording->scripts;

	scripts->interpreters = interpreters_new(recording->files);
	scripts->sleepers =
		sleepers_new(scripts->interpreters, mapped_files_memory(recording->files),
			     write_sleeper, recording);
	unwinder_follow(recording->unwinder, scripts->interpreters, scripts->sleepers);
	return 0;
}

void recording_close_scripts(Recording *recording)
{
	sleepers_free(recording->scripts.sleepers);
	interpreters_free(recording->scripts.interpreters);
	strings_free(&recording->scripts.paths);
	vec_free(&recording->scripts.uses);
}

/* A recording goes on without these functions. */
void recording_load_scripts(Recording *recording)
{
	RecordedScripts *scripts = &recording->scripts;
	uint64_t begin = now_ns();
	int map_fd;

	if (scripts->tried || !interpreters_are_found(scripts->interpreters))
		return;
	scripts->tried = true;
	map_fd = programs_load_scripts(recording->programs);
	if (map_fd < 0) {
		scripts->error = map_fd;
		return;
	}
	interpreters_use_map(scripts->interpreters, map_fd);
	log_verbose("functions of interpreters are recorded since %.3f ms after the first one was "
		    "found",
		    (now_ns() - begin) / 1e6);
}

/* Numbers of sources of scripts, where those of files have FILE ids. */
#define SCRIPT_SOURCE (1u << 31)

static ScriptUse use_of(const Recording *recording, uint32_t tgid)
{
	const Interpreters *interpreters = recording->scripts.interpreters;
	ScriptUse use = {.file = interpreters_file(interpreters, tgid)};
	uint32_t ns_tgid = interpreters_ns_tgid(interpreters, tgid);

	if (ns_tgid == 0 || safe_open_rights_of(ns_tgid, &use.rights))
		safe_open_rights_of_nobody(&use.rights);
	return use;
}

void recording_on_script_code(Recording *recording, const struct rec_script_code *code)
{
	RecordedScripts *scripts = &recording->scripts;
	_cleanup_free_ char *path = NULL;
	uint32_t number;

	if (code->h.len < sizeof(*code) || code->path_bytes > sizeof(code->path))
		return;
	path = script_text(code->path, code->path_bytes, sizeof(code->path), code->path_kind);
	if (!path || *path != '/')
		return;
	number = strings_intern(&scripts->paths, path);
	if (number == scripts->uses.count)
		*vec_push(&scripts->uses) = use_of(recording, code->tgid);
	scripts->uses.items[number].count++;
}

void recording_weigh_scripts(Recording *recording, Sources *sources)
{
	RecordedScripts *scripts = &recording->scripts;

	for (size_t i = 0; i < scripts->uses.count && sources; i++) {
		SourceUser user = {.file = SCRIPT_SOURCE | (uint32_t)i};

		sources_weigh(sources, strings_get(&scripts->paths, i),
			      scripts->uses.items[i].count, user);
	}
}

int recording_open_source(void *user, uint32_t file, const char *path, struct stat *ret_stat)
{
	const Recording *recording = user;
	const ScriptUse *use;

	if (!(file & SCRIPT_SOURCE))
		return mapped_files_open_source(recording->files, file, path, ret_stat);
	use = &recording->scripts.uses.items[file & ~SCRIPT_SOURCE];
	return geteuid() == 0
		       ? mapped_files_open_source_with(recording->files, &use->rights, use->file,
						       path, ret_stat)
		       : mapped_files_open_source(recording->files, use->file, path, ret_stat);
}

static int warn(Recording *recording, char *text)
{
	int error;

	log_warn("%s", text);
	error = recording_write_note(recording, text);
	free(text);
	return error;
}

int recording_warn_scripts(Recording *recording)
{
	RecordedScripts *scripts = &recording->scripts;
	_cleanup_free_ char *unknown = NULL;
	int error = 0;

	if (!scripts->interpreters)
		return 0;
	unknown = interpreters_unknown(scripts->interpreters);
	if (scripts->error)
		error = warn(
			recording,
			xasprintf("functions of interpreters are not recorded: loading the BPF "
				  "programs failed: %s",
				  error_text(scripts->error)));
	if (!error && interpreters_lost(scripts->interpreters))
		error = warn(recording, xasprintf("functions of %" PRIu64 " processes that an "
						  "interpreter runs are not recorded: there was no "
						  "room for more processes",
						  interpreters_lost(scripts->interpreters)));
	if (!error && sleepers_unread(scripts->sleepers))
		error = warn(recording,
			     xasprintf("functions of %" PRIu64 " threads that slept when the "
				       "recording began are not recorded: reading them took "
				       "too long",
				       sleepers_unread(scripts->sleepers)));
	if (!error && sleepers_refused(scripts->sleepers))
		error = warn(recording,
			     xasprintf("functions of %" PRIu64 " threads that slept when the "
				       "recording began are not recorded: memory of their "
				       "process was not read",
				       sleepers_refused(scripts->sleepers)));
	if (!error && unknown)
		error = warn(
			recording,
			xasprintf("functions of this interpreter are not recorded: %s", unknown));
	return error;
}
