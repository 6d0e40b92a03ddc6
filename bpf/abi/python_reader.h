/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * python_reader.h - the frames of a thread of CPython, 3.8 and later; script_reader.h says where
 * this code runs.
 *
 * The thread's state is the one whose thread_id, which is pthread_self(), is the base of the
 * thread's fs segment. All of it is memory that the program may change while it is read, or fill
 * with anything. Every walk has a bound, and what cannot be read is marked.
 */
#ifndef WALLPROF_PYTHON_READER_H
#define WALLPROF_PYTHON_READER_H

#include "script_reader.h"

/* The most threads and interpreters that are looked at to find one. */
#define PYTHON_THREADS_MAX 4096
#define PYTHON_CODE_SHIFT  7

/* So much is read of an object; all offsets of struct python_layout but code's are below. */
#define THREAD_BYTES 192
#define FRAME_BYTES  120
#define CODE_BYTES   152

/*
 * _frameowner: FRAME_OWNED_BY_CSTACK, in 3.14 FRAME_OWNED_BY_INTERPRETER, whose frames of that
 * value and above have no code.
 */
#define OWNED_BY_C 3

#define OBJECT_TYPE   8	 /* where an object has the address of its type */
#define OBJECT_VALUES 16 /* where an object of variable size has its own fields */
#define BYTES_SIZE    16 /* PyBytesObject.ob_size and .ob_sval */
#define BYTES_DATA    32
#define TEXT_LENGTH   16 /* PyASCIIObject.length and .state */
#define TEXT_STATE    32
#define TEXT_ASCII    0x60 /* bits of .state: the text is compact and ASCII */
#define TEXT_BYTES    80
#define TEXT_HASHED   32 /* so many bytes of a name are part of the id of code */
#define CODE_COUNTERS 52 /* 3.11: co_warmup, _co_linearray_entry_size */

struct python_walk {
	struct script_scratch *scratch;
	const struct python_layout *layout;
	u64 interpreter;
	u64 idle; /* the first state of the thread that was found to have no frame; 0 = none */
};

static __always_inline int read_object(struct script_scratch *scratch, u32 size, u64 address)
{
	scratch->at = 0;
	return SCRIPT_READ(scratch, scratch->bytes, size, address);
}

static __always_inline int read_word(struct script_scratch *scratch, u64 *ret, u64 address)
{
	return SCRIPT_READ(scratch, ret, sizeof(*ret), address);
}

/* ---- the thread ------------------------------------------------------------------- */

/* Finds the innermost frame of the thread that was read. Returns whether it has one. */
static __always_inline bool has_frame(struct script_scratch *scratch,
				      const struct python_layout *layout)
{
	scratch->frame = script_word(scratch, layout->thread_frame);
	if (scratch->frame && layout->cframe_frame != PYTHON_NO_OFFSET &&
	    read_word(scratch, &scratch->frame, scratch->frame + layout->cframe_frame))
		scratch->frame = 0;
	return scratch->frame;
}

/*
 * Looks at one thread, or goes on to the next interpreter. A thread has a state for each
 * interpreter that it uses: the one with frames is the one that it runs in.
 */
static long try_thread(u32 i, struct python_walk *walk)
{
	struct script_scratch *scratch = walk->scratch;
	const struct python_layout *layout = walk->layout;

	(void)i;
	if (!scratch->thread) {
		if (!walk->interpreter ||
		    read_word(scratch, &scratch->thread, walk->interpreter + layout->threads) ||
		    read_word(scratch, &walk->interpreter,
			      walk->interpreter + layout->next_interpreter)) {
			scratch->thread = 0;
			return 1;
		}
		return 0;
	}
	if (read_object(scratch, THREAD_BYTES, scratch->thread)) {
		scratch->thread = 0;
		return 1;
	}
	if (script_word(scratch, layout->thread_id) == scratch->fs_base) {
		if (has_frame(scratch, layout))
			return 1;
		if (!walk->idle)
			walk->idle = scratch->thread;
	}
	scratch->thread = script_word(scratch, layout->next_thread);
	return 0;
}

static __always_inline bool read_thread(struct script_scratch *scratch,
					const struct python_layout *layout)
{
	return scratch->thread && !read_object(scratch, THREAD_BYTES, scratch->thread) &&
	       script_word(scratch, layout->thread_id) == scratch->fs_base;
}

/*
 * Looks for the state of the thread in the lists of all interpreters. Returns whether it was found;
 * scratch->frame is 0 if the thread has no frame in any of them.
 */
static __always_inline bool search_thread(struct script_scratch *scratch, struct python_walk *walk)
{
	bool is_found;

	SCRIPT_LOOP(PYTHON_THREADS_MAX, try_thread, walk);
	is_found = read_thread(scratch, walk->layout) && has_frame(scratch, walk->layout);
	if (!is_found && walk->idle) {
		scratch->thread = walk->idle;
		is_found = read_thread(scratch, walk->layout);
		scratch->frame = 0;
	}
	return is_found;
}

