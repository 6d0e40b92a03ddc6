/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "stack_table.h"
#include "recording_cost.h"
#include "text.h"

#define STATE_RESOURCE "wallprof thread state"

/* Column values of frameTable and funcTable rows that mean "none". */
#define NONE UINT32_MAX

#define GUID_BYTES 16

static uint64_t pair(uint32_t high, uint32_t low)
{
	return (uint64_t)high << 32 | low;
}

uint32_t stack_table_string(StackTable *tables, const char *s)
{
	_cleanup_free_ char *clean = utf8_sanitize(s);

	return strings_intern(&tables->strings, clean ? clean : s);
}

/* Returns the index of key in a Map that counts its keys; sets *ret_new if it is new. */
static uint32_t map_number(Map *map, uint64_t key, bool *ret_new)
{
	uint32_t number = map_get(map, key);

	*ret_new = number == MAP_NONE;
	if (*ret_new) {
		number = map->count;
		map_set(map, key, number);
	}
	return number;
}

/*
 * Breakpad's id: the build id's first 16 bytes as a GUID, whose first three
 * fields are little-endian, and an age of 0. A library without a build id gets
 * one from its path: the viewer needs the pair of name and id to be unique.
 */
static char *breakpad_id(const Library *library)
{
	static const uint8_t order[GUID_BYTES] = {3, 2, 1,  0,	5,  4,	7,  6,
						  8, 9, 10, 11, 12, 13, 14, 15};
	uint8_t id[GUID_BYTES] = {}, guid[GUID_BYTES];
	char *text = xmalloc(2 * GUID_BYTES + 2);

	if (library->build_id_len > 0) {
		memcpy(id, library->build_id, MIN((size_t)library->build_id_len, sizeof(id)));
	} else {
		uint64_t hash[2] = {};

		for (const char *p = library->path; p && *p; p++) {
			hash[0] = hash_mix(hash[0], (uint8_t)*p);
			hash[1] = hash_mix(hash[1], hash[0]);
		}
		memcpy(id, hash, sizeof(id));
	}
	for (size_t i = 0; i < GUID_BYTES; i++)
		guid[i] = id[order[i]];
	strcpy(text_hex(text, guid, GUID_BYTES, "0123456789ABCDEF"), "0");
	return text;
}

/* The viewer splits "debugName/breakpadId" at the slash. */
static char *debug_name(const Library *library)
{
	char *name = xstrdup(library->name);

	for (char *p = name; *p; p++)
		if (*p == '/')
			*p = '_';
	return name;
}

/* Two libraries of the same name and id are one file under two paths: one row. */
static uint32_t add_lib(StackTable *tables, uint32_t library)
{
	const Library *info = &tables->frames->libraries.items[library];
	LibRow row = {library, debug_name(info), breakpad_id(info)};
	_cleanup_free_ char *key = xasprintf("%s/%s", row.debug_name, row.breakpad_id);
	uint32_t number = strings_intern(&tables->lib_keys, key);

	if (number == tables->libs.count) {
		*vec_push(&tables->libs) = row;
	} else {
		free(row.debug_name);
		free(row.breakpad_id);
	}
	return number;
}

/* Returns the row in libs of a library. */
static uint32_t lib_row(StackTable *tables, uint32_t library)
{
	while (tables->lib_of.count <= library)
		*vec_push(&tables->lib_of) = NONE;
	if (tables->lib_of.items[library] == NONE)
		tables->lib_of.items[library] = add_lib(tables, library);
	return tables->lib_of.items[library];
}

static uint32_t library_resource(StackTable *tables, uint32_t library)
{
	bool is_new;
	uint32_t lib = lib_row(tables, library);
	uint32_t resource = map_number(&tables->resource_index, lib, &is_new);

	if (is_new)
		*vec_push(&tables->resources) = (ResourceRow){
			.name = stack_table_string(tables,
						   tables->frames->libraries.items[library].name),
			.lib = lib,
		};
	return resource;
}

static uint32_t state_resource(StackTable *tables)
{
	bool is_new;
	uint32_t resource = map_number(&tables->resource_index, NONE, &is_new);

	if (is_new)
		*vec_push(&tables->resources) = (ResourceRow){
			.name = stack_table_string(tables, STATE_RESOURCE), .lib = NONE};
	return resource;
}

