/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "option_table.h"
#include "compressor.h"
#include "report.h"
#include "suggestion.h"
#include "table_memory.h"
#include "tick_rate.h"
#include "timeline.h"
#include "util.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MIN_RING_SIZE 4096
#define MAX_RING_SIZE (1ULL << 30)
#define MAX_RING_CPUS 4096
#define THREADS_MAX   64

static int bad(const char *option, const char *value, const char *expected)
{
	log_error("--%s '%s': %s", option, value, expected);
	return -EINVAL;
}

/* ---- values -------------------------------------------------------------------- */

static int set_output(const char *text, Options *options)
{
	options->output = text;
	return *text ? 0 : bad("output", text, "expected a file");
}

static int set_format(const char *text, Options *options)
{
	const FormatInfo *info = formats_by_word(text);

	if (!info)
		return bad("format", text,
			   "expected firefox (also called gecko), chrome, html, folded, "
			   "pprof, speedscope or svg");
	options->export.format = info->format;
	return 0;
}

static int set_by(const char *text, Options *options)
{
	if (!strcmp(text, "thread"))
		options->export.root = STACK_TREE_BY_THREAD;
	else if (!strcmp(text, "process"))
		options->export.root = STACK_TREE_BY_PROCESS;
	else
		return bad("by", text, "expected thread or process");
	return 0;
}

static int set_frequency(const char *text, Options *options)
{
	uint64_t frequency = TICK_RATE_FIRST;

	options->record.adapt_frequency = !strcmp(text, "auto");
	if (!options->record.adapt_frequency &&
	    (parse_u64(text, &frequency) || frequency < 1 || frequency > 100000))
		return bad("frequency", text, "expected auto or 1 to 100000 samples a second");
	options->record.frequency = frequency;
	return 0;
}

/* The option may be given several times: the IDs are appended. */
static int parse_ids(const char *text, pid_t **ids, size_t *count)
{
	_cleanup_free_ char *copy = xstrdup(text);
	char *rest = copy;

	for (char *word; (word = strsep(&rest, ","));) {
		uint64_t id;

		if (parse_u64(word, &id) || id == 0 || id > INT32_MAX)
			return -EINVAL;
		*ids = xrealloc(*ids, (*count + 1) * sizeof(**ids));
		(*ids)[(*count)++] = id;
	}
	return 0;
}

static int set_pids(const char *text, Options *options)
{
	_cleanup_free_ char *pids = NULL;
	size_t count;

	if (!parse_ids(text, &options->record.pids, &options->record.pid_count))
		return 0;
	pids = suggestion_pids(text, &count);
	if (!pids)
		return bad("pid", text, "expected process IDs separated by commas");
	if (count == 1)
		log_error("--pid '%s': expected process IDs; that is -p $(pidof %s)", text, text);
	else
		log_error("--pid '%s': expected process IDs; those are -p %s", text, pids);
	return -EINVAL;
}

static int set_tids(const char *text, Options *options)
{
	if (parse_ids(text, &options->record.tids, &options->record.tid_count))
		return bad("tid", text, "expected thread IDs separated by commas");
	return 0;
}

static int set_cgroup(const char *text, Options *options)
{
	options->record.cgroup = text;
	return *text ? 0 : bad("cgroup", text, "expected a cgroup");
}

static int set_duration(const char *text, Options *options)
{
	if (parse_duration(text, &options->record.duration_ns) || !options->record.duration_ns)
		return bad("duration", text, "expected a time such as 10, 10s or 500ms");
	return 0;
}

static int set_delay(const char *text, Options *options)
{
	if (!strcmp(text, "signal"))
		options->record.delay_ns = DELAY_SIGNAL;
	else if (strcmp(text, "0") != 0 && parse_duration(text, &options->record.delay_ns))
		return bad("delay", text, "expected a time such as 500ms, or signal");
	return 0;
}

static int set_flight_recorder(const char *text, Options *options)
{
	if (parse_duration(text, &options->record.flight_ns) || !options->record.flight_ns)
		return bad("flight-recorder", text, "expected a time such as 30s");
	return 0;
}

static int set_quiet(const char *text, Options *options)
{
	(void)text;
	(void)options;
	log_level = LOG_QUIET;
	return 0;
}

static int set_verbose(const char *text, Options *options)
{
	(void)text;
	(void)options;
	log_level = LOG_VERBOSE;
	return 0;
}

