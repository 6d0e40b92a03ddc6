/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * api.h - what the viewer asks a local server about a profile's programs: names of addresses, the
 * text of source files, assembly. Follows docs/symbol-server of the Firefox Profiler:
 * /symbolicate/v5, /source/v1, /asm/v1. Only files that the profile names as its libraries are
 * looked into, and only if their build id is that of the profile; only sources are read that the
 * debug information of the asked address names.
 */
#ifndef WALLPROF_API_H
#define WALLPROF_API_H

#include <stdbool.h>
#include <stddef.h>

typedef struct Api Api;

/* profile: the file's path, kept. */
Api *api_new(const char *profile);
void api_free(Api *api);

bool api_is_path(const char *path); /* "symbolicate/v5", … */

/*
 * The answer to a request as JSON, to be freed. What is wrong with the request, or with the file,
 * is told within, as {"error": "…"}.
 */
char *api_answer(Api *api, const char *path, const char *body, size_t size);

#endif