static uint32_t source_row(StackTable *tables, uint32_t string)
{
	bool is_new;
	uint32_t filename, source;

	if (string == NONE)
		return NONE;
	filename = stack_table_string(tables, strings_get(&tables->frames->strings, string));
	source = map_number(&tables->source_index, filename, &is_new);
	if (is_new)
		*vec_push(&tables->sources) = (SourceRow){filename, string};
	return source;
}

static uint32_t func_row(StackTable *tables, uint32_t name, uint32_t resource, uint32_t source,
			 bool script)
{
	bool is_new;
	uint32_t origin = map_number(&tables->origin_index, pair(resource, source), &is_new);
	uint32_t func = map_number(&tables->func_index, pair(name, origin), &is_new);

	if (is_new)
		*vec_push(&tables->funcs) = (FuncRow){name, resource, source, script};
	return func;
}

/*
 * The viewer stores addresses in 32 bits, signed. One that does not fit (kernel addresses are
 * absolute) is omitted, because only its name matters.
 */
static bool address_fits(uint64_t address)
{
	return address <= INT32_MAX;
}

static uint32_t native_symbol(StackTable *tables, const Frame *frame, uint32_t name,
			      uint32_t resource)
{
	bool is_new;
	uint32_t symbol;

	if (!frame->named || frame->script || frame->lib == LIBRARY_NONE ||
	    !address_fits(frame->address) || !address_fits(frame->function_start))
		return NONE;
	symbol = map_number(&tables->native_index, pair(resource, frame->function_start), &is_new);
	if (is_new)
		*vec_push(&tables->natives) = (NativeRow){
			.lib = tables->resources.items[resource].lib,
			.address = frame->function_start,
			.name = name,
			.size = frame->function_size,
		};
	return symbol;
}

/* outer is the row of the real function around an inlined one, or NONE. */
static uint32_t add_frame(StackTable *tables, const Frame *frame, uint32_t outer)
{
	uint32_t name =
		stack_table_string(tables, strings_get(&tables->frames->strings, frame->function));
	uint32_t resource = frame->lib == LIBRARY_NONE
				    ? (frame->address == UINT64_MAX ? state_resource(tables) : NONE)
				    : library_resource(tables, frame->lib);
	FrameRow row = {
		.func = func_row(tables, name, resource, source_row(tables, frame->source),
				 frame->script),
		.native = NONE,
		.frame = frame - tables->frames->list.items,
		.line = frame->line,
		.address =
			frame->lib != LIBRARY_NONE && !frame->script && address_fits(frame->address)
				? (int32_t)frame->address
				: -1,
		.inline_depth = frame->inline_depth,
		.category = frame->kernel ? CATEGORY_KERNEL : CATEGORY_USER,
	};

	if (frame->inline_depth == 0)
		row.native = native_symbol(tables, frame, name, resource);
	else if (outer != NONE)
		row.native = tables->frame_rows.items[outer].native;
	*vec_push(&tables->frame_rows) = row;
	return tables->frame_rows.count - 1;
}

/* Returns the row of a frame of Frames. */
static uint32_t frame_row(StackTable *tables, uint32_t index, uint32_t outer)
{
	while (tables->frame_of.count <= index)
		*vec_push(&tables->frame_of) = NONE;
	if (tables->frame_of.items[index] == NONE) {
		const Frame *frame = &tables->frames->list.items[index];

		tables->frame_of.items[index] = add_frame(tables, frame, outer);
	}
	return tables->frame_of.items[index];
}

static uint32_t name_row(StackTable *tables, const char *name, uint32_t resource,
			 enum category category)
{
	uint32_t func = func_row(tables, stack_table_string(tables, name), resource, NONE,
				 /* script= */ false);
	bool is_new;
	uint32_t number = map_number(&tables->pseudo_index, pair(func, category), &is_new);

	if (is_new) {
		*vec_push(&tables->frame_rows) = (FrameRow){
			.func = func,
			.native = NONE,
			.frame = NONE,
			.address = -1,
			.category = category,
		};
		*vec_push(&tables->pseudo_rows) = tables->frame_rows.count - 1;
	}
	return tables->pseudo_rows.items[number];
}

static uint32_t pseudo_row(StackTable *tables, const char *name, enum category category)
{
	return name_row(tables, name, state_resource(tables), category);
}

