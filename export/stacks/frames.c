/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * frames.c - names for addresses; frames_stacks.c combines them to stacks.
 *
 * Three things are interned: places (an address in a library, with the frames it stands for,
 * inlined ones included), frames, and resolved stacks. A resolved user stack is found by (stack,
 * process, generation of its mappings), a kernel stack by (stack, kind of its leaf), so each stack
 * is resolved once however often it occurs.
 */
#include "frames_private.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

Frames *frames_new(void)
{
	Frames *frames = xcalloc(1, sizeof(*frames));

	frames->spaces = address_spaces_new();
	frames->private = xcalloc(1, sizeof(*frames->private));
	return frames;
}

void frames_free(Frames *frames)
{
	struct FramesPrivate *private;

	if (!frames)
		return;
	private = frames->private;
	for (size_t i = 0; i < private->symbols.count; i++)
		free(private->symbols.items[i]);
	vec_free(&private->symbols);
	map_free(&private->symbol_index);
	map_free(&private->planted);
	vec_free(&private->file_libraries);
	map_free(&private->module_libraries);
	vec_free(&private->places);
	map_free(&private->place_index);
	vec_free(&private->resolved);
	map_free(&private->resolved_index);
	vec_free(&private->chains);
	map_free(&private->pseudo);
	vec_free(&private->result);
	vec_free(&private->called);
	script_code_free(&private->scripts);
	map_free(&private->script_lines);
	strings_free(&private->script_functions);
	free(private);
	address_spaces_free(frames->spaces);
	strings_free(&frames->strings);
	for (size_t i = 0; i < frames->texts.count; i++)
		free(frames->texts.items[i].text);
	vec_free(&frames->texts);
	strings_free(&frames->text_paths);
	vec_free(&frames->libraries);
	vec_free(&frames->list);
	free(frames);
}

const struct rec_symbol *frames_symbol(const struct FramesPrivate *private, uint32_t file,
				       uint64_t address)
{
	uint32_t i = map_get(&private->symbol_index, hash_mix(file, address));
	const struct rec_symbol *symbol = i == MAP_NONE ? NULL : private->symbols.items[i];

	return symbol && symbol->file == file && symbol->address == address ? symbol : NULL;
}

static void add_symbol(struct FramesPrivate *private, const struct rec_symbol *symbol)
{
	struct rec_symbol *copy;

	if (symbol->count == 0 || frames_symbol(private, symbol->file, symbol->address))
		return;
	copy = xmalloc(symbol->h.len);
	memcpy(copy, symbol, symbol->h.len);
	map_set(&private->symbol_index, hash_mix(symbol->file, symbol->address),
		private->symbols.count);
	*vec_push(&private->symbols) = copy;
	if (symbol->h.flags & SYMBOL_PLANTED)
		map_set(&private->planted, hash_mix(symbol->file, symbol->function), 1);
}

/* Copies a record that capture_check() has verified. Of several with one path the first counts. */
static void add_source(Frames *frames, const struct rec_source *source)
{
	SourceText text = {.size = source->text_size};

	if (strings_intern(&frames->text_paths, source->data) < frames->texts.count)
		return;
	text.text = xmalloc(text.size + 1);
	memcpy(text.text, source->data + strlen(source->data) + 1, text.size);
	text.text[text.size] = '\0';
	*vec_push(&frames->texts) = text;
}

void frames_add(Frames *frames, const struct record *record)
{
	if (record->kind == REC_SYMBOL)
		add_symbol(frames->private, (const struct rec_symbol *)record);
	else if (record->kind == REC_SOURCE)
		add_source(frames, (const struct rec_source *)record);
	else if (record->kind == REC_SCRIPT_CODE)
		script_code_add(&frames->private->scripts, (const struct rec_script_code *)record);
	else
		address_spaces_add(frames->spaces, record);
}

const SourceText *frames_source_text(const Frames *frames, const char *path)
{
	uint32_t number = strings_find(&frames->text_paths, path);

	return number == MAP_NONE ? NULL : &frames->texts.items[number];
}

/* ---- libraries ------------------------------------------------------------ */

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

/*
 * The kernel names memory without a file "", "//anon" or "/anon_hugepage (deleted)", and
 * "/dev/zero (deleted)" or "/SYSV..." if processes share it (mm/shmem.c, ipc/shm.c).
 */
static const char *library_name(const MappedFile *file)
{
	if (!(file->flags & FILE_ANON) || *file->path == '[')
		return base_name(file->path);
	return !strncmp(file->path, "/dev/zero", 9) || !strncmp(file->path, "/SYSV", 5)
		       ? "[shared anon]"
		       : "[anon]";
}

