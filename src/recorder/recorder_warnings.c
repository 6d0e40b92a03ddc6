/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * recorder_warnings.c - logs what a recording lacks and why, and writes it as notes into the
 * capture.
 */
#include "jit_code.h"
#include "recorder_private.h"
#include "util.h"
#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* So long is waited for what processes say of code that they have made, at the end. */
#define JIT_CODE_LAST_NS (200 * NSEC_PER_MSEC)
/* So long memory is read in between two looks at what was mapped. */
#define JIT_CODE_SLICE_NS (4 * NSEC_PER_MSEC)

int recording_write_note(Recording *recording, const char *text)
{
	_cleanup_free_ struct rec_note *note = NULL;
	size_t length;

	length = (sizeof(*note) + strlen(text) + 1 + 7) & ~7UL;
	note = xcalloc(1, length);
	note->h = (struct record){.len = length, .kind = REC_NOTE, .ns = now_ns()};
	strcpy(note->text, text);
	return recording_write(recording, &note->h);
}

/* Logs "SUBJECT: COUNT WHAT" and writes it as a note, unless the count is 0. */
static int write_warning(Recording *recording, const char *subject, uint64_t count,
			 const char *what)
{
	_cleanup_free_ char *text = NULL;

	if (count == 0)
		return 0;
	text = xasprintf("%s: %" PRIu64 " %s", subject, count, what);
	log_warn("%s", text);
	return recording_write_note(recording, text);
}

typedef struct Warning {
	uint64_t count;
	const char *what;
} Warning;

static int write_warnings(Recording *recording, const char *subject, const Warning *warnings,
			  size_t count)
{
	for (size_t i = 0; i < count; i++) {
		int error = write_warning(recording, subject, warnings[i].count, warnings[i].what);

		if (error)
			return error;
	}
	return 0;
}

/* How stack memos fared, over all CPUs. */
typedef struct MemoCounts {
	uint64_t of[MEMO_KINDS][MEMO_OUTCOMES];
} MemoCounts;

static MemoCounts memo_counts(Recording *recording)
{
	MemoCounts counts = {};
	size_t cpus;
	const struct cpu_account *accounts = programs_accounts(recording->programs, &cpus);

	for (size_t cpu = 0; cpu < cpus; cpu++)
		for (size_t kind = 0; kind < MEMO_KINDS; kind++)
			for (size_t outcome = 0; outcome < MEMO_OUTCOMES; outcome++)
				counts.of[kind][outcome] += accounts[cpu].memos[kind][outcome];
	return counts;
}

static void log_memos(const MemoCounts *counts)
{
	log_verbose("stack memo: %" PRIu64 " user stacks and %" PRIu64
		    " kernel stacks were not walked again",
		    counts->of[MEMO_USER][MEMO_HIT] - counts->of[MEMO_USER][MEMO_CHECKED],
		    counts->of[MEMO_KERNEL][MEMO_HIT] - counts->of[MEMO_KERNEL][MEMO_CHECKED]);
	for (size_t kind = 0; kind < MEMO_KINDS; kind++) {
		const uint64_t *of = counts->of[kind];

		log_verbose("stack memo, %s stacks that were walked: %" PRIu64
			    " of a new place, %" PRIu64 " after a change of mappings, %" PRIu64
			    " with other words, %" PRIu64 " not comparable, %" PRIu64
			    " as a check; not kept: %" PRIu64 " too large, %" PRIu64
			    " by other registers or incomplete, %" PRIu64 " not sent",
			    kind == MEMO_USER ? "user" : "kernel", of[MEMO_OTHER],
			    of[MEMO_MAPPINGS], of[MEMO_CHANGED], of[MEMO_UNREAD], of[MEMO_CHECKED],
			    of[MEMO_FAR], of[MEMO_UNFIT], of[MEMO_UNSENT]);
	}
}

static int warn_memos(Recording *recording)
{
	MemoCounts counts = memo_counts(recording);

	log_memos(&counts);
	return write_warning(
		recording, "stacks",
		counts.of[MEMO_USER][MEMO_WRONG] + counts.of[MEMO_KERNEL][MEMO_WRONG],
		"were taken for an earlier one and were not the same, of those checked "
		"(one in 1024); please report it");
}

