/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "runtime_functions.h"
#include <ctype.h>
#include <string.h>

static bool has_prefix(const char *text, const char *const *prefixes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!strncmp(text, prefixes[i], strlen(prefixes[i])))
			return true;
	return false;
}

bool runtime_is_c_library(const char *library)
{
	static const char *const prefixes[] = {"libc.so",    "libc-",	  "libpthread", "ld-musl",
					       "libc.musl-", "ld-uClibc", "libuClibc"};

	return has_prefix(library, prefixes, ARRAY_LEN(prefixes));
}

static bool is_run_time_library(const char *library)
{
	static const char *const prefixes[] = {
		"ld-linux",	"librt.so",  "librt-",	     "libanl.so", "libgcc_s.so",
		"libstdc++.so", "libc++.so", "libc++abi.so", "libstd-",	  "[vdso]"};

	return runtime_is_c_library(library) || has_prefix(library, prefixes, ARRAY_LEN(prefixes));
}

/*
 * A static program has the C library's functions in its own file. They have the names of system
 * calls, or names that are reserved for the implementation (ISO C17 7.1.3): "__libc_read",
 * "_IO_file_underflow". A few local functions of glibc that wait have neither.
 */
static bool is_static_c(const char *function)
{
	static const char *const locals[] = {"new_do_write", "buffered_vfprintf", "do_system",
					     "send_dg", "send_vc"};

	if (function[0] == '_' && (function[1] == '_' || isupper((unsigned char)function[1])))
		return true;
	for (size_t i = 0; i < ARRAY_LEN(locals); i++)
		if (!strcmp(function, locals[i]))
			return true;
	return syscall_is_named(function);
}

/*
 * Recognizes C++'s and Rust's standard libraries. Their functions are inlined into the program or
 * linked into its file. "<std::fs::File as std::io::Read>::read" is one, "<app::Log as
 * std::io::Write>::write" is the program's.
 */
static bool is_standard_library(const char *function)
{
	static const char *const prefixes[] = {"std::",	  "core::",   "alloc::", "<std::",
					       "<core::", "<alloc::", "<&std::", "<&mut std::"};

	return has_prefix(function, prefixes, ARRAY_LEN(prefixes));
}

/* The suffixes that gcc gives to parts and copies of a function of C. */
static bool is_compiler_suffix(const char *text)
{
	static const char *const suffixes[] = {"constprop", "isra", "part", "cold", "lto_priv"};

	return has_prefix(text, suffixes, ARRAY_LEN(suffixes));
}

/*
 * Packages of Go's standard library that make system calls or wait (go list std). A function is
 * called by its package's path: "os.(*File).Read", "internal/poll.(*FD).Read".
 */
static bool is_go_standard(const char *function)
{
	static const char *const packages[] = {"runtime", "syscall", "os", "net",
					       "sync",	  "time",    "io", "bufio"};
	size_t length = strcspn(function, "./");

	if (!strncmp(function, "internal/", 9) || !strncmp(function, "vendor/golang.org/", 18))
		return true;
	for (size_t i = 0; i < ARRAY_LEN(packages); i++)
		if (strlen(packages[i]) == length && !strncmp(function, packages[i], length))
			return function[length] == '/' ||
			       (function[length] == '.' &&
				!is_compiler_suffix(function + length + 1));
	return false;
}

bool runtime_is_frame(const Frames *frames, const Frame *frame)
{
	const char *function = strings_get(&frames->strings, frame->function);

	if (frame->lib != LIBRARY_NONE &&
	    (frames->libraries.items[frame->lib].interpreter ||
	     is_run_time_library(frames->libraries.items[frame->lib].name)))
		return true;
	return frame->named &&
	       (is_static_c(function) || is_standard_library(function) || is_go_standard(function));
}

/* Pseudo frames such as "[truncated: …]" are not functions. */
static bool is_made_up(const Frame *frame)
{
	return frame->lib == LIBRARY_NONE && frame->address == UINT64_MAX;
}

/* The outermost function of the program: what is below it only called main(). */
static bool is_start(const Frames *frames, const Frame *frame)
{
	return !strcmp(strings_get(&frames->strings, frame->function), "_start") ||
	       runtime_is_frame(frames, frame) || is_made_up(frame);
}

size_t runtime_entry(const Frames *frames, const uint32_t *indexes, size_t count)
{
	size_t above = 0, own;

	/* A pseudo frame, such as "[guessed]", may be between them. */
	for (size_t i = 0; i < count; i++) {
		const Frame *frame = &frames->list.items[indexes[count - 1 - i]];

		if (runtime_is_frame(frames, frame))
			above = i + 1;
		else if (!is_made_up(frame))
			break;
	}
	own = count - above;
	while (own > 0 && is_start(frames, &frames->list.items[indexes[own - 1]]))
		own--;
	return above > 0 && own > 0 ? count - above + 1 : count;
}
