/* SPDX-License-Identifier: GPL-2.0-or-later */
/* firefox_meta.c - what was recorded, where and how, and what is missing in the profile. */
#include "firefox_parts.h"
#include "labels.h"
#include "record_info.h"
#include "stack_stats.h"
#include "tick_rates.h"

#define FORMAT_VERSION	65
#define TITLE_MAX	80
#define INTERVAL_NS	NSEC_PER_MSEC /* if the capture does not contain its frequency */
#define SUBCATEGORY_ALL "Other"

static void write_categories(Json *json)
{
	json_key_array(json, "categories");
	for (size_t i = 0; i < CATEGORY_COUNT; i++) {
		json_begin_object(json);
		json_key_string(json, "name", category_info[i].name);
		json_key_string(json, "color", category_info[i].color);
		json_key_array(json, "subcategories");
		json_put_string(json, SUBCATEGORY_ALL);
		json_end_array(json);
		json_end_object(json);
	}
	json_end_array(json);
}

/* Returns the command without its directory, or the first process that was attached to. */
static char *title(const Timeline *timeline)
{
	const char *command = timeline_meta(timeline, "command");
	const char *slash;

	if (timeline->whole_system && !command)
		return xstrdup("whole system (wallprof)");
	if (!command || !*command) {
		const char *name =
			timeline->processes.count ? timeline->processes.items[0].name : NULL;
		return xasprintf("%s%s (wallprof)", name ? name : "system",
				 timeline->processes.count > 1 ? " …" : "");
	}
	slash = memrchr(command, '/', strcspn(command, " "));
	if (slash)
		command = slash + 1;
	/* The JSON writer replaces a character that the cut splits. */
	return xasprintf("%.*s%s (wallprof)", TITLE_MAX, command,
			 strlen(command) > TITLE_MAX ? "…" : "");
}

static void write_machine(Json *json, const Timeline *timeline)
{
	const char *kernel = timeline_meta(timeline, "kernel");
	const char *machine = timeline_meta(timeline, "machine");
	const char *command = timeline_meta(timeline, "command");
	_cleanup_free_ char *system =
		xasprintf("Linux %s %s", kernel ? kernel : "", machine ? machine : "");
	uint64_t cpus;

	json_key_string(json, "oscpu", system);
	json_key_string(json, "platform", "Linux");
	json_key_string(json, "abi", machine ? machine : "");
	if (timeline_meta_number(timeline, "cpus", &cpus))
		json_key_u64(json, "logicalCPUs", cpus);
	if (command)
		json_key_string(json, "arguments", command);
}

/* ---- extra: shown under "Show more" --------------------------------------------- */

static void entry_begin(Json *json, const char *label, const char *format)
{
	json_begin_object(json);
	json_key_string(json, "label", label);
	json_key_string(json, "format", format);
	json_key(json, "value");
}

static void entry_u64(Json *json, const char *label, uint64_t value)
{
	entry_begin(json, label, "integer");
	json_u64(json, value);
	json_end_object(json);
}

static void entry_ms(Json *json, const char *label, uint64_t ns)
{
	entry_begin(json, label, "milliseconds");
	json_ms(json, ns);
	json_end_object(json);
}

static void entry_string(Json *json, const char *label, const char *value)
{
	entry_begin(json, label, "string");
	json_put_string(json, value);
	json_end_object(json);
}

static void section_begin(Json *json, const char *label)
{
	json_begin_object(json);
	json_key_string(json, "label", label);
	json_key_array(json, "entries");
}

static void section_end(Json *json)
{
	json_end_array(json);
	json_end_object(json);
}

/* Returns the length of the word that a colour's name begins with: "lightblue". */
static int shade_length(const char *color)
{
	static const char *const shades[] = {"light", "dark"};

	for (size_t i = 0; i < ARRAY_LEN(shades); i++)
		if (!strncmp(color, shades[i], strlen(shades[i])))
			return strlen(shades[i]);
	return 0;
}

