/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * object_names.h - all that an ELF file and its debug files tell of some addresses: symbol
 * tables, .gnu_debugdata, PLT, unwind table, Go's own table, DWARF. Runs in the sandbox, where it
 * can open nothing: it asks its host for further files.
 */
#ifndef WALLPROF_OBJECT_NAMES_H
#define WALLPROF_OBJECT_NAMES_H

#include "debug_link.h"
#include "records.h"

typedef struct ObjectHost {
	/* Returns a descriptor, which is closed here, or a negative errno. */
	int (*find)(void *user, const Companion *companion);
	/* A REC_SYMBOL whose file is 0. Returns 0 or a negative errno, which ends all. */
	int (*emit)(void *user, const struct rec_symbol *symbol);
	/* What follows may take so long that the process is ended: sends off what was emitted so
	 * far. Returns as emit. */
	int (*flush)(void *user);
	void *user;
} ObjectHost;

typedef struct ObjectRequest {
	int fd;
	int debug_fd; /* found by the build id, or -1 */
	const uint8_t
		*build_id; /* recorded, with the next two; if the file's differ, it is not used */
	uint8_t build_id_len;
	uint64_t base_svma;
	const uint64_t *addresses; /* SVMA, ascending, each once */
	size_t count;
} ObjectRequest;

/*
 * Emits what symbol tables know first and then, again, what Go's own table and DWARF know better,
 * so that what is at hand remains if these are the end of us. Descriptors stay open. Returns 0,
 * -ESTALE if it is not the recorded file, -ENOEXEC if not ELF, or emit's error.
 */
int object_names_find(const ObjectRequest *request, const ObjectHost *host);

#endif
