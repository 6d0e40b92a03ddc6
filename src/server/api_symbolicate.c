/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "api_symbolicate.h"
#include "served_symbols.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define JOBS_MAX      64
#define MODULES_MAX   1000  /* per job */
#define ADDRESSES_MAX 50000 /* per request; the viewer sends 10,000 at most */

/* One library of a job's memoryMap. */
typedef struct Module {
	const char *name, *id;
	const ServedLib *lib; /* NULL: not in the profile */
	VEC(uint64_t) addresses;
	ServedSymbols symbols;
	int error;
} Module;

typedef VEC(Module) Modules;

static json_t *error_json(const char *why)
{
	return json_pack("{s:s}", "error", why);
}

static void free_modules(Modules *modules)
{
	for (size_t i = 0; i < modules->count; i++) {
		vec_free(&modules->items[i].addresses);
		served_symbols_free(&modules->items[i].symbols);
	}
	vec_free(modules);
}

/* ---- the request --------------------------------------------------------------------------- */

static bool read_modules(const json_t *map, const ProfileLibs *libs, Modules *modules)
{
	const json_t *row;
	size_t i;

	if (!json_is_array(map) || json_array_size(map) > MODULES_MAX)
		return false;
	json_array_foreach(map, i, row)
	{
		const char *name = json_string_value(json_array_get(row, 0));
		const char *id = json_string_value(json_array_get(row, 1));

		if (!name || !id)
			return false;
		*vec_push(modules) =
			(Module){.name = name, .id = id, .lib = profile_libs_find(libs, name, id)};
	}
	return true;
}

/* A frame is [index in the memory map, address]. */
static bool read_frame(const json_t *frame, size_t modules, size_t *ret_module,
		       uint64_t *ret_address)
{
	const json_t *module = json_array_get(frame, 0), *address = json_array_get(frame, 1);

	if (!json_is_integer(module) || !json_is_integer(address) ||
	    json_integer_value(module) < 0 || json_integer_value(address) < 0 ||
	    (uint64_t)json_integer_value(module) >= modules)
		return false;
	*ret_module = json_integer_value(module);
	*ret_address = json_integer_value(address);
	return true;
}

static bool read_addresses(const json_t *stacks, Modules *modules, size_t *room)
{
	const json_t *stack, *frame;
	size_t i, j;

	if (!json_is_array(stacks))
		return false;
	json_array_foreach(stacks, i, stack)
	{
		if (!json_is_array(stack))
			return false;
		json_array_foreach(stack, j, frame)
		{
			uint64_t address;
			size_t module;

			if (!read_frame(frame, modules->count, &module, &address) || *room == 0)
				return false;
			(*room)--;
			*vec_push(&modules->items[module].addresses) = address;
		}
	}
	return true;
}

