/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pprof.h"
#include "accounts.h"
#include "left_out.h"
#include "pprof_fields.h"
#include "pprof_places.h"
#include "stack_spans.h"
#include "wait_fields.h"

/* The values of a sample, in order. */
enum value { VALUE_WALL, VALUE_CPU, VALUE_OFF_CPU, VALUE_COUNT };

static const char *const value_names[VALUE_COUNT] = {"wall", "cpu", "off_cpu"};

/* The time of one thread with one stack, for one object. */
typedef struct PprofSample {
	uint32_t stack, object; /* stackTable; Timeline::objects or OBJECT_NONE */
	enum thread_state state;
	enum reason reason;
	uint64_t ns;
} PprofSample;

typedef struct Pprof {
	Output *out;
	const Timeline *timeline;
	StackTable *tables;
	PprofPlaces places;
	uint32_t recording;  /* stackTable */
	Proto sample, label; /* while they are made */
	Map index;	     /* (stack, object) -> samples, of the present thread */
	VEC(PprofSample) samples;
} Pprof;

/* ---- samples ------------------------------------------------------------------------------ */

/* The key is that of the sample's first span; the leaf of a stack stands for state and reason. */
static void add_time(Pprof *pprof, const PprofSample *sample)
{
	uint64_t key = (uint64_t)sample->stack << 32 | sample->object;
	uint32_t number = map_get(&pprof->index, key);

	if (number == MAP_NONE) {
		map_set(&pprof->index, key, pprof->samples.count);
		*vec_push(&pprof->samples) = *sample;
	} else {
		pprof->samples.items[number].ns += sample->ns;
	}
}

static void add_span(void *user, const Thread *thread, const StackSpan *span)
{
	Pprof *pprof = user;
	PprofSample sample = {
		.stack = span->stack,
		.object = OBJECT_NONE,
		.state = stack_span_state(thread, span),
		.ns = span->end_ns - span->start_ns - span->recording_ns,
	};
	PprofSample recording = {
		.stack = pprof->recording,
		.object = OBJECT_NONE,
		.state = STATE_RUNNING,
		.ns = span->recording_ns,
	};

	if (sample.state != STATE_RUNNING) {
		sample.reason = wait_reason(&thread->intervals.items[span->interval]);
		sample.object = wait_object(pprof->timeline, thread, span->interval);
	}
	if (sample.ns > 0)
		add_time(pprof, &sample);
	if (recording.ns > 0)
		add_time(pprof, &recording);
}

static void add_text_label(Pprof *pprof, const char *key, const char *text)
{
	if (!text || !*text)
		return;
	proto_clear(&pprof->label);
	proto_u64(&pprof->label, LABEL_KEY, pprof_string(pprof->tables, key));
	proto_u64(&pprof->label, LABEL_STR, pprof_string(pprof->tables, text));
	proto_message(&pprof->sample, SAMPLE_LABEL, &pprof->label);
}

static void add_number_label(Pprof *pprof, const char *key, uint64_t number)
{
	if (number == 0)
		return;
	proto_clear(&pprof->label);
	proto_u64(&pprof->label, LABEL_KEY, pprof_string(pprof->tables, key));
	proto_u64(&pprof->label, LABEL_NUM, number);
	proto_message(&pprof->sample, SAMPLE_LABEL, &pprof->label);
}

static void write_sample(Pprof *pprof, const Thread *thread, const PprofSample *sample)
{
	const Timeline *timeline = pprof->timeline;
	const Process *process = &timeline->processes.items[thread->process];
	bool waited = sample->state == STATE_RUNNABLE || sample->state == STATE_BLOCKED;
	uint64_t values[VALUE_COUNT] = {
		[VALUE_WALL] = sample->ns,
		[VALUE_CPU] = sample->state == STATE_RUNNING ? sample->ns : 0,
		[VALUE_OFF_CPU] = waited ? sample->ns : 0,
	};
	const uint64_t *ids;
	size_t count;

	ids = pprof_places_ids(&pprof->places, sample->stack, &count);
	proto_clear(&pprof->sample);
	proto_packed(&pprof->sample, SAMPLE_LOCATION_ID, ids, count);
	proto_packed(&pprof->sample, SAMPLE_VALUE, values, VALUE_COUNT);
	add_text_label(pprof, "process", process->label);
	add_text_label(pprof, "thread", thread->name);
	add_number_label(pprof, "pid", process->ns_tgid ? process->ns_tgid : process->tgid);
	add_number_label(pprof, "tid", thread->ns_tid ? thread->ns_tid : thread->tid);
	add_text_label(pprof, "state", timeline_state_names[sample->state]);
	if (sample->state != STATE_RUNNING)
		add_text_label(pprof, "reason", reason_info[sample->reason].marker);
	if (sample->object != OBJECT_NONE)
		add_text_label(pprof, "object", timeline->objects.list.items[sample->object].name);
	proto_emit(pprof->out, PROFILE_SAMPLE, &pprof->sample);
}

