/* SPDX-License-Identifier: GPL-2.0-or-later */
/* json_member.h - reads one member of a JSON object that is too large to be parsed as a whole. */
#ifndef WALLPROF_JSON_MEMBER_H
#define WALLPROF_JSON_MEMBER_H

#include <stddef.h>
#include <sys/types.h>

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
int json_member(const char *name, size_t limit, JsonMore more, void *user, char **ret_value);

#endif
