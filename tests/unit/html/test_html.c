/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Pages of timelines made by hand and at random: the data are read back, as a browser does it. */
#include "html.h"
#include "json_reader.h"
#include "random_timeline.h"
#include "test_tools.h"
#include <time.h>
#include <zlib.h>

#define MS	  NSEC_PER_MSEC
#define DATA_MOST (64u << 20)

typedef struct Read {
	char *text; /* of the page */
	uint8_t *bytes;
	Node *root;
	const uint8_t *columns;
} Read;

static uint8_t *from_base64(const char *text, size_t *ret_size)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	uint8_t *bytes = xcalloc(strlen(text), 1);
	uint32_t bits = 0, count = 0;

	*ret_size = 0;
	for (; *text && *text != '<'; text++) {
		const char *digit = strchr(digits, *text);

		if (*text == '\n' || *text == '=')
			continue;
		assert_non_null(digit);
		bits = bits << 6 | (digit - digits);
		if (++count % 4 == 0)
			for (int shift = 16; shift >= 0; shift -= 8)
				bytes[(*ret_size)++] = bits >> shift;
	}
	if (count % 4 == 3)
		bits <<= 6;
	if (count % 4 == 2)
		bits <<= 12;
	for (uint32_t k = 1; k < count % 4; k++)
		bytes[(*ret_size)++] = bits >> (24 - 8 * k);
	return bytes;
}

static Read read_page(char *text)
{
	const char *data = strstr(text, "id=\"data\">\n");
	Read read = {.text = text, .bytes = xcalloc(1, DATA_MOST)};
	size_t size, length;
	uint8_t *packed;
	z_stream stream = {.next_out = read.bytes, .avail_out = DATA_MOST};

	assert_non_null(data);
	packed = from_base64(strchr(data, '\n') + 1, &size);
	stream.next_in = packed;
	stream.avail_in = size;
	assert_int_equal(inflateInit2(&stream, 15 + 16), Z_OK);
	assert_int_equal(inflate(&stream, Z_FINISH), Z_STREAM_END);
	inflateEnd(&stream);
	free(packed);
	length = read.bytes[0] | read.bytes[1] << 8 | read.bytes[2] << 16 |
		 (uint32_t)read.bytes[3] << 24;
	_cleanup_free_ char *json = xasprintf("%.*s", (int)length, (char *)read.bytes + 4);
	read.root = node_read(json);
	read.columns = read.bytes + 4 + length;
	return read;
}

static char *write_page(const Timeline *timeline, const HtmlOptions *options)
{
	Frames *frames = frames_new();
	char *text;
	size_t size;
	FILE *stream = open_memstream(&text, &size);
	Output *output = output_for_stream(stream);

	assert_int_equal(html_write(output, timeline, frames, options), 0);
	assert_int_equal(output_close(output), 0);
	fclose(stream);
	frames_free(frames);
	return text;
}

static void read_free(Read *read)
{
	node_free(read->root);
	free(read->bytes);
	free(read->text);
}

typedef VEC(uint64_t) Numbers;

static Numbers read_column(const Read *read, const char *name)
{
	const Node *place = node_get(node_get(read->root, "columns"), name);
	const uint8_t *at = read->columns + node_int(node_at(place, 0));
	const uint8_t *end = at + node_int(node_at(place, 1));
	Numbers numbers = {};

	while (at < end) {
		uint64_t value = 0;
		unsigned int shift = 0;

		do
			value |= (uint64_t)(*at & 127) << shift, shift += 7;
		while (*at++ & 128);
		*vec_push(&numbers) = value;
	}
	return numbers;
}

