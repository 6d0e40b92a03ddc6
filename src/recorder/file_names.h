/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * file_names.h - which names of files a recording may have.
 *
 * Kernel threads write the files of all programs, and all requests to block devices are recorded. A
 * profile of one program is given to others, so it must not have the names of files that only other
 * programs use: a name that was sent for a kernel thread's request (INODE_KERNEL) is withheld until
 * a target has used the file. The requests stay; without a name they are the device's.
 *
 * The memory is that of one number for each file that targets or withheld requests are for.
 */
#ifndef WALLPROF_FILE_NAMES_H
#define WALLPROF_FILE_NAMES_H

#include "record_options.h"
#include "records.h"
#include "util.h"

/* All zeros is an empty one. */
typedef struct FileNames {
	Map files;
	uint64_t withheld;
} FileNames;

/* Returns whether a recording with these options withholds names at all. */
bool file_names_are_withheld(const RecordOptions *options);

/* Takes note of a name, in order of time. Returns whether it may be written. */
bool file_names_add(FileNames *names, const struct rec_inode *record);

/* Returns how many files have no name because of this. */
uint64_t file_names_withheld(const FileNames *names);

void file_names_free(FileNames *names);

#endif
