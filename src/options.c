/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "options.h"
#include "unwind_memory.h"
#include "util.h"
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#define DEFAULT_PROFILE	  "wallprof.json.gz"
#define DEFAULT_TRACE	  "wallprof.trace.json.gz"
#define DEFAULT_CAPTURE	  "wallprof.capture"
#define DEFAULT_FREQUENCY 999
#define DEFAULT_RING_SIZE (16ULL << 20)
#define MIN_RING_SIZE	  4096
#define MAX_RING_SIZE	  (1ULL << 30)

#define SHORT_OPTIONS "+o:F:p:d:vqh" /* "+": the command's own options begin where it does */

enum long_option {
	OPTION_RING_SIZE = 256,
	OPTION_KERNEL_STACKS,
	OPTION_STACKS,
	OPTION_UNWIND_MEMORY,
	OPTION_KEEP_CAPTURE,
	OPTION_DEFER_SYMBOLS,
	OPTION_NO_DEBUGINFOD,
	OPTION_NO_SOURCE,
	OPTION_COST,
	OPTION_CPU_GRAPH,
	OPTION_JSON,
	OPTION_FUNCTION,
	OPTION_CRITICAL_PATH,
	OPTION_UNWIND,
	OPTION_AS_ROOT,
	OPTION_FORMAT,
	OPTION_FAULT_SOURCE,
	OPTION_FAULT_THRESHOLD,
	OPTION_WAKER_STACKS,
	OPTION_VERSION,
};

static const struct option long_options[] = {
	{"output", required_argument, NULL, 'o'},
	{"frequency", required_argument, NULL, 'F'},
	{"pid", required_argument, NULL, 'p'},
	{"duration", required_argument, NULL, 'd'},
	{"verbose", no_argument, NULL, 'v'},
	{"quiet", no_argument, NULL, 'q'},
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, OPTION_VERSION},
	{"ring-size", required_argument, NULL, OPTION_RING_SIZE},
	{"kernel-stacks", required_argument, NULL, OPTION_KERNEL_STACKS},
	{"stacks", required_argument, NULL, OPTION_STACKS},
	{"unwind-memory", required_argument, NULL, OPTION_UNWIND_MEMORY},
	{"keep-capture", no_argument, NULL, OPTION_KEEP_CAPTURE},
	{"defer-symbols", no_argument, NULL, OPTION_DEFER_SYMBOLS},
	{"no-debuginfod", no_argument, NULL, OPTION_NO_DEBUGINFOD},
	{"no-source", no_argument, NULL, OPTION_NO_SOURCE},
	{"cost", no_argument, NULL, OPTION_COST},
	{"cpu-graph", no_argument, NULL, OPTION_CPU_GRAPH},
	{"json", no_argument, NULL, OPTION_JSON},
	{"function", required_argument, NULL, OPTION_FUNCTION},
	{"critical-path", optional_argument, NULL, OPTION_CRITICAL_PATH},
	{"unwind", required_argument, NULL, OPTION_UNWIND},
	{"as-root", no_argument, NULL, OPTION_AS_ROOT},
	{"format", required_argument, NULL, OPTION_FORMAT},
	{"fault-source", required_argument, NULL, OPTION_FAULT_SOURCE},
	{"fault-threshold", required_argument, NULL, OPTION_FAULT_THRESHOLD},
	{"waker-stacks", required_argument, NULL, OPTION_WAKER_STACKS},
	{},
};