/* ---- frames --------------------------------------------------------------------------- */

static __always_inline void mark_entry(struct script_scratch *scratch)
{
	u32 at = scratch->last - 1;

	if (at < SCRIPT_FRAMES) {
		barrier_var(at);
		if (at < SCRIPT_FRAMES)
			scratch->stack.frames[at].flags = SCRIPT_FRAME_ENTRY;
	}
}

static __always_inline s32 instruction_of(const struct script_scratch *scratch,
					  const struct python_layout *layout, u64 code)
{
	u64 word = script_word(scratch, layout->frame_instruction);

	if (layout->frames == PYTHON_FRAMES_C)
		return (s32)word * layout->code_unit;
	return (s32)(word - code - layout->code_instructions);
}

/*
 * Reads a frame, unless it was read with another one. From 3.11 on, the frames of functions that
 * call each other lie one after the other, the outer ones first: so what lies before a frame in its
 * page is read as well.
 */
static __always_inline int read_frame_at(struct script_scratch *scratch,
					 const struct python_layout *layout, u64 frame)
{
	u64 end = frame + FRAME_BYTES, size, start;

	/* A program may have any address there: one near the last has its end near 0. */
	if (end > frame && frame >= scratch->window && end <= scratch->window_end) {
		scratch->at = frame - scratch->window;
		return 0;
	}
	start = frame & ~(u64)(MAP_PAGE - 1);
	if (layout->frames == PYTHON_FRAMES_C)
		start = frame;
	else if (end - start > SCRIPT_BYTES)
		start = end - SCRIPT_BYTES;
	size = end - start;
	barrier_var(size);
	if (size > SCRIPT_BYTES)
		return -1;
	scratch->window = start;
	scratch->window_end = end;
	scratch->at = frame - start;
	return SCRIPT_READ(scratch, scratch->bytes, size, start);
}

/* Stores one frame, with the address of its code in the place of an id. */
static long read_frame(u32 i, struct python_walk *walk)
{
	struct script_scratch *scratch = walk->scratch;
	const struct python_layout *layout = walk->layout;
	struct script_frame *frame;
	u64 code;
	u32 at;

	(void)i;
	if (!scratch->frame)
		return 1;
	if (read_frame_at(scratch, layout, scratch->frame)) {
		scratch->stack.result = SCRIPT_FAULT;
		scratch->frame = 0;
		return 1;
	}
	scratch->frame = script_word(scratch, layout->frame_previous);
	if (layout->frames == PYTHON_FRAMES_SHIM &&
	    script_byte(scratch, layout->frame_owner) >= OWNED_BY_C) {
		mark_entry(scratch);
		return 0;
	}
	at = script_frame_index(scratch->depth);
	barrier_var(at); /* or clang omits the check, which the verifier needs */
	if (at >= SCRIPT_FRAMES)
		return 1;
	/* From 3.14 on the last bits of a reference are flags. */
	code = script_word(scratch, layout->frame_code) & ~7ULL;
	frame = &scratch->stack.frames[at];
	frame->code = code;
	frame->at = instruction_of(scratch, layout, code);
	frame->flags =
		layout->frames == PYTHON_FRAMES_C || (layout->frames == PYTHON_FRAMES_ENTRY &&
						      script_byte(scratch, layout->frame_owner))
			? SCRIPT_FRAME_ENTRY
			: 0;
	scratch->last = at + 1;
	scratch->depth++;
	return 0;
}

/* ---- code --------------------------------------------------------------------------------- */

/* Copies an object of text. Returns the bytes of a character, or 0. */
static __always_inline u8 read_text(struct script_scratch *scratch,
				    const struct python_layout *layout, u64 object, u8 *to,
				    u64 room, u16 *ret_bytes)
{
	u64 bytes;
	u32 state;

	*ret_bytes = 0;
	if (SCRIPT_READ(scratch, scratch->text, 40, object))
		return 0;
	state = *(u32 *)(scratch->text + TEXT_STATE);
	if (!(state >> 5 & 1)) /* it is not compact: made by an old interface */
		return 0;
	bytes = *(u64 *)(scratch->text + TEXT_LENGTH) * (state >> 2 & 7);
	if (bytes > room)
		bytes = room;
	barrier_var(bytes);
	if (bytes > room ||
	    SCRIPT_READ(scratch, to, bytes,
			object + (state >> 6 & 1 ? layout->text : layout->wide_text)))
		return 0;
	*ret_bytes = bytes;
	return state >> 2 & 7;
}

