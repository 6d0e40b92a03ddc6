/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "hints.h"
#include "script_language.h"
#include <string.h>

#define WAITS_MOST 100000 /* shorter ones are not looked at: they are less than 1 / this */

enum cause {
	CAUSE_NONE,
	CAUSE_PYTHON, /* Python's functions are not on the stack, only its interpreter's */
	CAUSE_NODE,
	CAUSE_JAVA,
	CAUSE_JIT,     /* other code made at run time */
	CAUSE_CUT,     /* stacks end in code made at run time */
	CAUSE_SYMBOLS, /* a program or library has no symbols */
	CAUSES
};

/* The time of one cause in one subject: a program, or a library. */
typedef struct Nameless {
	enum cause cause;
	uint32_t subject; /* Hints::subjects */
	double ns;
	bool old_python;  /* it cannot name its functions: older than 3.12 */
	bool from_system; /* the file is one of the distribution's */
	bool others;	  /* ns is also that of others, of the same remedy */
} Nameless;

typedef struct Hints {
	const Timeline *timeline;
	Frames *frames;
	Strings subjects;
	VEC(Nameless) found;
	Map index; /* process and stack -> found.items[i - 1]; 0: nothing to say */
	double total_ns;
} Hints;

/* ---- one stack ------------------------------------------------------------------- */

static const char *base_name(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	return slash ? slash + 1 : path;
}

static const char *file_of_program(const Process *process)
{
	const char *name = base_name(process->path);

	return name && *name ? name : process->name;
}