void options_print_help(void)
{
	fputs("wallprof: where did the wall-clock time go?\n"
	      "\n"
	      "  wallprof [OPTIONS] [--] COMMAND [ARG…]       record a command, write a profile\n"
	      "  wallprof [OPTIONS] -p PID[,PID…] [-d TIME]   record running processes\n"
	      "  wallprof record …                            only record: write a capture\n"
	      "  wallprof export [-o FILE] CAPTURE            make a profile from a capture\n"
	      "  wallprof report [--json] CAPTURE             print where the time went\n"
	      "  wallprof doctor                              what this kernel and user allow\n"
	      "  wallprof doctor --unwind PID|FILE            how much of its code has unwind "
	      "tables\n"
	      "\n"
	      "The profile (default wallprof.json.gz; .json is not compressed) opens at\n"
	      "https://profiler.firefox.com: drop the file there. One that ends in .trace.json\n"
	      "or .trace.json.gz is a Chrome trace, for Perfetto and chrome://tracing.\n"
	      "\n"
	      "  -o, --output FILE        where to write\n"
	      "      --format F           firefox or chrome, whatever the name of the file\n"
	      "  -F, --frequency HZ       CPU samples a second (default 999)\n"
	      "  -p, --pid PID[,PID…]     record these processes and their descendants\n"
	      "  -d, --duration TIME      stop after 10, 10s, 500ms, 2m\n"
	      "  -q, --quiet              only errors\n"
	      "  -v, --verbose            more\n"
	      "      --kernel-stacks W    all, blocked (default: not of preempted tasks), none\n"
	      "      --stacks W           user stacks: dwarf (default: by unwind tables),\n"
	      "                           fp (by frame pointers), none\n"
	      "      --fault-source W     how page faults are seen: auto (default), fentry,\n"
	      "                           events, off\n"
	      "      --fault-threshold T  record also those that took so long without a wait,\n"
	      "                           such as 20us (0: all)\n"
	      "      --waker-stacks T     stacks of who ends waits longer than T (default\n"
	      "                           100us; 0: of all), or off\n"
	      "      --unwind-memory SIZE for unwind tables, 8M to 512M (default 512M);\n"
	      "                           if full, unused tables are dropped\n"
	      "      --ring-size SIZE     of each of the three kernel buffers (default 16M)\n"
	      "      --keep-capture       keep FILE.capture beside the profile\n"
	      "      --defer-symbols      leave names to the export on this machine\n"
	      "      --no-debuginfod      fetch no debug information (DEBUGINFOD_URLS)\n"
	      "      --no-source          leave the text of source files out\n"
	      "      --cpu-graph          draw CPU use instead of thread states\n"
	      "      --cost               say what recording cost\n"
	      "      --as-root            under sudo: run the command as root all the same\n"
	      "      --json               report as JSON\n"
	      "      --function NAME      report only the waits below that function\n"
	      "      --critical-path[=TID] report only what set how long the run took, or\n"
	      "                           when that thread ended\n"
	      "  -h, --help\n"
	      "      --version\n",
	      stdout);
}

static int bad(const char *option, const char *value, const char *expected)
{
	log_error("%s '%s': %s", option, value, expected);
	return -EINVAL;
}

static int parse_pids(const char *text, Options *options)
{
	_cleanup_free_ char *copy = xstrdup(text);
	char *rest = copy;

	for (char *word; (word = strsep(&rest, ","));) {
		uint64_t pid;

		if (parse_u64(word, &pid) || pid == 0 || pid > INT32_MAX)
			return bad("--pid", text, "expected process numbers separated by commas");
		options->pids =
			xrealloc(options->pids, (options->pid_count + 1) * sizeof(*options->pids));
		options->pids[options->pid_count++] = pid;
	}
	return 0;
}

static int parse_tid(const char *text, Options *options)
{
	uint64_t tid;

	if (parse_u64(text, &tid) || tid == 0 || tid > INT32_MAX)
		return bad("--critical-path", text, "expected the number of a thread");
	options->critical_tid = tid;
	return 0;
}

static int parse_frequency(const char *text, Options *options)
{
	uint64_t frequency;

	if (parse_u64(text, &frequency) || frequency < 1 || frequency > 100000)
		return bad("--frequency", text, "expected 1 to 100000 samples a second");
	options->frequency = frequency;
	return 0;
}

/* The kernel wants a power of two; what the capture tells is what was used. */
static int parse_ring_size(const char *text, Options *options)
{
	uint64_t wanted, size = MIN_RING_SIZE;

	if (parse_size(text, &wanted) || wanted < MIN_RING_SIZE || wanted > MAX_RING_SIZE)
		return bad("--ring-size", text, "expected 4K to 1G, such as 16M");
	while (size < wanted)
		size *= 2;
	if (size != wanted)
		log_verbose("--ring-size %s is rounded up to %llu bytes", text,
			    (unsigned long long)size);
	options->ring_size = size;
	return 0;
}

