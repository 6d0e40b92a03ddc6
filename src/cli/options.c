/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "options.h"
#include "compressor.h"
#include "option_table.h"
#include "suggestion.h"
#include "table_memory.h"
#include "tick_rate.h"
#include "util.h"
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#define DEFAULT_CAPTURE "wallprof.capture"

#define ENVIRONMENT	"WALLPROF_OPTIONS"
#define OPTION_FIRST	256 /* what getopt_long() returns for option_table[0] */
#define CAPTURE_LEVEL	1
#define FIRST_PORT	3000
#define LAST_PORT	3099
#define IDLE_TIMEOUT_NS (3600 * NSEC_PER_SEC)
#define VERBS_EXPORTS	(VERB_BIT(VERB_PROFILE) | VERB_BIT(VERB_EXPORT))
#define VERBS_WITH_FILE (VERB_BIT(VERB_EXPORT) | VERB_BIT(VERB_REPORT) | VERB_BIT(VERB_OPEN))

/* ---- reading ------------------------------------------------------------------- */

/*
 * An option of the command line or of WALLPROF_OPTIONS. All options are read before the first is
 * set, because what an option may be depends on the command.
 */
typedef struct GivenOption {
	const OptionInfo *info;
	const char *value; /* NULL if it has none */
} GivenOption;

typedef VEC(GivenOption) GivenOptions;

/* The tables that getopt_long() takes. */
typedef struct Getopt {
	struct option longs[OPTIONS_MAX + 1];
	char shorts[2 * OPTIONS_MAX + 3];
} Getopt;

static int has_argument(const OptionInfo *info)
{
	if (!info->argument)
		return no_argument;
	return *info->argument == '[' ? optional_argument : required_argument;
}

static void add_aliases(struct option *end)
{
	for (size_t i = 0; i < option_alias_count; i++, end++) {
		size_t target = 0;

		while (strcmp(option_table[target].name, option_aliases[i].name) != 0)
			target++;
		*end = (struct option){
			.name = option_aliases[i].old_name,
			.has_arg = has_argument(&option_table[target]),
			.val = OPTION_FIRST + target,
		};
	}
}

static Getopt make_getopt(void)
{
	Getopt table = {/* "+": getopt stops at the command; what follows are its options. ":": a
			 * missing value is another error. */
			.shorts = "+:"};
	char *end = table.shorts + 2;

	for (size_t i = 0; i < option_count && i < OPTIONS_MAX; i++) {
		const OptionInfo *info = &option_table[i];

		table.longs[i] = (struct option){
			.name = info->name,
			.has_arg = has_argument(info),
			.val = OPTION_FIRST + i,
		};
		if (!info->letter)
			continue;
		*end++ = info->letter;
		if (info->argument)
			*end++ = ':';
	}
	add_aliases(table.longs + option_count);
	return table;
}

static const OptionInfo *info_of(int option)
{
	if (option >= OPTION_FIRST)
		return &option_table[option - OPTION_FIRST];
	for (size_t i = 0; i < option_count; i++)
		if (option_table[i].letter == option)
			return &option_table[i];
	return NULL; /* it is one of getopt's two errors */
}

/* Returns the option that is close to the word and only that, without its "--". */
static const char *option_close_to(const char *word)
{
	for (size_t i = 0; i < option_count; i++)
		if (suggestion_is_close(word, option_table[i].name))
			return option_table[i].name;
	return NULL;
}

static size_t count_options(const char *prefix)
{
	size_t count = 0;

	for (size_t i = 0; i < option_count; i++)
		count += !strncmp(option_table[i].name, prefix, strlen(prefix));
	return count;
}

/* Logs what getopt_long() does not accept. */
static void report_option(const char *word, bool value_missing)
{
	_cleanup_free_ char *name = xstrndup(word, strcspn(word, "="));
	const char *close = strncmp(word, "--", 2) ? NULL : option_close_to(name + 2);

	if (value_missing)
		log_error("option '%s' needs a value", word);
	else if (optopt >= OPTION_FIRST)
		log_error("option '%s' takes no value", name);
	else if (optopt)
		log_error("unknown option '-%c'; wallprof --help lists all options", optopt);
	else if (count_options(name + 2) > 1)
		log_error("option '%s' is ambiguous; wallprof --help lists all options", name);
	else if (close)
		log_error("unknown option '%s'; did you mean --%s?", name, close);
	else
		log_error("unknown option '%s'; wallprof --help lists all options", name);
}

