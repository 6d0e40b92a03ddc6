/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * output_place.h - finds where an output file goes, without links that another user made.
 *
 * Root may write into a folder where others may write too. A link there could lead to any file of
 * root's. fs.protected_symlinks does not help where the folder is not sticky, or belongs to the
 * user who made the link. So root follows a link only if nobody but root, or the user who called
 * sudo, can have made it. The path is walked folder by folder, and each folder stays open, so that
 * nothing can be exchanged between the check and the use.
 */
#ifndef WALLPROF_OUTPUT_PLACE_H
#define WALLPROF_OUTPUT_PLACE_H

#include "invoker.h"

typedef struct OutputPlace {
	int folder;  /* O_PATH */
	char *name;  /* in the folder, and no link; NULL if the path leads to a special file */
	int special; /* O_PATH, of a FIFO, a device or a socket; else -1 */
} OutputPlace;

#define OUTPUT_PLACE_NONE                                                                          \
	((OutputPlace){                                                                            \
		.folder = -1,                                                                      \
		.special = -1,                                                                     \
	})

/*
 * Under sudo, links of the invoker (NULL: as without sudo) are followed, but not to a file of
 * another user (-EPERM). Returns 0 or a negative errno: -EISDIR if path is a folder, -ENOLINK if it
 * leads through a link, or to a special file, that another user can have put there. The caller
 * frees it in any case.
 */
int output_place_find(const char *path, const Invoker *invoker, OutputPlace *ret_place);
void output_place_free(OutputPlace *place);

#endif
