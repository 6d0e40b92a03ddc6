/* SPDX-License-Identifier: GPL-2.0-or-later */
/* jitdump_fixture.h - writes jitdumps for tests, field by field as the specification has them. */
#ifndef WALLPROF_TEST_JITDUMP_FIXTURE_H
#define WALLPROF_TEST_JITDUMP_FIXTURE_H

#include "util.h"

typedef VEC(uint8_t) Dump;

void dump_bytes(Dump *dump, const void *bytes, size_t size);
void dump_u32(Dump *dump, uint32_t value);
void dump_u64(Dump *dump, uint64_t value);
void dump_header(Dump *dump, uint64_t flags);

/* Returns where the record begins, for dump_end(). */
size_t dump_begin(Dump *dump, uint32_t id, uint64_t ns);
void dump_end(Dump *dump, size_t place);
void dump_load(Dump *dump, uint64_t ns, uint64_t start, uint64_t size, uint64_t index,
	       const char *name);
void dump_move(Dump *dump, uint64_t ns, uint64_t old_start, uint64_t new_start, uint64_t size,
	       uint64_t index);

/* As many dump_line() follow, and then dump_end(). */
size_t dump_lines_begin(Dump *dump, uint64_t start, uint64_t count);
void dump_line(Dump *dump, uint64_t address, uint32_t line, const char *source);

#endif
