/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analysis.h"
#include "anonymizer.h"
#include "as_invoker.h"
#include "atomic_file.h"
#include "capture.h"
#include "capture_format.h"
#include "chrome.h"
#include "commands.h"
#include "export_temp.h"
#include "firefox.h"
#include "flamegraph.h"
#include "folded.h"
#include "html.h"
#include "output.h"
#include "pprof.h"
#include "progress.h"
#include "report.h"
#include "signals.h"
#include "sources.h"
#include "speedscope.h"
#include "spill.h"
#include "symbols.h"
#include "timeline_builder.h"
#include "util.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool is_capture(const struct capture_header *head)
{
	static const u8 name[sizeof(head->name)] = CAPTURE_NAME;

	return head->magic == CAPTURE_SKIPPABLE_MAGIC && !memcmp(head->name, name, sizeof(name));
}

/* Any file may be compressed, so the name of a compressed one has to be that of a profile. */
static bool is_profile(const struct capture_header *head, const char *path)
{
	static const u8 gzip[] = {0x1f, 0x8b}, zstd[] = {0x28, 0xb5, 0x2f, 0xfd};

	if (*(const char *)head == '{')
		return true;
	return strstr(path, ".json") &&
	       (!memcmp(head, gzip, sizeof(gzip)) || !memcmp(head, zstd, sizeof(zstd)));
}

enum file_kind export_cmd_file_kind(const char *path)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct capture_header head = {};

	if (fd < 0 || pread(fd, &head, sizeof(head), 0) <= 0)
		return FILE_KIND_OTHER;
	if (is_capture(&head))
		return FILE_KIND_CAPTURE;
	return is_profile(&head, path) ? FILE_KIND_PROFILE : FILE_KIND_OTHER;
}

/* The progress is looked at after so many records. */
#define RECORDS_PER_SHARE 65536

/* Reads the capture once for its names alone. Returns 0 or a negative errno. */
static int learn_names(CaptureReader *reader, Anonymizer *anonymizer)
{
	const struct record *record;
	int got;

	while ((got = capture_read(reader, &record)) > 0)
		anonymizer_learn(anonymizer, record);
	return got < 0 ? got : capture_reader_rewind(reader);
}

/* What is known of a capture besides its timeline and frames. */
typedef struct CaptureInfo {
	bool has_symbols;
	bool is_this_boot;
} CaptureInfo;

/* Kernel addresses are valid only until the next boot. */
static bool is_this_boot(const struct rec_meta *meta)
{
	static const char key[] = "boot_id=";
	_cleanup_fclose_ FILE *file = NULL;
	char boot_id[64];

	if (strncmp(meta->text, key, strlen(key)) != 0)
		return false;
	file = fopen("/proc/sys/kernel/random/boot_id", "re");
	if (!file || !fgets(boot_id, sizeof(boot_id), file))
		return false;
	boot_id[strcspn(boot_id, "\n")] = '\0';
	return *boot_id && !strcmp(meta->text + strlen(key), boot_id);
}

/* Adds a record, or what stands for it, to the timeline and the frames. */
static void add(const LoadOptions *options, Loaded *loaded, TimelineBuilder *builder,
		const struct record *record)
{
	if (loaded->anonymizer)
		record = anonymizer_replace(loaded->anonymizer, record);
	if (!record)
		return;
	timeline_builder_add(builder, record);
	if (!options->no_source || record->kind != REC_SOURCE)
		frames_add(loaded->frames, record);
}

static int read_all(CaptureReader *reader, const LoadOptions *options, Loaded *loaded,
		    CaptureInfo *ret_info)
{
	TimelineBuilder *builder = timeline_builder_new();
	_cleanup_free_ char *processes = NULL, *threads = NULL;
	TimelineFilter filter = {
		.from_ns = options->from_ns,
		.to_ns = options->to_ns,
		.processes = options->processes,
		.threads = options->threads,
	};
	const struct record *record;
	uint64_t count = 0;
	int got = 0;

	*ret_info = (CaptureInfo){};
	if (options->anonymize) {
		progress_begin("reading names");
		loaded->anonymizer = anonymizer_new();
		got = learn_names(reader, loaded->anonymizer);
		filter.processes = processes =
			anonymizer_filter(loaded->anonymizer, options->processes);
		filter.threads = threads = anonymizer_filter(loaded->anonymizer, options->threads);
		timeline_builder_add(builder, anonymizer_mark(loaded->anonymizer, REC_META));
		timeline_builder_add(builder, anonymizer_mark(loaded->anonymizer, REC_NOTE));
	}
	timeline_builder_filter(builder, &filter);
	loaded->frames = frames_new();
	loaded->frames->unfolded = options->all_frames;
	loaded->frames->native_frames = options->native_frames;
	progress_begin("reading the capture");
	while (!got && (got = capture_read_sorted(reader, &record)) > 0) {
		if (++count % RECORDS_PER_SHARE == 0)
			progress_share(capture_reader_share(reader));
		if (record->kind == REC_END && record->flags & END_SYMBOLS)
			ret_info->has_symbols = true;
		if (record->kind == REC_META && is_this_boot((const struct rec_meta *)record))
			ret_info->is_this_boot = true;
		add(options, loaded, builder, record);
		got = 0;
	}
	progress_begin("making the timeline");
	loaded->timeline = timeline_builder_finish(builder);
	return got;
}