static int set_kernel_stacks(const char *text, Options *options)
{
	if (!strcmp(text, "all"))
		options->record.kernel_stacks = KERNEL_STACKS_ALL;
	else if (!strcmp(text, "blocked"))
		options->record.kernel_stacks = KERNEL_STACKS_BLOCKED;
	else if (!strcmp(text, "none"))
		options->record.kernel_stacks = KERNEL_STACKS_NONE;
	else
		return bad("kernel-stacks", text, "expected all, blocked or none");
	return 0;
}

static int set_user_stacks(const char *text, Options *options)
{
	if (!strcmp(text, "dwarf"))
		options->record.user_stacks = USER_STACKS_TABLES;
	else if (!strcmp(text, "fp"))
		options->record.user_stacks = USER_STACKS_FRAME_POINTERS;
	else if (!strcmp(text, "none"))
		options->record.user_stacks = USER_STACKS_NONE;
	else
		return bad("stacks", text, "expected dwarf, fp or none");
	return 0;
}

static int set_fault_source(const char *text, Options *options)
{
	static const char *const sources[] = {
		[FAULT_SOURCE_OFF] = "off",
		[FAULT_SOURCE_FENTRY] = "fentry",
		[FAULT_SOURCE_EVENTS] = "events",
	};

	options->record.best_fault_source = !strcmp(text, "auto");
	if (options->record.best_fault_source)
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(sources); i++) {
		if (!strcmp(text, sources[i])) {
			options->record.fault_source = i;
			return 0;
		}
	}
	return bad("fault-source", text, "expected auto, fentry, events or off");
}

static int set_fault_threshold(const char *text, Options *options)
{
	if (!strcmp(text, "0"))
		options->record.fault_threshold_ns = 0;
	else if (parse_duration(text, &options->record.fault_threshold_ns))
		return bad("fault-threshold", text, "expected a time such as 20us, or 0");
	return 0;
}

static int set_waker_stacks(const char *text, Options *options)
{
	if (!strcmp(text, "off"))
		options->record.waker_threshold_ns = WAKER_THRESHOLD_NONE;
	else if (!strcmp(text, "0"))
		options->record.waker_threshold_ns = 0;
	else if (parse_duration(text, &options->record.waker_threshold_ns))
		return bad("waker-stacks", text, "expected a time such as 100us, 0 or off");
	return 0;
}

#define BUDGET_LEAST 0.1 /* percent */
#define BUDGET_MOST  50

static int set_budget(const char *text, Options *options)
{
	char *end;
	double percent = strtod(text, &end);

	if (end == text || !(percent >= BUDGET_LEAST && percent <= BUDGET_MOST) ||
	    (*end != '\0' && strcmp(end, "%") != 0))
		return bad("budget", text, "expected 0.1% to 50%, such as 2%");
	options->record.budget = percent / 100;
	return 0;
}

/* The memory is allocated in whole chunks, so the size is rounded down. */
static int set_unwind_memory(const char *text, Options *options)
{
	uint64_t size;

	if (parse_size(text, &size) || size < TABLE_MEMORY_MIN || size > TABLE_MEMORY_MAX)
		return bad("unwind-memory", text, "expected 8M to 512M, such as 64M");
	options->record.unwind_memory = size - size % TABLE_MEMORY_MIN;
	if (options->record.unwind_memory != size)
		log_verbose("--unwind-memory %s is rounded down to %llu bytes", text,
			    (unsigned long long)options->record.unwind_memory);
	return 0;
}

/* The kernel requires a power of two. The capture records the rounded size. */
static int set_ring_size(const char *text, Options *options)
{
	uint64_t wanted, size = MIN_RING_SIZE;

	if (parse_size(text, &wanted) || wanted < MIN_RING_SIZE || wanted > MAX_RING_SIZE)
		return bad("ring-size", text, "expected 4K to 1G, such as 16M");
	while (size < wanted)
		size *= 2;
	if (size != wanted)
		log_verbose("--ring-size %s is rounded up to %llu bytes", text,
			    (unsigned long long)size);
	options->record.ring_size = size;
	return 0;
}

static int set_ring_cpus(const char *text, Options *options)
{
	uint64_t cpus;

	if (parse_u64(text, &cpus) || cpus < 1 || cpus > MAX_RING_CPUS)
		return bad("ring-cpus", text, "expected 1 to 4096 CPUs");
	options->record.ring_cpus = cpus;
	return 0;
}

