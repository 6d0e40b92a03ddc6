/* SPDX-License-Identifier: GPL-2.0-or-later */
/* main.c - the commands: profile, record, export, report, open, doctor. */
#include "atomic_file.h"
#include "commands.h"
#include "completion.h"
#include "debuginfod.h"
#include "doctor.h"
#include "help.h"
#include "hints.h"
#include "options.h"
#include "privileges.h"
#include "recorder.h"
#include "report.h"
#include "results.h"
#include "signals.h"
#include "summary.h"
#include "util.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define EXIT_WALLPROF_FAILED 125 /* the same as in env(1) and timeout(1) */
#define EXIT_INTERRUPTED     130

/* An older file is renamed to its name with ".old", which must not be a folder. */
static int check_old(const char *path)
{
	_cleanup_free_ char *old = xasprintf("%s.old", path);
	struct stat st;

	if (lstat(old, &st) || !S_ISDIR(st.st_mode))
		return 0;
	log_error("writing %s failed: it is a folder; choose another place with -o", old);
	return -EISDIR;
}

/* Checks the output before the recording, so that an hour of recording is not lost. */
static int check_output(const char *path)
{
	_cleanup_free_ char *folder = xstrdup(path);
	char *slash = strrchr(folder, '/');
	struct stat st;

	if (!stat(path, &st) && S_ISDIR(st.st_mode)) {
		log_error("writing %s failed: it is a folder; name a file with -o", path);
		return -EISDIR;
	}
	if (slash)
		slash[slash == folder] = '\0';
	if (access(slash ? folder : ".", W_OK | X_OK)) {
		int error = -errno;

		log_error("writing %s failed: %s; choose another place with -o", path,
			  strerror(-error));
		return error;
	}
	return 0;
}

static bool is_special(const char *path)
{
	struct stat st;

	return !stat(path, &st) && !S_ISREG(st.st_mode);
}

/* Returns the real path of a file that may not exist yet, or NULL if its folder does not exist. */
static char *real_path(const char *path)
{
	const char *slash = strrchr(path, '/');
	_cleanup_free_ char *folder = slash ? xstrndup(path, slash - path + 1) : xstrdup(".");
	_cleanup_free_ char *real = realpath(folder, NULL);

	return real ? xasprintf("%s/%s", real, slash ? slash + 1 : path) : NULL;
}

static bool is_same_file(const char *path, const char *other)
{
	_cleanup_free_ char *real = real_path(path), *other_real = real_path(other);
	struct stat st, other_st;

	if (!stat(path, &st) && !stat(other, &other_st))
		return S_ISREG(st.st_mode) && st.st_dev == other_st.st_dev &&
		       st.st_ino == other_st.st_ino;
	return real && other_real && !strcmp(real, other_real);
}

/* Checks that the output files differ from each other and from the capture. */
static int check_distinct(const Options *options, const char *capture)
{
	const char *summary = options->export.json_summary;
	const char *output = options_to_stdout(options) ? NULL : options->output;
	const char *written[] = {output, summary};

	if (output && summary && is_same_file(output, summary)) {
		log_error("the profile and --json-summary name the same file: %s", summary);
		return -EINVAL;
	}
	for (size_t i = 0; i < ARRAY_LEN(written); i++) {
		if (written[i] && is_same_file(written[i], capture)) {
			log_error("%s is the capture and would be overwritten", written[i]);
			return -EINVAL;
		}
	}
	return 0;
}

static int check_outputs(const Options *options, const char *capture)
{
	int error = options_to_stdout(options) ? 0 : check_output(options->output);

	if (error)
		return error;
	if (!options_to_stdout(options) && options->verb == VERB_PROFILE)
		error = check_old(options->output) || check_old(capture) ? -EISDIR : 0;
	if (error)
		return error;
	error = options->export.json_summary ? check_output(options->export.json_summary) : 0;
	return error ? error : check_distinct(options, capture);
}

/* Makes the exit status show that standard output is incomplete. */
static int flush_stdout(int status)
{
	int error = fflush(stdout) ? -errno : 0;

	if (!error && ferror(stdout)) /* an earlier write failed */
		error = -EIO;
	if (error)
		log_error("writing to stdout failed: %s", error_text(error));
	return error && status == EXIT_SUCCESS ? EXIT_FAILURE : status;
}

/* Returns the command's exit status. If it is 0, a failure of wallprof changes it. */
static int exit_status(const RecordResult *result, bool failed)
{
	if (failed && result->command_status == 0)
		return EXIT_WALLPROF_FAILED;
	return result->command_status;
}

