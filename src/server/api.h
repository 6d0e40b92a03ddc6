/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * api.h - the API of the local server for the viewer: names of addresses, text of source files,
 * assembly. It follows docs/symbol-server of the Firefox Profiler: /symbolicate/v5, /source/v1,
 * /asm/v1. Only files that the profile names as its libraries are read, and only if their build ID
 * is that of the profile; only source files are read that the debug information of the given
 * address names.
 */
#ifndef WALLPROF_API_H
#define WALLPROF_API_H

#include <stdbool.h>
#include <stddef.h>

typedef struct Api Api;

/* profile is the file's path; the string is not copied. */
Api *api_new(const char *profile);
void api_free(Api *api);

bool api_is_path(const char *path); /* such as "symbolicate/v5" */

/*
 * Returns the answer to a request as JSON, which the caller frees. Errors of the request or of the
 * file are in it, as {"error": "…"}.
 */
char *api_answer(Api *api, const char *path, const char *body, size_t size);

#endif