static int set_json_summary(const char *text, Options *options)
{
	options->export.json_summary = text;
	return *text ? 0 : bad("json-summary", text, "expected a file");
}

static int set_function(const char *text, Options *options)
{
	options->report.function = text;
	return 0;
}

static int set_critical_path(const char *text, Options *options)
{
	uint64_t tid;

	options->report.critical_path = true;
	if (!text)
		return 0;
	if (parse_u64(text, &tid) || tid == 0 || tid > INT32_MAX)
		return bad("critical-path", text, "expected a thread ID");
	options->load.critical_tid = tid;
	return 0;
}

/* Returns "waits, locks, …"; the caller frees it. */
static char *section_list(void)
{
	char *text = xstrdup("");

	for (size_t i = 0; report_section_name(i); i++) {
		char *longer = xasprintf("%s%s%s", text, i ? ", " : "", report_section_name(i));

		free(text);
		text = longer;
	}
	return text;
}

static int set_section(const char *text, Options *options)
{
	_cleanup_free_ char *list = section_list();
	const char *close = NULL;

	options->report.section = text;
	for (size_t i = 0; report_section_name(i); i++) {
		if (!strcmp(text, report_section_name(i)))
			return 0;
		if (suggestion_is_close(text, report_section_name(i)))
			close = report_section_name(i);
	}
	if (close)
		log_error("no such section: %s; did you mean %s?", text, close);
	else
		log_error("--section '%s': expected one of %s", text, list);
	return -EINVAL;
}

static int set_top(const char *text, Options *options)
{
	if (parse_u64(text, &options->report.top) || options->report.top == 0)
		return bad("top", text, "expected a number of rows, such as 20");
	return 0;
}

static int set_timeline(const char *text, Options *options)
{
	uint64_t tid;

	if (parse_u64(text, &tid) || tid == 0 || tid > INT32_MAX)
		return bad("timeline", text, "expected a thread ID (--section threads lists them)");
	options->report.timeline_tid = tid;
	return 0;
}

static int set_limit(const char *text, Options *options)
{
	if (parse_size(text, &options->report.limit) || options->report.limit == 0)
		return bad("limit", text, "expected a size such as 16K");
	return 0;
}

static int set_compression(const char *text, Options *options)
{
	uint64_t level;

	if (parse_u64(text, &level) || level < 1 || level > COMPRESSOR_ZSTD_LEVEL_MAX)
		return bad("compression", text,
			   "expected a level: 1 to 9 for gzip, to 19 for zstd");
	options->export.compression = level;
	return 0;
}

/* The text is a level, "3", or a level and a number of threads, "3,4". */
static int set_capture_compression(const char *text, Options *options)
{
	_cleanup_free_ char *copy = xstrdup(text);
	char *comma = strchr(copy, ',');
	uint64_t level, threads = 1;

	if (comma)
		*comma = '\0';
	if (parse_u64(copy, &level) || level < 1 || level > COMPRESSOR_ZSTD_LEVEL_MAX ||
	    (comma && (parse_u64(comma + 1, &threads) || threads < 1 || threads > THREADS_MAX)))
		return bad("capture-compression", text,
			   "expected a level from 1 to 19, or level "
			   "and threads, such as 3,4");
	options->record.capture_compression = level;
	options->record.capture_threads = threads;
	return 0;
}

static int set_from(const char *text, Options *options)
{
	if (strcmp(text, "0") != 0 && parse_duration(text, &options->load.from_ns))
		return bad("from", text,
			   "expected a time since the start of the window, such as 1.5s");
	return 0;
}

static int set_to(const char *text, Options *options)
{
	if (parse_duration(text, &options->load.to_ns) || !options->load.to_ns)
		return bad("to", text,
			   "expected a time since the start of the window, such as 2.5s");
	return 0;
}

static int set_process_filter(const char *text, Options *options)
{
	options->load.processes = text;
	return *text ? 0 : bad("process", text, "expected IDs or names");
}

static int set_thread_filter(const char *text, Options *options)
{
	options->load.threads = text;
	return *text ? 0 : bad("thread", text, "expected IDs or names");
}