static uint32_t file_library(Frames *frames, const MappedFile *file)
{
	struct FramesPrivate *private = frames->private;

	while (private->file_libraries.count <= file->id)
		*vec_push(&private->file_libraries) = LIBRARY_NONE;
	if (private->file_libraries.items[file->id] == LIBRARY_NONE) {
		private->file_libraries.items[file->id] = frames->libraries.count;
		*vec_push(&frames->libraries) = (Library){
			.name = library_name(file),
			.path = file->path,
			.file = file->id,
			.build_id = file->build_id,
			.build_id_len = file->build_id_len,
			.flags = file->flags,
		};
	}
	return private->file_libraries.items[file->id];
}

/* Returns the library with this name, which is in no file; it is added if it is new. */
static uint32_t library_by_name(Frames *frames, const char *name, bool kernel)
{
	struct FramesPrivate *private = frames->private;
	uint32_t string = strings_intern(&frames->strings, name);
	uint32_t library = map_get(&private->module_libraries, string);

	if (library != MAP_NONE)
		return library;
	library = frames->libraries.count;
	map_set(&private->module_libraries, string, library);
	name = strings_get(&frames->strings, string);
	*vec_push(&frames->libraries) = (Library){.name = name, .path = name, .kernel = kernel};
	return library;
}

uint32_t frames_library(Frames *frames, const char *name)
{
	return library_by_name(frames, name, /* kernel= */ false);
}

static uint32_t kernel_library(Frames *frames, const struct rec_symbol *symbol)
{
	return library_by_name(
		frames, symbol && symbol->lib ? symbol->text + symbol->lib : "[kernel.kallsyms]",
		/* kernel= */ true);
}

/* ---- frames --------------------------------------------------------------- */

uint32_t frames_pseudo(Frames *frames, const char *name)
{
	uint32_t string = strings_intern(&frames->strings, name);
	uint32_t frame = map_get(&frames->private->pseudo, string);

	if (frame != MAP_NONE)
		return frame;
	frame = frames->list.count;
	map_set(&frames->private->pseudo, string, frame);
	*vec_push(&frames->list) = (Frame){
		.function = string,
		.lib = LIBRARY_NONE,
		.address = UINT64_MAX,
		.function_start = UINT64_MAX,
		.source = UINT32_MAX,
		.named = true,
	};
	return frame;
}

static uint64_t relative(uint64_t address, uint64_t base)
{
	return address >= base ? address - base : address;
}

/* The calls are at multiples of 1024 (arch/x86/include/uapi/asm/vsyscall.h). */
#define VSYSCALL_SIZE 1024

/* What is known of an address before its frames are made. */
typedef struct Origin {
	const struct rec_symbol *symbol; /* NULL: no name */
	const char *call;		 /* the name of a call in the vsyscall page, or NULL */
	uint32_t lib;
	bool kernel;
	uint64_t address; /* as looked up */
	uint64_t base;
} Origin;

static void add_named_frames(Frames *frames, const Origin *origin)
{
	const struct rec_symbol *symbol = origin->symbol;
	const char *p = symbol->text;
	bool begins_fiber = map_get(&frames->private->planted,
				    hash_mix(symbol->file, symbol->function)) != MAP_NONE;

	/* capture_check() has verified that all of this is inside the record. */
	for (uint32_t i = 0; i < symbol->count; i++) {
		const char *name = p + sizeof(u32);
		const char *source = name + strlen(name) + 1;
		u32 line;

		memcpy(&line, p, sizeof(line));
		p = source + strlen(source) + 1;
		*vec_push(&frames->list) = (Frame){
			.function = strings_intern(&frames->strings, name),
			.lib = origin->lib,
			.address = relative(origin->address, origin->base),
			.function_start = relative(symbol->function, origin->base),
			.function_size = symbol->function_size,
			.source = *source ? strings_intern(&frames->strings, source) : UINT32_MAX,
			.line = line,
			.inline_depth = MIN(i, UINT8_MAX),
			.kernel = origin->kernel,
			.named = true,
			.nameless = symbol->h.flags & SYMBOL_NAMELESS,
			.planted = symbol->h.flags & SYMBOL_PLANTED,
			.begins_fiber = begins_fiber,
		};
	}
}

static void add_vsyscall_frame(Frames *frames, const Origin *origin)
{
	uint64_t address = relative(origin->address, origin->base);

	*vec_push(&frames->list) = (Frame){
		.function = strings_intern(&frames->strings, origin->call),
		.lib = origin->lib,
		.address = address,
		.function_start = address & ~(VSYSCALL_SIZE - 1ULL),
		.function_size = VSYSCALL_SIZE,
		.source = UINT32_MAX,
		.named = true,
	};
}

