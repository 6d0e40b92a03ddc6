/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * address_space.h - the address spaces of all recorded processes, over time.
 *
 * Made from REC_FILE, REC_MAPPING, REC_SPACE and REC_CODE; answers which mapping or which code was
 * at an address of a process at a moment. AVMA = address in the process, SVMA = address as the ELF
 * file states it, relative = SVMA - the file's base SVMA.
 */
#ifndef WALLPROF_ADDRESS_SPACE_H
#define WALLPROF_ADDRESS_SPACE_H

#include "records.h"
#include "util.h"

/* A part of a file that was mapped with the right to execute it. */
typedef struct MappedText {
	uint64_t start, end; /* SVMA */
	uint64_t offset;     /* of its start in the file, bytes */
} MappedText;

typedef struct MappedFile {
	uint32_t id;
	uint8_t flags; /* enum file_flags */
	uint8_t build_id_len;
	uint8_t build_id[20];
	uint64_t base_svma;
	uint64_t size, mtime_ns; /* 0 = unknown */
	/*
	 * Of the file that was opened for its symbols; 0 = it was not opened. Not in the capture.
	 */
	uint64_t ctime_ns, device, inode;
	char *path;
	VEC(MappedText) texts; /* of all processes; each once, and not more than a few */
} MappedFile;

typedef struct AddressSpaces AddressSpaces;

AddressSpaces *address_spaces_new(void);
void address_spaces_free(AddressSpaces *spaces);
DEFINE_CLEANUP(AddressSpaces *, address_spaces_free)

/*
 * Adds a FILE, MAPPING, SPACE or CODE record; ignores others. MAPPING and SPACE must come in order
 * of time per process (capture_read_sorted()). All records must be added before the first query.
 */
void address_spaces_add(AddressSpaces *spaces, const struct record *record);

const MappedFile *address_spaces_file(const AddressSpaces *spaces,
				      uint32_t id);	       /* Returns NULL if unknown. */
size_t address_spaces_file_count(const AddressSpaces *spaces); /* ids are 1 … count */

/* Returns the text that the SVMA lies in, or NULL. */
const MappedText *address_spaces_text(const MappedFile *file, uint64_t svma);

/*
 * A number that changes whenever the mappings or the code of ns_tgid change, or it begins. So from
 * its beginning on, (process, stack, generation) is a valid cache key: within one generation,
 * address_spaces_locate() and address_spaces_replaced() give the same answers. O(log n).
 */
uint32_t address_spaces_generation(AddressSpaces *spaces, uint32_t ns_tgid, uint64_t ns);

typedef struct Location {
	const MappedFile *file; /* NULL: no known file was mapped there */
	uint64_t svma;
} Location;

/*
 * Returns what ns_tgid had at avma at time ns; code made at run time has priority over mappings.
 * O(log² n), times the forks that it was inherited through.
 */
Location address_spaces_locate(AddressSpaces *spaces, uint32_t ns_tgid, uint64_t ns, uint64_t avma);

/*
 * The same for data, which may lie after the executable part of its file, and only that part is
 * recorded. So the file is the last one below avma, and it is not certain that avma is in it: a
 * symbol that covers svma makes it likely. Code made at run time does not count.
 */
Location address_spaces_locate_data(AddressSpaces *spaces, uint32_t ns_tgid, uint64_t ns,
				    uint64_t avma);

/*
 * Returns whether the mappings of ns_tgid as of from_ns were wrong for avma at to_ns: another file,
 * or the file at another bias, is mapped there, or there was an exec in between, which replaces
 * all. For a forked process, the parent counts up to the fork. Returns false if nothing was mapped
 * at from_ns, so that nothing can have been mistaken, and if to_ns is not later. Code made at run
 * time does not count. O(log² n), times the forks.
 */
bool address_spaces_replaced(AddressSpaces *spaces, uint32_t ns_tgid, uint64_t from_ns,
			     uint64_t to_ns, uint64_t avma);

/*
 * Calls visit for every (file, svma) that avma ever meant in ns_tgid, each once or more. It is for
 * the symbolizer, which must not miss one.
 */
void address_spaces_locate_any(AddressSpaces *spaces, uint32_t ns_tgid, uint64_t avma,
			       void (*visit)(void *user, const MappedFile *file, uint64_t svma),
			       void *user);

#endif