static int set_states(const char *text, Options *options)
{
	_cleanup_free_ char *copy = xstrdup(text);
	char *rest = copy;

	options->export.hidden = (1 << STATE_COUNT) - 1;
	for (char *word; (word = strsep(&rest, ","));) {
		size_t i = 0;

		while (i < STATE_COUNT && strcmp(word, timeline_state_names[i]) != 0)
			i++;
		if (i == STATE_COUNT)
			return bad("state", text,
				   "expected running, runnable, blocked or unknown, "
				   "separated by commas");
		options->export.hidden &= ~(1u << i);
	}
	return 0;
}

static int set_viewer(const char *text, Options *options)
{
	options->open.viewer = text;
	return *text ? 0 : bad("viewer", text, "expected a URL or a folder");
}

/* The text is one port, "3000", or a range, "3000-3099". */
static int set_port(const char *text, Options *options)
{
	_cleanup_free_ char *copy = xstrdup(text);
	char *dash = strchr(copy, '-');
	uint64_t first, last;

	if (dash)
		*dash = '\0';
	if (parse_u64(copy, &first) || parse_u64(dash ? dash + 1 : copy, &last) || first == 0 ||
	    last < first || last > UINT16_MAX)
		return bad("port", text, "expected 1 to 65535, or a range such as 3000-3099");
	options->open.first_port = first;
	options->open.last_port = last;
	return 0;
}

static int set_idle_timeout(const char *text, Options *options)
{
	if (!strcmp(text, "0"))
		options->open.idle_timeout_ns = 0;
	else if (parse_duration(text, &options->open.idle_timeout_ns))
		return bad("idle-timeout", text, "expected a time such as 10m, or 0");
	return 0;
}

static int set_no_debuginfod(const char *text, Options *options)
{
	(void)text;
	options->record.no_debuginfod = options->load.no_debuginfod = true;
	return 0;
}

static int set_no_source(const char *text, Options *options)
{
	(void)text;
	options->record.no_source = options->load.no_source = true;
	return 0;
}

/* Takes --discard-capture in WALLPROF_OPTIONS back. */
static int set_keep_capture(const char *text, Options *options)
{
	(void)text;
	options->discard_capture = false;
	return 0;
}

static int set_unwind(const char *text, Options *options)
{
	options->doctor.unwind = text;
	return 0;
}

static int set_help(const char *text, Options *options)
{
	(void)text;
	options->help_verb = options->verb;
	options->verb = VERB_HELP;
	return 0;
}

static int set_version(const char *text, Options *options)
{
	(void)text;
	options->verb = VERB_VERSION;
	return 0;
}

static int set_licenses(const char *text, Options *options)
{
	(void)text;
	options->verb = VERB_LICENSES;
	return 0;
}

/* ---- the table ----------------------------------------------------------------- */

#define PROFILE	  VERB_BIT(VERB_PROFILE)
#define EXPORT	  VERB_BIT(VERB_EXPORT)
#define REPORT	  VERB_BIT(VERB_REPORT)
#define OPEN	  VERB_BIT(VERB_OPEN)
#define DOCTOR	  VERB_BIT(VERB_DOCTOR)
#define RECORDING (PROFILE | VERB_BIT(VERB_RECORD))
#define EXPORTING (PROFILE | EXPORT)
#define READING	  (EXPORT | REPORT)
#define OPENING	  (PROFILE | OPEN) /* --open of a recording */
#define ALL	  UINT32_MAX
#define FLAG(x)	  NULL, offsetof(Options, x)

