/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "moved_text.h"
#include "recorder_private.h"
#include "signals.h"
#include "util.h"
#include <unistd.h>

/* After a crash, everything up to the last flush can be read. */
#define FLUSH_INTERVAL_NS NSEC_PER_SEC
/* Events of processes that ended so long ago no longer come. */
#define FORGET_AFTER_NS (30 * NSEC_PER_SEC)
/* How often the list of online CPUs is compared. */
#define CPUS_INTERVAL_NS NSEC_PER_SEC
/* So long is looked for moved text in a drain. */
#define MOVED_TEXT_NS (4 * NSEC_PER_MSEC)
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
	    process->start_boottime == exit->process_start_boottime)
		process_table_end(&recording->processes, process->ns_tgid, exit->h.ns);
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
 * Drains do not parse records, with five exceptions: the side-band must know whose mappings are
 * needed, the unwinder follows births and exits, argument lists are compared with later ones, names
 * of files may be withheld, and limits of cgroups are looked up.
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