/*
 * Stores the beginning of an object of text, and zeros after it. Returns false if it cannot be
 * read. Nearly all names are ASCII, and then one read has it and the object's fields, which remain
 * in scratch->text.
 */
static __always_inline bool read_beginning(struct script_scratch *scratch,
					   const struct python_layout *layout, u64 object, u64 *to)
{
	u64 bytes;
	u16 got;

	if (!SCRIPT_READ(scratch, scratch->text, TEXT_BYTES, object) &&
	    (*(u32 *)(scratch->text + TEXT_STATE) & TEXT_ASCII) == TEXT_ASCII) {
		bytes = *(u64 *)(scratch->text + TEXT_LENGTH);
		for (u64 i = 0; i < TEXT_HASHED / 8; i++) {
			u64 word = *(u64 *)(scratch->text + ((layout->text + 8 * i) & 127));
			u64 before = 8 * i;

			if (bytes <= before)
				word = 0;
			else if (bytes - before < 8)
				word &= (1ULL << 8 * (bytes - before)) - 1;
			to[i] = word;
		}
		return true;
	}
	for (u32 i = 0; i < TEXT_HASHED / 8; i++)
		to[i] = 0;
	*(u64 *)scratch->text = 0; /* a count of references, which is never 0 */
	read_text(scratch, layout, object, (u8 *)to, TEXT_HASHED, &got);
	return *(u64 *)scratch->text;
}

/* Sends what the code is called. scratch has its first line, name, path and table. */
SCRIPT_FUNCTION python_send_code(struct script_scratch *scratch,
				 const struct script_process *process)
{
	struct rec_script_code *record;
	u64 size = 0;

	if (!scratch || !process)
		return -1;
	record = script_code(scratch);
	record->id = scratch->id;
	record->tgid = scratch->stack.tgid;
	record->first_line = (u32)script_word(scratch, process->python.code_first_line);
	record->version = process->python.version;
	record->language = SCRIPT_PYTHON;
	record->reserved = 0;
	record->name_kind = read_text(scratch, &process->python, scratch->name, record->name,
				      SCRIPT_NAME_MAX, &record->name_bytes);
	record->path_kind = read_text(scratch, &process->python, scratch->path, record->path,
				      SCRIPT_PATH_MAX, &record->path_bytes);
	if (read_word(scratch, &size, scratch->table + BYTES_SIZE))
		size = 0;
	if (size > SCRIPT_TABLE_MAX)
		size = SCRIPT_TABLE_MAX;
	barrier_var(size);
	if (size > SCRIPT_TABLE_MAX || SCRIPT_READ(scratch, scratch->record_room + sizeof(*record),
						   size, scratch->table + BYTES_DATA))
		size = 0;
	record->table_bytes = size;
	return script_emit(scratch, REC_SCRIPT_CODE);
}

/*
 * Identifies the code object that was read. Its address alone does not: the memory of one that was
 * dropped is used again, also that of its name. Later versions number them; before, the beginning
 * of the name's text and of the table are compared, too. 3.11 counts calls in the upper half of the
 * word that begins with co_flags.
 */
static __always_inline u64 identify(struct script_scratch *scratch,
				    const struct python_layout *layout)
{
	u64 hash = script_mix(scratch->seed, scratch->code), other = 0;
	u64 *text = scratch->hashed;

	if (layout->frames == PYTHON_FRAMES_ENTRY)
		*(u32 *)(scratch->bytes + CODE_COUNTERS) = 0;
	/* Two sums, which the processor computes at the same time. */
	for (u32 i = OBJECT_VALUES; i < 128; i += 16) {
		hash = (hash + *(u64 *)(scratch->bytes + i)) * SCRIPT_FACTOR;
		other = (other + *(u64 *)(scratch->bytes + i + 8)) * SCRIPT_FACTOR;
	}
	hash = script_mix(script_mix(hash, other), scratch->table);
	if (layout->version_is_unique)
		return hash | 1;
	if (!read_beginning(scratch, layout, scratch->name, text))
		return 0;
	hash = script_mix(hash, *(u64 *)(scratch->text + TEXT_LENGTH));
	for (u32 i = 0; i < TEXT_HASHED / 8; i++)
		hash = script_mix(hash, text[i]);
	if (SCRIPT_READ(scratch, scratch->text, 40, scratch->table + BYTES_SIZE))
		return 0;
	hash = script_mix(hash, *(u64 *)scratch->text);
	hash = script_mix(hash, *(u64 *)(scratch->text + 16));
	hash = script_mix(hash, *(u64 *)(scratch->text + 24));
	hash = script_mix(hash, *(u64 *)(scratch->text + 32));
	return hash | 1;
}