/*
 * Stacks may wait for what their process says of its code. What is read of it now counts only if it
 * is known that nothing else was mapped there before it was read.
 */
static int finish_jit_code(Recording *recording)
{
	uint64_t deadline_ns = now_ns() + JIT_CODE_LAST_NS;
	int error = 0;

	while (!error && now_ns() < deadline_ns &&
	       jit_code_has_waiting(recording->files, deadline_ns)) {
		sideband_fetch(recording->sideband);
		error = sideband_process(recording->sideband, /* last= */ false)
				?: jit_code_check(recording->files, JIT_CODE_SLICE_NS,
						  sideband_watermark_ns(recording->sideband));
		if (!error && jit_code_has_waiting(recording->files, deadline_ns))
			jit_code_wait(recording->files);
	}
	return error;
}

static int finish_unwinding(Recording *recording)
{
	int error = finish_jit_code(recording) ?: unwinder_finish(recording->unwinder);
	UnwinderCounts counts = unwinder_counts(recording->unwinder);
	JitCodeCounts jit = jit_processes_counts(mapped_files_jit_codes(recording->files));
	const Warning warnings[] = {
		{counts.tables.no_room,
		 "times a file's table found no room; stacks end in the file's "
		 "code (raise --unwind-memory)"},
		{counts.tables.unread, "files have none, because reading them failed"},
		{counts.tables.gone, "files have none: they were closed (too many open files), and "
				     "replaced or deleted since; stacks end in them; ulimit -n "
				     "raises the limit"},
		{counts.tables.deferred, "times a file's table had to wait (too many open files); "
					 "until then stacks end in the file's code; ulimit -n "
					 "raises the limit"},
		{counts.tables.debug_unused, "files lack call frame information, and their debug "
					     "files could not be used (-v prints why)"},
		{counts.tables.evicted, "tables of files that are no longer mapped were evicted"},
		{counts.tables.objects_lost, "files found no room in the list of known files"},
		{counts.memory.rows_without_rule, "rows found no room for their rule"},
		{counts.publish_failed, "processes found no room for their mappings"},
		{counts.troubles.process_lost, "new processes found no room"},
		{counts.corrected, "times the kernel did not report an exec and its mappings; they "
				   "were read from /proc "
				   "0.1 s later, and stacks before that may be truncated"},
		{sideband_late(recording->sideband), "times the kernel reported a mapping, fork or "
						     "exec too late; stacks just before may "
						     "be wrong"},
		{sideband_unread(recording->sideband), "processes with unreported mappings were "
						       "not read again before the end; their last "
						       "stacks may be wrong"},
		{jit.incomplete,
		 "processes describe more code that they have made than is read "
		 "(at most 32 MiB of memory) or kept (at most 256 MiB, or too many open files); "
		 "stacks in the rest are guessed or end"},
		{jit.disputed, "functions made at run time are described in several ways that "
			       "contradict each other; stacks in them are guessed or end"},
		{jit.failed, "looks at what processes say of code that they have made failed; "
			     "stacks in it are guessed or end"},
		{counts.troubles.copies_busy, "stacks that waited for a table were not copied, "
					      "because another copy was being made; they end "
					      "where the table was missing"},
		{counts.troubles.torn,
		 "times the mappings of a process changed while they were read"},
	};

	loss_add(recording->losses, REC_STACK_COPY, LOSS_UNWALKED, counts.copies.dropped,
		 counts.copies.dropped_since_ns);
	log_verbose("unwind tables: %" PRIu64 " of %" PRIu64 " files have one, %" PRIu64
		    " cells of memory in use, %" PRIu32 " rules; mappings published %" PRIu64
		    " times; %" PRIu64 " stacks copied, %" PRIu64
		    " of them complete; looking up a mapping in the kernel failed %" PRIu64
		    " times, and keeping the result %" PRIu64 " times",
		    counts.tables.ready, counts.tables.wanted, counts.memory.cells_used,
		    counts.memory.rules, counts.published, counts.copies.taken,
		    counts.copies.walked, counts.troubles.vma_busy, counts.troubles.seed_lost);
	log_verbose("unwind tables: %" PRIu64
		    " mappings published with one after %.2f ms (median), "
		    "%.2f ms (99 %%), %.2f ms (longest)",
		    counts.delays->count, histogram_quantile(counts.delays, 500) / 1e6,
		    histogram_quantile(counts.delays, 990) / 1e6, counts.delays->max / 1e6);
	log_verbose("code made at run time: %" PRIu64 " looks at processes, which took %.2f ms; "
		    "%" PRIu64 " pieces of code are described, %" PRIu64
		    " were replaced meanwhile; no room %" PRIu64 " times, %" PRIu64 " looks failed",
		    jit.looks, jit.took_ns / 1e6, jit.pieces, jit.replaced, jit.omitted,
		    jit.failed);
	return error ? error
		     : write_warnings(recording, "unwind tables", warnings, ARRAY_LEN(warnings));
}

