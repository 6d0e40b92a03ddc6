/* SPDX-License-Identifier: GPL-2.0-or-later */
/* make_record.h - makes records, which the caller frees, and temporary files. */
#ifndef WALLPROF_TEST_MAKE_RECORD_H
#define WALLPROF_TEST_MAKE_RECORD_H

#include "records.h"
#include "util.h"

/* Gives a record all optional parts that it is long enough for. */
void fill_parts(struct record *record);

/*
 * Returns a record of `fixed` bytes, followed by a tail and padded to 8 bytes. What is not given is
 * zero, and the record has all its optional parts.
 */
void *make_record(int kind, int flags, uint64_t ns, size_t fixed, const void *tail,
		  size_t tail_size);

struct record *make_waking(uint64_t ns, uint32_t tid, uint32_t waker);

struct record *make_stack(uint64_t id, int flags, uint32_t tgid, const uint64_t *frames,
			  uint16_t count);

struct record *make_file(uint32_t id, int flags, const char *path, uint64_t base);

struct record *make_mapping(uint64_t ns, int flags, uint32_t ns_tgid, uint32_t file, uint64_t start,
			    uint64_t end, uint64_t bias);

struct record *make_code(uint64_t ns, uint32_t ns_tgid, uint32_t file, uint64_t start, uint64_t end,
			 uint64_t bias);

struct record *make_space(uint64_t ns, int flags, uint32_t ns_tgid, uint32_t parent);

/* The name has no line. module is the kernel's, or NULL. */
struct record *make_symbol(int flags, uint32_t file, uint64_t address, uint64_t function,
			   const char *name, const char *module);

struct record *make_task(uint32_t tid, uint32_t tgid, uint32_t ns_tgid);

struct record *make_source(const char *path, const char *text, uint32_t size);

/* Returns the path of an empty file, which the caller unlinks and frees. */
char *make_temporary(int *ret_fd);

#endif