static int parse_kernel_stacks(const char *text, Options *options)
{
	if (!strcmp(text, "all"))
		options->kernel_stacks = KERNEL_STACKS_ALL;
	else if (!strcmp(text, "blocked"))
		options->kernel_stacks = KERNEL_STACKS_BLOCKED;
	else if (!strcmp(text, "none"))
		options->kernel_stacks = KERNEL_STACKS_NONE;
	else
		return bad("--kernel-stacks", text, "expected all, blocked or none");
	return 0;
}

static int parse_fault_source(const char *text, Options *options)
{
	static const char *const sources[] = {
		[FAULT_SOURCE_OFF] = "off",
		[FAULT_SOURCE_FENTRY] = "fentry",
		[FAULT_SOURCE_EVENTS] = "events",
	};

	options->best_fault_source = !strcmp(text, "auto");
	if (options->best_fault_source)
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(sources); i++) {
		if (!strcmp(text, sources[i])) {
			options->fault_source = i;
			return 0;
		}
	}
	return bad("--fault-source", text, "expected auto, fentry, events or off");
}

static int parse_fault_threshold(const char *text, Options *options)
{
	if (!strcmp(text, "0"))
		options->fault_threshold_ns = 0;
	else if (parse_duration(text, &options->fault_threshold_ns))
		return bad("--fault-threshold", text, "expected a time such as 20us, or 0");
	return 0;
}

static int parse_waker_stacks(const char *text, Options *options)
{
	if (!strcmp(text, "off"))
		options->waker_threshold_ns = WAKER_THRESHOLD_NONE;
	else if (!strcmp(text, "0"))
		options->waker_threshold_ns = 0;
	else if (parse_duration(text, &options->waker_threshold_ns))
		return bad("--waker-stacks", text, "expected a time such as 100us, 0 or off");
	return 0;
}

static int parse_format(const char *text, Options *options)
{
	if (!strcmp(text, "firefox") || !strcmp(text, "gecko"))
		options->format = FORMAT_FIREFOX;
	else if (!strcmp(text, "chrome"))
		options->format = FORMAT_CHROME;
	else
		return bad("--format", text, "expected firefox (also called gecko) or chrome");
	return 0;
}

static int parse_user_stacks(const char *text, Options *options)
{
	if (!strcmp(text, "dwarf"))
		options->user_stacks = USER_STACKS_TABLES;
	else if (!strcmp(text, "fp"))
		options->user_stacks = USER_STACKS_FRAME_POINTERS;
	else if (!strcmp(text, "none"))
		options->user_stacks = USER_STACKS_NONE;
	else
		return bad("--stacks", text, "expected dwarf, fp or none");
	return 0;
}

/* In whole chunks, of which no more are taken than the size allows. */
static int parse_unwind_memory(const char *text, Options *options)
{
	uint64_t size;

	if (parse_size(text, &size) || size < UNWIND_MEMORY_MIN || size > UNWIND_MEMORY_MAX)
		return bad("--unwind-memory", text, "expected 8M to 512M, such as 64M");
	options->unwind_memory = size - size % UNWIND_MEMORY_MIN;
	if (options->unwind_memory != size)
		log_verbose("--unwind-memory %s is rounded down to %llu bytes", text,
			    (unsigned long long)options->unwind_memory);
	return 0;
}

