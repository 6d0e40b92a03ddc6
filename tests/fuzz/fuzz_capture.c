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

static void expect_end(const struct record *record, const char *text)
{
	fuzz_require(memchr(text, '\0', (const char *)record + record->len - text));
}

/* The tail of a counted kind has so many bytes. */
static void expect_tail(const struct record *record, size_t fixed, uint64_t bytes)
{
	fuzz_require(bytes <= record->len - fixed);
}

#define EXPECT_TAIL(type, tail, bytes)                                                             \
	expect_tail(record, offsetof(struct type, tail), ((const struct type *)record)->bytes)

static void expect_script_inside(const struct record *record)
{
	const struct rec_script_stack *stack = (const void *)record;
	const struct rec_script_code *code = (const void *)record;

	if (record->kind == REC_SCRIPT_STACK) {
		expect_tail(record, sizeof(*stack), stack->count * sizeof(stack->frames[0]));
		fuzz_require(!stack->left_out || script_gap_root(stack->left_out) < stack->count);
		return;
	}
	expect_tail(record, sizeof(*code), code->table_bytes);
	fuzz_require(code->name_bytes <= sizeof(code->name) &&
		     code->path_bytes <= sizeof(code->path));
}

static void expect_watched(const struct rec_watch *watch)
{
	expect_tail(&watch->h, sizeof(*watch), watch->count * (uint64_t)sizeof(struct watched));
	for (uint32_t i = 0; i < watch->count; i++)
		fuzz_require(watch->watched[i].via <= i);
}

/* Counted tails are inside, strings end, and a time can be one of the kernel's. */
static void expect_inside(const struct record *record)
{
	const uint8_t *end = (const uint8_t *)record + record->len;
	const struct rec_stack *stack = (const void *)record;
	const struct rec_symbol *symbol = (const void *)record;
	const char *p = symbol->text;

	fuzz_require(record->kind == REC_CODE || record->ns <= INT64_MAX);
	switch (record->kind) {
	case REC_TASK:
		fuzz_require(memchr(((const struct rec_task *)record)->comm, '\0', COMM_LEN));
		break;
	case REC_ARGS:
		EXPECT_TAIL(rec_args, text, size);
		break;
	case REC_INODE:
		EXPECT_TAIL(rec_inode, text, size);
		break;
	case REC_SOCKET:
		EXPECT_TAIL(rec_socket, text, size);
		break;
	case REC_DEVICE:
		EXPECT_TAIL(rec_device, text, size);
		break;
	case REC_WATCH:
		expect_watched((const struct rec_watch *)record);
		break;
	case REC_SCRIPT_STACK:
	case REC_SCRIPT_CODE:
		expect_script_inside(record);
		break;
	case REC_META:
		expect_end(record, ((const struct rec_meta *)record)->text);
		break;
	case REC_NOTE:
		expect_end(record, ((const struct rec_note *)record)->text);
		break;
	case REC_SOURCE:
		expect_end(record, ((const struct rec_source *)record)->data);
		break;
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

static bool is_index(uint32_t number, size_t count)
{
	return number < count || number == UINT32_MAX; /* STACK_NONE, THREAD_NONE, … */
}

/* What an interval names is in the timeline. */
static void expect_indexes(const Timeline *timeline, const Thread *thread)
{
	for (size_t i = 0; i < thread->intervals.count; i++) {
		const Interval *interval = &thread->intervals.items[i];

		fuzz_require(interval->reason < REASON_COUNT);
		fuzz_require(is_index(interval->user_stack, timeline->stacks.count) &&
			     is_index(interval->kernel_stack, timeline->stacks.count));
		fuzz_require(is_index(interval->waker, timeline->tasks.count));
		fuzz_require(is_index(interval->cpu_user, timeline->tasks.count) ||
			     interval->cpu_user == CPU_IDLE);
	}
	for (size_t i = 0; i < thread->ticks.count; i++) {
		const Tick *tick = &thread->ticks.items[i];

		fuzz_require(tick->ns >= thread->start_ns && tick->ns < thread->end_ns);
		fuzz_require(i == 0 || tick[-1].ns <= tick->ns);
		fuzz_require(is_index(tick->user_stack, timeline->stacks.count) &&
			     is_index(tick->kernel_stack, timeline->stacks.count) &&
			     tick->recording < RECORDING_CLASSES);
	}
	for (size_t i = 0; i < thread->faults.count; i++) {
		const Fault *fault = &thread->faults.items[i];

		fuzz_require(fault->start_ns <= fault->end_ns);
		fuzz_require(i == 0 || fault[-1].end_ns <= fault->start_ns);
		fuzz_require(is_index(fault->wait, thread->intervals.count) &&
			     is_index(fault->file, timeline->objects.list.count));
		fuzz_require(fault->memory < MEMORY_COUNT && fault->page < PAGE_COUNT);
	}
}

/* The runs on a CPU are in order, and lie in the window. */
static void expect_cpus(const Timeline *timeline)
{
	for (size_t c = 0; c < timeline->cpus.count; c++) {
		const Cpu *cpu = &timeline->cpus.items[c];

		for (size_t i = 0; i < cpu->runs.count; i++) {
			const CpuRun *run = &cpu->runs.items[i];

			fuzz_require(run->start_ns >= timeline->start_ns &&
				     run->start_ns <= cpu_run_end(timeline, cpu, i));
			fuzz_require(run->task < timeline->tasks.count || run->task == CPU_IDLE ||
				     run->task == CPU_UNKNOWN);
		}
	}
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
	for (size_t i = 0; i < timeline_track_count(loaded.timeline); i++) {
		expect_whole(timeline_track(loaded.timeline, i));
		expect_indexes(loaded.timeline, timeline_track(loaded.timeline, i));
	}
	expect_cpus(loaded.timeline);
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
