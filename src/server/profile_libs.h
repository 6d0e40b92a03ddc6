/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * profile_libs.h - the programs and libraries that a profile names, with their paths. A profile is
 * too large to be parsed as a whole, so only this member of it is read.
 */
#ifndef WALLPROF_PROFILE_LIBS_H
#define WALLPROF_PROFILE_LIBS_H

#include "util.h"
#include <stddef.h>
#include <sys/types.h>

typedef struct ServedLib {
	char *debug_name, *debug_id; /* the viewer's names for the library */
	char *path; /* or a name for code without a file, such as "[kernel.kallsyms]" */
	uint8_t build_id[20];
	uint8_t build_id_len; /* 0 = unknown: the file cannot be verified */
} ServedLib;

typedef VEC(ServedLib) ProfileLibs;

/*
 * Reads the member "libs" of a profile, which may be compressed by gzip. Returns 0 or a negative
 * errno (-EBADMSG if it has none that can be read). The caller frees ret_libs in any case.
 */
int profile_libs_read(const char *profile, ProfileLibs *ret_libs);
void profile_libs_free(ProfileLibs *libs);

/* Returns NULL if the profile has no library of that name and ID. */
const ServedLib *profile_libs_find(const ProfileLibs *libs, const char *debug_name,
				   const char *debug_id);

/*
 * Reads the next part of the text into the buffer. Returns the number of bytes, 0 at the end, or a
 * negative errno.
 */
typedef ssize_t (*JsonMore)(void *user, char *buffer, size_t size);

/*
 * Finds the outermost object's first member of that name and returns its text, which the caller
 * frees. The text is read only up to the end of the member and is not checked: a parser has to
 * reject what is not JSON. Returns 0; -ENOENT if there is no such member; -EFBIG if it is longer
 * than `limit` bytes; -EBADMSG if the text is not an object or ends early; or the error of `more`.
 */
int profile_libs_member(const char *name, size_t limit, JsonMore more, void *user,
			char **ret_value);

#endif