/* Reads the code at an address and gives it an id, scratch->id; 0 = it could not be read. */
SCRIPT_FUNCTION python_identify(struct script_scratch *scratch,
				const struct script_process *process, u64 address)
{
	const struct python_layout *layout;

	if (!scratch || !process)
		return 0;
	layout = &process->python;
	scratch->code = address;
	scratch->id = 0;
	if (!address || read_object(scratch, CODE_BYTES, address))
		return 0;
	/* A frame that is just being made may have an old word there. */
	if (*(u64 *)(scratch->bytes + OBJECT_TYPE) != process->code_type)
		return 0;
	scratch->name = script_word(scratch, layout->code_name);
	scratch->path = script_word(scratch, layout->code_path);
	scratch->table = script_word(scratch, layout->code_table);
	scratch->id = identify(scratch, layout);
	return 0;
}

struct naming {
	struct script_scratch *scratch;
	const struct script_process *process;
	int failures; /* pieces of code that are not described */
};

/*
 * Identifies the code of a frame, and mixes the frame into the stack's id. What else is done for a
 * stack is done for new ones only: each look into a large table is a page more that the processor
 * has no translation of.
 */
static long identify_frame(u32 i, struct naming *naming)
{
	struct script_scratch *scratch = naming->scratch;
	struct script_frame *frame;

	if (i >= scratch->stack.count)
		return 1;
	barrier_var(i);
	if (i >= SCRIPT_FRAMES)
		return 1;
	frame = &scratch->stack.frames[i];
	if (frame->code != scratch->code)
		python_identify(scratch, naming->process, frame->code);
	scratch->ids[i] = scratch->id;
	scratch->hash = script_mix(scratch->hash, scratch->id);
	scratch->hash = script_mix(scratch->hash, (u64)frame->flags << 32 | (u32)frame->at);
	return 0;
}

/*
 * Functions of a program lie near each other, and so do their slots, on few pages. No code is
 * shorter than 1 << PYTHON_CODE_SHIFT.
 */
static __always_inline u64 sent_slot(const struct script_scratch *scratch, u64 code)
{
	u64 process = (u32)scratch->stack.tgid * SCRIPT_FACTOR >> 40;

	return ((code >> PYTHON_CODE_SHIFT) + process) & (PYTHON_SENT_SLOTS - 1);
}

/*
 * Describes the code of a frame unless that was done, and replaces its address by the id. The
 * memory may be another code's by now; then this id is not described.
 */
static long describe_frame(u32 i, struct naming *naming)
{
	struct script_scratch *scratch = naming->scratch;
	struct script_frame *frame;
	u64 id, *sent;

	if (i >= scratch->stack.count)
		return 1;
	barrier_var(i);
	if (i >= SCRIPT_FRAMES)
		return 1;
	frame = &scratch->stack.frames[i];
	id = scratch->ids[i];
	sent = SCRIPT_SENT(scratch, sent_slot(scratch, frame->code));
	if (id && *sent != id) {
		python_identify(scratch, naming->process, frame->code);
		if (scratch->id == id && !python_send_code(scratch, naming->process))
			*sent = id;
		else
			naming->failures++;
	}
	frame->code = id;
	return 0;
}

SCRIPT_FUNCTION python_describe(struct script_scratch *scratch,
				const struct script_process *process)
{
	struct naming naming = {.scratch = scratch, .process = process};

	if (!scratch || !process)
		return 0;
	SCRIPT_LOOP(SCRIPT_FRAMES, describe_frame, &naming);
	return naming.failures;
}

/* ---- all of it ------------------------------------------------------------------------------ */

SCRIPT_FUNCTION python_walk_frames(struct script_scratch *scratch,
				   const struct script_process *process)
{
	struct python_walk walk = {.scratch = scratch};

	if (!scratch || !process)
		return 0;
	walk.layout = &process->python;
	scratch->depth = scratch->last = 0;
	scratch->window_end = 0;
	scratch->stack.result = SCRIPT_COMPLETE;
	SCRIPT_LOOP(SCRIPT_WALK_MAX, read_frame, &walk);
	if (scratch->frame)
		scratch->stack.result = SCRIPT_TRUNCATED;
	scratch->stack.count = scratch->depth < SCRIPT_FRAMES ? scratch->depth : SCRIPT_FRAMES;
	scratch->stack.left_out = scratch->depth - scratch->stack.count;
	scratch->stack.reserved = 0;
	return 0;
}

/* Reads the frames of the thread that was found, and identifies their code. */
static __always_inline void read_frames(struct script_scratch *scratch,
					const struct script_process *process)
{
	struct naming naming = {.scratch = scratch, .process = process};

	python_walk_frames(scratch, process);
	scratch->code = scratch->id = 0;
	scratch->hash = scratch->seed ^ scratch->stack.left_out << 8 ^ scratch->stack.result;
	SCRIPT_LOOP(SCRIPT_FRAMES, identify_frame, &naming);
}

#endif
