/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * profile_libs.h - the programs and libraries that a profile names, and where they were.
 */
#ifndef WALLPROF_PROFILE_LIBS_H
#define WALLPROF_PROFILE_LIBS_H

#include "util.h"

typedef struct ServedLib {
	char *debug_name, *debug_id; /* as the viewer asks for it */
	char *path; /* or what stands there for code of no file, as "[kernel.kallsyms]" */
	uint8_t build_id[20];
	uint8_t build_id_len; /* 0 = unknown: then nobody can say whether the file is still that one
			       */
} ServedLib;

typedef VEC(ServedLib) ProfileLibs;

/*
 * Reads the member "libs" of a profile, compressed by gzip or not. Returns 0 or a negative errno
 * (-EBADMSG: it has none that can be read). To be freed in any case.
 */
int profile_libs_read(const char *profile, ProfileLibs *ret_libs);
void profile_libs_free(ProfileLibs *libs);

/* NULL: the profile has none of that name and id. */
const ServedLib *profile_libs_find(const ProfileLibs *libs, const char *debug_name,
				   const char *debug_id);

#endif
