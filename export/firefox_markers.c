/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * firefox_markers.c - markers: one per wait or unknown stretch that is long enough, one
 * per span of lost events, one per process that ended. In a lane a process has one for all
 * its life instead: nothing else tells there whose time it is.
 *
 * The viewer groups them by name and files each name under the category of its
 * first marker: a name has one category.
 */
#include "firefox_parts.h"
#include "labels.h"

#define THRESHOLD_START NSEC_PER_MSEC
#define THRESHOLD_MIN	(8 * NSEC_PER_USEC)
/* Shorter waits get markers too as long as this part of the budget is enough for them. */
#define SPARE_PART 10

enum marker_kind {
	MARKER_WAIT,
	MARKER_UNKNOWN,
	MARKER_LOSS,
	MARKER_EXIT,
	MARKER_PROCESS,
};

enum marker_phase {
	PHASE_INSTANT = 0,
	PHASE_INTERVAL = 1,
};

typedef struct Marker {
	enum marker_kind kind;
	uint64_t start_ns, end_ns;
	const Thread *thread; /* not of MARKER_LOSS */
	size_t index;	      /* of the interval; of the loss */
} Marker;

typedef void (*MarkerVisitor)(Profile *profile, const Marker *marker);

/* ---- which ---------------------------------------------------------------------- */

/* Waits, and what is not known to be none. */
static bool may_be_marked(const Interval *interval)
{
	return interval->state != STATE_RUNNING;
}

static bool is_marked(const Thread *thread, size_t i, uint64_t threshold_ns)
{
	const Interval *interval = &thread->intervals.items[i];
	uint64_t end = interval_end(thread, i);

	return may_be_marked(interval) && end > interval->start_ns &&
	       end - interval->start_ns >= threshold_ns;
}

static void count_waits(MarkerPlan *plan, const Timeline *timeline)
{
	plan->shown = plan->hidden = 0;
	for (size_t t = 0; t < timeline->threads.count; t++) {
		const Thread *thread = &timeline->threads.items[t];

		for (size_t i = 0; i < thread->intervals.count; i++) {
			if (is_marked(thread, i, plan->threshold_ns))
				plan->shown++;
			else if (may_be_marked(&thread->intervals.items[i]))
				plan->hidden++;
		}
	}
}

void marker_plan_fit(MarkerPlan *plan, const Timeline *timeline, uint64_t budget)
{
	uint64_t others = timeline->losses.count + timeline->processes.count;
	MarkerPlan denser;

	budget -= MIN(budget, others);
	plan->threshold_ns = THRESHOLD_START;
	count_waits(plan, timeline);
	while (plan->shown > budget) {
		plan->threshold_ns += plan->threshold_ns / 2;
		count_waits(plan, timeline);
	}
	denser = *plan;
	while (denser.hidden > 0 && denser.shown <= budget / SPARE_PART &&
	       denser.threshold_ns / 2 >= THRESHOLD_MIN) {
		*plan = denser;
		denser.threshold_ns /= 2;
		count_waits(&denser, timeline);
	}
	if (denser.shown <= budget / SPARE_PART)
		*plan = denser;
}

/* Both walks return how many markers they showed. */
static uint64_t walk_thread(Profile *profile, const Thread *thread, bool in_lane,
			    MarkerVisitor visit)
{
	const Process *process = &profile->timeline->processes.items[thread->process];
	uint64_t count = 0;

	for (size_t i = 0; i < thread->intervals.count; i++) {
		if (!is_marked(thread, i, profile->markers.threshold_ns))
			continue;
		visit(profile, &(Marker){
				       .kind = thread->intervals.items[i].state == STATE_UNKNOWN
						       ? MARKER_UNKNOWN
						       : MARKER_WAIT,
				       .start_ns = thread->intervals.items[i].start_ns,
				       .end_ns = interval_end(thread, i),
				       .thread = thread,
				       .index = i,
			       });
		count++;
	}
	if (thread->is_main && in_lane) {
		visit(profile, &(Marker){
				       .kind = MARKER_PROCESS,
				       .start_ns = process->start_ns,
				       .end_ns = process->end_ns,
				       .thread = thread,
			       });
		count++;
	} else if (thread->is_main && process->exited_in_window) {
		visit(profile, &(Marker){
				       .kind = MARKER_EXIT,
				       .start_ns = process->end_ns,
				       .thread = thread,
			       });
		count++;
	}
	return count;
}