/* The samples of a thread are written when all its time is known; no other has the same labels. */
static void write_thread(Pprof *pprof, const Thread *thread, uint32_t hidden)
{
	stack_spans_walk(pprof->tables, thread, hidden, add_span, pprof);
	for (size_t i = 0; i < pprof->samples.count; i++)
		write_sample(pprof, thread, &pprof->samples.items[i]);
	pprof->samples.count = 0;
	map_free(&pprof->index);
	pprof->index = (Map){};
}

/* ---- the profile itself --------------------------------------------------------------------- */

static void make_value_type(Pprof *pprof, Proto *message, enum value value)
{
	proto_clear(message);
	proto_u64(message, VALUE_TYPE_TYPE, pprof_string(pprof->tables, value_names[value]));
	proto_u64(message, VALUE_TYPE_UNIT, pprof_string(pprof->tables, "nanoseconds"));
}

/* The period is that of pprof's first value: each of its nanoseconds is counted. */
static void write_head(Pprof *pprof)
{
	const Timeline *timeline = pprof->timeline;
	Proto fields = {}, type = {};

	for (enum value value = 0; value < VALUE_COUNT; value++) {
		make_value_type(pprof, &type, value);
		proto_message(&fields, PROFILE_SAMPLE_TYPE, &type);
	}
	make_value_type(pprof, &type, VALUE_WALL);
	proto_message(&fields, PROFILE_PERIOD_TYPE, &type);
	proto_u64(&fields, PROFILE_PERIOD, 1);
	proto_u64(&fields, PROFILE_TIME_NANOS, timeline->realtime_start_ns);
	proto_u64(&fields, PROFILE_DURATION_NANOS, timeline_time(timeline, timeline->end_ns));
	proto_u64(&fields, PROFILE_DEFAULT_SAMPLE_TYPE,
		  pprof_string(pprof->tables, value_names[VALUE_WALL]));
	proto_flush(pprof->out, &fields);
	proto_free(&fields);
	proto_free(&type);
}

typedef VEC(uint64_t) Comments;

static void add_comment(Pprof *pprof, Comments *comments, const char *text)
{
	if (text && *text)
		*vec_push(comments) = pprof_string(pprof->tables, text);
}

/* What was recorded, and what is missing in it. */
static void write_comments(Pprof *pprof, uint32_t hidden)
{
	static const char *const keys[] = {"command", "kernel"};
	const Timeline *timeline = pprof->timeline;
	_cleanup_free_ char *losses = accounts_loss_text(timeline);
	_cleanup_free_ char *budget = left_out_line(timeline);
	_cleanup_free_ char *states = accounts_states_text(hidden);
	Comments comments = {};
	Proto fields = {};

	add_comment(pprof, &comments, "exported by wallprof " WALLPROF_VERSION);
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		const char *value = timeline_meta(timeline, keys[i]);
		_cleanup_free_ char *text = value ? xasprintf("%s: %s", keys[i], value) : NULL;

		add_comment(pprof, &comments, text);
	}
	add_comment(pprof, &comments, states);
	add_comment(pprof, &comments, losses);
	add_comment(pprof, &comments, budget);
	for (size_t i = 0; i < timeline->notes.count; i++)
		add_comment(pprof, &comments, timeline->notes.items[i]);
	proto_packed(&fields, PROFILE_COMMENT, comments.items, comments.count);
	proto_flush(pprof->out, &fields);
	proto_free(&fields);
	vec_free(&comments);
}

static void write_strings(const Pprof *pprof)
{
	const Strings *strings = &pprof->tables->strings;
	Proto fields = {};

	proto_string(&fields, PROFILE_STRING_TABLE, "");
	for (size_t i = 0; i < strings->list.count; i++) {
		_cleanup_free_ char *text = xstrdup(strings_get(strings, i));

		/* pprof prints them to the terminal as they are. */
		mask_controls(text);
		proto_string(&fields, PROFILE_STRING_TABLE, text);
		proto_flush(pprof->out, &fields);
	}
	proto_flush(pprof->out, &fields);
	proto_free(&fields);
}

int pprof_write(Output *out, const Timeline *timeline, Frames *frames, const PprofOptions *options)
{
	uint32_t hidden = options ? options->hidden : 0;
	Pprof pprof = {
		.out = out,
		.timeline = timeline,
		.tables = stack_table_new(timeline, frames),
	};

	pprof_places_init(&pprof.places, pprof.tables);
	pprof.recording = stack_spans_recording(pprof.tables);
	write_head(&pprof);
	for (size_t i = 0; i < timeline->threads.count; i++)
		write_thread(&pprof, &timeline->threads.items[i], hidden);
	pprof_places_write(&pprof.places, out);
	write_comments(&pprof, hidden);
	write_strings(&pprof);
	pprof_places_free(&pprof.places);
	proto_free(&pprof.sample);
	proto_free(&pprof.label);
	vec_free(&pprof.samples);
	stack_table_free(pprof.tables);
	output_flush(out);
	return out->error;
}
