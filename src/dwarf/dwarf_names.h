/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dwarf_names.h - names of addresses by DWARF: the function, the calls that were inlined there, and
 * the line of each. Follows DWARF 5, sections 2.17, 3.3 and 6.2, by libdw. Runs in the sandbox,
 * because libdw is not trusted.
 */
#ifndef WALLPROF_DWARF_NAMES_H
#define WALLPROF_DWARF_NAMES_H

#include "debug_link.h"
#include <elfutils/libdw.h>

/* One function at an address: the real one, or one that was inlined there. */
typedef struct DwarfFrame {
	uint32_t name;	 /* in DwarfNames::strings, demangled; "" = unknown */
	uint32_t source; /* likewise; "" = unknown */
	uint32_t line;	 /* 0 = unknown */
} DwarfFrame;

/* What is known of an address. All frames are in DwarfNames::frames. */
typedef struct DwarfAnswer {
	size_t first;
	uint32_t count;	   /* outermost first; 0 = DWARF does not have the address */
	bool is_ada;	   /* the unit's language, which its symbols do not show */
	bool has_function; /* if false, there is one frame, with a line only */
	uint64_t function; /* start of the part of the function that contains the address */
	uint64_t size;	   /* of that part */
} DwarfAnswer;

/* Debug information that there is, or should be, and that was not used. */
enum dwarf_missing {
	DWARF_NO_SPLIT_FILE,	/* a .dwo file that is not there, or may not be read */
	DWARF_OTHER_SPLIT_FILE, /* a .dwo file that does not have the unit: another build's */
	DWARF_OTHER_PACKAGE,	/* a unit that is not in the .dwp file, and has no .dwo file */
	DWARF_DAMAGED_PACKAGE,	/* the same where the .dwp file's index cannot be read */
	DWARF_DAMAGED_SECTION,	/* a section that could not be decompressed */
	DWARF_UNREADABLE,	/* libdw refuses it, with this message */
	DWARF_MISSING_KINDS
};

typedef struct DwarfMissing {
	uint64_t count;
	char name[COMPANION_NAME_MAX]; /* of the first one; "" = none */
} DwarfMissing;

typedef struct DwarfNames {
	VEC(DwarfAnswer) answers; /* one for each requested address */
	VEC(DwarfFrame) frames;
	Strings strings;
	DwarfMissing missing[DWARF_MISSING_KINDS];
} DwarfNames;

/* Where the files of split debug information come from: find is that of ObjectHost. */
typedef struct DwarfHost {
	int (*find)(void *user, const Companion *companion);
	void *user;
} DwarfHost;

/*
 * Finds the names of addresses (SVMA, ascending, each once). dwz is the supplementary file that dwz
 * made; it is not open if there is none. Both must stay open until after dwarf_names_free();
 * sections of both are decompressed.
 */
void dwarf_names_find(ElfMap *file, ElfMap *dwz, const uint64_t *addresses, size_t count,
		      const DwarfHost *host, DwarfNames *ret_names);
void dwarf_names_free(DwarfNames *names);

#endif
