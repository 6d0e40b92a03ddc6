/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "proto_writer.h"
#include <string.h>

enum wire_type { WIRE_VARINT = 0, WIRE_LENGTH = 2 };

void proto_free(Proto *proto)
{
	vec_free(&proto->bytes);
}

void proto_clear(Proto *proto)
{
	proto->bytes.count = 0;
}

static void put_varint(Proto *proto, uint64_t value)
{
	while (value >= 0x80) {
		*vec_push(&proto->bytes) = value | 0x80;
		value >>= 7;
	}
	*vec_push(&proto->bytes) = value;
}

static void put_tag(Proto *proto, uint32_t field, enum wire_type type)
{
	put_varint(proto, (uint64_t)field << 3 | type);
}

static void put_bytes(Proto *proto, uint32_t field, const void *data, size_t size)
{
	put_tag(proto, field, WIRE_LENGTH);
	put_varint(proto, size);
	vec_append(&proto->bytes, data, size);
}

void proto_u64(Proto *proto, uint32_t field, uint64_t value)
{
	if (value == 0)
		return;
	put_tag(proto, field, WIRE_VARINT);
	put_varint(proto, value);
}

void proto_bool(Proto *proto, uint32_t field, bool value)
{
	proto_u64(proto, field, value);
}

void proto_string(Proto *proto, uint32_t field, const char *text)
{
	put_bytes(proto, field, text, strlen(text));
}

static size_t varint_size(uint64_t value)
{
	size_t size = 1;

	for (; value >= 0x80; value >>= 7)
		size++;
	return size;
}

void proto_packed(Proto *proto, uint32_t field, const uint64_t *values, size_t count)
{
	size_t size = 0;

	if (count == 0)
		return;
	for (size_t i = 0; i < count; i++)
		size += varint_size(values[i]);
	put_tag(proto, field, WIRE_LENGTH);
	put_varint(proto, size);
	for (size_t i = 0; i < count; i++)
		put_varint(proto, values[i]);
}

void proto_message(Proto *proto, uint32_t field, const Proto *message)
{
	put_bytes(proto, field, message->bytes.items, message->bytes.count);
}

void proto_emit(Output *out, uint32_t field, const Proto *message)
{
	Proto head = {};

	put_tag(&head, field, WIRE_LENGTH);
	put_varint(&head, message->bytes.count);
	proto_flush(out, &head);
	proto_free(&head);
	output_write(out, message->bytes.items, message->bytes.count);
}

void proto_flush(Output *out, Proto *fields)
{
	output_write(out, fields->bytes.items, fields->bytes.count);
	proto_clear(fields);
}