/* The viewer has no legend of its own. */
static void write_legend(Json *json)
{
	section_begin(json, "Colours");
	for (size_t i = 0; i < CATEGORY_COUNT; i++) {
		const CategoryInfo *category = &category_info[i];
		int shade = shade_length(category->color);
		bool same = !strcmp(category->color, category->marker_color);
		_cleanup_free_ char *text =
			xasprintf("%.*s%s%s%s%s: %s", shade, category->color, shade ? " " : "",
				  category->color + shade, same ? "" : ", markers ",
				  same ? "" : category->marker_color, category->meaning);

		entry_string(json, category->name, text);
	}
	section_end(json);
}

/* Writes every key that the recorder wrote, known here or not. */
static void write_settings(Json *json, const Timeline *timeline)
{
	static const struct {
		const char *key, *label;
	} labels[] = {
		{"hooks", "hooks used"},
		{"cost", "cost of recording"},
		{"frequency", "sampling ticks per second (at first)"},
		{"frequency_changes", "sampling ticks per second later (CLOCK_MONOTONIC in ns:Hz)"},
		{"frequency_share", "share of a CPU that sampling ticks may take"},
		{"tick_interrupt_ns", "a sampling tick's interrupt (ns)"},
		{"ticks", "sampling ticks on all CPUs"},
		{"version", "recorded by wallprof"},
	};

	section_begin(json, "Recording");
	entry_string(json, "exported by wallprof", WALLPROF_VERSION);
	for (size_t i = 0; i < timeline->meta_values.count; i++) {
		const char *label = strings_get(&timeline->meta_keys, i);

		for (size_t k = 0; k < ARRAY_LEN(labels); k++)
			if (!strcmp(label, labels[k].key))
				label = labels[k].label;
		entry_string(json, label, timeline->meta_values.items[i]);
	}
	entry_string(json, "complete", timeline->complete ? "yes" : "no: the capture is cut off");
	section_end(json);
}

static void write_ledger(Json *json, const Timeline *timeline)
{
	uint64_t lifetime = 0, sums[STATE_COUNT] = {};

	for (size_t i = 0; i < timeline->threads.count; i++) {
		const Thread *thread = &timeline->threads.items[i];

		lifetime += thread->end_ns - MIN(thread->start_ns, thread->end_ns);
		for (size_t s = 0; s < STATE_COUNT; s++)
			sums[s] += thread->ledger[s];
	}
	section_begin(json, "Time by state (all threads)");
	entry_ms(json, "lifetime", lifetime);
	for (size_t s = 0; s < STATE_COUNT; s++)
		entry_ms(json, timeline_state_names[s], sums[s]);
	entry_u64(json, "threads", timeline->threads.count);
	section_end(json);
}

static void write_stack_sums(Json *json, const Timeline *timeline, Frames *frames)
{
	_cleanup_free_ char *line = NULL;
	StackStats sums;

	stack_stats_init(&sums, timeline, frames);
	line = stack_stats_line(&sums);
	entry_string(json, "user stacks", line);
	stack_stats_free(&sums);
}

static void write_events(Json *json, const Timeline *timeline, Frames *frames)
{
	section_begin(json, "Events");
	for (uint32_t kind = 0; kind < REC_BPF_MAX; kind++) {
		const char *label = record_info(kind)->word;

		if (!label)
			continue;
		_cleanup_free_ char *sent = xasprintf("%s: sent", label);
		_cleanup_free_ char *lost = xasprintf("%s: lost", label);
		entry_u64(json, sent, timeline->totals[kind].sent);
		entry_u64(json, lost, timeline->totals[kind].lost);
	}
	entry_u64(json, "missed switches", timeline->missed_switches);
	entry_u64(json, "ticks outside any running interval", timeline->orphan_ticks);
	write_stack_sums(json, timeline, frames);
	section_end(json);
}