/* The help prints the options in this order. */
const OptionInfo option_table[] = {
	{"output", 'o', "FILE", RECORDING | EXPORT, "write to FILE (export: - is standard output)",
	 set_output, 0},
	{"format", 0, "F", EXPORTING,
	 "firefox, chrome, html, folded, pprof, speedscope or svg (default: by FILE)", set_format,
	 0},
	{"frequency", 'F', "HZ", RECORDING, "CPU samples per second (default auto: 999 at first)",
	 set_frequency, 0},
	{"pid", 'p', "PID[,PID…]", RECORDING, "record these processes and their descendants",
	 set_pids, 0},
	{"tid", 't', "TID[,TID…]", RECORDING, "record only these threads", set_tids, 0},
	{"all", 'a', NULL, RECORDING, "record all processes", FLAG(record.whole_system)},
	{"cgroup", 0, "PATH", RECORDING, "record the processes in this cgroup and below it",
	 set_cgroup, 0},
	{"kthreads", 0, NULL, RECORDING, "also record kernel threads", FLAG(record.kernel_threads)},
	{"duration", 'd', "TIME", RECORDING, "stop after this time: 10, 10s, 500ms, 2m",
	 set_duration, 0},
	{"delay", 0, "TIME", RECORDING, "start recording after TIME, or on SIGUSR1 (\"signal\")",
	 set_delay, 0},
	{"flight-recorder", 0, "TIME", RECORDING, "keep only the last TIME", set_flight_recorder,
	 0},
	{"quiet", 'q', NULL, ALL, "print errors only", set_quiet, 0},
	{"verbose", 'v', NULL, ALL, "print more", set_verbose, 0},
	{"kernel-stacks", 0, "W", RECORDING, "kernel stacks: all, blocked (default) or none",
	 set_kernel_stacks, 0},
	{"stacks", 0, "W", RECORDING,
	 "user stacks: dwarf (default, by unwind tables),\n"
	 "fp (by frame pointers) or none",
	 set_user_stacks, 0},
	{"fault-source", 0, "W", RECORDING,
	 "how page faults are observed: auto (default), fentry,\n"
	 "events or off",
	 set_fault_source, 0},
	{"fault-threshold", 0, "T", RECORDING,
	 "also record faults that took T without a wait, such\n"
	 "as 20us (0: all faults)",
	 set_fault_threshold, 0},
	{"waker-stacks", 0, "T", RECORDING,
	 "record the waker's stack for waits longer than T\n"
	 "(default 100us; 0: all waits), or off",
	 set_waker_stacks, 0},
	{"unwind-memory", 0, "SIZE", RECORDING,
	 "maximum memory for unwind tables, 8M to 512M (default\n"
	 "512M); when it is full, unused tables are dropped",
	 set_unwind_memory, 0},
	{"ring-size", 0, "SIZE", RECORDING,
	 "size of each ring buffer (default: 16M divided by their\n"
	 "groups, at least 4M)",
	 set_ring_size, 0},
	{"ring-cpus", 0, "N", RECORDING,
	 "CPUs that share ring buffers (default: 1, or as many as\n"
	 "make 16 groups)",
	 set_ring_cpus, 0},
	{"compression", 0, "LEVEL", EXPORTING, "of the profile: 1 to 9 for .gz, 1 to 19 for .zst",
	 set_compression, 0},
	{"capture-compression", 0, "L[,T]", RECORDING,
	 "of the capture: level 1 (default) to 19, in T threads", set_capture_compression, 0},
	{"discard-capture", 0, NULL, PROFILE, "delete the capture when the profile is written",
	 FLAG(discard_capture)},
	{"keep-capture", 0, NULL, PROFILE, "keep it (default)", set_keep_capture, 0},
	{"open", 0, NULL, PROFILE, "show the profile in the viewer when it is written",
	 FLAG(open_profile)},
	{"defer-symbols", 0, NULL, RECORDING, "leave the lookup of names to wallprof export",
	 FLAG(record.defer_symbols)},
	{"no-debuginfod", 0, NULL, ALL, "do not fetch debug information from servers",
	 set_no_debuginfod, 0},
	{"no-source", 0, NULL, RECORDING | EXPORT, "leave out the text of source files",
	 set_no_source, 0},
	{"no-args", 0, NULL, RECORDING, "do not record the argument lists of processes",
	 FLAG(record.no_args)},
	{"all-files", 0, NULL, RECORDING, "record the names of other programs' files, too",
	 FLAG(record.all_files)},
	{"by", 0, "ROOT", EXPORTING, "first frames of folded stacks and SVG: thread or process",
	 set_by, 0},
	{"cpu-graph", 0, NULL, EXPORTING, "show CPU use instead of thread states",
	 FLAG(export.cpu_graph)},
	{"budget", 0, "SHARE", RECORDING,
	 "limit the cost of recording to SHARE of the running\n"
	 "time, such as 2%: short waits have stacks by chance",
	 set_budget, 0},
	{"cost", 0, NULL, RECORDING, "print the cost of recording", FLAG(record.cost)},
	{"as-root", 0, NULL, RECORDING, "under sudo: run the command as root", FLAG(as_root)},
	{"json-summary", 0, "FILE", EXPORTING, "also write the report as JSON", set_json_summary,
	 0},
	{"from", 0, "TIME", READING, "leave out everything before this time of the window",
	 set_from, 0},
	{"to", 0, "TIME", READING, "leave out everything after this time of the window", set_to, 0},
	{"process", 0, "P[,P…]", READING, "only these processes: IDs, or names such as 'cc*'",
	 set_process_filter, 0},
	{"thread", 0, "T[,T…]", READING, "only these threads: IDs or names", set_thread_filter, 0},
	{"anonymize", 0, NULL, PROFILE | READING,
	 "replace names of files, hosts, arguments and users", FLAG(load.anonymize)},
	{"all-frames", 0, NULL, PROFILE | READING, "do not fold recursion in stacks",
	 FLAG(load.all_frames)},
	{"native-frames", 0, NULL, PROFILE | READING, "show the interpreter's own functions, too",
	 FLAG(load.native_frames)},
	{"state", 0, "S[,S…]", EXPORT, "only these: running, runnable, blocked, unknown",
	 set_states, 0},
	{"json", 0, NULL, REPORT, "print the report as JSON", FLAG(report.json)},
	{"function", 0, "NAME", REPORT, "report only the waits below this function", set_function,
	 0},
	{"critical-path", 0, "[TID]", REPORT,
	 "report only the critical path, or the path that ends\n"
	 "where thread TID ends",
	 set_critical_path, 0},
	{"section", 0, "NAME", REPORT, "print only this section of the report, in full",
	 set_section, 0},
	{"top", 0, "N", REPORT, "print at most N rows of each table", set_top, 0},
	{"full", 0, NULL, REPORT, "print all sections and all rows", FLAG(report.full)},
	{"timeline", 0, "TID", REPORT, "print what this thread did, a line for each event",
	 set_timeline, 0},
	{"limit", 0, "SIZE", REPORT, "with --json: print at most SIZE, such as 16K", set_limit, 0},
	{"no-pager", 0, NULL, REPORT, "do not start a pager", FLAG(report.no_pager)},
	{"viewer", 0, "URL|DIR", OPENING,
	 "use this viewer instead of profiler.firefox.com; a\n"
	 "folder is served as well",
	 set_viewer, 0},
	{"offline", 0, NULL, OPEN,
	 "use a viewer that is installed here, or else a page that\n"
	 "needs none",
	 FLAG(open.offline)},
	{"port", 0, "N[-M]", OPENING, "use the first free one of these (default 3000-3099)",
	 set_port, 0},
	{"idle-timeout", 0, "TIME", OPENING,
	 "exit after this time without a request (default 1h;\n"
	 "0: never)",
	 set_idle_timeout, 0},
	{"no-browser", 0, NULL, OPENING, "only print the URL", FLAG(open.no_browser)},
	{"unwind", 0, "PID|FILE", DOCTOR, "print how much of its code has unwind tables",
	 set_unwind, 0},
	{"help", 'h', NULL, ALL, NULL, set_help, 0},
	{"version", 0, NULL, ALL, NULL, set_version, 0},
	{"licenses", 0, NULL, ALL, "print the licences of wallprof and its libraries", set_licenses,
	 0},
};
const size_t option_count = ARRAY_LEN(option_table);

