/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A capture file from its first byte to the timeline: records are as capture.h promises, both
 * orders of reading agree, and what is true of every timeline is true of this one.
 * capture_mutator.c changes it.
 */
#include "analysis.h"
#include "capture.h"
#include "frames.h"
#include "fuzz.h"
#include "record_info.h"
#include "timeline_builder.h"

typedef struct Loaded {
	Timeline *timeline;
	Frames *frames;
} Loaded;

/* Counted tails are inside, strings end. */
static void expect_inside(const struct record *record)
{
	const uint8_t *end = (const uint8_t *)record + record->len;
	const struct rec_stack *stack = (const void *)record;
	const struct rec_symbol *symbol = (const void *)record;
	const char *p = symbol->text;

	switch (record->kind) {
	case REC_STACK:
		fuzz_require((const uint8_t *)(stack->frames + stack->count) +
				     (record->flags & STACK_DEEP ? sizeof(struct stack_gap) : 0) <=
			     end);
		break;
	case REC_FILE:
		p = ((const struct rec_file *)record)->path;
		fuzz_require((const uint8_t *)p + strnlen(p, record->len) < end);
		break;
	case REC_SYMBOL:
		for (uint32_t i = 0; i < symbol->count; i++) {
			p += sizeof(u32);
			p += strlen(p) + 1;
			p += strlen(p) + 1;
			fuzz_require((const uint8_t *)p <= end);
		}
		if (symbol->lib)
			fuzz_require((const uint8_t *)symbol->text + symbol->lib < end);
		break;
	}
}

static CaptureCounts read_in_file_order(CaptureReader *reader, bool *ret_damaged)
{
	const struct record *record;
	int got;

	while ((got = capture_read(reader, &record)) > 0)
		expect_inside(record);
	fuzz_require(got == 0);
	*ret_damaged = capture_reader_damage(reader) != NULL;
	return *capture_reader_counts(reader);
}

static CaptureCounts read_sorted(CaptureReader *reader, Loaded *loaded)
{
	TimelineBuilder *builder = timeline_builder_new();
	const struct record *record;
	uint64_t last_ns = 0, late = 0;
	int got;

	loaded->frames = frames_new();
	while ((got = capture_read_sorted(reader, &record)) > 0) {
		if (record_is_event(record)) {
			late += record->ns < last_ns;
			last_ns = MAX(last_ns, record->ns);
		}
		timeline_builder_add(builder, record);
		frames_add(loaded->frames, record);
	}
	fuzz_require(got == 0 && late == capture_reader_counts(reader)->late);
	loaded->timeline = timeline_builder_finish(builder);
	fuzz_require(analysis_run(loaded->timeline, loaded->frames, /* critical_tid= */ 0) == 0);
	return *capture_reader_counts(reader);
}

/* The states are an unbroken chain, and add up to the thread's lifetime. */
static void expect_whole(const Thread *thread)
{
	uint64_t at = thread->start_ns, sum = 0;

	fuzz_require(thread->start_ns <= thread->end_ns);
	if (thread->intervals.count)
		fuzz_require(thread->intervals.items[0].start_ns == at);
	for (size_t i = 0; i < thread->intervals.count; i++) {
		fuzz_require(thread->intervals.items[i].start_ns == at);
		fuzz_require(thread->intervals.items[i].state < STATE_COUNT);
		at = interval_end(thread, i);
		fuzz_require(at >= thread->intervals.items[i].start_ns);
	}
	for (int state = 0; state < STATE_COUNT; state++)
		sum += thread->ledger[state];
	fuzz_require(sum == thread->end_ns - thread->start_ns);
}

static void read_both(CaptureReader *reader)
{
	Loaded loaded = {};
	bool damaged;
	CaptureCounts plain = read_in_file_order(reader, &damaged), sorted;

	fuzz_require(capture_reader_rewind(reader) == 0);
	sorted = read_sorted(reader, &loaded);
	plain.late = sorted.late;
	fuzz_require(!memcmp(&plain, &sorted, sizeof(plain)));
	fuzz_require(damaged == (capture_reader_damage(reader) != NULL));
	for (size_t i = 0; i < loaded.timeline->threads.count; i++)
		expect_whole(&loaded.timeline->threads.items[i]);
	expect_whole(&loaded.timeline->path.track);
	timeline_free(loaded.timeline);
	frames_free(loaded.frames);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = fuzz_file(data, size);
	_cleanup_free_ char *path = xasprintf("/proc/self/fd/%d", fd);
	const char *message;
	CaptureReader *reader;

	if (capture_reader_open(path, &reader, &message) == 0) {
		capture_reader_content(reader);
		read_both(reader);
		capture_reader_free(reader);
	} else {
		fuzz_require(message);
	}
	close(fd);
	return 0;
}
