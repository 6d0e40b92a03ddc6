/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * object_names.h - names of addresses by an ELF file and its debug files: symbol tables,
 * .gnu_debugdata, PLT, unwind table, Go's own table, DWARF. Runs in the sandbox, which cannot open
 * files: it requests further files from its host.
 */
#ifndef WALLPROF_OBJECT_NAMES_H
#define WALLPROF_OBJECT_NAMES_H

#include "dwarf_names.h"
#include "records.h"

/* Debug information that was not used, and of how many units or sections. */
typedef struct ObjectMissing {
	uint32_t kind; /* enum dwarf_missing */
	uint32_t reserved;
	uint64_t count;
	char name[COMPANION_NAME_MAX]; /* of the first one; "" = none */
} ObjectMissing;

typedef struct ObjectHost {
	/* Returns a descriptor, which object_names_find() closes, or a negative errno. */
	int (*find)(void *user, const Companion *companion);
	/* Receives a REC_SYMBOL whose file is 0. Returns 0 or a negative errno, which ends all. */
	int (*emit)(void *user, const struct rec_symbol *symbol);
	/*
	 * Sends what was emitted so far, because the next step may exceed the limits. Returns as
	 * emit.
	 */
	int (*flush)(void *user);
	/* Receives each kind of what is missing once. Returns as emit. */
	int (*missing)(void *user, const ObjectMissing *missing);
	void *user;
} ObjectHost;

typedef struct ObjectRequest {
	int fd;
	int debug_fd;		 /* by the build id, or -1 */
	const uint8_t *build_id; /* recorded, like the next two; if the file's is different, the
				    file is not used */
	uint8_t build_id_len;
	uint64_t base_svma;
	const uint64_t *addresses; /* SVMA, ascending, each once */
	size_t count;
} ObjectRequest;

/*
 * Emits first what symbol tables have and then, for the same addresses, the better names of Go's
 * own table and DWARF, so that the first names remain if the process is ended meanwhile.
 * Descriptors stay open. Returns 0, -ESTALE if it is not the recorded file, -ENOEXEC if it is not
 * ELF, or emit's error.
 */
int object_names_find(const ObjectRequest *request, const ObjectHost *host);

#endif
