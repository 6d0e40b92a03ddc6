/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * debug_files.h - finds separate debug files. Follows GDB's manual, "Debugging Information in
 * Separate Files": by build id below /usr/lib/debug/.build-id, by .gnu_debuglink beside the object,
 * in .debug beside it and at the same path below /usr/lib/debug; the files of dwz; and
 * split debug information: .dwo files by their path or beside the object, a .dwp file beside it.
 *
 * The files are only opened here; the sandboxed child checks whether they belong to the object. If
 * one does not, it may be at the next path.
 */
#ifndef WALLPROF_DEBUG_FILES_H
#define WALLPROF_DEBUG_FILES_H

#include "address_space.h"
#include "debug_link.h"

/*
 * Returns a descriptor, which the caller closes, of the regular file at an absolute path below the
 * root folder of the processes that mapped `file`, or a negative errno.
 */
typedef int (*OpenBeside)(void *user, const MappedFile *file, const char *path);

/* A path that was tried, and its state: as long as that is the same, so are the names. */
typedef struct TriedFile {
	char *path;
	uint64_t size, mtime_ns; /* both 0 = there was nothing */
	bool by_dwarf;		 /* opened by DebugFiles::open_named */
} TriedFile;

typedef struct DebugFiles {
	const MappedFile *file;
	OpenBeside open;
	/*
	 * The same for the paths of split debug information, which a compiler's folder is part of.
	 * They can lead anywhere, so only what a process that mapped the file could have read is
	 * opened.
	 */
	OpenBeside open_named;
	void *open_user;
	VEC(TriedFile) tried;
	char *found;   /* path of the debug file; the path of the dwz file is relative to it */
	char *package; /* path of the first .dwp file that was opened; NULL = none */
} DebugFiles;

/* Returns a descriptor, which the caller closes, or a negative errno. */
int debug_files_by_build_id(DebugFiles *files);
/* name is the one in .gnu_debuglink; candidate is that of a Companion. */
int debug_files_by_link(DebugFiles *files, const char *name, unsigned candidate);
int debug_files_companion(DebugFiles *files, const Companion *companion);
void debug_files_free(DebugFiles *files);

/* Returns whether the path is in the state in which it was tried. */
bool debug_files_unchanged(const DebugFiles *files, const TriedFile *tried);

#endif
