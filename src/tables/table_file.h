/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * table_file.h - the format of a file that holds the unwind table of an object: a header, the rules
 * and the rows. Tables are stored as they are in memory, because reading hundreds of them must take
 * milliseconds. All is untrusted; a table that was read is valid (unwind_table_valid()).
 */
#ifndef WALLPROF_TABLE_FILE_H
#define WALLPROF_TABLE_FILE_H

#include "unwind_table.h"

/* Two files that agree in all of this are one file, unchanged. */
typedef struct FileIdentity {
	uint64_t size, mtime_ns, ctime_ns, device, inode;
} FileIdentity;

#define TABLE_LINK_MAX 256 /* the longest name of a file */

/* What a table was made from. There is no padding, so that all of it can be compared at once. */
typedef struct TableKey {
	uint8_t build_id[20];
	uint8_t build_id_len;
	uint8_t reserved[3];
	FileIdentity file, debug; /* debug: all 0 = there is none */
	uint64_t base_svma;
} TableKey;

struct table_file_header {
	char magic[24];	  /* contains UNWIND_TABLE_VERSION */
	char version[16]; /* of wallprof: another one may build other tables */
	TableKey key;
	uint64_t rows, rules, counts_size;
	UnwindCounts counts;
	char debuglink[TABLE_LINK_MAX]; /* as table_file_read() returns it */
	uint64_t checksum;		/* of the whole file, with this field as 0 */
};

/* Larger tables are neither written nor read: one would leave no room for others. */
#define TABLE_FILE_ROWS_MAX  (32u << 20)
#define TABLE_FILE_RULES_MAX (1u << 20)

/*
 * Makes the header of a file that holds this table. The rules and the rows follow it as they are.
 * debuglink: the name in the object's .gnu_debuglink, shorter than TABLE_LINK_MAX; NULL = none.
 * Returns 0, or -EFBIG.
 */
int table_file_header(const TableKey *key, const UnwindTable *table, const char *debuglink,
		      struct table_file_header *ret_header);

/* Detects errors of the disk, not forgery. The header's own field may hold anything. */
uint64_t table_file_checksum(const struct table_file_header *header, const UnwindTable *table);

/*
 * Reads from the beginning of fd (which stays open) a file of this size. Returns false if the file
 * is incomplete, has another key or is not valid; then nothing may be used. Memory that table has
 * is reused, because new memory costs as much as reading into it. The caller frees table in any
 * case. ret_debuglink has room for TABLE_LINK_MAX bytes: the name, or "".
 */
bool table_file_read(int fd, uint64_t size, const TableKey *key, UnwindTable *table,
		     char *ret_debuglink);

#endif
