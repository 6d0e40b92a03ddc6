/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "speedscope.h"
#include "accounts.h"
#include "json_writer.h"
#include "left_out.h"
#include "speedscope_folds.h"
#include "stack_tree.h"
#include "text.h"
#include "tracks.h"

#define SCHEMA "https://www.speedscope.app/file-format-schema.json"

typedef VEC(uint32_t) OpenFrames;

typedef struct Speedscope {
	Json json;
	const Timeline *timeline;
	StackTable *tables;
	Folds folds;
	uint32_t running; /* StackTable::funcs: the leaf of running time */
	/* The frames that are open (StackTable::funcs), root first, and those that should be. */
	OpenFrames open, wanted;
	uint64_t open_end_ns; /* up to where they are known to be open */
} Speedscope;

/* ---- events ------------------------------------------------------------------------------- */

static void write_event(Speedscope *speedscope, const char *type, uint32_t func, uint64_t ns)
{
	Json *json = &speedscope->json;

	json_begin_object(json);
	json_key_string(json, "type", type);
	json_key_u64(json, "frame", func);
	json_key_u64(json, "at", timeline_time(speedscope->timeline, ns));
	json_end_object(json);
}

static void close_to(Speedscope *speedscope, size_t depth, uint64_t ns)
{
	while (speedscope->open.count > depth)
		write_event(speedscope, "C", speedscope->open.items[--speedscope->open.count], ns);
}

/* Sets the frames of a stack, root first. */
static void find_wanted(Speedscope *speedscope, const Drawn *drawn)
{
	const StackTable *tables = speedscope->tables;
	size_t depth = drawn->running;

	for (uint32_t at = drawn->stack; at != UINT32_MAX;
	     at = stack_table_stack_prefix(tables, at))
		depth++;
	speedscope->wanted.count = 0;
	vec_reserve(&speedscope->wanted, depth);
	speedscope->wanted.count = depth;
	if (drawn->running)
		speedscope->wanted.items[--depth] = speedscope->running;
	for (uint32_t at = drawn->stack; at != UINT32_MAX;
	     at = stack_table_stack_prefix(tables, at))
		speedscope->wanted.items[--depth] = stack_table_leaf_function(tables, at);
}

/* Keeps the frames open that two stacks share from the root on. */
static void draw(void *user, const Drawn *drawn)
{
	Speedscope *speedscope = user;
	size_t common = 0;

	if (drawn->start_ns > speedscope->open_end_ns)
		close_to(speedscope, 0, speedscope->open_end_ns);
	find_wanted(speedscope, drawn);
	while (common < speedscope->open.count && common < speedscope->wanted.count &&
	       speedscope->open.items[common] == speedscope->wanted.items[common])
		common++;
	close_to(speedscope, common, drawn->start_ns);
	for (size_t i = common; i < speedscope->wanted.count; i++) {
		write_event(speedscope, "O", speedscope->wanted.items[i], drawn->start_ns);
		*vec_push(&speedscope->open) = speedscope->wanted.items[i];
	}
	speedscope->open_end_ns = drawn->end_ns;
}

/* ---- threads ------------------------------------------------------------------------------ */

static char *thread_title(const Timeline *timeline, const Thread *thread)
{
	const char *process = timeline->processes.items[thread->process].label;
	uint32_t tid = thread->ns_tid ? thread->ns_tid : thread->tid;

	if (thread->is_main)
		return xasprintf("%s (%u)", process, tid);
	return xasprintf("%s: %s (%u)", process, thread->name, tid);
}

static void write_thread(Speedscope *speedscope, const Thread *thread)
{
	const Timeline *timeline = speedscope->timeline;
	_cleanup_free_ char *title = thread_title(timeline, thread);
	Json *json = &speedscope->json;

	json_begin_object(json);
	json_key_string(json, "type", "evented");
	json_key_string(json, "name", title);
	json_key_string(json, "unit", "nanoseconds");
	json_key_u64(json, "startValue", 0);
	json_key_u64(json, "endValue", timeline_time(timeline, timeline->end_ns));
	json_key_array(json, "events");
	speedscope->open_end_ns = thread->start_ns;
	speedscope_folds_walk(&speedscope->folds, thread, draw, speedscope);
	close_to(speedscope, 0, speedscope->open_end_ns);
	json_end_array(json);
	json_end_object(json);
}