static int64_t from_zigzag(uint64_t value)
{
	return (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
}

static enum thread_state state_of(const Read *read, uint64_t category)
{
	const Node *categories = node_get(read->root, "categories");
	const char *state = node_string(node_get(node_at(categories, category), "state"));

	return !strcmp(state, "running")    ? STATE_RUNNING
	       : !strcmp(state, "runnable") ? STATE_RUNNABLE
	       : !strcmp(state, "blocked")  ? STATE_BLOCKED
					    : STATE_UNKNOWN;
}

/*
 * Returns whether each thread has the sums of its ledger, without the states that are hidden, after
 * missing_ns were added to the first one's blocked time.
 */
static bool sums_agree(const Read *read, const Timeline *timeline, uint32_t hidden,
		       uint64_t missing_ns)
{
	Numbers starts = read_column(read, "segmentStart"),
		weights = read_column(read, "segmentWeight"),
		stacks = read_column(read, "segmentStack"),
		frames = read_column(read, "stackFrame"),
		categories = read_column(read, "frameCategory");
	const Node *threads = node_get(read->root, "threads");
	bool agree = true;
	size_t at = 0;

	assert_int_equal(threads->count, timeline->threads.count);
	for (size_t t = 0; t < threads->count; t++) {
		const Node *thread = node_at(threads, t);
		uint64_t sums[STATE_COUNT] = {}, ns = node_int(node_get(thread, "start"));
		size_t end = at + node_int(node_get(thread, "segments"));

		for (; at < end; at++) {
			uint64_t next, category;

			ns += starts.items[at];
			next = at + 1 < end ? ns + starts.items[at + 1]
					    : (uint64_t)node_int(node_get(thread, "end"));
			category = categories.items[frames.items[stacks.items[at]]];
			sums[state_of(read, category)] +=
				next - MIN(next, ns) + from_zigzag(weights.items[at]);
		}
		for (size_t s = 0; s < STATE_COUNT; s++)
			agree &= sums[s] + (t == 0 && s == STATE_BLOCKED ? missing_ns : 0) ==
				 (hidden >> s & 1 ? 0 : timeline->threads.items[t].ledger[s]);
	}
	vec_free(&starts);
	vec_free(&weights);
	vec_free(&stacks);
	vec_free(&frames);
	vec_free(&categories);
	return agree;
}

static void test_sums(void **state)
{
	unsigned int seed = time(NULL) % 100000;

	(void)state;
	print_message("seed %u\n", seed);
	for (unsigned int i = 0; i < 10; i++) {
		Timeline *t = random_timeline(seed + i, 1 + random_number(100 * MS), 1 + i * 10);
		Read read = read_page(write_page(t, NULL));

		assert_true(sums_agree(&read, t, 0, 0));
		assert_false(sums_agree(&read, t, 0, 1));
		read_free(&read);
		timeline_free(t);
	}
}

/* Folded, the sums are still exact, and the page says what is folded and what has no details. */
static void test_budgets(void **state)
{
	const HtmlOptions options = {.row_budget = 600, .wait_budget = 50};
	unsigned int seed = time(NULL) % 100000;
	Timeline *t = random_timeline(seed, 100 * MS, 300);
	Read all = read_page(write_page(t, NULL)), few = read_page(write_page(t, &options));
	Numbers waits = read_column(&few, "waitThread");

	(void)state;
	print_message("seed %u\n", seed);
	assert_true(sums_agree(&few, t, 0, 0));
	assert_int_equal(node_int(node_get(node_get(all.root, "folded"), "intervals")), 0);
	assert_true(node_int(node_get(node_get(few.root, "folded"), "intervals")) > 0);
	assert_true(waits.count <= 50);
	assert_int_equal(node_int(node_get(node_get(few.root, "waits"), "detailed")), waits.count);
	assert_true(node_int(node_get(node_get(few.root, "waits"), "all")) > 50);
	assert_true(strlen(few.text) < strlen(all.text));
	vec_free(&waits);
	read_free(&all);
	read_free(&few);
	timeline_free(t);
}

/* The states that are hidden have no weight, and those of others are as they were. */
static void test_hidden(void **state)
{
	const HtmlOptions options = {.hidden = 1 << STATE_BLOCKED};
	unsigned int seed = time(NULL) % 100000;
	Timeline *t = random_timeline(seed, 100 * MS, 10);
	Read read = read_page(write_page(t, &options));

	(void)state;
	print_message("seed %u\n", seed);
	assert_true(sums_agree(&read, t, options.hidden, 0));
	assert_false(sums_agree(&read, t, 0, 0));
	read_free(&read);
	timeline_free(t);
}

/* Names are text wherever they are: nothing of them is markup or ends a script, and all of it is
 * UTF-8. */
static void test_names(void **state)
{
	static const char hostile[] = "</script><img src=x onerror=\"a\" id='b'>&\x01\xff\x1b[31m";
	Timeline *t = fixture_new(100 * MS);
	uint32_t process = fixture_process(t, 7, hostile, 0, 100 * MS);
	size_t scripts = 0;
	char *text;

	(void)state;
	fixture_thread(t, process, 7, hostile, 0, 100 * MS);
	text = write_page(t, NULL);
	for (const char *p = strstr(text, "</script>"); p; p = strstr(p + 1, "</script>"))
		scripts++;
	assert_int_equal(scripts, 2);
	assert_null(strstr(text, "<img"));
	assert_non_null(strstr(text, "&lt;/script&gt;&lt;img src=x onerror=&quot;a&quot;"));
	for (const char *p = text; *p; p += MAX(utf8_length(p), 1u)) {
		assert_true(utf8_length(p) > 0);
		assert_true((unsigned char)*p >= ' ' || *p == '\n' || *p == '\t');
	}
	free(text);
	timeline_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sums),
		cmocka_unit_test(test_budgets),
		cmocka_unit_test(test_hidden),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