/*
 * Handles a command that is still running when its recording has ended: waits for it, or leaves it
 * running after an interrupt.
 */
static void finish_command(RecordResult *result)
{
	if (recorder_wait(result, /* block= */ false))
		return;
	if (!result->interrupted) {
		log_info("waiting for the command (process %d), no longer recorded",
			 result->command_pid);
		if (recorder_wait(result, /* block= */ true))
			return;
	}
	log_info("the command (process %d) is still running", result->command_pid);
	result->command_status = EXIT_INTERRUPTED;
}

/*
 * Returns the exit status if the recording did not begin. With --delay the command may already be
 * running.
 */
static int status_of_failure(RecordResult *result)
{
	signals_release();
	finish_command(result);
	return exit_status(result, true);
}

static int record_only(const Options *options, const Invoker *invoker)
{
	RecordResult result;
	int error;

	if (check_output(options->output) || check_old(options->output))
		return EXIT_WALLPROF_FAILED;
	error = recorder_run(&options->record, invoker, options->output, &result);
	if (error && !result.started)
		return status_of_failure(&result);
	signals_release();
	if (!error) {
		_cleanup_free_ char *word = shell_word(options->output);

		log_info("wrote %s; next: wallprof report %s", options->output, word);
	}
	finish_command(&result);
	return exit_status(&result, error);
}

/*
 * recorded_fd: the capture is new, so older files are kept, and the user wants to see it. -1: it is
 * opened by its name.
 */
static int export_capture(const Options *options, const Invoker *invoker, const char *capture,
			  int recorded_fd)
{
	_cleanup_(export_cmd_unload) Loaded loaded = {};
	const char *output = options_to_stdout(options) ? NULL : options->output;
	bool of_recording = recorded_fd >= 0;
	int error = export_cmd_load(capture, recorded_fd, output, &options->load, invoker, &loaded);

	if (error)
		return error;
	error = export_cmd_write(&loaded, &options->export, capture, output, of_recording, invoker);
	if (error)
		return error;
	error = options->export.json_summary
			? export_cmd_write_summary(&loaded, &options->export, capture, invoker)
			: 0;
	if (error)
		return error;
	if (of_recording && log_level >= LOG_NORMAL) {
		SummaryOptions how = {
			.profile = options->output,
			.capture = options->discard_capture || is_special(options->output)
					   ? NULL
					   : capture,
			.accounts = log_level >= LOG_VERBOSE,
		};

		HintsOptions hints = {
			.profile_bytes =
				options->export.format == FORMAT_FIREFOX ? loaded.profile_bytes : 0,
			.capture = how.capture,
			.debuginfod = debuginfod_enabled() && !options->record.no_debuginfod,
		};

		summary_print(stderr, loaded.timeline, loaded.frames, &how);
		hints_log(loaded.timeline, loaded.frames, &hints);
	}
	return 0;
}

/* A command that does not exist may be one of wallprof's, and "help" is one of them. */
static void suggest_verb(const Options *options, const RecordResult *result)
{
	char *const *command = options->record.command;
	const char *close;
	bool help;

	if (result->command_status != 127)
		return;
	help = !strcmp(command[0], "help") && command[1];
	close = options_verb_close_to(command[help]);
	if (close)
		log_info("did you mean `wallprof %s%s`?", help ? "help " : "", close);
}

static int profile(const Options *options, const Invoker *invoker)
{
	_cleanup_free_ char *capture = results_capture_name(options->output);
	/* Nothing is kept beside a pipe or a device. */
	bool discard = options->discard_capture || is_special(options->output);
	RecordResult result;
	int error = check_outputs(options, capture);

	if (error)
		return EXIT_WALLPROF_FAILED;
	error = recorder_run(&options->record, invoker, capture, &result);
	if (!result.started) {
		suggest_verb(options, &result);
		return status_of_failure(&result);
	}
	if (!result.command_running)
		util_set_memory_failure_status(exit_status(&result, true));
	/* If a full disk cut the recording short, the part before it is still exported. */
	if (privileges_keep(0) || export_capture(options, invoker, capture, result.capture_fd)) {
		signals_release();
		finish_command(&result);
		return exit_status(&result, true);
	}
	if (discard && !error)
		atomic_file_remove_path(capture, invoker);
	finish_command(&result);
	if (options->open_profile && !error) {
		OpenOptions open = options->open;

		open.url_to_stderr = true;
		error = open_cmd_run(options->output, &open, invoker);
	}
	return exit_status(&result, error);
}