static uint32_t push_stack(StackTable *tables, uint32_t prefix, uint32_t frame)
{
	bool is_new;
	uint32_t stack = map_number(&tables->stack_index, pair(prefix, frame), &is_new);

	if (is_new)
		*vec_push(&tables->stacks) = (StackRow){prefix, frame};
	return stack;
}

uint32_t stack_table_pseudo_stack(StackTable *tables, uint32_t prefix, const char *name,
				  enum category category)
{
	return push_stack(tables, prefix, pseudo_row(tables, name, category));
}

uint32_t stack_table_named_stack(StackTable *tables, uint32_t prefix, const char *name,
				 enum category category)
{
	return push_stack(tables, prefix, name_row(tables, name, NONE, category));
}

static size_t last_slot(uint32_t a, uint32_t b)
{
	return (a * 0x9e3779b1U ^ b * 0x85ebca6bU) >> 22 & (LAST_STACKS - 1);
}

static uint32_t find_below(StackTable *tables, uint32_t root, uint32_t stack)
{
	uint32_t below;
	StackRow row;

	below = map_get(&tables->below_index, pair(root, stack));
	if (below != MAP_NONE)
		return below;
	row = tables->stacks.items[stack];
	below = push_stack(tables, stack_table_below(tables, root, row.prefix), row.frame);
	map_set(&tables->below_index, pair(root, stack), below);
	return below;
}

uint32_t stack_table_below(StackTable *tables, uint32_t root, uint32_t stack)
{
	LastBelow *last = &tables->last_below[last_slot(root, stack)];

	if (root == NONE || stack == NONE)
		return stack == NONE ? root : stack;
	if (!last->below_after || last->root != root || last->stack != stack)
		*last = (LastBelow){root, stack, find_below(tables, root, stack) + 1};
	return last->below_after - 1;
}

/*
 * Returns the pseudo frame that a stack ends with, or NONE. A tick in the kernel whose kernel
 * frames are missing must not look like user code; a stack is never empty.
 */
static uint32_t leaf_row(StackTable *tables, const StackRef *ref, uint32_t last)
{
	switch (ref->leaf) {
	case LEAF_USER:
	case LEAF_TICK_USER:
		return last == NONE ? pseudo_row(tables, "[no stack]", CATEGORY_USER) : NONE;
	case LEAF_KERNEL:
		return last != NONE && tables->frame_rows.items[last].category == CATEGORY_KERNEL
			       ? NONE
			       : pseudo_row(tables, "[kernel]", CATEGORY_KERNEL);
	case LEAF_NOT_ALIVE:
		return pseudo_row(tables, "[not alive]", CATEGORY_IDLE);
	case LEAF_HIDDEN:
		return pseudo_row(tables, "[hidden]", CATEGORY_IDLE);
	case LEAF_RECORDING:
		return pseudo_row(tables, RECORDING_FUNCTION, CATEGORY_RECORDING);
	default:
		return pseudo_row(tables, reason_info[ref->leaf - LEAF_REASON].leaf,
				  reason_info[ref->leaf - LEAF_REASON].category);
	}
}

static uint32_t build_stack(StackTable *tables, const StackRef *ref)
{
	uint32_t stack = NONE, outer = NONE, last = NONE, leaf;
	const uint32_t *indexes = NULL;
	size_t count = 0;

	if (ref->user_stack != STACK_NONE || ref->kernel_stack != STACK_NONE)
		count = frames_resolve(tables->frames, tables->timeline, ref->ns_tgid, ref->ns,
				       ref->user_stack, ref->kernel_stack, ref->leaf == LEAF_KERNEL,
				       &indexes);
	for (size_t i = 0; i < count; i++) {
		last = frame_row(tables, indexes[i], outer);
		if (tables->frame_rows.items[last].inline_depth == 0)
			outer = last;
		stack = push_stack(tables, stack, last);
	}
	if (ref->unsampled) {
		last = pseudo_row(tables, UNSAMPLED_FUNCTION,
				  ref->leaf < LEAF_REASON
					  ? CATEGORY_USER
					  : reason_info[ref->leaf - LEAF_REASON].category);
		stack = push_stack(tables, stack, last);
	}
	leaf = leaf_row(tables, ref, last);
	return leaf == NONE ? stack : push_stack(tables, stack, leaf);
}

static bool same_key(const StackKey *a, const StackKey *b)
{
	return a->user_stack == b->user_stack && a->kernel_stack == b->kernel_stack &&
	       a->ns_tgid == b->ns_tgid && a->generation == b->generation && a->leaf == b->leaf &&
	       a->unsampled == b->unsampled;
}