/* Reads the options up to the next operand. */
static int read_options(int argc, char **argv, GivenOptions *given)
{
	Getopt table = make_getopt();
	int option;

	opterr = 0;
	while ((option = getopt_long(argc, argv, table.shorts, table.longs, NULL)) != -1) {
		const OptionInfo *info = info_of(option);

		if (!info) {
			report_option(argv[optind - 1], option == ':');
			return -EINVAL;
		}
		*vec_push(given) = (GivenOption){info, optarg};
	}
	return 0;
}

static int set_option(const GivenOption *given, Options *options)
{
	if (given->info->set)
		return given->info->set(given->value, options);
	*(bool *)((char *)options + given->info->flag) = true;
	return 0;
}

static int check_option(const OptionInfo *info, enum verb verb)
{
	if (info->verbs & VERB_BIT(verb))
		return 0;
	for (size_t i = 0; i < verb_count; i++)
		if (verb_table[i].verb == verb)
			log_error("--%s cannot be used with wallprof %s", info->name,
				  verb_table[i].word);
	for (size_t i = 0; i < verb_count && verb == VERB_PROFILE; i++)
		if (info->verbs & VERB_BIT(verb_table[i].verb))
			log_error("--%s can only be used with wallprof %s", info->name,
				  verb_table[i].word);
	return -EINVAL;
}

/* These options print something about wallprof and do nothing else. */
static bool is_info_option(const OptionInfo *info)
{
	static const char *const names[] = {"help", "version", "licenses"};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (!strcmp(info->name, names[i]))
			return true;
	return false;
}

static bool has_info_option(const GivenOptions *given)
{
	for (size_t i = 0; i < given->count; i++)
		if (is_info_option(given->items[i].info))
			return true;
	return false;
}

/* ---- the environment ----------------------------------------------------------- */

/*
 * Cuts off the next word in place. Quotes protect blanks, and a backslash protects the character
 * after it. Returns 1, 0 if there is no word, or -EINVAL if a quote is not closed.
 */
static int next_word(char **rest, char **ret_word)
{
	char *from = *rest, *to, quote = '\0';

	while (isspace((unsigned char)*from))
		from++;
	if (!*from)
		return 0;
	for (*ret_word = to = from; *from && (quote || !isspace((unsigned char)*from)); from++) {
		if (quote ? *from == quote : *from == '"' || *from == '\'')
			quote = quote ? '\0' : *from;
		else if (*from == '\\' && quote != '\'' && from[1])
			*to++ = *++from;
		else
			*to++ = *from;
	}
	*rest = *from ? from + 1 : from;
	*to = '\0';
	return quote ? -EINVAL : 1;
}

/* These options start an action or select targets, so they must not apply to every call. */
static int check_env_option(const OptionInfo *info)
{
	static const char *const names[] = {"pid", "tid", "all", "cgroup", "unwind"};
	bool line_only = is_info_option(info);

	for (size_t i = 0; i < ARRAY_LEN(names) && !line_only; i++)
		line_only = !strcmp(info->name, names[i]);
	if (!line_only)
		return 0;
	log_error("--%s is allowed on the command line only", info->name);
	return -EINVAL;
}

typedef VEC(char *) Words;

static int split(char *text, Words *words)
{
	char *word;
	int found;

	while ((found = next_word(&text, &word)) > 0)
		*vec_push(words) = word;
	if (found < 0)
		log_error("unclosed quote: %s", word);
	*vec_push(words) = NULL;
	return found;
}

/* The options refer to the words, so the caller never frees them. */
static int read_words(const Words *words, GivenOptions *given)
{
	int error, end_of_line = optind;
	const char *unread;

	optind = 0; /* getopt starts a new argument list */
	error = read_options(words->count - 1, words->items, given);
	unread = words->items[optind];
	optind = end_of_line;
	if (error)
		return error;
	if (unread) {
		log_error("unexpected argument '%s'", unread);
		return -EINVAL;
	}
	for (size_t i = 0; i < given->count; i++) {
		error = check_env_option(given->items[i].info);
		if (error)
			return error;
	}
	return 0;
}