static uint64_t walk_markers(Profile *profile, const Track *track, MarkerVisitor visit)
{
	const Timeline *timeline = profile->timeline;
	uint64_t count = track->is_system ? timeline->losses.count : 0;

	for (size_t i = 0; i < count; i++) {
		const LossSpan *loss = &timeline->losses.items[i];

		visit(profile, &(Marker){
				       .kind = MARKER_LOSS,
				       .start_ns = loss->from_ns,
				       .end_ns = MAX(loss->from_ns, loss->to_ns),
				       .index = i,
			       });
	}
	for (size_t i = 0; i < track->threads.count; i++)
		count += walk_thread(profile, &timeline->threads.items[track->threads.items[i]],
				     track->is_lane, visit);
	return count;
}

static enum reason marker_reason(const Marker *marker)
{
	return wait_reason(&marker->thread->intervals.items[marker->index]);
}

/* ---- the columns ------------------------------------------------------------------ */

static void write_name(Profile *profile, const Marker *marker)
{
	static const char *const names[] = {
		[MARKER_UNKNOWN] = "Unknown",
		[MARKER_LOSS] = "Events lost",
		[MARKER_EXIT] = "Exit",
		[MARKER_PROCESS] = "Process",
	};
	const char *name = marker->kind == MARKER_WAIT ? reason_info[marker_reason(marker)].marker
						       : names[marker->kind];

	json_u64(&profile->json, tables_string(profile->tables, name));
}

static void write_start(Profile *profile, const Marker *marker)
{
	json_ms(&profile->json, profile_time(profile->timeline, marker->start_ns));
}

/* An instant has no end: 0, for some importers take a null for a missing row. */
static void write_end(Profile *profile, const Marker *marker)
{
	json_ms(&profile->json, profile_time(profile->timeline, marker->end_ns));
}

static void write_phase(Profile *profile, const Marker *marker)
{
	json_u64(&profile->json, marker->kind == MARKER_EXIT ? PHASE_INSTANT : PHASE_INTERVAL);
}

static void write_category(Profile *profile, const Marker *marker)
{
	static const enum category categories[] = {
		[MARKER_UNKNOWN] = CATEGORY_UNKNOWN,
		[MARKER_LOSS] = CATEGORY_UNKNOWN,
		[MARKER_EXIT] = CATEGORY_OTHER,
		[MARKER_PROCESS] = CATEGORY_OTHER,
	};

	json_u64(&profile->json, marker->kind == MARKER_WAIT
					 ? reason_info[marker_reason(marker)].category
					 : categories[marker->kind]);
}

/* A text that many markers share. */
static void key_unique(Profile *profile, const char *key, const char *text)
{
	json_key_u64(&profile->json, key, tables_string(profile->tables, text));
}

static void write_evidence(Profile *profile, const Interval *interval)
{
	const char *rule = interval->rule < RULE_COUNT ? reason_rule_text[interval->rule] : NULL;
	const char *syscall = interval->syscall >= 0 ? syscall_label(interval->syscall) : NULL;
	_cleanup_free_ char *text = NULL;

	if (!rule || !*rule)
		return;
	if (interval->state != STATE_BLOCKED || interval->syscall < 0)
		text = xstrdup(rule);
	else if (syscall)
		text = xasprintf("%s: %s", rule, syscall);
	else
		text = xasprintf("%s: system call %d", rule, interval->syscall);
	key_unique(profile, "evidence", text);
}

static void write_waker(Profile *profile, const Interval *interval)
{
	const Timeline *timeline = profile->timeline;
	const Task *task;
	char comm[COMM_LEN + 1] = "";

	if (interval->flags & INTERVAL_WAKER_IRQ)
		key_unique(profile, "wokenBy", "interrupt");
	if (interval->flags & INTERVAL_WAKER_IRQ || interval->waker >= timeline->tasks.count)
		return;
	task = &timeline->tasks.items[interval->waker];
	memcpy(comm, task->comm, COMM_LEN);
	key_unique(profile, "wokenBy", *comm ? comm : "unknown");
	json_key(&profile->json, "waker");
	if (task->thread < timeline->threads.count)
		json_track_tid(&profile->json, profile->tracks.tids[task->thread]);
	else
		json_track_tid(&profile->json,
			       (TrackId){.number = task->ns_tid ? task->ns_tid : task->tid,
					 .host = task->ns_tid == 0});
}