static bool begins_with(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

/* Debug information of such files is on the servers of distributions. */
static bool is_of_distribution(const Library *library)
{
	static const char *const folders[] = {"/usr/bin/", "/usr/sbin/",    "/usr/lib", "/lib",
					      "/bin/",	   "/usr/libexec/", "/sbin/"};

	for (size_t i = 0; i < ARRAY_LEN(folders) && library->build_id_len; i++)
		if (begins_with(library->path, folders[i]))
			return true;
	return false;
}

/* Such code lies in memory without a file, "[anon]", or in one without a name in any folder. */
static bool is_code_made_at_run_time(const Frame *frame, const Library *library)
{
	if (frame->kernel || frame->address == UINT64_MAX)
		return false;
	return !library || (*library->name == '[' && strcmp(library->name, "[vdso]") != 0) ||
	       begins_with(library->name, "memfd:");
}

/* What the frames of a stack have no names for. */
typedef struct Seen {
	size_t frames;		/* of the program */
	size_t unnamed;		/* of these, in files */
	size_t unnamed_jit;	/* of these, in code made at run time */
	const Library *library; /* of the innermost unnamed one */
	const Library *python;	/* the interpreter of Python */
	bool python_names;	/* by trampolines of -X perf, or as script frames */
} Seen;

static Seen look_at(Hints *hints, const uint32_t *list, size_t count)
{
	Seen seen = {};

	for (size_t i = 0; i < count; i++) {
		const Frame *frame = &hints->frames->list.items[list[i]];
		const char *name = strings_get(&hints->frames->strings, frame->function);
		const Library *library = frame->lib == LIBRARY_NONE
						 ? NULL
						 : &hints->frames->libraries.items[frame->lib];

		bool made = is_code_made_at_run_time(frame, library);

		if (frame->kernel || (!library && !made))
			continue;
		seen.frames++;
		seen.python_names |= begins_with(name, "py::") || frame->script;
		if (made) {
			seen.unnamed_jit += !frame->named;
			continue;
		}
		if (begins_with(library->name, "python") || begins_with(library->name, "libpython"))
			seen.python = library;
		if (!frame->named || frame->nameless) {
			seen.unnamed++;
			seen.library = library;
		}
	}
	return seen;
}

/* Python 3.12 is the first that can. The interpreter is in "python3.11" or "libpython3.11.so.1.0".
 */
static bool is_old_python(const char *library)
{
	const char *version = strstr(library, "python3.");

	return version && strtol(version + strlen("python3."), NULL, 10) < 12;
}

/* What makes a run-time system keep frame pointers in the code that it makes, or make none. */
static const struct {
	const char *program; /* the beginning of its name */
	const char *remedy;
} frame_pointers[] = {
	{"beam.smp", "start Erlang with +JPperf true"},
	{"java", "record java -XX:+PreserveFramePointer"},
	{"luajit", "record luajit -joff"},
	{"php", "record php -d opcache.jit=disable"},
	{"ruby", "record ruby --yjit-perf (Ruby 3.3 or later)"},
};

static const char *frame_pointer_remedy(const char *program)
{
	for (size_t i = 0; i < ARRAY_LEN(frame_pointers); i++)
		if (begins_with(program, frame_pointers[i].program))
			return frame_pointers[i].remedy;
	return "let it keep frame pointers there, or make no code";
}

static bool is_cut(const StackEnd *end)
{
	return end->reason == STACK_NO_CFI && (end->code == CODE_MADE || end->code == CODE_NOWHERE);
}

static enum cause cause_of(const Seen *seen, const char *program)
{
	if (begins_with(program, "python") && seen->python && !seen->python_names &&
	    !script_python.is_read(seen->python->name))
		return CAUSE_PYTHON;
	if (seen->unnamed_jit && begins_with(program, "node"))
		return CAUSE_NODE;
	if (seen->unnamed_jit && begins_with(program, "java"))
		return CAUSE_JAVA;
	if (2 * seen->unnamed_jit >= seen->frames && seen->unnamed_jit)
		return CAUSE_JIT;
	return seen->library && 2 * seen->unnamed >= seen->frames ? CAUSE_SYMBOLS : CAUSE_NONE;
}

/* Returns the cause's index in found, plus 1; 0 = there is none. */
static uint32_t find_cause(Hints *hints, const Process *process, uint32_t stack, uint64_t ns)
{
	const char *program = file_of_program(process), *subject;
	const uint32_t *list;
	size_t count = frames_resolve(hints->frames, hints->timeline, process->ns_tgid, ns, stack,
				      STACK_NONE, false, &list);
	Seen seen = look_at(hints, list, count);
	StackEnd end =
		frames_stack_end(hints->frames, hints->timeline, process->ns_tgid, ns, stack);
	/* A stack that is cut has lost more than names. */
	enum cause cause = is_cut(&end) ? CAUSE_CUT : cause_of(&seen, program);
	uint32_t number;

	if (cause == CAUSE_NONE)
		return 0;
	subject = cause == CAUSE_SYMBOLS ? seen.library->name : program;
	number = strings_intern(&hints->subjects, subject);
	for (size_t i = 0; i < hints->found.count; i++)
		if (hints->found.items[i].cause == cause && hints->found.items[i].subject == number)
			return i + 1;
	*vec_push(&hints->found) = (Nameless){
		.cause = cause,
		.subject = number,
		.old_python = cause == CAUSE_PYTHON && is_old_python(seen.python->name),
		.from_system = cause == CAUSE_SYMBOLS && is_of_distribution(seen.library),
	};
	return hints->found.count;
}

static void count_stack(Hints *hints, uint32_t thread, uint32_t stack, uint64_t ns, double weight)
{
	const Thread *owner = &hints->timeline->threads.items[thread];
	const Process *process = &hints->timeline->processes.items[owner->process];
	uint64_t key = hash_mix(owner->process, stack);
	uint32_t number;

	if (stack == STACK_NONE)
		return;
	number = map_get(&hints->index, key);
	if (number == MAP_NONE) {
		number = find_cause(hints, process, stack, ns);
		map_set(&hints->index, key, number);
	}
	if (number)
		hints->found.items[number - 1].ns += weight;
}

/* ---- all stacks ------------------------------------------------------------------ */

/*
 * A tick stands for the track's running time since the one before, the last one also for the rest:
 * ticks may have been more frequent at first than later.
 */
static void count_ticks(Hints *hints, uint32_t index, uint64_t all_running_ns)
{
	const Thread *track = timeline_track(hints->timeline, index);
	bool is_path = index == hints->timeline->threads.count;
	uint64_t running_ns = 0, counted_ns = 0;
	size_t t = 0;

	for (size_t i = 0; i < track->intervals.count; i++) {
		uint64_t start_ns = track->intervals.items[i].start_ns;
		uint64_t end_ns = interval_end(track, i);

		if (track->intervals.items[i].state != STATE_RUNNING)
			continue;
		for (; t < track->ticks.count && track->ticks.items[t].ns < end_ns; t++) {
			const Tick *tick = &track->ticks.items[t];
			uint64_t until_ns = running_ns + tick->ns - MIN(start_ns, tick->ns);

			if (t + 1 == track->ticks.count)
				until_ns = all_running_ns;
			count_stack(hints, is_path ? tick->owner : index, tick->user_stack,
				    tick->ns, until_ns - counted_ns);
			counted_ns = until_ns;
		}
		running_ns += end_ns - start_ns;
	}
}

/* The index is one of timeline_track(). */
static void count_track(Hints *hints, uint32_t index)
{
	const Thread *track = timeline_track(hints->timeline, index);
	bool is_path = index == hints->timeline->threads.count;
	uint64_t running_ns = 0, least_ns = (track->end_ns - track->start_ns) / WAITS_MOST;

	for (size_t i = 0; i < track->intervals.count; i++) {
		const Interval *interval = &track->intervals.items[i];
		uint64_t ns = interval_end(track, i) - interval->start_ns;

		if (interval->state == STATE_RUNNING)
			running_ns += ns;
		if (!is_path || interval->state != STATE_BLOCKED || ns <= least_ns)
			continue;
		hints->total_ns += ns;
		count_stack(hints, track->owners.items[i], interval->user_stack, interval->start_ns,
			    ns);
	}
	hints->total_ns += running_ns;
	count_ticks(hints, index, running_ns);
}

static void count_all(Hints *hints)
{
	const Timeline *timeline = hints->timeline;

	if (timeline_track_count(timeline) > timeline->threads.count) {
		count_track(hints, timeline->threads.count);
		return;
	}
	for (size_t i = 0; i < timeline->threads.count; i++)
		count_track(hints, i);
}

/* ---- the lines ------------------------------------------------------------------- */

static void log_nameless(const Hints *hints, const Nameless *found, bool debuginfod)
{
	_cleanup_free_ char *subject =
		xasprintf("%s%s", strings_get(&hints->subjects, found->subject),
			  found->others ? " and others" : "");
	double share = 100 * found->ns / hints->total_ns;

	switch (found->cause) {
	case CAUSE_PYTHON:
		if (found->old_python)
			log_info(
				"hint: %.0f %% of the stacks lack the names of Python functions, "
				"which %s cannot give; use python3 -X perf of Python 3.12 or later",
				share, subject);
		else
			log_info("hint: %.0f %% of the stacks lack the names of Python functions; "
				 "record %s -X perf (Python 3.12 or later)",
				 share, subject);
		break;
	case CAUSE_NODE:
		log_info("hint: %.0f %% of the stacks lack the names of JavaScript functions; "
			 "record %s --perf-basic-prof",
			 share, subject);
		break;
	case CAUSE_JAVA:
		log_info("hint: %.0f %% of the stacks lack the names of Java methods; record %s "
			 "-XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit (JDK 17 or later)",
			 share, subject);
		break;
	case CAUSE_JIT:
		log_info("hint: %.0f %% of the stacks lack the names of code that %s made at run "
			 "time; let it write /tmp/perf-PID.map or a jitdump",
			 share, subject);
		break;
	case CAUSE_CUT:
		log_info("hint: %.0f %% of the stacks are cut in code that %s made at run time; %s",
			 share, subject, frame_pointer_remedy(subject));
		break;
	default:
		if (found->from_system && !debuginfod)
			log_info("hint: %.0f %% of the stacks lack the names of functions in %s; "
				 "export DEBUGINFOD_URLS=https://debuginfod.elfutils.org/ and "
				 "record again",
				 share, subject);
		else if (found->from_system)
			log_info("hint: %.0f %% of the stacks lack the names of functions in %s; "
				 "install its debug symbols and record again",
				 share, subject);
		else
			log_info("hint: %.0f %% of the stacks lack the names of functions in %s; "
				 "build it without -s and strip, and record again",
				 share, subject);
		break;
	}
}

/* Debug information of all files of the distribution comes in one way, so they are one cause. */
static void join_system(Hints *hints)
{
	Nameless *most = NULL;
	double ns = 0, most_ns;

	for (size_t i = 0; i < hints->found.count; i++) {
		Nameless *found = &hints->found.items[i];

		if (!found->from_system)
			continue;
		if (!most || found->ns > most->ns)
			most = found;
		ns += found->ns;
	}
	if (!most)
		return;
	most_ns = most->ns;
	for (size_t i = 0; i < hints->found.count; i++)
		if (hints->found.items[i].from_system)
			hints->found.items[i].ns = 0;
	most->others = ns > 1.1 * most_ns;
	most->ns = ns;
}

/* Returns the cause with the most time that was not logged yet, or NULL. */
static Nameless *largest(Hints *hints)
{
	Nameless *most = NULL;

	for (size_t i = 0; i < hints->found.count; i++)
		if (!most || hints->found.items[i].ns > most->ns)
			most = &hints->found.items[i];
	return most && most->ns >= MAX(HINT_SHARE * hints->total_ns, HINT_NS) ? most : NULL;
}

static void log_size(const HintsOptions *options)
{
	_cleanup_free_ char *word = options->capture ? shell_word(options->capture) : NULL;

	if (word)
		log_info("hint: the profile has %.0f MB of JSON, too much for the viewer; wallprof "
			 "export --to 10s -o part.json.gz %s, or --process NAME",
			 options->profile_bytes / 1e6, word);
	else
		log_info("hint: the profile has %.0f MB of JSON, too much for the viewer; record a "
			 "shorter time (-d 10s)",
			 options->profile_bytes / 1e6);
}

void hints_log(const Timeline *timeline, Frames *frames, const HintsOptions *options)
{
	Hints hints = {.timeline = timeline, .frames = frames};
	size_t room = HINTS_MOST;
	Nameless *found;

	if (options->profile_bytes > HINT_VIEWER_BYTES) {
		log_size(options);
		room--;
	}
	count_all(&hints);
	join_system(&hints);
	for (; room && (found = largest(&hints)); room--) {
		log_nameless(&hints, found, options->debuginfod);
		found->ns = 0;
	}
	strings_free(&hints.subjects);
	vec_free(&hints.found);
	map_free(&hints.index);
}
