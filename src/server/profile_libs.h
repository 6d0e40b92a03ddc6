/* SPDX-License-Identifier: GPL-2.0-or-later */
/* profile_libs.h - the programs and libraries that a profile names, with their paths. */
#ifndef WALLPROF_PROFILE_LIBS_H
#define WALLPROF_PROFILE_LIBS_H

#include "util.h"

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

#endif