static const char *open_note(const Interval *interval)
{
	switch (interval->flags & (INTERVAL_OPEN_START | INTERVAL_OPEN_END)) {
	case INTERVAL_OPEN_START:
		return "began before the recording";
	case INTERVAL_OPEN_END:
		return "still going on when the recording ended";
	case INTERVAL_OPEN_START | INTERVAL_OPEN_END:
		return "from before the recording to after it";
	default:
		return NULL;
	}
}

static void write_wait_data(Profile *profile, const Marker *marker)
{
	const Thread *thread = marker->thread;
	size_t next = marker->index + 1;
	const Interval *interval = &thread->intervals.items[marker->index];
	StackRef ref = wait_stack(profile->timeline, thread, marker->index);
	const char *note = open_note(interval);

	json_key_string(&profile->json, "type", "Wait");
	key_unique(profile, "reason", reason_info[marker_reason(marker)].marker);
	write_evidence(profile, interval);
	write_waker(profile, interval);
	if (interval->state == STATE_BLOCKED && next < thread->intervals.count &&
	    thread->intervals.items[next].state == STATE_RUNNABLE)
		json_key_ms(&profile->json, "runq",
			    interval_end(thread, next) - thread->intervals.items[next].start_ns);
	if (note)
		key_unique(profile, "note", note);
	json_key_object(&profile->json, "cause");
	json_key_u64(&profile->json, "stack", tables_stack(profile->tables, &ref));
	json_end_object(&profile->json);
}

/* The first loss of a kind that reaches into the marker's time, or NULL. */
static const LossSpan *find_loss(const Timeline *timeline, const Marker *marker, uint32_t kind)
{
	for (size_t i = 0; i < timeline->losses.count; i++) {
		const LossSpan *loss = &timeline->losses.items[i];

		if (loss->kind == kind && loss->from_ns <= marker->end_ns &&
		    loss->to_ns >= marker->start_ns)
			return loss;
	}
	return NULL;
}

/* Of which kind events were lost there; a switch can be missing with no loss reported. */
static void write_unknown_data(Profile *profile, const Marker *marker)
{
	const LossSpan *switches = find_loss(profile->timeline, marker, REC_SWITCH);
	const LossSpan *wakings = find_loss(profile->timeline, marker, REC_WAKING);
	const LossSpan *loss = switches ? switches : wakings;
	const char *note = open_note(&marker->thread->intervals.items[marker->index]);
	_cleanup_free_ char *why = NULL;

	if (loss)
		why = xasprintf("lost: %s (%s)",
				switches && wakings ? "switch, waking"
						    : record_kind_label(loss->kind),
				loss_cause_label(loss->cause));
	json_key_string(&profile->json, "type", "Unknown");
	key_unique(profile, "why", why ? why : "a switch that nobody told");
	if (note)
		key_unique(profile, "note", note);
}

static void write_loss_data(Profile *profile, const Marker *marker)
{
	const LossSpan *loss = &profile->timeline->losses.items[marker->index];
	const char *kind = record_kind_label(loss->kind);

	json_key_string(&profile->json, "type", "EventsLost");
	key_unique(profile, "kind", kind ? kind : "other");
	key_unique(profile, "why", loss_cause_label(loss->cause));
	json_key_u64(&profile->json, "cpu", loss->cpu);
	json_key_u64(&profile->json, "count", loss->count);
}

/* As wait(2) reports it. */
static char *exit_text(const Process *process)
{
	uint32_t code = process->exit_code, signal = code & 0x7f;

	if (!process->exited_in_window)
		return xstrdup("still there when the recording ended");
	return signal ? xasprintf("killed by signal %u", signal)
		      : xasprintf("exit status %u", code >> 8 & 0xff);
}

static void write_process_data(Profile *profile, const Marker *marker)
{
	const Process *process = &profile->timeline->processes.items[marker->thread->process];
	_cleanup_free_ char *status = exit_text(process);

	if (marker->kind == MARKER_EXIT) {
		json_key_string(&profile->json, "type", "ProcessExit");
	} else {
		json_key_string(&profile->json, "type", "Process");
		json_key(&profile->json, "process");
		/* Of a process's main thread both numbers are the same. */
		json_track_pid(&profile->json, profile->tracks.tids[process->threads.items[0]]);
	}
	key_unique(profile, "status", status);
	if (process->path)
		json_key_string(&profile->json, "path", process->path);
}