/* Without the events of minor faults, it is not hits that a fault did not complete. */
static int warn_faults(Recording *recording)
{
	FaultOptions faults = programs_faults(recording->programs);
	struct fault_counts counts = programs_fault_counts(recording->programs);
	bool all_seen =
		faults.threshold_ns != FAULT_THRESHOLD_NONE || faults.source == FAULT_SOURCE_FENTRY;
	const Warning warnings[] = {
		{all_seen ? counts.open : 0,
		 "omitted (not completed, because of a signal or an error)"},
		{counts.unmatched, "omitted (start not observed)"},
	};

	return write_warnings(recording, "page faults", warnings, ARRAY_LEN(warnings));
}

/* This is how it is meant, so a note is enough. */
static int note_withheld_names(Recording *recording)
{
	uint64_t count = file_names_withheld(&recording->file_names);
	_cleanup_free_ char *note = NULL;

	if (count == 0)
		return 0;
	note = xasprintf("block I/O: the names of %" PRIu64 " files that only the kernel had "
			 "requests for are omitted (--all-files records them)",
			 count);
	log_verbose("%s", note);
	return recording_write_note(recording, note);
}

static int warn_requests(Recording *recording)
{
	const ProgramInfo *info;
	struct request_counts counts = programs_request_counts(recording->programs);
	const Warning warnings[] = {
		{counts.no_slot, "requests omitted (too many in flight)"},
		{counts.unattributed,
		 "requests attributed to io_uring workers (submitter not observed)"},
		{counts.unfinished, "requests omitted (completion not observed)"},
		{counts.in_flight, "requests still in flight at the end (omitted)"},
	};
	int error = write_warnings(recording, "block I/O", warnings, ARRAY_LEN(warnings));

	for (size_t i = 0; (info = program_info(i)) && !error; i++)
		if (info->missed_requests)
			error = write_warning(recording, "block I/O",
					      programs_missed(recording->programs, info->name),
					      info->missed_requests);
	return error;
}

/* Notes samples that are missing in the window because the timer was off. */
static int note_ticks(Recording *recording)
{
	SampleTimerCounts counts =
		programs_ticks_counts(recording->programs, recording->window_start_ns);
	uint64_t samples = counts.missed;
	_cleanup_free_ char *note = NULL;

	log_verbose("CPU samples: restarted %" PRIu64
		    " times on an idle CPU, after %.3f ms on average",
		    counts.begun, counts.begun ? counts.missed_ns / 1e6 / counts.begun : 0);
	if (samples == 0)
		return 0;
	/* Most recordings have some, and no time is wrong: a note is enough. */
	note = xasprintf("CPU samples: %" PRIu64 " missing at most (sampling restarts on an idle "
			 "CPU); times are not affected",
			 samples);
	log_verbose("%s", note);
	return recording_write_note(recording, note);
}

static int warn_cpus(Recording *recording)
{
	const Warning warnings[] = {
		{recording->online_cpus ? online_cpus_changes(recording->online_cpus) : 0,
		 "times a CPU went offline or came online"},
		{recording->cpus_reopened,
		 "times events of a CPU that came online were opened again; in the second before, "
		 "it has no CPU samples, and stacks in files that were mapped on it may be "
		 "truncated"},
		{recording->cpus_failed,
		 "times events of a CPU that came online could not be opened; it has no CPU "
		 "samples, and mappings made on it are not known"},
	};

	if (recording->online_cpus)
		online_cpus_check(recording->online_cpus);
	return write_warnings(recording, "CPUs", warnings, ARRAY_LEN(warnings));
}

