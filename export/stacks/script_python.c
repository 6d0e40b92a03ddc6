/* SPDX-License-Identifier: GPL-2.0-or-later */
/* script_python.c - what the export knows of CPython, but for its tables of lines. */
#include "script_language.h"
#include "util.h"
#include <string.h>

/* The versions 3.N that src/interpreters knows. */
#define FIRST_READ 8
#define LAST_READ  14

static bool has_prefix(const char *text, const char *prefix)
{
	return !strncmp(text, prefix, strlen(prefix));
}

static bool is_evaluator(const char *function)
{
	static const char name[] = "_PyEval_EvalFrameDefault";
	size_t length = sizeof(name) - 1;

	return has_prefix(function, name) && (!function[length] || function[length] == '.');
}

static bool is_glue(const char *function)
{
	static const char *const prefixes[] = {
		"_PyEval_",
		"_PyFunction_Vectorcall",
		"function_code_fastcall",
		"_PyObject_Call",
		"_PyObject_Vectorcall",
		"_PyObject_FastCall",
		"_PyObject_MakeTpCall",
		"PyObject_Call",
		"PyObject_Vectorcall",
		"PyVectorcall_",
		"_PyVectorcall",
		"method_vectorcall",
		"call_function",
		"do_call_core",
		"cfunction_",
		"vectorcall_",
		"object_vacall",
		"PyEval_EvalCode",
	};

	for (size_t i = 0; i < ARRAY_LEN(prefixes); i++)
		if (has_prefix(function, prefixes[i]))
			return true;
	return false;
}

/* The path of importlib's code, which is in the interpreter's file. */
static bool is_loader(const char *path)
{
	return has_prefix(path, "<frozen importlib.");
}

/* "/usr/lib/python3.11/queue.py", but not what is installed in folders below that one. */
static bool is_library(const char *path)
{
	const char *folder = strstr(path, "/python3."), *rest;

	if (has_prefix(path, "<frozen "))
		return true;
	if (!folder || strstr(folder, "/site-packages/") || strstr(folder, "/dist-packages/"))
		return false;
	rest = folder + strlen("/python3.");
	return *rest && rest[strspn(rest, "0123456789t")] == '/';
}

/* From 3.12 on, what runs after a class's __init__(): all of its names are "__init__". */
static bool is_hidden(const struct rec_script_code *code)
{
	static const char name[] = "__init__";
	size_t length = sizeof(name) - 1;

	return code->name_bytes == length && code->path_bytes == length &&
	       !memcmp(code->name, name, length) && !memcmp(code->path, name, length);
}

/* "python3.11" or "libpython3.11.so.1.0"; with a "t" there is no global lock. */
static bool is_read(const char *file)
{
	const char *version = strstr(file, "python3.");
	unsigned long minor;
	char *end;

	if (!version)
		return false;
	minor = strtoul(version + strlen("python3."), &end, 10);
	return minor >= FIRST_READ && minor <= LAST_READ && *end != 't';
}

/*
 * The words of the GIL (struct _gil_runtime_state) in glibc and 3.8 to 3.14: a condition variable
 * that threads wait for which want it, one that the thread waits for which has released it on
 * request, and a mutex for each, which shows nothing.
 */
#define GIL_WANTED	 32
#define GIL_WANTED_MUTEX 80
#define GIL_TAKEN	 120
#define GIL_TAKEN_MUTEX	 168

static enum reason lock_reason(uint16_t offset)
{
	if (offset >= GIL_WANTED && offset < GIL_WANTED_MUTEX)
		return REASON_GIL;
	return offset >= GIL_TAKEN && offset < GIL_TAKEN_MUTEX ? REASON_GIL_HANDOVER : REASON_NONE;
}

/* ---- what Python's own functions wait for --------------------------------------------------- */

/* A function of the standard library that waits, or calls one that does. */
typedef struct LibraryRule {
	const char *file;     /* below lib/python3.N */
	const char *function; /* without the names of its classes, which 3.11 and later have */
	uint8_t inner;	      /* REASON_NONE: it waits itself */
	uint8_t reason;
} LibraryRule;

