/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * recorder_warnings.c - what a recording does not have, and why: said on the screen, and kept in
 * the capture for whoever reads it.
 */
#include "recorder_private.h"
#include "util.h"
#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* What is missing, of which `subject`, in the capture and on the screen. */
static int write_warning(Recording *recording, const char *subject, uint64_t count,
			 const char *what)
{
	_cleanup_free_ char *text = NULL;
	_cleanup_free_ struct rec_note *note = NULL;
	size_t length;

	if (count == 0)
		return 0;
	text = xasprintf("%s: %" PRIu64 " %s", subject, count, what);
	log_warn("%s", text);
	length = (sizeof(*note) + strlen(text) + 1 + 7) & ~7UL;
	note = xcalloc(1, length);
	note->h = (struct record){.len = length, .kind = REC_NOTE, .ns = now_ns()};
	strcpy(note->text, text);
	return recording_write(recording, &note->h);
}

static void log_memo_hits(Recording *recording)
{
	uint64_t known[MEMO_KINDS] = {};
	size_t cpus;
	const struct cpu_account *accounts = programs_accounts(recording->programs, &cpus);

	for (size_t cpu = 0; cpu < cpus; cpu++)
		for (size_t kind = 0; kind < MEMO_KINDS; kind++)
			known[kind] += accounts[cpu].memo_hits[kind];
	log_verbose("%" PRIu64 " user stacks and %" PRIu64
		    " kernel stacks were those of an earlier wait of the thread, and not walked",
		    known[MEMO_USER], known[MEMO_KERNEL]);
}

static int finish_unwinding(Recording *recording)
{
	int error = unwinder_finish(recording->unwinder);
	UnwinderCounts counts = unwinder_counts(recording->unwinder);
	struct {
		uint64_t count;
		const char *what;
	} troubles[] = {
		{counts.tables.no_room, "times there was no room for a file's table: stacks end in "
					"its code (more: --unwind-memory)"},
		{counts.tables.unread, "files have none: what reads them failed"},
		{counts.tables.debug_unused, "files lack call frame information, and their debug "
					     "files could not be used (-v: why)"},
		{counts.tables.evicted,
		 "tables of files no longer mapped were dropped to make room"},
		{counts.tables.objects_lost, "files had no room in the list of known ones"},
		{counts.memory.rows_without_rule, "rows had no room for their rule"},
		{counts.publish_failed, "processes had no room for their mappings"},
		{counts.troubles.process_lost, "processes had no room at their birth"},
		{counts.corrected,
		 "times the kernel did not tell of an exec and what it mapped, which was read from "
		 "/proc 0.1 s later: stacks until then may be cut"},
		{sideband_late(recording->sideband),
		 "times the kernel told of a mapping, fork or exec later than others had been "
		 "taken: stacks just before may be wrong"},
		{sideband_unread(recording->sideband),
		 "processes were not read again before the end, after the kernel had not told of "
		 "all that they mapped: their last stacks may be wrong"},
		{counts.troubles.torn, "times a process's mappings changed while they were read"},
	};

	loss_add(recording->losses, REC_STACK_COPY, LOSS_UNWALKED, counts.copies.dropped,
		 counts.copies.dropped_since_ns);
	log_memo_hits(recording);
	log_verbose("unwind tables: %" PRIu64 " of %" PRIu64 " files have one, %" PRIu64
		    " cells of memory in use, %" PRIu32 " rules; mappings published %" PRIu64
		    " times; %" PRIu64 " stacks copied, %" PRIu64
		    " of them whole; the kernel could not be asked %" PRIu64
		    " times, and its answer not be kept %" PRIu64 " times",
		    counts.tables.ready, counts.tables.wanted, counts.memory.cells_used,
		    counts.memory.rules, counts.published, counts.copies.taken,
		    counts.copies.walked, counts.troubles.vma_busy, counts.troubles.seed_lost);
	log_verbose("unwind tables: %" PRIu64
		    " mappings published with one after %.2f ms (median), "
		    "%.2f ms (99 %%), %.2f ms (longest)",
		    counts.delays->count, histogram_quantile(counts.delays, 500) / 1e6,
		    histogram_quantile(counts.delays, 990) / 1e6, counts.delays->max / 1e6);
	for (size_t i = 0; i < ARRAY_LEN(troubles) && !error; i++)
		error = write_warning(recording, "unwind tables", troubles[i].count,
				      troubles[i].what);
	return error;
}