/* The user knows how long the run took by a clock on the wall, which went on. */
static int warn_suspends(Recording *recording)
{
	SuspendCounts counts = suspends_since(&recording->suspends, recording->window_start_ns);
	double first_s = (counts.first_ns - recording->window_start_ns) / 1e9;
	_cleanup_free_ char *text = NULL;

	if (counts.count == 0)
		return 0;
	text = counts.count == 1
		       ? xasprintf("suspend: the machine was suspended for %.3f s, at %.3f s; "
				   "no time of the recording includes that",
				   counts.sum_ns / 1e9, first_s)
		       : xasprintf("suspend: the machine was suspended %zu times, for %.3f s, the "
				   "first time at %.3f s; no time of the recording includes that",
				   counts.count, counts.sum_ns / 1e9, first_s);
	log_warn("%s", text);
	return recording_write_note(recording, text);
}

/* Root can read all files. */
static int warn_files(Recording *recording)
{
	const Warning warnings[] = {
		{mapped_files_unopened(recording->files, -EPERM),
		 "deleted or replaced since, unreadable without CAP_CHECKPOINT_RESTORE; their "
		 "functions have no names, and stacks end in them"},
		{mapped_files_unopened(recording->files, -EACCES),
		 "unreadable without CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH; "
		 "their functions have no names, and stacks end in them"},
		{mapped_files_unopened(recording->files, -EMFILE),
		 "deleted ones closed (too many open files); their functions have no names, and "
		 "stacks may end in them; ulimit -n raises the limit"},
	};

	return write_warnings(recording, "mapped files", warnings, ARRAY_LEN(warnings));
}

static int warn_memory(Recording *recording)
{
	RemoteMemoryCounts counts = remote_memory_counts(mapped_files_memory(recording->files));
	_cleanup_free_ char *refused =
		xasprintf("reads not made, because the child that makes them "
			  "could not be started: %s",
			  error_text(counts.error));
	const Warning warnings[] = {
		{counts.stalled,
		 "processes were not read any more, because a page did not come in time (they may "
		 "serve their own page faults); functions of interpreters may be missing, and "
		 "stacks in code made at run time are guessed or end"},
		{counts.restarted,
		 "times the child that reads it had ended (killed?), and another was started"},
		{counts.error && !counts.gave_up ? counts.refused : 0, refused},
		{counts.gave_up ? counts.refused : 0,
		 "reads not made, because too many of them had failed"},
	};

	log_verbose("memory of processes: %" PRIu64 " reads, %" PRIu64
		    " not made; starting the child that reads took %.3f ms",
		    counts.requests, counts.refused, counts.start_ns / 1e6);
	return write_warnings(recording, "memory of processes", warnings, ARRAY_LEN(warnings));
}

/* If at least the requested length is left, nothing is missing. */
static int warn_segments_dropped(Recording *recording)
{
	_cleanup_free_ char *what = xasprintf("times the oldest part was dropped (disk full or "
					      "ulimit -f); only the last %.3f s are kept",
					      recording->kept_ns / 1e9);

	if (recording->kept_ns >= recording->options->flight_ns)
		return 0;
	return write_warning(recording, "flight recorder", recording->segments_dropped, what);
}

static enum ring_index ring_of_kind(uint32_t kind)
{
	return kind < REC_BULK_MIN ? RING_SCHED : kind == REC_STACK_COPY ? RING_COPY : RING_BULK;
}

/* Counts the records that found no room, by ring. The caller frees the result. */
static uint64_t (*count_ring_losses(Recording *recording, const RingLayout *layout))[RINGS]
{
	uint64_t(*lost)[RINGS] = xcalloc(layout->groups, sizeof(*lost));
	size_t cpus;
	const struct cpu_account *accounts = programs_accounts(recording->programs, &cpus);

	for (size_t cpu = 0; cpu < cpus; cpu++)
		for (uint32_t kind = 0; kind < ACCOUNT_KINDS; kind++)
			lost[accounts[cpu].ring_group][ring_of_kind(kind)] +=
				accounts[cpu].lost[LOSS_RING_FULL][kind];
	return lost;
}

