/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * file_kind.h - tells captures from profiles, for messages about a file of the wrong kind.
 */
#ifndef WALLPROF_FILE_KIND_H
#define WALLPROF_FILE_KIND_H

enum file_kind {
	FILE_KIND_OTHER, /* or it cannot be read */
	FILE_KIND_CAPTURE,
	FILE_KIND_PROFILE,
};

enum file_kind file_kind_of(const char *path);

#endif