/* Consumes a record that names addresses of a capture without names. */
static int add_late_record(void *user, const struct record *record)
{
	Loaded *loaded = user;

	if (loaded->anonymizer) {
		record = anonymizer_replace(loaded->anonymizer, record);
		if (record && record->kind == REC_NOTE)
			log_warn("%s", ((const struct rec_note *)record)->text);
	}
	if (record)
		frames_add(loaded->frames, record);
	return 0;
}

static int resolve_late(CaptureReader *reader, const LoadOptions *options, const Invoker *invoker,
			bool kernel, Loaded *loaded)
{
	SourcesOptions reading = {.invoker = invoker};
	_cleanup_(sources_freep) Sources *sources =
		options->no_source || options->anonymize ? NULL : sources_new(&reading);
	_cleanup_(as_invoker_free) AsInvoker as;
	SymbolsSink sink = {
		.open = symbols_open_by_path,
		.open_beside = symbols_open_beside_by_path,
		.open_named = symbols_open_named_by_path,
		.open_user = &as,
		.emit = add_late_record,
		.user = loaded,
		.sources = sources,
		.invoker = invoker,
		.no_debuginfod = options->no_debuginfod,
		.hides_names = options->anonymize,
		.deadline_ns = now_ns() + SYMBOLS_SECONDS_MAX * NSEC_PER_SEC,
	};
	SymbolsSummary summary;
	int error = as_invoker_prepare(invoker, &as);

	if (error)
		return error;
	progress_begin("looking up names");
	/* Its child processes have arrays of their own. */
	spill_pause();
	error = symbols_resolve(reader, &sink, kernel, &summary);
	spill_resume();
	progress_end();
	if (error)
		return error;
	symbols_warn_kernel(&summary);
	log_info("%lu of %lu addresses named from this machine's files", summary.named,
		 summary.addresses);
	return sources ? sources_write(sources, add_late_record, loaded, NULL) : 0;
}

static void report_damage(const char *capture_path, const CaptureReader *reader)
{
	const CaptureCounts *counts = capture_reader_counts(reader);

	if (capture_reader_damage(reader))
		log_warn("%s: %s", capture_path, capture_reader_damage(reader));
	if (counts->unknown)
		log_warn("%s: %" PRIu64 " records of unknown kinds ignored", capture_path,
			 counts->unknown);
	if (counts->malformed)
		log_warn("%s: %" PRIu64 " malformed records ignored", capture_path,
			 counts->malformed);
	if (counts->late)
		log_warn("%s: %" PRIu64 " records arrived too late to be sorted", capture_path,
			 counts->late);
}

/* An empty result is an error: a name was misspelt, or the recorder was killed at once. */
static int check_found(const Timeline *timeline, const LoadOptions *options,
		       const char *capture_path)
{
	bool part = options->from_ns || options->to_ns || options->processes || options->threads;

	if (timeline->threads.count > 0 || (timeline->complete && !part))
		return 0;
	if (part)
		log_error(
			"--from, --to, --process and --thread select no thread of this recording");
	else
		log_error("reading %s failed: it was cut off before a thread was recorded",
			  capture_path);
	return -ESRCH;
}

static int analyse(Loaded *loaded, pid_t critical_tid)
{
	int error;

	progress_begin("analysing");
	error = analysis_run(loaded->timeline, loaded->frames, critical_tid);
	progress_end();
	if (error == -ESRCH)
		log_error("no such thread in this recording: %d", critical_tid);
	return error;
}

