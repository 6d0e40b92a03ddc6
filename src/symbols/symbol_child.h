/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * symbol_child.h - the messages between symbol_jobs.c and the sandboxed child that reads one
 * object, and the child's main function.
 *
 * A message is a head and a body. The child is not trusted: the file may have taken it over.
 */
#ifndef WALLPROF_SYMBOL_CHILD_H
#define WALLPROF_SYMBOL_CHILD_H

#include "object_names.h"

enum symbol_message {
	SYMBOL_MESSAGE_SYMBOL,	/* struct rec_symbol */
	SYMBOL_MESSAGE_FIND,	/* Companion; answered by one byte, with or without a descriptor */
	SYMBOL_MESSAGE_END,	/* s64: what object_names_find() returned */
	SYMBOL_MESSAGE_MISSING, /* ObjectMissing */
};

struct symbol_message_head {
	uint32_t len;  /* of the body, a multiple of 8 */
	uint32_t type; /* enum symbol_message */
};

/* Longer than any message of a correct child: its text is limited by symbol_record.c. */
#define SYMBOL_MESSAGE_MAX (4u << 20)

/* What the child calls: object_names_find() except in tests, which set it before a child starts. */
extern int (*symbol_child_find)(const ObjectRequest *request, const ObjectHost *host);

/* A SandboxMain. argument: an ObjectRequest; fds: the object, and its debug file or -1. */
void symbol_child_main(int socket, const int *fds, const void *request);

#endif