static int compare_addresses(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void resolve_module(ElfIdentifier *identifier, uint64_t deadline_ns, Module *module)
{
	size_t count = 0;

	module->error = module->lib ? 0 : -ENOENT;
	if (module->error || module->addresses.count == 0)
		return;
	qsort(module->addresses.items, module->addresses.count, sizeof(uint64_t),
	      compare_addresses);
	for (size_t i = 0; i < module->addresses.count; i++)
		if (i == 0 || module->addresses.items[i] != module->addresses.items[count - 1])
			module->addresses.items[count++] = module->addresses.items[i];
	module->error = served_symbols_resolve(identifier, module->lib, module->addresses.items,
					       count, deadline_ns, &module->symbols);
}

/* ---- the answer ---------------------------------------------------------------------------- */

static json_t *hex(uint64_t number)
{
	char text[24];

	snprintf(text, sizeof(text), "0x%" PRIx64, number);
	return json_string(text);
}

/* Names come from files and may not be valid UTF-8. */
static void set_text(json_t *object, const char *key, const char *text)
{
	json_t *value = *text ? json_string(text) : NULL;

	if (value)
		json_object_set_new(object, key, value);
}

static void put_location(json_t *object, const char *name, const char *source, uint32_t line)
{
	set_text(object, "function", name);
	set_text(object, "file", source);
	if (line > 0)
		json_object_set_new(object, "line", json_integer(line));
}

/*
 * The record begins with the outermost function; the answer has the innermost inlined function
 * first.
 */
static void set_names(json_t *frame, const struct rec_symbol *symbol, uint64_t svma)
{
	json_t *inlines = symbol->count > 1 ? json_array() : NULL;
	const char *at = symbol->text;

	/* What is called by a planted return address begins behind it. */
	if (svma >= symbol->function)
		json_object_set_new(frame, "function_offset", hex(svma - symbol->function));
	if (symbol->function_size)
		json_object_set_new(frame, "function_size", hex(symbol->function_size));
	for (uint32_t i = 0; i < symbol->count; i++) {
		const char *name = at + sizeof(uint32_t), *source = name + strlen(name) + 1;
		uint32_t line;

		memcpy(&line, at, sizeof(line));
		if (i == 0) {
			put_location(frame, name, source, line);
		} else {
			json_t *inlined = json_object();

			put_location(inlined, name, source, line);
			json_array_insert_new(inlines, 0, inlined);
		}
		at = source + strlen(source) + 1;
	}
	if (inlines)
		json_object_set_new(frame, "inlines", inlines);
}

static json_t *answer_frame(const Modules *modules, const json_t *request, size_t index)
{
	const struct rec_symbol *symbol;
	const Module *module;
	uint64_t address;
	size_t module_index;
	json_t *frame;

	read_frame(request, modules->count, &module_index, &address);
	module = &modules->items[module_index];
	frame = json_pack("{s:i, s:s, s:o}", "frame", (int)index, "module", module->name,
			  "module_offset", hex(address));
	symbol = served_symbols_find(&module->symbols, address);
	if (symbol)
		set_names(frame, symbol, module->symbols.base_svma + address);
	return frame;
}

static json_t *answer_stacks(const Modules *modules, const json_t *request)
{
	json_t *stacks = json_array();
	const json_t *stack, *frame;
	size_t i, j;

	json_array_foreach(request, i, stack)
	{
		json_t *frames = json_array();

		json_array_foreach(stack, j, frame)
			json_array_append_new(frames, answer_frame(modules, frame, j));
		json_array_append_new(stacks, frames);
	}
	return stacks;
}

static json_t *answer_job(const Modules *modules, const json_t *stacks)
{
	json_t *found = json_object(), *errors = json_object();

	for (size_t i = 0; i < modules->count; i++) {
		const Module *module = &modules->items[i];
		_cleanup_free_ char *key = xasprintf("%s/%s", module->name, module->id);

		json_object_set_new(found, key, json_boolean(!module->error));
		if (module->error)
			json_object_set_new(errors, key,
					    json_pack("[{s:s, s:s}]", "name", "NotFound", "message",
						      module->lib
							      ? served_symbols_error(module->error)
							      : "no such library in the profile"));
	}
	return json_pack("{s:o, s:o, s:o}", "stacks", answer_stacks(modules, stacks),
			 "found_modules", found, "module_errors", errors);
}

/* Returns NULL if the job is malformed. */
static json_t *process_job(ElfIdentifier *identifier, const ProfileLibs *libs, const json_t *job,
			   uint64_t deadline_ns, size_t *room)
{
	const json_t *stacks = json_object_get(job, "stacks");
	json_t *answer = NULL;
	Modules modules = {};

	if (read_modules(json_object_get(job, "memoryMap"), libs, &modules) &&
	    read_addresses(stacks, &modules, room)) {
		for (size_t i = 0; i < modules.count; i++)
			resolve_module(identifier, deadline_ns, &modules.items[i]);
		answer = answer_job(&modules, stacks);
	}
	free_modules(&modules);
	return answer;
}

json_t *api_symbolicate(ElfIdentifier *identifier, const ProfileLibs *libs, const json_t *request)
{
	const json_t *jobs = json_object_get(request, "jobs"), *job;
	uint64_t deadline_ns = now_ns() + SERVED_SECONDS * NSEC_PER_SEC;
	size_t room = ADDRESSES_MAX, i;
	json_t *results;

	if (!json_is_array(jobs) || json_array_size(jobs) > JOBS_MAX)
		return error_json("expected at most 64 jobs");
	results = json_array();
	json_array_foreach(jobs, i, job)
	{
		json_t *result = process_job(identifier, libs, job, deadline_ns, &room);

		if (!result) {
			json_decref(results);
			return error_json(
				"expected jobs with memoryMap and stacks, and at most 50,000 "
				"addresses");
		}
		json_array_append_new(results, result);
	}
	return json_pack("{s:o}", "results", results);
}
