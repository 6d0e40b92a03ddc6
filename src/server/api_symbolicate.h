/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * api_symbolicate.h - /symbolicate/v5: names, lines and inlined calls of library-relative
 * addresses.
 */
#ifndef WALLPROF_API_SYMBOLICATE_H
#define WALLPROF_API_SYMBOLICATE_H

#include "elf_identifier.h"
#include "profile_libs.h"
#include <jansson.h>

/* Returns the answer, or {"error": "…"}, as a new reference. */
json_t *api_symbolicate(ElfIdentifier *identifier, const ProfileLibs *libs, const json_t *request);

#endif
