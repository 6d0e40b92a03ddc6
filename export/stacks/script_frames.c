/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "script_frames.h"
#include "script_language.h"
#include "script_text.h"
#include <string.h>

static const ScriptLanguage *const languages[SCRIPT_LANGUAGES] = {
	[SCRIPT_PYTHON] = &script_python,
};

const ScriptLanguage *script_language(uint8_t number)
{
	return number < SCRIPT_LANGUAGES ? languages[number] : NULL;
}

const ScriptLanguage *script_evaluated(const char *function)
{
	for (size_t i = 0; i < SCRIPT_LANGUAGES; i++)
		if (languages[i] && languages[i]->is_evaluator(function))
			return languages[i];
	return NULL;
}

bool script_is_library(const char *path)
{
	for (size_t i = 0; i < SCRIPT_LANGUAGES; i++)
		if (languages[i] && languages[i]->is_library(path))
			return true;
	return false;
}

static bool is_glue(const char *function)
{
	for (size_t i = 0; i < SCRIPT_LANGUAGES; i++)
		if (languages[i] && languages[i]->is_glue(function))
			return true;
	return false;
}

/* ---- code --------------------------------------------------------------------------------- */

/* A file's name, "app.py", or what stands for it: "<string>", "<frozen importlib._bootstrap>". */
static const char *file_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

/* Pieces of code of the same name and beginning are one function, which was made several times. */
static uint32_t function_number(struct FramesPrivate *private, const struct rec_script_code *code,
				const char *name, const char *path)
{
	_cleanup_free_ char *key = xasprintf("%s:%u:%s", path, code->first_line, name);

	return strings_intern(&private->script_functions, key);
}

static uint32_t make_frame(Frames *frames, const ScriptLanguage *language,
			   const struct rec_script_code *code, uint32_t line)
{
	_cleanup_free_ char *name =
		script_text(code->name, code->name_bytes, sizeof(code->name), code->name_kind);
	_cleanup_free_ char *path =
		script_text(code->path, code->path_bytes, sizeof(code->path), code->path_kind);
	const char *shown = name ? name : "[unreadable name]";
	uint32_t number = function_number(frames->private, code, shown, path ? path : "");
	uint32_t lib = frames_library(frames, path ? file_name(path) : "[script]");

	*vec_push(&frames->list) = (Frame){
		.function = strings_intern(&frames->strings, shown),
		.lib = lib,
		.address = number,
		.function_start = number,
		.source = path ? strings_intern(&frames->strings, path) : UINT32_MAX,
		.line = line,
		.named = true,
		.script = true,
		.loader = language && path && language->is_loader(path),
		.library = language && path && language->is_library(path),
	};
	return frames->list.count - 1;
}

/* Returns the frame of an instruction. */
static uint32_t code_frame(Frames *frames, const struct script_frame *frame, uint8_t language)
{
	struct FramesPrivate *private = frames->private;
	const ScriptLanguage *known = script_language(language);
	uint32_t number = script_code_find(&private->scripts, frame->code), line, index;
	const struct rec_script_code *code;
	uint64_t key;

	if (!frame->code || number == MAP_NONE)
		return frames_pseudo(frames, frame->code ? "[script function lost]"
							 : "[unreadable script function]");
	code = private->scripts.list.items[number];
	line = known ? known->line(code, frame->at) : 0;
	key = (uint64_t)number << 32 | line;
	index = map_get(&private->script_lines, key);
	if (index == MAP_NONE) {
		index = make_frame(frames, known, code, line);
		map_set(&private->script_lines, key, index);
	}
	return index;
}

/* Returns whether the interpreter does not show such a frame to programs. C does not call these. */
static bool is_hidden(const Frames *frames, const struct script_frame *frame, uint8_t language)
{
	uint32_t number = script_code_find(&frames->private->scripts, frame->code);
	const ScriptLanguage *known = script_language(language);

	return known && number != MAP_NONE && !(frame->flags & SCRIPT_FRAME_ENTRY) &&
	       known->is_hidden(frames->private->scripts.list.items[number]);
}

/* ---- runs -------------------------------------------------------------------------------------
 */

static void push_pseudo(Frames *frames, ScriptMerge *merge, const char *name)
{
	*vec_push(&merge->list) = frames_pseudo(frames, name);
}

/* The outermost run also has the pseudo frames that are before it. */
static void begin_run(ScriptMerge *merge)
{
	ScriptRun run = {.first = merge->list.count};

	if (merge->runs.count == 0)
		run = (ScriptRun){.first = 0, .count = merge->list.count};
	*vec_push(&merge->runs) = run;
}

