/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * table_file.h - the form of a file that holds the unwind table of an object: a header, the rules
 * and the rows. Tables lie there as they are in memory: reading hundreds of them must take
 * milliseconds. All is untrusted, and a table that was read is valid (unwind_table_valid()).
 */
#ifndef WALLPROF_TABLE_FILE_H
#define WALLPROF_TABLE_FILE_H

#include "unwind_table.h"

/* Files that are the same in all this are one file, unchanged. */
typedef struct FileIdentity {
	uint64_t size, mtime_ns, ctime_ns, device, inode;
} FileIdentity;

/* Of what a table was made. Without padding, so that all of it can be compared at once. */
typedef struct TableKey {
	uint8_t build_id[20];
	uint8_t build_id_len;
	uint8_t reserved[3];
	FileIdentity file, debug; /* debug: all 0 = there is none */
	uint64_t base_svma;
} TableKey;

struct table_file_header {
	char magic[24];	  /* with UNWIND_TABLE_VERSION */
	char version[16]; /* of wallprof: another one may build other tables */
	TableKey key;
	uint64_t rows, rules, counts_size;
	UnwindCounts counts;
	uint64_t checksum; /* of the whole file, with this as 0 */
};

/* More is neither written nor read: one that were longer would leave no room for another. */
#define TABLE_FILE_ROWS_MAX  (32u << 20)
#define TABLE_FILE_RULES_MAX (1u << 20)

/*
 * What a file begins with that holds this table. The rules and the rows, as they are, follow.
 * Returns 0, or -EFBIG.
 */
int table_file_header(const TableKey *key, const UnwindTable *table,
		      struct table_file_header *ret_header);

/* Tells a disk's errors, not forgery. The header's own field may hold anything. */
uint64_t table_file_checksum(const struct table_file_header *header, const UnwindTable *table);

/*
 * Reads from the begin of fd (not closed), which is so long. Returns false, and nothing that may be
 * used, if it is not whole, not of this key, or not valid. Memory that table has is used again, for
 * new memory costs as much as what is read into it; to be freed in any case.
 */
bool table_file_read(int fd, uint64_t size, const TableKey *key, UnwindTable *table);

#endif