/*
 * Returns "CPU 3" or "CPUs 8 to 15": those of a group, and "and others" if there are more CPUs than
 * the groups have room for. The caller frees it.
 */
static char *cpus_of_group(const RingLayout *layout, uint32_t group, uint32_t cpu_count)
{
	uint32_t first = group * layout->group_cpus, last = first + layout->group_cpus - 1;
	const char *others = cpu_count > layout->groups * layout->group_cpus ? " and others" : "";

	last = MIN(last, MAX(cpu_count, 1U) - 1);
	return first >= last ? xasprintf("CPU %u%s", first, others)
			     : xasprintf("CPUs %u to %u%s", first, last, others);
}

/* Appends to the note what the rings of a group have lost; returns the longer note. */
static char *add_ring_losses(char *note, const char *cpus, const uint64_t lost[RINGS])
{
	static const char *const names[RINGS] = {
		[RING_SCHED] = "sched", [RING_BULK] = "bulk", [RING_COPY] = "copy"};

	for (size_t kind = 0; kind < RINGS; kind++) {
		_cleanup_free_ char *before = note;

		note = lost[kind] ? xasprintf("%s%s%" PRIu64 " in %s of %s", before,
					      *before ? ", " : "", lost[kind], names[kind], cpus)
				  : xstrdup(before);
	}
	return note;
}

static void log_rings(const Recording *recording, uint32_t group, const char *cpus)
{
	const RingReader *reader = programs_ring_reader(recording->programs);

	log_verbose("ring buffers of %s: sched %" PRIu64 ", bulk %" PRIu64 ", copy %" PRIu64
		    " of %" PRIu64 " bytes used at most",
		    cpus, ring_reader_most_used(reader, group, RING_SCHED),
		    ring_reader_most_used(reader, group, RING_BULK),
		    ring_reader_most_used(reader, group, RING_COPY),
		    programs_ring_layout(recording->programs).size);
}

/* Notes which rings were full. Kinds, CPUs and times of losses have records of their own. */
static int note_rings(Recording *recording)
{
	RingLayout layout = programs_ring_layout(recording->programs);
	_cleanup_free_ uint64_t(*lost)[RINGS] = count_ring_losses(recording, &layout);
	_cleanup_free_ char *list = xstrdup(""), *note = NULL;
	size_t cpu_count;

	programs_accounts(recording->programs, &cpu_count);

	for (uint32_t group = 0; group < layout.groups; group++) {
		_cleanup_free_ char *cpus = cpus_of_group(&layout, group, cpu_count);

		log_rings(recording, group, cpus);
		list = add_ring_losses(list, cpus, lost[group]);
	}
	if (!*list)
		return 0;
	note = xasprintf("ring buffers: records lost: %s", list);
	return recording_write_note(recording, note);
}

void recording_report_symbols(const SymbolsSummary *summary)
{
	log_verbose("%" PRIu64 " of %" PRIu64 " addresses have names; names of %u files came from "
		    "the cache",
		    summary->named, summary->addresses, summary->files_cached);
	if (summary->files_unreadable)
		log_info("%u files could not be read; their functions have no names",
			 summary->files_unreadable);
	if (summary->files_mismatched)
		log_info("%u files were replaced since they were mapped; their names are not used",
			 summary->files_mismatched);
	symbols_warn_kernel(summary);
}

int recording_write_warnings(Recording *recording)
{
	static int (*const steps[])(Recording *) = {
		warn_memos,    warn_files, warn_memory,		warn_segments_dropped,
		warn_suspends, warn_cpus,  note_ticks,		warn_faults,
		warn_requests, note_rings, note_withheld_names, recording_warn_scripts,
	};
	int error = recording->unwinder ? finish_unwinding(recording) : 0;

	if (error)
		return error;
	for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
		error = steps[i](recording);
		if (error)
			return error;
	}
	return 0;
}