static void write_data(Profile *profile, const Marker *marker)
{
	json_begin_object(&profile->json);
	if (marker->kind == MARKER_WAIT)
		write_wait_data(profile, marker);
	else if (marker->kind == MARKER_UNKNOWN)
		write_unknown_data(profile, marker);
	else if (marker->kind == MARKER_LOSS)
		write_loss_data(profile, marker);
	else
		write_process_data(profile, marker);
	json_end_object(&profile->json);
}

void profile_write_markers(Profile *profile, const Track *track)
{
	static const struct {
		const char *name;
		MarkerVisitor visit;
	} columns[] = {
		{"data", write_data},	{"name", write_name},	{"startTime", write_start},
		{"endTime", write_end}, {"phase", write_phase}, {"category", write_category},
	};
	Json *json = &profile->json;
	uint64_t length = 0;

	json_key_object(json, "markers");
	for (size_t i = 0; i < ARRAY_LEN(columns); i++) {
		json_key_array(json, columns[i].name);
		length = walk_markers(profile, track, columns[i].visit);
		json_end_array(json);
	}
	json_key_u64(json, "length", length);
	json_end_object(json);
}

/* ---- the schemas ------------------------------------------------------------------ */

typedef struct SchemaField {
	const char *key, *label, *format;
} SchemaField;

static void write_schema(Json *json, const char *name, const char *description, const char *label,
			 const SchemaField *fields, size_t count)
{
	json_begin_object(json);
	json_key_string(json, "name", name);
	json_key_string(json, "description", description);
	json_key_string(json, "tooltipLabel", "{marker.name}");
	json_key_string(json, "tableLabel", label);
	json_key_string(json, "chartLabel", label);
	json_key_array(json, "display");
	json_string(json, "marker-chart");
	json_string(json, "marker-table");
	json_end_array(json);
	json_key_array(json, "fields");
	for (size_t i = 0; i < count; i++) {
		json_begin_object(json);
		json_key_string(json, "key", fields[i].key);
		json_key_string(json, "label", fields[i].label);
		json_key_string(json, "format", fields[i].format);
		json_end_object(json);
	}
	json_end_array(json);
	json_end_object(json);
}

void profile_write_marker_schemas(Json *json)
{
	static const SchemaField wait[] = {
		{"reason", "Reason", "unique-string"},	  {"evidence", "Told by", "unique-string"},
		{"wokenBy", "Woken by", "unique-string"}, {"waker", "Waking thread", "tid"},
		{"runq", "Run-queue delay", "duration"},  {"note", "Note", "unique-string"},
	};
	static const SchemaField unknown[] = {
		{"why", "Why", "unique-string"},
		{"note", "Note", "unique-string"},
	};
	static const SchemaField loss[] = {
		{"kind", "Kind", "unique-string"},
		{"count", "Events", "integer"},
		{"cpu", "CPU", "integer"},
		{"why", "Why", "unique-string"},
	};
	static const SchemaField life[] = {
		{"process", "Process", "pid"},
		{"status", "Status", "unique-string"},
		{"path", "Program", "file-path"},
	};
	static const SchemaField end[] = {
		{"status", "Status", "unique-string"},
		{"path", "Program", "file-path"},
	};

	json_key_array(json, "markerSchema");
	write_schema(json, "Wait", "A thread was off the CPU.",
		     "{marker.data.reason}{marker.data.wokenBy ? ' ← ' : ''}{marker.data.wokenBy}",
		     wait, ARRAY_LEN(wait));
	write_schema(json, "Unknown", "What the thread did here cannot be proven.",
		     "{marker.data.why}", unknown, ARRAY_LEN(unknown));
	write_schema(json, "EventsLost",
		     "Events could not be recorded here: what they told is shown as unknown.",
		     "{marker.data.count} {marker.data.kind}", loss, ARRAY_LEN(loss));
	write_schema(json, "ProcessExit", "A process ended.", "{marker.data.status}", end,
		     ARRAY_LEN(end));
	write_schema(json, "Process", "The life of one of the processes that share these rows.",
		     "{marker.data.process}: {marker.data.status}", life, ARRAY_LEN(life));
	json_end_array(json);
}
