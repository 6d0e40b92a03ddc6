/* SPDX-License-Identifier: GPL-2.0-or-later */
/* pprof profiles of timelines made at random, decoded. */
#include "pprof.h"
#include "pprof_fields.h"
#include "proto_writer.h"
#include "random_timeline.h"
#include "test_tools.h"
#include <time.h>

#define MS NSEC_PER_MSEC

/* A message that is read. */
typedef struct Reader {
	const uint8_t *at, *end;
} Reader;

typedef struct Value {
	uint32_t field;
	uint64_t number; /* or, of bytes: */
	Reader bytes;
} Value;

static uint64_t read_varint(Reader *reader)
{
	uint64_t value = 0;

	for (unsigned int shift = 0; shift < 70; shift += 7) {
		uint8_t byte;

		assert_true(reader->at < reader->end);
		byte = *reader->at++;
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return value;
	}
	fail_msg("a varint does not end");
	return 0;
}

static bool read_value(Reader *reader, Value *ret_value)
{
	uint64_t tag;

	if (reader->at == reader->end)
		return false;
	tag = read_varint(reader);
	*ret_value = (Value){.field = tag >> 3};
	assert_true((tag & 7) == 0 || (tag & 7) == 2);
	ret_value->number = read_varint(reader);
	if ((tag & 7) == 2) {
		assert_true(ret_value->number <= (uint64_t)(reader->end - reader->at));
		ret_value->bytes = (Reader){reader->at, reader->at + ret_value->number};
		reader->at += ret_value->number;
	}
	return true;
}

typedef struct Decoded {
	uint64_t sums[3];
	uint64_t samples, locations, functions, mappings, strings, most_location;
} Decoded;

static void decode_sample(Decoded *decoded, Reader message)
{
	Value value;

	while (read_value(&message, &value)) {
		if (value.field == SAMPLE_LOCATION_ID)
			while (value.bytes.at < value.bytes.end) {
				uint64_t id = read_varint(&value.bytes);

				decoded->most_location = MAX(decoded->most_location, id);
			}
		if (value.field != SAMPLE_VALUE)
			continue;
		for (size_t i = 0; i < ARRAY_LEN(decoded->sums); i++)
			decoded->sums[i] += read_varint(&value.bytes);
		assert_true(value.bytes.at == value.bytes.end);
	}
	decoded->samples++;
}

static void check_id(Reader message, uint64_t id)
{
	Value value;

	assert_true(read_value(&message, &value));
	assert_int_equal(value.field, 1);
	assert_int_equal(value.number, id);
}

static Decoded written(const Timeline *timeline, uint32_t hidden)
{
	Frames *frames = frames_new();
	PprofOptions options = {.hidden = hidden};
	char *text;
	size_t size;
	FILE *stream = open_memstream(&text, &size);
	Output *output = output_for_stream(stream);
	Decoded decoded = {};
	Reader message;
	Value value;

	assert_int_equal(pprof_write(output, timeline, frames, &options), 0);
	assert_int_equal(output_close(output), 0);
	fclose(stream);
	frames_free(frames);
	message = (Reader){(const uint8_t *)text, (const uint8_t *)text + size};
	while (read_value(&message, &value)) {
		if (value.field == PROFILE_SAMPLE)
			decode_sample(&decoded, value.bytes);
		else if (value.field == PROFILE_LOCATION)
			check_id(value.bytes, ++decoded.locations);
		else if (value.field == PROFILE_FUNCTION)
			check_id(value.bytes, ++decoded.functions);
		else if (value.field == PROFILE_MAPPING)
			check_id(value.bytes, ++decoded.mappings);
		else if (value.field == PROFILE_STRING_TABLE)
			assert_true((value.number == 0) == (decoded.strings++ == 0));
	}
	free(text);
	return decoded;
}

static void test_sums(void **state)
{
	Timeline *timeline = random_timeline(time(NULL) % 100000, 300 * MS, 10);
	uint64_t ledger[STATE_COUNT] = {}, all = 0;
	Decoded decoded = written(timeline, 0);

	(void)state;
	for (size_t i = 0; i < timeline->threads.count; i++)
		for (size_t s = 0; s < STATE_COUNT; s++)
			ledger[s] += timeline->threads.items[i].ledger[s];
	for (size_t s = 0; s < STATE_COUNT; s++)
		all += ledger[s];
	assert_int_equal(decoded.sums[0], all);
	assert_int_equal(decoded.sums[1], ledger[STATE_RUNNING]);
	assert_int_equal(decoded.sums[2], ledger[STATE_RUNNABLE] + ledger[STATE_BLOCKED]);
	assert_int_equal(decoded.most_location, decoded.locations);
	assert_true(decoded.samples > timeline->threads.count);
	decoded = written(timeline, 1u << STATE_RUNNING);
	assert_int_equal(decoded.sums[0], all - ledger[STATE_RUNNING]);
	assert_int_equal(decoded.sums[1], 0);
	timeline_free(timeline);
}

static void test_encoding(void **state)
{
	static const uint8_t wanted[] = {0x08, 0x96, 0x01, 0x12, 0x07, 't',  'e',
					 's',  't',  'i',  'n',	 'g',  0x22, 0x03,
					 0x03, 0x8e, 0x02, 0x2a, 0x02, 0x08, 0x01};
	const uint64_t numbers[] = {3, 270};
	Proto proto = {}, inner = {};

	(void)state;
	proto_u64(&proto, 1, 150);
	proto_string(&proto, 2, "testing");
	proto_u64(&proto, 3, 0);
	proto_packed(&proto, 4, numbers, ARRAY_LEN(numbers));
	proto_bool(&inner, 1, true);
	proto_message(&proto, 5, &inner);
	assert_int_equal(proto.bytes.count, sizeof(wanted));
	assert_memory_equal(proto.bytes.items, wanted, sizeof(wanted));
	proto_free(&proto);
	proto_free(&inner);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sums),
		cmocka_unit_test(test_encoding),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