static uint32_t find_stack(StackTable *tables, const StackRef *ref, StackKey key)
{
	uint64_t hash;
	uint32_t first, entry;

	hash = hash_mix(pair(key.user_stack, key.kernel_stack),
			hash_mix(pair(key.ns_tgid, key.generation), key.leaf << 1 | key.unsampled));
	first = map_get(&tables->cache_index, hash);
	for (entry = first; entry != MAP_NONE; entry = tables->cache.items[entry].next)
		if (same_key(&tables->cache.items[entry].key, &key))
			return tables->cache.items[entry].stack;
	*vec_push(&tables->cache) = (CacheEntry){key, build_stack(tables, ref), first};
	map_set(&tables->cache_index, hash, tables->cache.count - 1);
	return tables->cache.items[tables->cache.count - 1].stack;
}

/*
 * Stacks are looked up by what can change the result, which includes the mappings of a process only
 * if the stack has user frames.
 */
uint32_t stack_table_stack(StackTable *tables, const StackRef *ref)
{
	StackKey key = {.user_stack = ref->user_stack,
			.kernel_stack = ref->kernel_stack,
			.leaf = ref->leaf,
			.unsampled = ref->unsampled};
	LastStack *last =
		&tables->last_stacks[last_slot(ref->user_stack + ref->leaf, ref->kernel_stack)];

	if (ref->user_stack != STACK_NONE) {
		key.ns_tgid = ref->ns_tgid;
		key.generation =
			address_spaces_generation(tables->frames->spaces, ref->ns_tgid, ref->ns);
	}
	if (!last->stack_after || !same_key(&last->key, &key))
		*last = (LastStack){key, find_stack(tables, ref, key) + 1};
	return last->stack_after - 1;
}

static const FrameRow *leaf_frame(const StackTable *tables, uint32_t stack)
{
	return &tables->frame_rows.items[tables->stacks.items[stack].frame];
}

uint32_t stack_table_leaf_function(const StackTable *tables, uint32_t stack)
{
	return leaf_frame(tables, stack)->func;
}

uint32_t stack_table_stack_prefix(const StackTable *tables, uint32_t stack)
{
	return tables->stacks.items[stack].prefix;
}

const char *stack_table_leaf_name(const StackTable *tables, uint32_t stack)
{
	uint32_t func = stack_table_leaf_function(tables, stack);

	return strings_get(&tables->strings, tables->funcs.items[func].name);
}

const char *stack_table_leaf_library(const StackTable *tables, uint32_t stack)
{
	uint32_t resource = tables->funcs.items[stack_table_leaf_function(tables, stack)].resource;

	if (resource == NONE || tables->resources.items[resource].lib == NONE)
		return NULL;
	return strings_get(&tables->strings, tables->resources.items[resource].name);
}

enum category stack_table_leaf_category(const StackTable *tables, uint32_t stack)
{
	return leaf_frame(tables, stack)->category;
}

StackTable *stack_table_new(const Timeline *timeline, Frames *frames)
{
	StackTable *tables = xcalloc(1, sizeof(*tables));

	tables->timeline = timeline;
	tables->frames = frames;
	return tables;
}

void stack_table_free(StackTable *tables)
{
	if (!tables)
		return;
	strings_free(&tables->strings);
	for (size_t i = 0; i < tables->libs.count; i++) {
		free(tables->libs.items[i].debug_name);
		free(tables->libs.items[i].breakpad_id);
	}
	vec_free(&tables->libs);
	vec_free(&tables->lib_of);
	strings_free(&tables->lib_keys);
	map_free(&tables->resource_index);
	vec_free(&tables->resources);
	map_free(&tables->source_index);
	vec_free(&tables->sources);
	map_free(&tables->origin_index);
	map_free(&tables->func_index);
	vec_free(&tables->funcs);
	map_free(&tables->native_index);
	vec_free(&tables->natives);
	vec_free(&tables->frame_rows);
	vec_free(&tables->frame_of);
	map_free(&tables->pseudo_index);
	vec_free(&tables->pseudo_rows);
	map_free(&tables->stack_index);
	map_free(&tables->below_index);
	vec_free(&tables->stacks);
	map_free(&tables->cache_index);
	vec_free(&tables->folds);
	vec_free(&tables->cache);
	free(tables);
}