void script_merge_begin(Frames *frames, const Timeline *timeline, const StackDef *stack,
			uint32_t gap, ScriptMerge *ret_merge)
{
	const ScriptStack *script = &timeline->scripts.items[stack->script - 1];
	const struct script_frame *list = vec_at(&timeline->script_frames, script->first);
	size_t leaf_runs = 0;

	*ret_merge = (ScriptMerge){.lib = LIBRARY_NONE};
	if (script_language(script->language))
		ret_merge->loader_name = script_language(script->language)->loader_name;
	if (!script->defined) {
		push_pseudo(frames, ret_merge, "[script frames lost]");
		*vec_push(&ret_merge->runs) = (ScriptRun){0, 1};
		ret_merge->root_runs = ret_merge->leaf_runs = 1;
		return;
	}
	if (script->result != SCRIPT_COMPLETE)
		push_pseudo(frames, ret_merge,
			    script->result == SCRIPT_TRUNCATED ? "[script frames: too deep]"
							       : "[script frames: unreadable]");
	for (size_t i = script->count; i-- > 0;) {
		bool begins = list[i].flags & SCRIPT_FRAME_ENTRY || ret_merge->runs.count == 0;

		if (i + 1 == script->leaf && script->left_out) {
			*vec_push(&ret_merge->list) = gap;
			ret_merge->root_runs = ret_merge->runs.count;
			if (ret_merge->runs.count)
				ret_merge->runs.items[ret_merge->runs.count - 1].count++;
			leaf_runs += !begins; /* the run goes on there */
		}
		if (is_hidden(frames, &list[i], script->language))
			continue;
		if (begins)
			begin_run(ret_merge);
		leaf_runs += begins && (!script->left_out || i < script->leaf);
		*vec_push(&ret_merge->list) = code_frame(frames, &list[i], script->language);
		ret_merge->runs.items[ret_merge->runs.count - 1].count++;
	}
	if (!script->left_out)
		ret_merge->root_runs = ret_merge->runs.count;
	ret_merge->to_root = script->result == SCRIPT_COMPLETE;
	ret_merge->leaf_runs = leaf_runs;
}

void script_merge_free(ScriptMerge *merge)
{
	vec_free(&merge->list);
	vec_free(&merge->runs);
}

/*
 * Returns the frames that the call'th frame of C that runs script code runs, counted from the root;
 * NULL: it is not known.
 */
static const ScriptRun *run_of(const ScriptMerge *merge, size_t call)
{
	size_t from_leaf = merge->calls - 1 - call;

	bool from_root = merge->from_root && merge->to_root;

	if (from_root && call < merge->root_runs && (!merge->outer || call < merge->outer))
		return &merge->runs.items[call];
	if (from_leaf < merge->leaf_runs &&
	    (!from_root || merge->outer || merge->root_runs < merge->runs.count))
		return &merge->runs.items[merge->runs.count - 1 - from_leaf];
	return NULL;
}

static void push_stand_in(Frames *frames, const char *what)
{
	_cleanup_free_ char *name = xasprintf("[%s]", what);

	*vec_push(&frames->private->chains) = frames_pseudo(frames, name);
}

/*
 * The functions that load a module are as many as ten between the one that imports and the module.
 * One frame stands for them and for what the interpreter does between them.
 */
static void push_run(Frames *frames, ScriptMerge *merge, const ScriptRun *run)
{
	for (size_t i = 0; i < run->count; i++) {
		uint32_t index = merge->list.items[run->first + i];
		bool loads = !frames->native_frames && frames->list.items[index].loader;

		if (loads && merge->folded)
			frames->private->chains.count--;
		if (!loads)
			*vec_push(&frames->private->chains) = index;
		else if (!merge->loading)
			push_stand_in(frames, merge->loader_name);
		merge->loading = loads;
		merge->folded = false;
	}
}

/* Pushes what the innermost frame of C that runs script code runs, and has not been pushed. */
static void push_rest(Frames *frames, ScriptMerge *merge, const ScriptRun *run)
{
	const ScriptRun *end = vec_at(&merge->runs, merge->runs.count);

	for (run++; run < end; run++)
		push_run(frames, merge, run);
}

void script_merge_push_all(Frames *frames, ScriptMerge *merge)
{
	for (size_t i = 0; i < merge->runs.count; i++)
		push_run(frames, merge, &merge->runs.items[i]);
}

void script_merge_push(Frames *frames, ScriptMerge *merge, size_t i, const Place *place)
{
	const Frame *frame = &frames->list.items[place->first];
	const char *name = strings_get(&frames->strings, frame->function);
	const ScriptRun *run = script_evaluated(name) ? run_of(merge, merge->call++) : NULL;

	if (run) {
		if (frames->native_frames)
			frames_push_place(frames->private, place);
		push_run(frames, merge, run);
		if (i == merge->inner)
			push_rest(frames, merge, run);
		return;
	}
	/* A function that only passes a call on does not say what the innermost one has called. */
	if (!frames->native_frames && i > 0 && i < merge->inner && frame->lib == merge->lib &&
	    is_glue(name))
		return;
	if (frames->native_frames || i <= merge->inner || !strcmp(name, "_start") ||
	    frame->lib != merge->lib || frame->lib == LIBRARY_NONE) {
		frames_push_place(frames->private, place);
		merge->folded = merge->loading = false;
		return;
	}
	if (merge->folded || merge->loading || is_glue(name))
		return;
	push_stand_in(frames, frames->libraries.items[frame->lib].name);
	merge->folded = true;
}