int export_cmd_load(const char *capture_path, int capture_fd, const char *output_path,
		    const LoadOptions *options, const Invoker *invoker, Loaded *ret_loaded)
{
	/* The reader is freed first: the temporary file goes with the timeline. */
	_cleanup_(export_cmd_unload) Loaded loaded = {};
	_cleanup_(capture_reader_freep) CaptureReader *reader = NULL;
	const char *message = NULL;
	CaptureInfo info;
	int error = capture_fd < 0 ? capture_reader_open(capture_path, &reader, &message)
				   : capture_reader_open_fd(capture_fd, &reader, &message);

	if (error) {
		log_error("reading %s failed: %s", capture_path,
			  message ? message : error_text(error));
		return error;
	}
	export_temp_begin(capture_path, output_path, reader);
	loaded.has_temp = true;
	error = read_all(reader, options, &loaded, &info);
	progress_end();
	if (!error) {
		report_damage(capture_path, reader);
		error = info.has_symbols ? 0
					 : resolve_late(reader, options, invoker, info.is_this_boot,
							&loaded);
	}
	if (error) {
		log_error("reading %s failed: %s", capture_path, error_text(error));
		return error;
	}
	error = check_found(loaded.timeline, options, capture_path);
	if (error)
		return error;
	error = analyse(&loaded, options->critical_tid);
	if (error)
		return error;
	if (loaded.anonymizer)
		anonymizer_log(loaded.anonymizer);
	*ret_loaded = loaded;
	loaded = (Loaded){};
	return 0;
}

void export_cmd_unload(Loaded *loaded)
{
	if (loaded->timeline)
		timeline_free(loaded->timeline);
	if (loaded->frames)
		frames_free(loaded->frames);
	if (loaded->anonymizer)
		anonymizer_free(loaded->anonymizer);
	if (loaded->has_temp)
		export_temp_end();
	*loaded = (Loaded){};
}

static int write_format(Output *output, const Loaded *loaded, const ExportOptions *options)
{
	FirefoxOptions firefox = {.cpu_graph = options->cpu_graph, .hidden = options->hidden};
	ChromeOptions chrome = {.hidden = options->hidden};
	HtmlOptions html = {.hidden = options->hidden};
	PprofOptions pprof = {.hidden = options->hidden};
	SpeedscopeOptions speedscope = {.hidden = options->hidden};
	FlamegraphOptions flamegraph = {.root = options->root, .hidden = options->hidden};
	FoldedOptions folded = {.root = options->root, .hidden = options->hidden};

	switch (options->format) {
	case FORMAT_CHROME:
		return chrome_write(output, loaded->timeline, loaded->frames, &chrome);
	case FORMAT_HTML:
		return html_write(output, loaded->timeline, loaded->frames, &html);
	case FORMAT_FOLDED:
		return folded_write(output, loaded->timeline, loaded->frames, &folded);
	case FORMAT_PPROF:
		return pprof_write(output, loaded->timeline, loaded->frames, &pprof);
	case FORMAT_SPEEDSCOPE:
		return speedscope_write(output, loaded->timeline, loaded->frames, &speedscope);
	case FORMAT_SVG:
		return flamegraph_write(output, loaded->timeline, loaded->frames, &flamegraph);
	case FORMAT_BY_NAME:
	case FORMAT_FIREFOX:
		break;
	}
	return firefox_write(output, loaded->timeline, loaded->frames, &firefox);
}

static int write_summary(Output *output, const Loaded *loaded, const ExportOptions *options)
{
	(void)options;
	report_json(output, loaded->timeline, loaded->frames, /* function= */ NULL);
	return 0;
}

typedef int (*Write)(Output *output, const Loaded *loaded, const ExportOptions *options);

/* path is NULL for stdout. remedy ends the message if writing fails. */
static int write_file(const char *path, bool keep_old, Write write, const Loaded *loaded,
		      const ExportOptions *options, const char *remedy, const Invoker *invoker,
		      uint64_t *ret_bytes)
{
	Output *output;
	int error = path ? output_open(path, options->compression, invoker, &output) : 0;

	if (error) {
		log_error("writing %s failed: %s; %s", path, atomic_file_error_text(error), remedy);
		return error;
	}
	if (!path)
		output = output_for_stream(stdout);
	else if (keep_old)
		output_keep_old(output);
	signals_unfinished(output_temp_path(output));
	progress_begin("writing");
	error = write(output, loaded, options);
	*ret_bytes = output_size(output);
	if (error)
		output_discard(output);
	else
		error = output_close(output);
	progress_end();
	signals_release();
	if (error)
		log_error("writing %s failed: %s; %s", path ? path : "to stdout", error_text(error),
			  remedy);
	return error;
}

int export_cmd_write(Loaded *loaded, const ExportOptions *options, const char *capture_path,
		     const char *output_path, bool keep_old, const Invoker *invoker)
{
	_cleanup_free_ char *remedy = remedy_export(capture_path);

	return write_file(output_path, keep_old, write_format, loaded, options, remedy, invoker,
			  &loaded->profile_bytes);
}

int export_cmd_write_summary(const Loaded *loaded, const ExportOptions *options,
			     const char *capture_path, const Invoker *invoker)
{
	_cleanup_free_ char *remedy = remedy_summary(capture_path);
	uint64_t bytes;

	return write_file(options->json_summary, /* keep_old= */ false, write_summary, loaded,
			  options, remedy, invoker, &bytes);
}
