/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * json_member.h - one member of a JSON object that is too large to be read as a whole.
 */
#ifndef WALLPROF_JSON_MEMBER_H
#define WALLPROF_JSON_MEMBER_H

#include <stddef.h>
#include <sys/types.h>

/* Fills the buffer with what follows of the text; returns the bytes, 0 at its end, or a negative
 * errno. */
typedef ssize_t (*JsonMore)(void *user, char *buffer, size_t size);

/*
 * The text of the outermost object's first member of that name, which is to be freed. It is read
 * from where the text is until there, and taken as it stands: what is no JSON may be found, too,
 * and is for a parser to refuse. Returns 0; -ENOENT if there is none; -EFBIG if it is longer than
 * `limit` bytes; -EBADMSG if the text is no object or ends within; or the source's error.
 */
int json_member(const char *name, size_t limit, JsonMore more, void *user, char **ret_value);

#endif