static void add_unnamed_frame(Frames *frames, const Origin *origin)
{
	uint64_t address = relative(origin->address, origin->base);
	_cleanup_free_ char *name = NULL;

	if (origin->lib == LIBRARY_NONE)
		name = xasprintf("0x%" PRIx64, origin->address);
	else
		/* Kernel addresses are absolute, so that they can be compared with kallsyms. */
		name = xasprintf("0x%" PRIx64 " (%s)", origin->kernel ? origin->address : address,
				 frames->libraries.items[origin->lib].name);
	*vec_push(&frames->list) = (Frame){
		.function = strings_intern(&frames->strings, name),
		.lib = origin->lib,
		.address = address,
		.function_start = address,
		.source = UINT32_MAX,
		.kernel = origin->kernel,
	};
}

static const Place *intern_place(Frames *frames, const Origin *origin)
{
	struct FramesPrivate *private = frames->private;
	uint64_t key = hash_mix(origin->lib, origin->address);
	uint32_t same = map_get(&private->place_index, key);
	Place *place;

	for (uint32_t i = same; i != MAP_NONE; i = private->places.items[i].next)
		if (private->places.items[i].lib == origin->lib &&
		    private->places.items[i].address == origin->address)
			return &private->places.items[i];
	map_set(&private->place_index, key, private->places.count);
	place = vec_push(&private->places);
	*place = (Place){
		.lib = origin->lib,
		.address = origin->address,
		.first = frames->list.count,
		.next = same,
	};
	if (origin->symbol)
		add_named_frames(frames, origin);
	else if (origin->call)
		add_vsyscall_frame(frames, origin);
	else
		add_unnamed_frame(frames, origin);
	place->count = frames->list.count - place->first;
	return place;
}

static const Place *file_place(Frames *frames, uint32_t ns_tgid, uint64_t ns, uint64_t avma)
{
	Location location = address_spaces_locate(frames->spaces, ns_tgid, ns, avma);
	Origin origin = {.lib = LIBRARY_NONE, .address = avma};

	if (location.file) {
		origin.lib = file_library(frames, location.file);
		origin.address = location.svma;
		origin.base = location.file->base_svma;
		origin.symbol = frames_symbol(frames->private, location.file->id, location.svma);
		if (origin.symbol && origin.symbol->h.flags & SYMBOL_DATA)
			origin.symbol = NULL;
	}
	return intern_place(frames, &origin);
}

/* Returns the place of an address in the vsyscall page, which is in no file. */
static const Place *vsyscall_place(Frames *frames, uint64_t avma)
{
	static const char *const names[] = {"gettimeofday", "time", "getcpu"};
	uint64_t page = VSYSCALL_PAGE << VSYSCALL_SHIFT;
	size_t call = (avma - page) / VSYSCALL_SIZE;
	Origin origin = {
		.lib = library_by_name(frames, "[vsyscall]", /* kernel= */ false),
		.call = call < ARRAY_LEN(names) ? names[call] : NULL,
		.address = avma,
		.base = page,
	};

	return intern_place(frames, &origin);
}

const Place *frames_user_place(Frames *frames, uint32_t ns_tgid, uint64_t ns, uint64_t avma)
{
	if (IS_VSYSCALL(avma))
		return vsyscall_place(frames, avma);
	return file_place(frames, ns_tgid, ns, avma);
}

bool frames_variable(Frames *frames, uint32_t ns_tgid, uint64_t ns, uint64_t avma,
		     Variable *ret_variable)
{
	Location location = address_spaces_locate_data(frames->spaces, ns_tgid, ns, avma);
	const struct rec_symbol *symbol =
		location.file ? frames_symbol(frames->private, location.file->id, location.svma)
			      : NULL;

	if (!symbol || !(symbol->h.flags & SYMBOL_DATA))
		return false;
	*ret_variable = (Variable){
		.name = symbol->text + sizeof(u32),
		.library = library_name(location.file),
		.offset = location.svma - symbol->function,
	};
	return true;
}

const Place *frames_kernel_place(Frames *frames, uint64_t avma)
{
	const struct rec_symbol *symbol = frames_symbol(frames->private, 0, avma);
	Origin origin = {
		.symbol = symbol,
		.lib = kernel_library(frames, symbol),
		.kernel = true,
		.address = avma,
		.base = FRAMES_KERNEL_BASE,
	};

	return intern_place(frames, &origin);
}