/*
 * Options that the command does not accept are ignored: they are meant for another command.
 * --output names a profile, so it does not apply to the capture of `record`.
 */
static int set_env_options(const GivenOptions *given, Options *options)
{
	for (size_t i = 0; i < given->count; i++) {
		const OptionInfo *info = given->items[i].info;
		bool given_path = options->verb == VERB_RECORD && info->letter == 'o';
		int error = info->verbs & VERB_BIT(options->verb) && !given_path
				    ? set_option(&given->items[i], options)
				    : 0;

		if (error)
			return error;
	}
	return 0;
}

static void free_words(Words *words)
{
	vec_free(words);
}

static void free_given(GivenOptions *given)
{
	vec_free(given);
}

static int apply_text(const char *text, Options *options)
{
	static char name[] = "wallprof"; /* getopt skips it */
	_cleanup_(free_given) GivenOptions given = {};
	_cleanup_(free_words) Words words = {};
	int error;

	*vec_push(&words) = name;
	error = split(xstrdup(text), &words);
	if (error)
		return error;
	error = read_words(&words, &given);
	return error ? error : set_env_options(&given, options);
}

/*
 * Sets the options in WALLPROF_OPTIONS. The caller sets those of the command line afterwards, so
 * that they override these.
 */
static int apply_environment(Options *options)
{
	const char *text = getenv(ENVIRONMENT);
	int error;

	if (!text)
		return 0;
	log_about(ENVIRONMENT);
	error = apply_text(text, options);
	log_about(NULL);
	return error;
}

/* ---- the line ------------------------------------------------------------------ */

/* `wallprof help` and `wallprof help COMMAND` are --help and COMMAND --help. */
static bool parse_help(int argc, char **argv, Options *options)
{
	const char *of = optind + 1 < argc ? argv[optind + 1] : NULL;

	if (strcmp(argv[optind], "help") != 0 || optind + 2 < argc)
		return false;
	for (size_t i = 0; i < verb_count && of; i++)
		if (!strcmp(of, verb_table[i].word))
			options->help_verb = verb_table[i].verb;
	if (of && options->help_verb == VERB_PROFILE)
		return false;
	options->verb = VERB_HELP;
	optind = argc;
	return true;
}

const char *options_verb_close_to(const char *word)
{
	for (size_t i = 0; i < verb_count; i++)
		if (suggestion_is_close(word, verb_table[i].word))
			return verb_table[i].word;
	return NULL;
}

/* The first operand may be a command of wallprof, unless "--" precedes it; its options follow. */
static bool parse_verb(int argc, char **argv, Options *options)
{
	if (optind >= argc || (optind > 1 && !strcmp(argv[optind - 1], "--")))
		return false;
	for (size_t i = 0; i < verb_count; i++) {
		if (strcmp(argv[optind], verb_table[i].word))
			continue;
		options->verb = verb_table[i].verb;
		optind++;
		return true;
	}
	return parse_help(argc, argv, options);
}

bool options_to_stdout(const Options *options)
{
	return options->verb == VERB_EXPORT && !strcmp(options->output, "-");
}

static const char *default_output(const Options *options)
{
	if (options->verb == VERB_RECORD)
		return DEFAULT_CAPTURE;
	return formats_info(options->export.format)->default_output;
}

static bool is_given(const GivenOptions *given, const char *name)
{
	for (size_t i = 0; i < given->count; i++)
		if (!strcmp(given->items[i].info->name, name))
			return true;
	return false;
}

/* Returns whether --by applies to the format. */
static bool has_root_frames(enum format format)
{
	return format == FORMAT_FOLDED || format == FORMAT_SVG;
}

