/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * proto_writer.h - encodes messages of protocol buffers (version 3), as far as profiles need it:
 * varints, strings, packed numbers, messages in messages.
 *
 * Encoding: https://protobuf.dev/programming-guides/encoding. A message is built in memory, because
 * its length precedes it; fields with the value 0 or "" are left out, as the encoding's rules say.
 */
#ifndef WALLPROF_PROTO_WRITER_H
#define WALLPROF_PROTO_WRITER_H

#include "output.h"
#include "util.h"

/* All zeros is an empty message. */
typedef struct Proto {
	VEC(uint8_t) bytes;
} Proto;

void proto_free(Proto *proto);
void proto_clear(Proto *proto);

void proto_u64(Proto *proto, uint32_t field, uint64_t value);
void proto_bool(Proto *proto, uint32_t field, bool value);
/* It is written also if it is empty: one of a list. */
void proto_string(Proto *proto, uint32_t field, const char *text);
void proto_packed(Proto *proto, uint32_t field, const uint64_t *values, size_t count);
void proto_message(Proto *proto, uint32_t field, const Proto *message);

/* Writes a field of the outermost message to the output. */
void proto_emit(Output *out, uint32_t field, const Proto *message);
/* Writes fields of the outermost message, and clears them. */
void proto_flush(Output *out, Proto *fields);

#endif