/* Without the events of minor faults nothing tells that one did not complete. */
static int tell_faults(Recording *recording)
{
	FaultOptions faults = programs_faults(recording->programs);
	struct fault_counts counts = programs_fault_counts(recording->programs);
	int error = 0;

	if (faults.threshold_ns != FAULT_THRESHOLD_NONE || faults.source == FAULT_SOURCE_FENTRY)
		error = write_warning(recording, "page faults", counts.open,
				      "did not complete (a signal, an error), and are not told");
	if (!error)
		error = write_warning(recording, "page faults", counts.unmatched,
				      "were not seen to begin, and are not told");
	return error;
}

static int warn_requests(Recording *recording)
{
	const ProgramInfo *info;
	struct request_counts counts = programs_request_counts(recording->programs);
	int error =
		write_warning(recording, "block I/O", counts.no_slot,
			      "requests were under way beside too many others, and are not told");

	if (!error)
		error = write_warning(recording, "block I/O", counts.unattributed,
				      "requests were left to workers of io_uring unseen: they are "
				      "told as the workers' own");
	if (!error)
		error = write_warning(recording, "block I/O", counts.unfinished,
				      "requests were not seen to complete, and are not told");
	if (!error)
		error = write_warning(recording, "block I/O", counts.in_flight,
				      "requests were still under way at the end, and are not told");
	for (size_t i = 0; (info = program_info(i)) && !error; i++)
		if (info->missed_requests)
			error = write_warning(recording, "block I/O",
					      programs_missed(recording->programs, info->name),
					      info->missed_requests);
	return error;
}

/* What is missing since they rested, of what is kept. */
static int warn_ticks(Recording *recording)
{
	SampleTimerCounts counts =
		programs_ticks_counts(recording->programs, recording->window_start_ns);
	uint64_t samples = counts.missed_ns / (NSEC_PER_SEC / recording->options->frequency);

	log_verbose("CPU samples: began again %" PRIu64
		    " times on a CPU where no target had run, after %.3f ms at a time",
		    counts.begun, counts.begun ? counts.missed_ns / 1e6 / counts.begun : 0);
	return write_warning(recording, "CPU samples", samples,
			     "may be missing, of threads that came to a CPU where none had run for "
			     "a second: their times are right");
}

static int warn_cpus(Recording *recording)
{
	if (!recording->online_cpus)
		return 0;
	online_cpus_check(recording->online_cpus);
	return write_warning(recording, "CPUs", online_cpus_changes(recording->online_cpus),
			     "times one went offline or came online: on those that came, or came "
			     "back, there are no CPU samples, and what was mapped is not known");
}

/* Whoever records as root has all files. */
static int warn_files(Recording *recording)
{
	int error = write_warning(recording, "mapped files",
				  mapped_files_unopened(recording->files, -EPERM),
				  "were deleted or replaced since, and cannot be read without "
				  "CAP_CHECKPOINT_RESTORE: their functions have no names, and "
				  "stacks end there");

	if (!error)
		error = write_warning(recording, "mapped files",
				      mapped_files_unopened(recording->files, -EACCES),
				      "cannot be read without CAP_SYS_PTRACE and "
				      "CAP_DAC_READ_SEARCH: their functions have no names, and "
				      "stacks end there");
	return error;
}

/* Where more was left than was to be kept, nobody need know. */
static int warn_segments_dropped(Recording *recording)
{
	_cleanup_free_ char *what = xasprintf("times there was no room (a full disk, ulimit -f), "
					      "and the oldest part was given up: only the "
					      "last %.3f s are kept",
					      recording->kept_ns / 1e9);

	if (recording->kept_ns >= recording->options->flight_ns)
		return 0;
	return write_warning(recording, "flight recorder", recording->segments_dropped, what);
}

int recording_write_warnings(Recording *recording)
{
	int error = recording->unwinder ? finish_unwinding(recording) : 0;

	if (!error)
		error = warn_files(recording);
	if (!error)
		error = warn_segments_dropped(recording);
	if (!error)
		error = warn_cpus(recording);
	if (!error)
		error = warn_ticks(recording);
	if (!error)
		error = tell_faults(recording);
	if (!error)
		error = warn_requests(recording);
	return error;
}