const OptionAlias option_aliases[] = {{"silence", "idle-timeout"}};
const size_t option_alias_count = ARRAY_LEN(option_aliases);

_Static_assert(ARRAY_LEN(option_table) + ARRAY_LEN(option_aliases) <= OPTIONS_MAX,
	       "getopt's table has no room");

const VerbInfo verb_table[] = {
	{"record", VERB_RECORD, "[OPTIONS] [-- COMMAND [ARG…]]",
	 "Records a command, processes or the system, and writes a capture."},
	{"export", VERB_EXPORT, "[OPTIONS] [CAPTURE|PROFILE]", "Makes a profile from a capture."},
	{"report", VERB_REPORT, "[OPTIONS] [CAPTURE|PROFILE]", "Prints where the time went."},
	{"open", VERB_OPEN, "[OPTIONS] [PROFILE|CAPTURE]", "Shows a profile in the viewer."},
	{"doctor", VERB_DOCTOR, "[OPTIONS]", "Checks what can be recorded here."},
};

const size_t verb_count = ARRAY_LEN(verb_table);

const VerbInfo *option_table_verb(enum verb verb)
{
	for (size_t i = 0; i < verb_count; i++)
		if (verb_table[i].verb == verb)
			return &verb_table[i];
	return NULL;
}