/*
 * Condition.wait() is the base of nearly all of them. A lock that one of them takes is a lock: the
 * functions outside of it do not matter.
 */
static const LibraryRule library_rules[] = {
	{"threading.py", "wait", REASON_NONE, REASON_CONDVAR},
	{"threading.py", "wait", REASON_CONDVAR, REASON_EVENT}, /* Event.wait() */
	{"threading.py", "wait", REASON_BARRIER, REASON_BARRIER},
	{"threading.py", "wait_for", REASON_CONDVAR, REASON_CONDVAR},
	{"threading.py", "_wait", REASON_CONDVAR, REASON_BARRIER},
	{"threading.py", "_enter", REASON_CONDVAR, REASON_BARRIER},
	{"threading.py", "acquire", REASON_CONDVAR, REASON_SEMAPHORE},
	{"threading.py", "_wait_for_tstate_lock", REASON_NONE, REASON_JOIN},
	{"threading.py", "join", REASON_NONE, REASON_JOIN},
	{"threading.py", "_shutdown", REASON_NONE, REASON_JOIN},
	{"queue.py", "get", REASON_CONDVAR, REASON_QUEUE},
	{"queue.py", "get", REASON_SEMAPHORE, REASON_QUEUE},
	{"queue.py", "put", REASON_CONDVAR, REASON_QUEUE},
	{"concurrent/futures/thread.py", "_worker", REASON_NONE, REASON_QUEUE},
	{"concurrent/futures/_base.py", "result", REASON_CONDVAR, REASON_FUTURE},
	{"concurrent/futures/_base.py", "exception", REASON_CONDVAR, REASON_FUTURE},
	{"concurrent/futures/_base.py", "wait", REASON_EVENT, REASON_FUTURE},
	{"concurrent/futures/_base.py", "as_completed", REASON_EVENT, REASON_FUTURE},
	{"multiprocessing/queues.py", "_feed", REASON_CONDVAR, REASON_QUEUE},
	{"multiprocessing/pool.py", "wait", REASON_EVENT, REASON_FUTURE},
	{"selectors.py", "select", REASON_NONE, REASON_POLL},
	{"asyncio/base_events.py", "_run_once", REASON_POLL, REASON_EPOLL},
};

/* Returns the path below ".../lib/python3.N/"; NULL: the file is not the standard library's. */
static const char *library_path(const char *path)
{
	static const char begin[] = "/python3.";
	const char *folder = path, *found = NULL;

	/* Nothing else is in such a folder: "python3.13", or "python3.13t". */
	while ((folder = strstr(folder, begin))) {
		folder += strlen(begin);
		folder += strspn(folder, "0123456789");
		folder += *folder == 't';
		if (*folder == '/')
			found = folder + 1;
	}
	return found;
}

static enum reason wait_reason(const char *function, const char *path, enum reason inner)
{
	const char *file = library_path(path), *dot = strrchr(function, '.');
	const char *name = dot ? dot + 1 : function;

	for (size_t i = 0; file && i < ARRAY_LEN(library_rules); i++)
		if (library_rules[i].inner == inner && !strcmp(library_rules[i].file, file) &&
		    !strcmp(library_rules[i].function, name))
			return library_rules[i].reason;
	return REASON_NONE;
}

/* queue.SimpleQueue is written in C: Modules/_queuemodule.c. */
static bool is_queue(const char *function)
{
	return has_prefix(function, "simplequeue_get") ||
	       has_prefix(function, "_queue_SimpleQueue_get");
}

const ScriptLanguage script_python = {
	.name = "Python",
	.lock_name = "GIL",
	.lock_reason = lock_reason,
	.wait_reason = wait_reason,
	.is_queue = is_queue,
	.line = script_python_line,
	.is_evaluator = is_evaluator,
	.is_glue = is_glue,
	.is_hidden = is_hidden,
	.is_library = is_library,
	.is_loader = is_loader,
	.is_read = is_read,
	.loader_name = "importlib",
};