/* Ignores options of WALLPROF_OPTIONS that conflict with the command line. */
static void ignore_env_conflicts(Options *options, const GivenOptions *line)
{
	const char *summary = options->export.json_summary;
	bool gzip = compressor_packing(options->output) == PACKING_GZIP ||
		    (summary && compressor_packing(summary) == PACKING_GZIP);

	if (options->export.format != FORMAT_FIREFOX && !is_given(line, "cpu-graph"))
		options->export.cpu_graph = false;
	if (!formats_for_viewer(options->export.format) && !is_given(line, "open"))
		options->open_profile = false;
	if (!has_root_frames(options->export.format) && !is_given(line, "by"))
		options->export.root = STACK_TREE_BY_THREAD;
	if (gzip && options->export.compression > COMPRESSOR_GZIP_LEVEL_MAX &&
	    !is_given(line, "compression"))
		options->export.compression = 0;
	if (options->record.tid_count && !is_given(line, "kthreads"))
		options->record.kernel_threads = false;
}

/* Without --format, the suffix of the output chooses the format, so another suffix is an error. */
static int choose_format(Options *options)
{
	const FormatInfo *info = formats_by_name(options->output);

	if (options->export.format != FORMAT_BY_NAME)
		return 0;
	if (!info && !options_to_stdout(options)) {
		log_error("--output '%s': expected a name that ends in .json, .json.gz or another "
			  "suffix of a profile (wallprof help export); or give --format",
			  options->output);
		return -EINVAL;
	}
	options->export.format = info ? info->format : format_table[0].format;
	return 0;
}

static int check_level(const Options *options, const char *path)
{
	if (!path || compressor_packing(path) != PACKING_GZIP ||
	    options->export.compression <= COMPRESSOR_GZIP_LEVEL_MAX)
		return 0;
	log_error("--compression %d: expected 1 to %d for %s, which is compressed by gzip",
		  options->export.compression, COMPRESSOR_GZIP_LEVEL_MAX, path);
	return -EINVAL;
}

static int check_format(const Options *options)
{
	int error = check_level(options, options->output);

	if (error)
		return error;
	error = check_level(options, options->export.json_summary);
	if (error)
		return error;
	if (options->export.format != FORMAT_FIREFOX && options->export.cpu_graph) {
		log_error("--cpu-graph cannot be combined with %s",
			  formats_info(options->export.format)->title);
		return -EINVAL;
	}
	if (options->open_profile && !formats_for_viewer(options->export.format)) {
		log_error("--open cannot be combined with %s",
			  formats_info(options->export.format)->title);
		return -EINVAL;
	}
	if (!has_root_frames(options->export.format) &&
	    options->export.root != STACK_TREE_BY_THREAD) {
		log_error("--by cannot be combined with %s",
			  formats_info(options->export.format)->title);
		return -EINVAL;
	}
	return 0;
}

static int finalize_output(Options *options, const GivenOptions *line)
{
	bool exports = VERBS_EXPORTS & VERB_BIT(options->verb);
	int error;

	if (!options->output)
		options->output = default_output(options);
	else if (!is_given(line, "output"))
		log_about(ENVIRONMENT);
	error = exports ? choose_format(options) : 0;
	log_about(NULL);
	if (error)
		return error;
	ignore_env_conflicts(options, line);
	return exports ? check_format(options) : 0;
}

static int check_range(const Options *options)
{
	if (!options->load.to_ns || options->load.to_ns > options->load.from_ns)
		return 0;
	log_error("--from must be before --to");
	return -EINVAL;
}

/* Each of these replaces the page, so only one can be given. */
static int check_report_options(const ReportOptions *options)
{
	const struct {
		const char *name;
		bool given;
	} forms[] = {{"function", options->function},
		     {"critical-path", options->critical_path},
		     {"section", options->section},
		     {"full", options->full},
		     {"timeline", options->timeline_tid}};
	const char *first = NULL;

	for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
		if (forms[i].given && first) {
			log_error("--%s and --%s are mutually exclusive", first, forms[i].name);
			return -EINVAL;
		}
		if (forms[i].given)
			first = forms[i].name;
	}
	if (options->limit && !options->json) {
		log_error("--limit can only be used with --json");
		return -EINVAL;
	}
	return 0;
}

