/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * debug_link.h - the separate debug files that an ELF file names, and the check whether a file is
 * the right one. Follows GDB's manual, "Debugging Information in Separate Files". Runs in the
 * sandbox; all input is untrusted.
 */
#ifndef WALLPROF_DEBUG_LINK_H
#define WALLPROF_DEBUG_LINK_H

#include "elf_file.h"

/* A file that an object says belongs to it. */
enum companion_kind {
	COMPANION_DEBUG, /* .gnu_debuglink: the object's debug file, a name without a folder */
	COMPANION_DWZ,	 /* .gnu_debugaltlink of the file with the DWARF: a path, maybe relative */
	COMPANION_DWO,	 /* a unit's split debug information: a path, maybe relative */
	COMPANION_DWP,	 /* that of all units: the object's path with ".dwp" behind it; no name */
};

#define COMPANION_NAME_MAX 4096
/* A companion can be at so many paths; a file at one of them may be of another build. */
#define COMPANION_CANDIDATES 3

typedef struct Companion {
	uint8_t kind;
	uint8_t build_id_len; /* 0 = not stated */
	uint8_t build_id[20];
	uint16_t tail;	   /* COMPANION_DWO: offset in name of the path beside the object */
	uint8_t candidate; /* which of the paths is wanted, from 0 to COMPANION_CANDIDATES - 1 */
	uint8_t reserved[7];
	char name[COMPANION_NAME_MAX];
} Companion;
_Static_assert(sizeof(Companion) % 8 == 0, "it is sent as a message");

/* Each returns false if the file (NULL: none) names no such companion. */
bool debug_link_read(Elf *elf, Companion *ret_companion);
bool debug_link_read_dwz(Elf *elf, Companion *ret_companion);

bool debug_link_same_build_id(Elf *elf, const uint8_t *build_id, uint8_t length);

/*
 * Checks whether debug, opened from debug_fd, is elf's debug file: by the build id if elf has one,
 * else by the checksum in elf's .gnu_debuglink, for which all of debug_fd is read. Returns 0;
 * -ESTALE if it is not; -EOVERFLOW if it has more than size_max bytes, and so was not read; or
 * another negative errno.
 */
int debug_link_check(Elf *elf, Elf *debug, int debug_fd, int64_t size_max);

#endif
