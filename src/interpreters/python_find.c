/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * python_find.c - CPython: its version, and where its objects have what is read.
 *
 * From 3.13 on the variable _PyRuntime begins with offsets for debuggers, whose initial values are
 * in the file (Include/internal/pycore_debug_offsets.h). The offsets of earlier versions, which do
 * not differ between releases of a version, are in python_layouts.h.
 */
#include "interpreter_module.h"
#include "python_layouts.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Parts of _Py_DebugOffsets that 3.13 and 3.14 share; each is an offset or a size in bytes. */
struct runtime_offsets {
	char cookie[8];
	uint64_t version, free_threaded;
	uint64_t size, finalizing, interpreters_head;
};

struct lock_offsets {
	uint64_t pointer, lock, enabled, held, holder;
};

struct thread_offsets {
	uint64_t size, prev, next, interp, current_frame, thread_id, others[3];
};

struct frame_offsets {
	uint64_t size, previous, executable, instr_ptr, localsplus, owner;
};

struct code_offsets {
	uint64_t size, filename, name, qualname, linetable, firstlineno, others[3];
	uint64_t co_code_adaptive;
};

struct debug_offsets_3_13 {
	struct runtime_offsets runtime;
	struct {
		uint64_t size, id, next, threads_head, others[4];
		struct lock_offsets lock;
	} interpreter;
	struct thread_offsets thread;
	struct frame_offsets frame;
	struct code_offsets code;
};

struct debug_offsets_3_14 {
	struct runtime_offsets runtime;
	struct {
		uint64_t size, id, next, threads_head, others[5];
		struct lock_offsets lock;
		uint64_t generations[2];
	} interpreter;
	struct thread_offsets thread;
	struct frame_offsets frame;
	uint64_t frame_others[2];
	struct code_offsets code;
};

#define DEBUG_COOKIE "xdebugpy"
#define VERSION_3_13 0x030d
#define VERSION_3_14 0x030e

/* What both versions have, where each of them has it. */
static struct python_layout layout_of(const struct runtime_offsets *runtime,
				      const struct lock_offsets *lock,
				      const struct thread_offsets *thread,
				      const struct frame_offsets *frame,
				      const struct code_offsets *code)
{
	return (struct python_layout){
		.version = runtime->version >> 16,
		.frames = PYTHON_FRAMES_SHIM,
		.interpreters = runtime->interpreters_head,
		.next_thread = thread->next,
		.thread_id = thread->thread_id,
		.thread_interpreter = thread->interp,
		.lock_is_pointer = 1,
		.lock = lock->pointer,
		.lock_holder = lock->holder - lock->lock,
		.lock_held = lock->held - lock->lock,
		.thread_frame = thread->current_frame,
		.cframe_frame = PYTHON_NO_OFFSET,
		.frame_code = frame->executable,
		.frame_previous = frame->previous,
		.frame_instruction = frame->instr_ptr,
		.frame_owner = frame->owner,
		.code_first_line = code->firstlineno,
		.code_path = code->filename,
		.code_name = code->qualname,
		.code_table = code->linetable,
		.code_instructions = code->co_code_adaptive,
		.text = 40,
		.wide_text = 56,
		.version_is_unique = 1,
	};
}

/* Whether it is a build without the global lock: its objects and frames differ (3.13 and later).
 */
static bool is_free_threaded(Elf *elf, uint64_t runtime)
{
	struct runtime_offsets read;

	return interpreter_read(elf, runtime, &read, sizeof(read)) &&
	       !memcmp(read.cookie, DEBUG_COOKIE, sizeof(read.cookie)) && read.free_threaded;
}

/* Reads the offsets of 3.13 and 3.14. */
static bool read_offsets(Elf *elf, uint64_t runtime, struct python_layout *ret_layout)
{
	union {
		struct runtime_offsets runtime;
		struct debug_offsets_3_13 old;
		struct debug_offsets_3_14 new;
	} read;

	if (!interpreter_read(elf, runtime, &read, sizeof(read)) ||
	    memcmp(read.runtime.cookie, DEBUG_COOKIE, sizeof(read.runtime.cookie)))
		return false;
	if (read.runtime.version >> 16 == VERSION_3_13) {
		*ret_layout = layout_of(&read.runtime, &read.old.interpreter.lock, &read.old.thread,
					&read.old.frame, &read.old.code);
		ret_layout->next_interpreter = read.old.interpreter.next;
		ret_layout->threads = read.old.interpreter.threads_head;
		return true;
	}
	if (read.runtime.version >> 16 != VERSION_3_14)
		return false;
	*ret_layout = layout_of(&read.runtime, &read.new.interpreter.lock, &read.new.thread,
				&read.new.frame, &read.new.code);
	ret_layout->next_interpreter = read.new.interpreter.next;
	ret_layout->threads = read.new.interpreter.threads_head;
	return true;
}

static const struct python_layout *find_layout(uint32_t version)
{
	for (size_t i = 0; i < ARRAY_LEN(python_layouts); i++)
		if (python_layouts[i].version == version)
			return &python_layouts[i];
	return NULL;
}

/* The version in a name such as libpython3.9.so.1.0; 0: there is none. */
static uint32_t version_of_name(const char *name)
{
	const char *digits = strstr(name, "python3.");

	return digits && isdigit((unsigned char)digits[8]) ? 0x0300 + (atoi(digits + 8) & 0xff) : 0;
}

/* A program with an interpreter in it is larger than this: libpython alone has 4 to 7 MB. */
#define EMBEDDING_LEAST (3u << 20)

static bool is_named(const char *name)
{
	return strstr(name, "python");
}

/* Programs may be linked with the interpreter statically, whatever their name is. */
static bool may_be(const char *name, uint64_t size)
{
	if (is_named(name))
		return !strstr(name, ".cpython-");
	return size >= EMBEDDING_LEAST && !strstr(name, ".so");
}

/* Only an interpreter has both the variable and the function. */
static void find(Elf *elf, const char *name, InterpreterFound *ret_found)
{
	uint64_t runtime, version_at, hex = 0;
	const struct python_layout *layout;

	/* Extension modules need what the interpreter exports, also if it is linked statically. */
	if (!is_named(name) && !interpreter_exports(elf, "_PyRuntime"))
		return;
	runtime = interpreter_symbol(elf, "_PyRuntime");
	if (!runtime || !interpreter_symbol(elf, "_PyEval_EvalFrameDefault"))
		return;
	version_at = interpreter_symbol(elf, "Py_Version");
	if (version_at && interpreter_read(elf, version_at, &hex, sizeof(hex)))
		ret_found->version = hex >> 16 & 0xffff;
	else
		ret_found->version = version_of_name(name);
	ret_found->present = true;
	ret_found->runtime = runtime;
	ret_found->process.language = SCRIPT_PYTHON;
	ret_found->process.code_type = interpreter_symbol(elf, "PyCode_Type");
	layout = find_layout(ret_found->version);
	if (layout)
		ret_found->process.python = *layout;
	ret_found->free_threaded = is_free_threaded(elf, runtime);
	ret_found->readable = ret_found->process.code_type && !ret_found->free_threaded &&
			      (layout || read_offsets(elf, runtime, &ret_found->process.python));
}

const InterpreterModule python_module = {
	.language = "Python",
	.may_be = may_be,
	.find = find,
};