static int check_recording_options(const Options *options)
{
	int ways = !!options->record.pid_count + !!options->record.tid_count +
		   !!options->record.cgroup + options->record.whole_system;

	if (ways > 1) {
		log_error("--pid, --tid, --cgroup and --all are mutually exclusive");
		return -EINVAL;
	}
	if (options->record.tid_count && options->record.kernel_threads) {
		log_error("--kthreads cannot be combined with --tid");
		return -EINVAL;
	}
	/* With --all, the command only says how long the system is recorded. */
	if (options->record.command && ways && !options->record.whole_system) {
		log_error("--%s cannot be combined with a command",
			  options->record.pid_count   ? "pid"
			  : options->record.tid_count ? "tid"
						      : "cgroup");
		return -EINVAL;
	}
	if (!options->record.command && !ways) {
		log_error("nothing to record; give a command (wallprof -- COMMAND), --pid PID or "
			  "--all (wallprof --help lists all options)");
		return -EINVAL;
	}
	return 0;
}

static int parse_operands(int count, char **operands, Options *options)
{
	switch (options->verb) {
	case VERB_PROFILE:
	case VERB_RECORD:
		if (count)
			options->record.command = operands;
		return check_recording_options(options);
	case VERB_EXPORT:
	case VERB_REPORT:
	case VERB_OPEN:
		if (count) {
			log_error("expected one %s, got %d; usage: wallprof %s %s",
				  options->verb == VERB_OPEN ? "profile" : "capture", 1 + count,
				  option_table_verb(options->verb)->word,
				  option_table_verb(options->verb)->usage);
			return -EINVAL;
		}
		return check_range(options) ? -EINVAL : check_report_options(&options->report);
	case VERB_DOCTOR:
		if (count) {
			log_error("unexpected argument '%s'", operands[0]);
			return -EINVAL;
		}
		return 0;
	case VERB_HELP:
	case VERB_VERSION:
	case VERB_LICENSES:
		return 0;
	}
	return -EINVAL;
}

static int read_line(int argc, char **argv, Options *options, GivenOptions *given)
{
	int error = read_options(argc, argv, given);

	if (error)
		return error;
	if (!has_info_option(given) && parse_verb(argc, argv, options)) {
		error = read_options(argc, argv, given);
		if (error)
			return error;
	}
	/* These commands also accept options after the file. */
	if (!(VERBS_WITH_FILE & VERB_BIT(options->verb)) || optind >= argc)
		return 0;
	options->input = argv[optind++];
	return read_options(argc, argv, given);
}

static int set_line_options(const GivenOptions *given, Options *options)
{
	bool over = has_info_option(given);
	int error;

	for (size_t i = 0; i < given->count && !over; i++) {
		error = check_option(given->items[i].info, options->verb);
		if (error)
			return error;
	}
	for (size_t i = 0; i < given->count; i++) {
		error = set_option(&given->items[i], options);
		if (error)
			return error;
	}
	return 0;
}

static int parse(int argc, char **argv, Options *options)
{
	_cleanup_(free_given) GivenOptions line = {};
	int error = read_line(argc, argv, options, &line);

	if (error)
		return error;
	error = has_info_option(&line) ? 0 : apply_environment(options);
	if (error)
		return error;
	error = set_line_options(&line, options);
	return error ? error : finalize_output(options, &line);
}

int options_parse(int argc, char **argv, Options *ret_options)
{
	Options *options = ret_options;
	int error;

	*options = (Options){
		.verb = VERB_PROFILE,
		.record = {.frequency = TICK_RATE_FIRST,
			   .adapt_frequency = true,
			   .kernel_stacks = KERNEL_STACKS_BLOCKED,
			   .best_fault_source = true,
			   .fault_threshold_ns = FAULT_THRESHOLD_NONE,
			   .waker_threshold_ns = 100 * NSEC_PER_USEC,
			   .user_stacks = USER_STACKS_TABLES,
			   .unwind_memory = TABLE_MEMORY_MAX,
			   .capture_compression = CAPTURE_LEVEL,
			   .capture_threads = 1},
		.open = {.first_port = FIRST_PORT,
			 .last_port = LAST_PORT,
			 .idle_timeout_ns = IDLE_TIMEOUT_NS},
	};
	error = parse(argc, argv, options);
	return error ? error : parse_operands(argc - optind, argv + optind, options);
}