/* They are in the order of the Firefox profile: what matters most is the first. */
static void write_threads(Speedscope *speedscope)
{
	const Timeline *timeline = speedscope->timeline;
	Tracks tracks;

	tracks_init(&tracks, timeline);
	json_key_array(&speedscope->json, "profiles");
	for (size_t i = 0; i < tracks.list.count; i++) {
		const Track *track = &tracks.list.items[i];

		for (size_t k = 0; k < track->threads.count && !track->is_path; k++)
			write_thread(speedscope, &timeline->threads.items[track->threads.items[k]]);
	}
	json_end_array(&speedscope->json);
	tracks_free(&tracks);
}

/* ---- the whole ---------------------------------------------------------------------------- */

/* Lines are left out: to the viewer, a function at two lines is two functions. */
static void write_frames(Speedscope *speedscope)
{
	const StackTable *tables = speedscope->tables;
	Json *json = &speedscope->json;

	json_key_object(json, "shared");
	json_key_array(json, "frames");
	for (size_t i = 0; i < tables->funcs.count; i++) {
		const FuncRow *row = &tables->funcs.items[i];
		const ResourceRow *resource = row->resource == UINT32_MAX
						      ? NULL
						      : &tables->resources.items[row->resource];

		json_begin_object(json);
		json_key_string(json, "name", strings_get(&tables->strings, row->name));
		if (row->source != UINT32_MAX)
			json_key_string(json, "file",
					strings_get(&tables->strings,
						    tables->sources.items[row->source].filename));
		else if (resource && resource->lib != UINT32_MAX)
			json_key_string(json, "file",
					strings_get(&tables->strings, resource->name));
		json_end_object(json);
	}
	json_end_array(json);
	json_end_object(json);
}

/* The viewer shows the name above the graph. So what is missing is said there. */
static char *profile_name(const Speedscope *speedscope)
{
	const char *command = timeline_meta(speedscope->timeline, "command");
	_cleanup_free_ char *losses = accounts_loss_text(speedscope->timeline), *folded = NULL;
	_cleanup_free_ char *states = accounts_states_text(speedscope->folds.hidden);
	_cleanup_free_ char *budget = left_out_line(speedscope->timeline);

	if (speedscope->folds.fold_ns)
		folded = xasprintf("; spans under %s are added up by stack",
				   DURATION(speedscope->folds.fold_ns));
	return xasprintf("%s%s%s%s%s%s%s%s", command ? command : "wallprof", states ? "; " : "",
			 states ? states : "", losses ? "; " : "", losses ? losses : "",
			 budget ? "; " : "", budget ? budget : "", folded ? folded : "");
}

int speedscope_write(Output *out, const Timeline *timeline, Frames *frames,
		     const SpeedscopeOptions *options)
{
	uint64_t budget =
		options && options->event_budget ? options->event_budget : SPEEDSCOPE_EVENT_BUDGET;
	Speedscope speedscope = {
		.json = {.out = out},
		.timeline = timeline,
		.tables = stack_table_new(timeline, frames),
	};
	_cleanup_free_ char *name = NULL;
	Json *json = &speedscope.json;
	uint32_t running = stack_table_pseudo_stack(speedscope.tables, UINT32_MAX,
						    STACK_TREE_RUNNING, CATEGORY_USER);

	speedscope.running = stack_table_leaf_function(speedscope.tables, running);
	speedscope_folds_init(&speedscope.folds, speedscope.tables, options ? options->hidden : 0,
			      budget);
	name = profile_name(&speedscope);
	json_begin_object(json);
	json_key_string(json, "$schema", SCHEMA);
	json_key_string(json, "exporter", "wallprof " WALLPROF_VERSION);
	json_key_string(json, "name", name);
	json_key_u64(json, "activeProfileIndex", 0);
	write_threads(&speedscope);
	write_frames(&speedscope);
	json_end_object(json);
	speedscope_folds_free(&speedscope.folds);
	vec_free(&speedscope.open);
	vec_free(&speedscope.wanted);
	stack_table_free(speedscope.tables);
	output_flush(out);
	return out->error;
}