static int export_only(const Options *options, const Invoker *invoker)
{
	_cleanup_free_ char *capture = NULL;

	signals_guard(/* capture_path= */ NULL);
	if (results_find_capture(options->input, &capture) || check_outputs(options, capture) ||
	    export_capture(options, invoker, capture, /* recorded_fd= */ -1))
		return EXIT_FAILURE;
	if (!options_to_stdout(options))
		log_info("wrote %s", options->output);
	return EXIT_SUCCESS;
}

/* Makes what is to be opened. */
static int make_result(const Options *options, const Invoker *invoker, const char *capture,
		       const char *output, enum format format)
{
	Options making = *options;
	int error;

	making.output = output;
	making.export.format = format;
	error = check_outputs(&making, capture);
	if (!error)
		error = export_capture(&making, invoker, capture, /* recorded_fd= */ -1);
	if (!error)
		log_info("wrote %s", output);
	return error;
}

/* A capture that has no page yet gets one. */
static int open_page(const Options *options, const Invoker *invoker)
{
	_cleanup_free_ char *path = NULL, *capture = NULL;
	int error = results_find_capture(options->input, &capture);

	if (error)
		return error;
	path = results_page_name(capture);
	if (!results_has_page(capture, path))
		error = make_result(options, invoker, capture, path, FORMAT_HTML);
	return error ? error : open_cmd_run(path, &options->open, invoker);
}

/* A capture that has no profile yet gets one. */
static int open_profile(const Options *options, const OpenOptions *open, const Invoker *invoker)
{
	_cleanup_free_ char *path = NULL, *capture = NULL;
	int error = results_find_profile(options->input, &path, &capture);

	if (!error && !path) {
		path = results_profile_name(capture);
		error = make_result(options, invoker, capture, path, FORMAT_FIREFOX);
	}
	return error ? error : open_cmd_run(path, open, invoker);
}

static int open_result(const Options *options, const Invoker *invoker)
{
	_cleanup_free_ char *local = NULL;
	OpenOptions open = options->open;

	if (open.offline && !open.viewer)
		open.viewer = local = open_cmd_local_viewer();
	if (open.offline && !open.viewer)
		return open_page(options, invoker);
	return open_profile(options, &open, invoker);
}

static bool needs_capabilities(const Options *options)
{
	uint64_t pid;

	if (options->verb == VERB_DOCTOR)
		return !options->doctor.unwind || parse_u64(options->doctor.unwind, &pid) == 0;
	return options->verb == VERB_PROFILE || options->verb == VERB_RECORD;
}

int main(int argc, char **argv)
{
	Options options;
	Invoker invoker;
	int status = EXIT_FAILURE;

	signals_ignore_file_limit();
	if (argc > 1 && !strcmp(argv[1], "--complete")) {
		if (privileges_keep(0))
			return EXIT_WALLPROF_FAILED;
		completion_print(argv + 2, argc - 2);
		return flush_stdout(EXIT_SUCCESS);
	}
	if (options_parse(argc, argv, &options))
		return EXIT_WALLPROF_FAILED;
	/* Commands that only read files need no capabilities. */
	if (!needs_capabilities(&options) && privileges_keep(0))
		return EXIT_WALLPROF_FAILED;
	/* As for all else that keeps a command from reading or writing its files. */
	if (options.verb == VERB_EXPORT || options.verb == VERB_REPORT || options.verb == VERB_OPEN)
		util_set_memory_failure_status(EXIT_FAILURE);
	invoker_find(options.as_root, &invoker);
	switch (options.verb) {
	case VERB_PROFILE:
		status = profile(&options, &invoker);
		break;
	case VERB_RECORD:
		status = record_only(&options, &invoker);
		break;
	case VERB_EXPORT:
		status = export_only(&options, &invoker);
		break;
	case VERB_REPORT:
		status = flush_stdout(report_cmd_run(&options, &invoker));
		break;
	case VERB_OPEN:
		status = open_result(&options, &invoker) ? EXIT_FAILURE : EXIT_SUCCESS;
		break;
	case VERB_DOCTOR:
		status = (options.doctor.unwind ? doctor_unwind(options.doctor.unwind)
						: doctor_print(&options.record))
				 ? EXIT_FAILURE
				 : EXIT_SUCCESS;
		status = flush_stdout(status);
		break;
	case VERB_HELP:
		help_print(options.help_verb);
		status = flush_stdout(EXIT_SUCCESS);
		break;
	case VERB_VERSION:
		puts("wallprof " WALLPROF_VERSION);
		status = flush_stdout(EXIT_SUCCESS);
		break;
	case VERB_LICENSES:
		licenses_print();
		status = flush_stdout(EXIT_SUCCESS);
		break;
	}
	free(options.record.pids);
	free(options.record.tids);
	return status;
}
