/* SPDX-License-Identifier: GPL-2.0-or-later */
/* script_language.h - what the export knows of one language: one file for each. */
#ifndef WALLPROF_SCRIPT_LANGUAGE_H
#define WALLPROF_SCRIPT_LANGUAGE_H

#include "reason.h"
#include "records.h"
#include <stdbool.h>

typedef struct ScriptLanguage {
	/* Returns the line of an instruction (script_frame::at); 0 = it is not known. */
	uint32_t (*line)(const struct rec_script_code *code, int32_t at);
	bool (*is_evaluator)(const char *function);
	bool (*is_glue)(const char *function); /* it only passes a call on */
	/* Whether a source is of the language's own functions that load modules. */
	bool (*is_loader)(const char *path);
	/* Whether a source comes with the language; others are programs and what they install. */
	bool (*is_library)(const char *path);
	/* Whether the code is the interpreter's own, of which programs are not shown a frame. */
	bool (*is_hidden)(const struct rec_script_code *code);
	/* Whether the recorder reads frames of an interpreter with this file name. */
	bool (*is_read)(const char *file);
	const char *loader_name; /* "importlib" */
	const char *name;	 /* "Python" */
	const char *lock_name;	 /* of the lock that lets one thread at a time interpret: "GIL" */
	/* Returns what a word at this offset in the lock is for; REASON_NONE: nothing known. */
	enum reason (*lock_reason)(uint16_t offset);
	/*
	 * Returns what a thread waits for in a function of the language's own library; REASON_NONE:
	 * the function says nothing. inner: what the function that it has called waits for;
	 * REASON_NONE: this function waits itself. An event loop that waits for events is
	 * REASON_EPOLL.
	 */
	enum reason (*wait_reason)(const char *function, const char *path, enum reason inner);
	/* Returns whether a function of C waits for an item of a queue. */
	bool (*is_queue)(const char *function);
} ScriptLanguage;

extern const ScriptLanguage script_python;

/* Is ScriptLanguage::line of Python. A negative instruction has the code's first line. */
uint32_t script_python_line(const struct rec_script_code *code, int32_t at);

/* Returns whether a file of any name comes with a language that is known (is_library). */
bool script_is_library(const char *path);

/* Returns a language by its number (enum script_language); NULL: it is not known. */
const ScriptLanguage *script_language(uint8_t number);

#endif