static int parse_option(int option, Options *options)
{
	switch (option) {
	case 'o':
		options->output = optarg;
		return *optarg ? 0 : bad("--output", optarg, "expected a file");
	case 'F':
		return parse_frequency(optarg, options);
	case 'p':
		return parse_pids(optarg, options);
	case 'd':
		if (parse_duration(optarg, &options->duration_ns) || !options->duration_ns)
			return bad("--duration", optarg,
				   "expected a time such as 10, 10s or 500ms");
		return 0;
	case 'v':
		log_level = LOG_VERBOSE;
		return 0;
	case 'q':
		log_level = LOG_QUIET;
		return 0;
	case 'h':
		options->verb = VERB_HELP;
		return 0;
	case OPTION_VERSION:
		options->verb = VERB_VERSION;
		return 0;
	case OPTION_RING_SIZE:
		return parse_ring_size(optarg, options);
	case OPTION_KERNEL_STACKS:
		return parse_kernel_stacks(optarg, options);
	case OPTION_FAULT_SOURCE:
		return parse_fault_source(optarg, options);
	case OPTION_FAULT_THRESHOLD:
		return parse_fault_threshold(optarg, options);
	case OPTION_WAKER_STACKS:
		return parse_waker_stacks(optarg, options);
	case OPTION_STACKS:
		return parse_user_stacks(optarg, options);
	case OPTION_UNWIND_MEMORY:
		return parse_unwind_memory(optarg, options);
	case OPTION_KEEP_CAPTURE:
		options->keep_capture = true;
		return 0;
	case OPTION_DEFER_SYMBOLS:
		options->defer_symbols = true;
		return 0;
	case OPTION_NO_DEBUGINFOD:
		options->no_debuginfod = true;
		return 0;
	case OPTION_NO_SOURCE:
		options->no_source = true;
		return 0;
	case OPTION_COST:
		options->cost = true;
		return 0;
	case OPTION_CPU_GRAPH:
		options->cpu_graph = true;
		return 0;
	case OPTION_UNWIND:
		options->unwind = optarg;
		return 0;
	case OPTION_JSON:
		options->json = true;
		return 0;
	case OPTION_FUNCTION:
		options->function = optarg;
		return 0;
	case OPTION_CRITICAL_PATH:
		options->critical_path = true;
		return optarg ? parse_tid(optarg, options) : 0;
	case OPTION_AS_ROOT:
		options->as_root = true;
		return 0;
	case OPTION_FORMAT:
		return parse_format(optarg, options);
	}
	/* getopt has said what is wrong. */
	return -EINVAL;
}

#define VERB_BIT(verb)	(1U << (verb))
#define VERBS_RECORDING (VERB_BIT(VERB_PROFILE) | VERB_BIT(VERB_RECORD))
#define VERBS_EXPORTING (VERB_BIT(VERB_PROFILE) | VERB_BIT(VERB_EXPORT))
#define VERBS_ALL	UINT32_MAX

static const struct {
	const char *word;
	enum verb verb;
} verbs[] = {
	{"record", VERB_RECORD},
	{"export", VERB_EXPORT},
	{"report", VERB_REPORT},
	{"doctor", VERB_DOCTOR},
};

/* Which verbs an option is for. */
static uint32_t verbs_of_option(int option)
{
	switch (option) {
	case 'o':
	case OPTION_NO_SOURCE:
		return VERBS_RECORDING | VERBS_EXPORTING;
	case 'F':
	case 'p':
	case 'd':
	case OPTION_RING_SIZE:
	case OPTION_KERNEL_STACKS:
	case OPTION_STACKS:
	case OPTION_UNWIND_MEMORY:
	case OPTION_DEFER_SYMBOLS:
	case OPTION_COST:
	case OPTION_AS_ROOT:
		return VERBS_RECORDING;
	case OPTION_KEEP_CAPTURE:
		return VERB_BIT(VERB_PROFILE);
	case OPTION_CPU_GRAPH:
	case OPTION_FORMAT:
		return VERBS_EXPORTING;
	case OPTION_JSON:
	case OPTION_FUNCTION:
	case OPTION_CRITICAL_PATH:
		return VERB_BIT(VERB_REPORT);
	case OPTION_UNWIND:
		return VERB_BIT(VERB_DOCTOR);
	}
	return VERBS_ALL;
}

static int check_option(int option, enum verb verb)
{
	const struct option *entry = long_options;

	if (verb == VERB_HELP || verb == VERB_VERSION || verbs_of_option(option) & VERB_BIT(verb))
		return 0;
	while (entry->val != option)
		entry++;
	for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
		if (verbs[i].verb == verb)
			log_error("--%s has no meaning for %s", entry->name, verbs[i].word);
	if (verb == VERB_PROFILE)
		log_error("--%s belongs to wallprof %s", entry->name,
			  option == OPTION_UNWIND ? "doctor" : "report");
	return -EINVAL;
}

/*
 * The first operand, unless "--" stands before it, may be a verb; the options go on
 * behind it.
 */
static bool take_verb(int argc, char **argv, Options *options)
{
	if (optind >= argc || (optind > 1 && !strcmp(argv[optind - 1], "--")))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(verbs); i++) {
		if (strcmp(argv[optind], verbs[i].word))
			continue;
		options->verb = verbs[i].verb;
		optind++;
		return true;
	}
	return false;
}

static bool ends_with(const char *text, const char *suffix)
{
	size_t length = strlen(text), suffix_length = strlen(suffix);

	return length > suffix_length && !strcmp(text + length - suffix_length, suffix);
}

