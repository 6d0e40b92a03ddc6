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

typedef VEC(ServedLib) ServedLibs;

/*
 * Reads the member "libs" of a profile, compressed by gzip or not. Returns 0 or a negative errno
 * (-EBADMSG: it has none that can be read). To be freed in any case.
 */
int served_libs_read(const char *profile, ServedLibs *ret_libs);
void served_libs_free(ServedLibs *libs);

/* NULL: the profile has none of that name and id. */
const ServedLib *served_libs_find(const ServedLibs *libs, const char *debug_name,
				  const char *debug_id);

#endif
