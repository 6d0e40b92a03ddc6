/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * firefox_markers.c - markers: one per wait, page fault or unknown interval that is long enough (a
 * fault's wait is part of its marker), one per span of lost events, one per process that ended. In
 * a lane each process has one for its whole lifetime instead, because nothing else there shows
 * which process the time belongs to. A CPU has one for each time that a task had it.
 *
 * The viewer groups markers by name and puts each name into the category of its first marker: a
 * name has one category.
 */
#include "critical_path.h"
#include "event_fields.h"
#include "fault_fields.h"
#include "firefox_parts.h"
#include "wait_fields.h"

#define THRESHOLD_START NSEC_PER_MSEC
#define THRESHOLD_MIN	(8 * NSEC_PER_USEC)
#define HALVES_MAX	64 /* more than the bits of a threshold */
/* Shorter waits get markers too, as long as this part of the budget is enough for them. */
#define SPARE_PART 10
/* The runs on CPUs have at most this part of the budget. */
#define RUNS_PART 4
/*
 * A thread that is on the critical path for less than this part of the window has no such marker.
 */
#define PATH_PART 10000

enum marker_kind {
	MARKER_WAIT,
	MARKER_UNKNOWN,
	MARKER_FAULT,
	MARKER_REQUEST,
	MARKER_LOSS,
	MARKER_EXIT,
	MARKER_PROCESS,
	MARKER_PATH,
	MARKER_RUN,
	MARKER_KINDS
};

enum marker_phase {
	PHASE_INSTANT = 0,
	PHASE_INTERVAL = 1,
};

typedef struct Marker {
	enum marker_kind kind;
	uint64_t start_ns, end_ns;
	const Thread *thread; /* not for MARKER_LOSS, MARKER_REQUEST and MARKER_RUN */
	/*
	 * It is of the interval, the fault, the request or the loss; for MARKER_PATH of the first
	 * interval of one owner; for MARKER_RUN of the task.
	 */
	size_t index;
	uint32_t cpu; /* of MARKER_RUN */
} Marker;

typedef void (*MarkerVisitor)(Profile *profile, const Marker *marker);

/* ---- selection ------------------------------------------------------------------ */

/*
 * Returns whether the interval is a wait, or an unknown one that may be a wait. A wait within a
 * fault is part of the fault's marker.
 */
static bool can_have_marker(const Interval *interval)
{
	return interval->state != STATE_RUNNING && interval->rule != RULE_FAULT;
}

static bool has_marker(const Thread *thread, size_t i, uint64_t threshold_ns)
{
	const Interval *interval = &thread->intervals.items[i];
	uint64_t end = interval_end(thread, i);

	return can_have_marker(interval) && end > interval->start_ns &&
	       end - interval->start_ns >= threshold_ns;
}

/* Counts for several plans at once: each has a lower threshold than the one before it. */
static void count_waits(MarkerPlan *plans, size_t count, const Timeline *timeline)
{
	uint64_t all = 0;

	for (size_t k = 0; k < count; k++)
		plans[k].shown = 0;
	for (size_t t = 0; t < timeline->threads.count; t++) {
		const Thread *thread = &timeline->threads.items[t];

		for (size_t i = 0; i < thread->intervals.count; i++) {
			all += can_have_marker(&thread->intervals.items[i]);
			for (size_t k = count;
			     k-- > 0 && has_marker(thread, i, plans[k].threshold_ns);)
				plans[k].shown++;
		}
	}
	for (size_t k = 0; k < count; k++)
		plans[k].hidden = all - plans[k].shown;
}

/* Lowers the threshold for waits while they need only the spare part of the budget. */
static void show_shorter_waits(MarkerPlan *plan, const Timeline *timeline, uint64_t spare)
{
	MarkerPlan denser[HALVES_MAX];
	uint64_t threshold_ns = plan->threshold_ns;
	size_t count = 0;

	if (plan->shown > spare)
		return;
	for (; count < HALVES_MAX && threshold_ns / 2 >= THRESHOLD_MIN; count++) {
		threshold_ns /= 2;
		denser[count] = *plan;
		denser[count].threshold_ns = threshold_ns;
	}
	count_waits(denser, count, timeline);
	for (size_t k = 0; k < count && plan->hidden > 0 && denser[k].shown <= spare; k++)
		*plan = denser[k];
}

static bool is_run(const CpuRun *run, uint64_t end_ns)
{
	return run->task != CPU_IDLE && run->task != CPU_UNKNOWN && end_ns > run->start_ns;
}

/* Returns how many runs on CPUs have markers by the plan, and counts the others. */
static uint64_t count_runs(MarkerPlan *plan, const Timeline *timeline)
{
	uint64_t shown = 0;

	plan->hidden_runs = 0;
	for (size_t c = 0; c < timeline->cpus.count; c++) {
		const Cpu *cpu = &timeline->cpus.items[c];

		for (size_t i = 0; i < cpu->runs.count; i++) {
			const CpuRun *run = &cpu->runs.items[i];
			uint64_t end_ns = cpu_run_end(timeline, cpu, i);

			if (!is_run(run, end_ns))
				continue;
			if (end_ns - run->start_ns >= plan->run_threshold_ns)
				shown++;
			else
				plan->hidden_runs++;
		}
	}
	return shown;
}

/* Returns how many runs on CPUs have markers by the densest plan that keeps to the budget. */
static uint64_t fit_runs(MarkerPlan *plan, const Timeline *timeline, uint64_t budget)
{
	uint64_t shown;

	plan->run_threshold_ns = 0;
	while ((shown = count_runs(plan, timeline)) > budget)
		plan->run_threshold_ns =
			plan->run_threshold_ns ? plan->run_threshold_ns * 2 : THRESHOLD_MIN;
	return shown;
}

void marker_plan_fit(MarkerPlan *plan, const Timeline *timeline, uint64_t budget)
{
	uint64_t others = timeline->losses.count + timeline->processes.count;

	budget -= MIN(budget, others);
	plan->fault_threshold_ns = fault_fit(timeline, budget / 2);
	budget -= fault_count(timeline, plan->fault_threshold_ns, &plan->hidden_faults);
	plan->request_threshold_ns = requests_fit(&timeline->requests, budget / 2);
	budget -= requests_count(&timeline->requests, plan->request_threshold_ns,
				 &plan->hidden_requests);
	budget -= fit_runs(plan, timeline, budget / RUNS_PART);
	plan->threshold_ns = THRESHOLD_START;
	count_waits(plan, 1, timeline);
	while (plan->shown > budget) {
		plan->threshold_ns += plan->threshold_ns / 2;
		count_waits(plan, 1, timeline);
	}
	show_shorter_waits(plan, timeline, budget / SPARE_PART);
}

/* All walks return how many markers they showed. */
static uint64_t walk_faults(Profile *profile, const Thread *thread, MarkerVisitor visit)
{
	uint64_t count = 0;

	for (size_t i = 0; i < thread->faults.count; i++) {
		const Fault *fault = &thread->faults.items[i];

		if (fault->end_ns - fault->start_ns < profile->markers.fault_threshold_ns)
			continue;
		visit(profile, &(Marker){
				       .kind = MARKER_FAULT,
				       .start_ns = fault->start_ns,
				       .end_ns = fault->end_ns,
				       .thread = thread,
				       .index = i,
			       });
		count++;
	}
	return count;
}

static uint64_t visit_request(Profile *profile, uint32_t number, MarkerVisitor visit)
{
	const Request *request = &profile->timeline->requests.list.items[number];
	uint64_t begin = request_begin(request);

	if (request->end_ns - begin < profile->markers.request_threshold_ns)
		return 0;
	visit(profile, &(Marker){
			       .kind = MARKER_REQUEST,
			       .start_ns = begin,
			       .end_ns = request->end_ns,
			       .index = number,
		       });
	return 1;
}

static uint64_t walk_requests(Profile *profile, const Thread *thread, MarkerVisitor visit)
{
	uint64_t count = 0;

	for (size_t i = 0; i < thread->requests.count; i++)
		count += visit_request(profile, thread->requests.items[i], visit);
	return count;
}

/* Shows all requests of a device, also those of processes that are not recorded. */
static uint64_t walk_device(Profile *profile, uint32_t device, MarkerVisitor visit)
{
	const BlockDevice *busy = &profile->timeline->requests.devices.items[device];
	uint64_t count = 0;

	for (size_t i = 0; i < busy->requests.count; i++)
		count += visit_request(profile, busy->requests.items[i], visit);
	return count;
}

static bool is_hidden(const Profile *profile, enum thread_state state)
{
	return profile->rows.hidden >> state & 1;
}

static uint64_t walk_thread(Profile *profile, const Thread *thread, bool in_lane,
			    MarkerVisitor visit)
{
	const Process *process = &profile->timeline->processes.items[thread->process];
	uint64_t count = 0;

	for (size_t i = 0; i < thread->intervals.count; i++) {
		if (!has_marker(thread, i, profile->markers.threshold_ns) ||
		    is_hidden(profile, thread->intervals.items[i].state))
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
	/* Most of a fault is its wait. */
	if (!is_hidden(profile, STATE_BLOCKED))
		count += walk_faults(profile, thread, visit);
	count += walk_requests(profile, thread, visit);
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

/*
 * Shows the stretches of the critical path: each thread, and from when to when it is on the path.
 */
static uint64_t walk_path(Profile *profile, MarkerVisitor visit)
{
	const Timeline *timeline = profile->timeline;
	const Thread *track = &timeline->path.track;
	uint64_t least_ns = (timeline->end_ns - timeline->start_ns) / PATH_PART, count = 0;

	for (size_t i = 0, end; i < track->intervals.count; i = end) {
		Marker marker = {
			.kind = MARKER_PATH,
			.start_ns = track->intervals.items[i].start_ns,
			.thread = track,
			.index = i,
		};

		end = critical_path_stretch(track, i);
		marker.end_ns = interval_end(track, end - 1);
		if (marker.end_ns - marker.start_ns < least_ns)
			continue;
		visit(profile, &marker);
		count++;
	}
	return count;
}

static uint64_t walk_cpu(Profile *profile, uint32_t number, MarkerVisitor visit)
{
	const Cpu *cpu = &profile->timeline->cpus.items[number];
	uint64_t count = 0;

	for (size_t i = 0; i < cpu->runs.count; i++) {
		const CpuRun *run = &cpu->runs.items[i];
		uint64_t end_ns = cpu_run_end(profile->timeline, cpu, i);

		if (!is_run(run, end_ns) ||
		    end_ns - run->start_ns < profile->markers.run_threshold_ns)
			continue;
		visit(profile, &(Marker){
				       .kind = MARKER_RUN,
				       .start_ns = run->start_ns,
				       .end_ns = end_ns,
				       .index = run->task,
				       .cpu = number,
			       });
		count++;
	}
	return count;
}

static uint64_t walk_markers(Profile *profile, const Track *track, MarkerVisitor visit)
{
	const Timeline *timeline = profile->timeline;
	uint64_t count = track->is_system ? timeline->losses.count : 0;

	if (track->is_path)
		return walk_path(profile, visit);

	for (size_t i = 0; i < count; i++) {
		const LossSpan *loss = &timeline->losses.items[i];

		visit(profile, &(Marker){
				       .kind = MARKER_LOSS,
				       .start_ns = loss->from_ns,
				       .end_ns = MAX(loss->from_ns, loss->to_ns),
				       .index = i,
			       });
	}
	if (track->cpu != CPU_NONE)
		count += walk_cpu(profile, track->cpu, visit);
	if (track->device != DEVICE_NONE)
		count += walk_device(profile, track->device, visit);
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
	static const char *const names[MARKER_KINDS] = {
		[MARKER_UNKNOWN] = "Unknown",  [MARKER_FAULT] = "Page fault",
		[MARKER_LOSS] = "Events lost", [MARKER_EXIT] = "Exit",
		[MARKER_PROCESS] = "Process",  [MARKER_REQUEST] = "Block I/O",
		[MARKER_PATH] = "On the path",
	};
	_cleanup_free_ char *cpu = NULL;
	const char *name = names[marker->kind];

	if (marker->kind == MARKER_WAIT)
		name = reason_info[marker_reason(marker)].marker;
	else if (marker->kind == MARKER_RUN)
		name = cpu = xasprintf("CPU %u", marker->cpu);
	json_u64(&profile->json, stack_table_string(profile->tables, name));
}

static void write_start(Profile *profile, const Marker *marker)
{
	json_ms(&profile->json, timeline_time(profile->timeline, marker->start_ns));
}

/* An instant has the end 0, because some importers take a null for a missing row. */
static void write_end(Profile *profile, const Marker *marker)
{
	json_ms(&profile->json, timeline_time(profile->timeline, marker->end_ns));
}

static void write_phase(Profile *profile, const Marker *marker)
{
	json_u64(&profile->json, marker->kind == MARKER_EXIT ? PHASE_INSTANT : PHASE_INTERVAL);
}

static enum category marker_category(const Marker *marker)
{
	static const enum category categories[] = {
		[MARKER_UNKNOWN] = CATEGORY_UNKNOWN, [MARKER_FAULT] = CATEGORY_FAULT,
		[MARKER_LOSS] = CATEGORY_UNKNOWN,    [MARKER_EXIT] = CATEGORY_OTHER,
		[MARKER_PROCESS] = CATEGORY_OTHER,   [MARKER_REQUEST] = CATEGORY_DISK,
		[MARKER_PATH] = CATEGORY_OTHER,	     [MARKER_RUN] = CATEGORY_OTHER,
	};

	return marker->kind == MARKER_WAIT ? reason_info[marker_reason(marker)].category
					   : categories[marker->kind];
}

static void write_category(Profile *profile, const Marker *marker)
{
	json_u64(&profile->json, marker_category(marker));
}

/* ---- the data --------------------------------------------------------------------- */

/* Writes a text that many markers share. */
static void key_unique(Profile *profile, const char *key, const char *text)
{
	json_key_u64(&profile->json, key, stack_table_string(profile->tables, text));
}

static void key_color(Profile *profile, enum category category)
{
	json_key_string(&profile->json, FIREFOX_COLOR_KEY, category_info[category].marker_color);
}

/* Times by state, to find the longest; one for all of the time that a thread ran. */
typedef struct StateTimes {
	uint64_t running_ns, reason_ns[REASON_COUNT];
} StateTimes;

/* Writes the state that has most of the time, and its colour. */
static void key_main_state(Profile *profile, const StateTimes *times)
{
	enum reason longest = 0;

	for (size_t i = 1; i < REASON_COUNT; i++)
		if (times->reason_ns[i] > times->reason_ns[longest])
			longest = i;
	if (times->running_ns >= times->reason_ns[longest]) {
		key_unique(profile, "mostly", "running");
		key_color(profile, CATEGORY_USER);
		return;
	}
	key_unique(profile, "mostly", reason_info[longest].marker);
	key_color(profile, reason_info[longest].category);
}

/* Writes the tid of Timeline::tasks[number], as the profile has it. */
static void key_task(Profile *profile, const char *key, uint32_t number)
{
	const Timeline *timeline = profile->timeline;
	const Task *task = &timeline->tasks.items[number];

	json_key(&profile->json, key);
	if (task->thread < timeline->threads.count)
		track_json_tid(&profile->json, profile->tracks.tids[task->thread]);
	else
		track_json_tid(&profile->json,
			       (TrackId){.number = task->ns_tid ? task->ns_tid : task->tid,
					 .host = task->ns_tid == 0});
}

static void write_field(void *user, const Field *field)
{
	Profile *profile = user;

	switch (field->kind) {
	case FIELD_TEXT:
		key_unique(profile, field->key, field->text);
		break;
	case FIELD_ADDRESS:
		json_key_string(&profile->json, field->key, field->text);
		break;
	case FIELD_NUMBER:
		json_key_u64(&profile->json, field->key, field->number);
		break;
	case FIELD_TIME:
		json_key_ms(&profile->json, field->key, field->number);
		break;
	case FIELD_TASK:
		key_task(profile, field->key, field->number);
		break;
	}
}

static FieldSink field_sink(Profile *profile)
{
	return (FieldSink){
		.write = write_field,
		.user = profile,
		.timeline = profile->timeline,
		.frames = profile->frames,
		.turn = &profile->turn,
	};
}

static void write_cause(Profile *profile, const StackRef *ref)
{
	json_key_object(&profile->json, "cause");
	json_key_u64(&profile->json, "stack", stack_table_stack(profile->tables, ref));
	json_end_object(&profile->json);
}

static void write_wait_data(Profile *profile, const Marker *marker)
{
	FieldSink sink = field_sink(profile);
	StackRef ref = wait_stack(profile->timeline, marker->thread, marker->index);

	json_key_string(&profile->json, "type", "Wait");
	key_unique(profile, "reason", reason_info[marker_reason(marker)].marker);
	key_color(profile, marker_category(marker));
	event_fields_wait(&sink, marker->thread, marker->index);
	write_cause(profile, &ref);
}

static void write_unknown_data(Profile *profile, const Marker *marker)
{
	FieldSink sink = field_sink(profile);

	json_key_string(&profile->json, "type", "Unknown");
	key_color(profile, marker_category(marker));
	event_fields_unknown(&sink, marker->thread, marker->index);
}

static void write_fault_data(Profile *profile, const Marker *marker)
{
	FieldSink sink = field_sink(profile);
	const Fault *fault = &marker->thread->faults.items[marker->index];
	StackRef ref = fault_stack(profile->timeline, marker->thread, fault);

	json_key_string(&profile->json, "type", "PageFault");
	key_color(profile, marker_category(marker));
	event_fields_fault(&sink, marker->thread, fault);
	if (fault->user_stack != STACK_NONE)
		write_cause(profile, &ref);
}

static void write_request_data(Profile *profile, const Marker *marker)
{
	FieldSink sink = field_sink(profile);
	const Request *request = &profile->timeline->requests.list.items[marker->index];

	json_key_string(&profile->json, "type", "BlockIO");
	key_color(profile, marker_category(marker));
	event_fields_request(&sink, request);
	if (request->user_stack != STACK_NONE && request->thread != THREAD_NONE) {
		StackRef ref = request_stack(profile->timeline, request);

		write_cause(profile, &ref);
	}
}

static void write_loss_data(Profile *profile, const Marker *marker)
{
	FieldSink sink = field_sink(profile);

	json_key_string(&profile->json, "type", "EventsLost");
	key_color(profile, marker_category(marker));
	event_fields_loss(&sink, &profile->timeline->losses.items[marker->index]);
}

static void write_process_data(Profile *profile, const Marker *marker)
{
	const Process *process = &profile->timeline->processes.items[marker->thread->process];
	_cleanup_free_ char *status = process_end_text(process), *args = args_text(process->args);

	if (marker->kind == MARKER_EXIT) {
		json_key_string(&profile->json, "type", "ProcessExit");
	} else {
		json_key_string(&profile->json, "type", "Process");
		StateTimes times = {.running_ns = marker->thread->ledger[STATE_RUNNING]};

		memcpy(times.reason_ns, marker->thread->reason_ledger, sizeof(times.reason_ns));
		key_main_state(profile, &times);
		key_unique(profile, "name", process->label);
		json_key(&profile->json, "process");
		/* For a process's main thread pid and tid are the same. */
		track_json_pid(&profile->json, profile->tracks.tids[process->threads.items[0]]);
	}
	key_unique(profile, "status", status);
	if (process->path)
		json_key_string(&profile->json, "path", process->path);
	if (args)
		key_unique(profile, "args", args);
}

static void write_path_data(Profile *profile, const Marker *marker)
{
	const Thread *track = marker->thread;
	uint32_t owner = track->owners.items[marker->index];
	size_t end = critical_path_stretch(track, marker->index);
	StateTimes times = {};

	for (size_t i = marker->index; i < end; i++) {
		const Interval *interval = &track->intervals.items[i];
		uint64_t ns = interval_end(track, i) - interval->start_ns;

		if (interval->state == STATE_RUNNING)
			times.running_ns += ns;
		else
			times.reason_ns[wait_reason(interval)] += ns;
	}
	json_key_string(&profile->json, "type", "OnPath");
	key_main_state(profile, &times);
	key_unique(profile, "name", critical_path_stretch_name(profile->timeline, marker->index));
	json_key(&profile->json, "thread");
	track_json_tid(&profile->json, profile->tracks.tids[owner]);
}

/* Threads have colours by their numbers, so that neighbours differ; those of the kernel have grey.
 */
static const char *task_color(const Task *task)
{
	static const char *const colors[] = {"blue", "green",  "magenta", "orange", "purple",
					     "teal", "yellow", "red",	  "ink"};

	return task->kernel ? "grey" : colors[task->tid % ARRAY_LEN(colors)];
}

static void write_run_data(Profile *profile, const Marker *marker)
{
	const Timeline *timeline = profile->timeline;
	const Task *task = &timeline->tasks.items[marker->index];
	const Thread *thread =
		task->thread == THREAD_NONE ? NULL : &timeline->threads.items[task->thread];
	_cleanup_free_ char *name = cpu_run_label(timeline, marker->index);

	json_key_string(&profile->json, "type", "OnCPU");
	key_unique(profile, "name", name);
	key_task(profile, "thread", marker->index);
	if (thread && !thread->is_main)
		key_unique(profile, "process", timeline->processes.items[thread->process].label);
	json_key_string(&profile->json, FIREFOX_COLOR_KEY, task_color(task));
}

static void write_data(Profile *profile, const Marker *marker)
{
	static const MarkerVisitor writers[] = {
		[MARKER_WAIT] = write_wait_data,       [MARKER_UNKNOWN] = write_unknown_data,
		[MARKER_FAULT] = write_fault_data,     [MARKER_REQUEST] = write_request_data,
		[MARKER_LOSS] = write_loss_data,       [MARKER_EXIT] = write_process_data,
		[MARKER_PROCESS] = write_process_data, [MARKER_PATH] = write_path_data,
		[MARKER_RUN] = write_run_data,
	};

	json_begin_object(&profile->json);
	writers[marker->kind](profile, marker);
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