static const char *default_output(const Options *options)
{
	if (options->verb == VERB_RECORD)
		return DEFAULT_CAPTURE;
	return options->format == FORMAT_CHROME ? DEFAULT_TRACE : DEFAULT_PROFILE;
}

/* The suffix chooses compression and format, so one that means nothing is a mistake. */
static int choose_format(Options *options)
{
	bool trace = ends_with(options->output, ".trace.json") ||
		     ends_with(options->output, ".trace.json.gz");

	if (!(VERBS_EXPORTING & VERB_BIT(options->verb)))
		return 0;
	if (!ends_with(options->output, ".json") && !ends_with(options->output, ".json.gz"))
		return bad("--output", options->output,
			   "a profile's name ends in .json or .json.gz");
	if (options->format == FORMAT_BY_NAME)
		options->format = trace ? FORMAT_CHROME : FORMAT_FIREFOX;
	if (options->format == FORMAT_CHROME && options->cpu_graph) {
		log_error("--cpu-graph has no meaning for a Chrome trace");
		return -EINVAL;
	}
	return 0;
}

static int check_recording_options(const Options *options)
{
	if (options->command && options->pid_count) {
		log_error("give a command or --pid, not both");
		return -EINVAL;
	}
	if (!options->command && !options->pid_count) {
		log_error("nothing to record: give a command (wallprof -- COMMAND) or --pid PID; "
			  "wallprof --help tells more");
		return -EINVAL;
	}
	return 0;
}

/* What is left of the command line after the options belongs to the verb. */
static int take_operands(int count, char **operands, Options *options)
{
	switch (options->verb) {
	case VERB_PROFILE:
	case VERB_RECORD:
		if (count)
			options->command = operands;
		return check_recording_options(options);
	case VERB_EXPORT:
	case VERB_REPORT:
		if (!options->input || count) {
			log_error("expected one capture, got %d", !!options->input + count);
			return -EINVAL;
		}
		return 0;
	case VERB_DOCTOR:
		if (count) {
			log_error("doctor takes no operands, got '%s'", operands[0]);
			return -EINVAL;
		}
		return 0;
	case VERB_HELP:
	case VERB_VERSION:
		return 0;
	}
	return -EINVAL;
}

typedef VEC(int) Seen;

/* Options up to the next operand. */
static int parse_options(int argc, char **argv, Options *options, Seen *seen)
{
	int option, error;

	while ((option = getopt_long(argc, argv, SHORT_OPTIONS, long_options, NULL)) != -1) {
		error = parse_option(option, options);
		if (error)
			return error;
		*vec_push(seen) = option;
	}
	return 0;
}

static int parse_line(int argc, char **argv, Options *options, Seen *seen)
{
	int error = parse_options(argc, argv, options, seen);

	if (!error && options->verb == VERB_PROFILE && take_verb(argc, argv, options))
		error = parse_options(argc, argv, options, seen);
	/* export and report take options behind their capture, too. */
	if (!error && (options->verb == VERB_EXPORT || options->verb == VERB_REPORT) &&
	    optind < argc) {
		options->input = argv[optind++];
		error = parse_options(argc, argv, options, seen);
	}
	for (size_t i = 0; i < seen->count && !error; i++)
		error = check_option(seen->items[i], options->verb);
	return error;
}

int options_parse(int argc, char **argv, Options *ret_options)
{
	Options *options = ret_options;
	Seen seen = {};
	int error;

	*options = (Options){
		.verb = VERB_PROFILE,
		.frequency = DEFAULT_FREQUENCY,
		.ring_size = DEFAULT_RING_SIZE,
		.kernel_stacks = KERNEL_STACKS_BLOCKED,
		.best_fault_source = true,
		.fault_threshold_ns = FAULT_THRESHOLD_NONE,
		.waker_threshold_ns = 100 * NSEC_PER_USEC,
		.user_stacks = USER_STACKS_TABLES,
		.unwind_memory = UNWIND_MEMORY_MAX,
	};
	error = parse_line(argc, argv, options, &seen);
	vec_free(&seen);
	if (error)
		return error;
	if (!options->output)
		options->output = default_output(options);
	error = choose_format(options);
	return error ? error : take_operands(argc - optind, argv + optind, options);
}