static void write_folding(Json *json, const Profile *profile)
{
	section_begin(json, "Folding");
	entry_ms(json, "rows of short waits at least apart", profile->rows.step_ns);
	entry_ms(json, "intervals added up below", profile->rows.fold_ns);
	entry_u64(json, "intervals added up", profile->rows.folded);
	entry_ms(json, "time in intervals added up", profile->rows.folded_ns);
	if (profile->cpus.fold_ns) {
		entry_ms(json, "runs on CPUs added up below", profile->cpus.fold_ns);
		entry_u64(json, "runs on CPUs added up", profile->cpus.folded);
	}
	entry_ms(json, "waits and unknown intervals without a marker below",
		 profile->markers.threshold_ns);
	entry_u64(json, "waits and unknown intervals with a marker", profile->markers.shown);
	entry_u64(json, "waits and unknown intervals without a marker", profile->markers.hidden);
	if (profile->markers.hidden_runs > 0) {
		entry_ms(json, "runs on CPUs without a marker below",
			 profile->markers.run_threshold_ns);
		entry_u64(json, "runs on CPUs without a marker", profile->markers.hidden_runs);
	}
	entry_u64(json, "short processes that share lanes", profile->tracks.laned_processes);
	entry_u64(json, "lanes", profile->tracks.lanes);
	section_end(json);
}

static void write_notes(Json *json, const Timeline *timeline)
{
	if (timeline->notes.count == 0)
		return;
	section_begin(json, "Notes");
	for (size_t i = 0; i < timeline->notes.count; i++)
		entry_string(json, "note", timeline->notes.items[i]);
	section_end(json);
}

static void write_extra(Profile *profile)
{
	Json *json = &profile->json;

	json_key_array(json, "extra");
	write_legend(json);
	write_settings(json, profile->timeline);
	write_ledger(json, profile->timeline);
	write_events(json, profile->timeline, profile->frames);
	write_notes(json, profile->timeline);
	write_folding(json, profile);
	json_end_array(json);
}

/* ---- meta ------------------------------------------------------------------------ */

static void write_screen(Json *json, const Tracks *tracks)
{
	json_key_bool(json, "keepProfileThreadOrder", true);
	json_key_array(json, "initialVisibleThreads");
	for (size_t i = 0; i < tracks->visible.count; i++)
		json_u64(json, tracks->visible.items[i]);
	json_end_array(json);
	json_key_array(json, "initialSelectedThreads");
	json_u64(json, tracks->selected);
	json_end_array(json);
}

static void write_times(Json *json, const Timeline *timeline)
{
	TickRates rates = tick_rates_of(timeline);
	uint64_t frequency = tick_rates_highest(&rates, timeline);

	json_key_ms(json, "interval", frequency ? NSEC_PER_SEC / frequency : INTERVAL_NS);
	json_key_ms(json, "startTime", timeline->realtime_start_ns);
	json_key_u64(json, "startTimeAsClockMonotonicNanosecondsSinceBoot", timeline->start_ns);
	json_key_u64(json, "profilingStartTime", 0);
	json_key_ms(json, "profilingEndTime", timeline_time(timeline, timeline->end_ns));
	json_key_object(json, "sampleUnits");
	json_key_string(json, "time", "ms");
	json_key_string(json, "eventDelay", "ms");
	json_key_string(json, "threadCPUDelta", "ns");
	json_end_object(json);
}

void profile_write_meta(Profile *profile)
{
	Json *json = &profile->json;
	_cleanup_free_ char *product = title(profile->timeline);

	json_key_object(json, "meta");
	json_key_u64(json, "version", 36); /* of the Gecko format; the viewer requires a number,
					      which this format does not use */
	json_key_u64(json, "preprocessedProfileVersion", FORMAT_VERSION);
	json_key_string(json, "product", product);
	json_key_string(json, "importedFrom", "wallprof");
	write_times(json, profile->timeline);
	json_key_u64(json, "processType", 0);
	json_key_u64(json, "stackwalk", 1);
	json_key_bool(json, "debug", false);
	json_key_bool(json, "symbolicated", true);
	json_key_bool(json, "usesOnlyOneStackType", true);
	json_key_bool(json, "sourceCodeIsNotOnSearchfox", true);
	write_machine(json, profile->timeline);
	write_categories(json);
	profile_write_marker_schemas(json);
	write_screen(json, &profile->tracks);
	write_extra(profile);
	json_end_object(json);
}
