/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "event_fields.h"
#include "cpu_users.h"
#include "fault_fields.h"
#include "labels.h"
#include "record_info.h"
#include "wait_fields.h"

/* ---- writing fields of each kind ----------------------------------------------------- */

static void emit_text(const FieldSink *sink, const char *key, const char *text)
{
	sink->write(sink->user, &(Field){.key = key, .kind = FIELD_TEXT, .text = text});
}

/* A field with NULL or "" is not written. */
static void emit_if_known(const FieldSink *sink, const char *key, const char *text)
{
	if (text && *text)
		emit_text(sink, key, text);
}

static void emit_number(const FieldSink *sink, const char *key, uint64_t number)
{
	sink->write(sink->user, &(Field){.key = key, .kind = FIELD_NUMBER, .number = number});
}

static void emit_ns(const FieldSink *sink, const char *key, uint64_t ns)
{
	sink->write(sink->user, &(Field){.key = key, .kind = FIELD_TIME, .number = ns});
}

static void emit_task_name(const FieldSink *sink, const char *key, uint32_t task)
{
	sink->write(sink->user, &(Field){.key = key, .kind = FIELD_TASK, .number = task});
}

static void emit_address(const FieldSink *sink, uint64_t address)
{
	char text[sizeof("0x") + 16];

	snprintf(text, sizeof(text), "0x%llx", (unsigned long long)address);
	sink->write(sink->user, &(Field){.key = "address", .kind = FIELD_ADDRESS, .text = text});
}

static void emit_device(const FieldSink *sink, const char *key, uint32_t device)
{
	_cleanup_free_ char *text = request_device_text(&sink->timeline->requests, device);

	emit_text(sink, key, text);
}

static void emit_object(const FieldSink *sink, uint32_t number)
{
	const Object *object;

	if (number == OBJECT_NONE)
		return;
	object = &sink->timeline->objects.list.items[number];
	emit_text(sink, object->kind == OBJECT_FILE ? "filename" : "object", object->name);
}

static void emit_offset(const FieldSink *sink, uint32_t file, uint64_t offset)
{
	if (file != OBJECT_NONE && offset != OFFSET_UNKNOWN)
		emit_number(sink, "offset", offset);
}

/* ---- waits ------------------------------------------------------------------------------ */

static void emit_waker(const FieldSink *sink, const Thread *thread, size_t wait)
{
	const Interval *interval = &thread->intervals.items[wait];
	char comm[COMM_LEN + 1];
	const char *name = wait_waker(sink->timeline, thread, wait, comm);
	_cleanup_free_ char *chain = NULL;

	if (!name)
		return;
	chain = wait_waker_chain(sink->timeline, sink->frames, thread, wait);
	emit_text(sink, "wokenBy", name);
	emit_if_known(sink, "wokenFrom", chain);
	if (!(interval->flags & INTERVAL_WAKER_IRQ))
		emit_task_name(sink, "waker", interval->waker);
}

/* Returns how many frames reach to the innermost function of a program that an interpreter runs. */
static size_t script_count(const Frames *frames, const uint32_t *list, size_t count)
{
	for (size_t i = count; i > 0; i--)
		if (frames->list.items[list[i - 1]].script)
			return i;
	return count;
}

/*
 * Returns the turn of a wait for an interpreter's lock. Its parts come one after the other, and
 * each search goes through all of them, so the last turn is kept.
 */
static LockTurn turn_of(const FieldSink *sink, const Thread *thread, size_t wait)
{
	LockTurn *last = sink->turn;

	if (!last->parts || last->thread != thread - sink->timeline->threads.items ||
	    wait < last->first || wait > last->last)
		*last = interpreter_lock_turn(sink->timeline, thread, wait);
	return *last;
}

/* Of an interpreter's lock: where the holder was, and the whole wait that this is a part of. */
static void emit_turn(const FieldSink *sink, const Thread *thread, size_t wait)
{
	const Timeline *timeline = sink->timeline;
	LockTurn turn = turn_of(sink, thread, wait);
	LockPlace place = interpreter_lock_place(timeline, thread, wait);
	_cleanup_free_ char *chain = NULL;
	const uint32_t *list;
	size_t count;

	if (place.user_stack != STACK_NONE) {
		count = frames_resolve(sink->frames, timeline, place.ns_tgid, place.ns,
				       place.user_stack, STACK_NONE, false, &list);
		count = script_count(sink->frames, list, count);
		chain = chain_add_user(xstrdup(""), sink->frames, list, count);
		emit_if_known(sink, "heldIn", chain);
	}
	if (turn.parts > 1)
		emit_ns(sink, "wholeWait",
			interval_end(thread, turn.last) -
				thread->intervals.items[turn.first].start_ns);
}

static void emit_holder(const FieldSink *sink, const Thread *thread, size_t wait)
{
	const Interval *interval = &thread->intervals.items[wait];
	char comm[COMM_LEN + 1];
	const char *holder = wait_holder(sink->timeline, interval, comm);

	if (!holder)
		return;
	emit_text(sink, "heldBy", holder);
	emit_task_name(sink, "holder", interval->lock_holder);
	if (interpreter_lock_is_wait(interval))
		emit_turn(sink, thread, wait);
}

/* The tasks that had the CPU meanwhile, and the one that had it longest. */
static void emit_cpu_users(const FieldSink *sink, const Thread *thread, size_t wait)
{
	const Timeline *timeline = sink->timeline;
	const Interval *interval = &thread->intervals.items[wait];
	CpuParts parts = {};

	if (interval->state != STATE_RUNNABLE)
		return;
	cpu_users_divide(timeline, thread, wait, &parts);
	cpu_parts_sort(&parts);
	if (parts.count > 0) {
		_cleanup_free_ char *text = cpu_users_text(timeline, &parts);

		emit_text(sink, "ranInstead", text);
	}
	for (size_t i = 0; i < parts.count; i++) {
		if (parts.items[i].task >= timeline->tasks.count)
			continue;
		emit_task_name(sink, "rival", parts.items[i].task);
		break;
	}
	cpu_parts_free(&parts);
	if (interval->cpu != INTERVAL_CPU_UNKNOWN)
		emit_number(sink, "cpu", interval->cpu);
}

static void emit_delay(const FieldSink *sink, const Thread *thread, size_t wait)
{
	uint64_t delay = wait_delay_ns(thread, wait);

	if (delay != UINT64_MAX)
		emit_ns(sink, "runq", delay);
}

/* Writes the time for which a cgroup's limit held it back. */
static void emit_held(const FieldSink *sink, const Request *request)
{
	if (request->held_ns > 0)
		emit_ns(sink, "held", request->held_ns);
}

static void emit_on_device(const FieldSink *sink, const Request *request)
{
	if (!(request->flags & REQUEST_BIO))
		emit_ns(sink, "onDevice", request_device_ns(request));
}

/* Writes, and returns, the request that a wait for a disk waited for; NULL: unknown. */
static const Request *emit_wait_request(const FieldSink *sink, const Thread *thread, size_t wait)
{
	uint32_t number = thread_wait_request(thread, wait);
	const Request *request;

	if (number == REQUEST_NONE)
		return NULL;
	request = &sink->timeline->requests.list.items[number];
	emit_device(sink, "device", request->device);
	emit_held(sink, request);
	emit_on_device(sink, request);
	return request;
}

void event_fields_wait(const FieldSink *sink, const Thread *thread, size_t i)
{
	const Interval *interval = &thread->intervals.items[i];
	_cleanup_free_ char *basis = wait_basis(sink->timeline, interval);
	uint32_t object = wait_object(sink->timeline, thread, i);
	const Request *request;

	emit_if_known(sink, "evidence", basis);
	emit_waker(sink, thread, i);
	emit_holder(sink, thread, i);
	emit_cpu_users(sink, thread, i);
	emit_delay(sink, thread, i);
	emit_if_known(sink, "note", wait_note(interval));
	request = emit_wait_request(sink, thread, i);
	emit_object(sink, object);
	if (request && objects_alike(&sink->timeline->objects, request->file) == object)
		emit_offset(sink, request->file, request->offset);
}

/* ---- unknown intervals ---------------------------------------------------------------- */

/*
 * Finds what was lost within that time: sets ret_switches and ret_wakings to the first loss of
 * these kinds, or to NULL.
 */
static void find_losses(const Timeline *timeline, uint64_t start_ns, uint64_t end_ns,
			const LossSpan **ret_switches, const LossSpan **ret_wakings)
{
	*ret_switches = *ret_wakings = NULL;
	for (size_t i = 0; i < timeline->losses.count; i++) {
		const LossSpan *loss = &timeline->losses.items[i];

		if (loss->from_ns > end_ns || loss->to_ns < start_ns)
			continue;
		if (loss->kind == REC_SWITCH && !*ret_switches)
			*ret_switches = loss;
		else if (loss->kind == REC_WAKING && !*ret_wakings)
			*ret_wakings = loss;
	}
}

/* The kind of the lost events; a switch can be missing with no loss reported. */
void event_fields_unknown(const FieldSink *sink, const Thread *thread, size_t i)
{
	const Interval *interval = &thread->intervals.items[i];
	const LossSpan *switches, *wakings, *loss;
	_cleanup_free_ char *basis = wait_basis(sink->timeline, interval);
	_cleanup_free_ char *why = NULL;

	find_losses(sink->timeline, interval->start_ns, interval_end(thread, i), &switches,
		    &wakings);
	loss = switches ? switches : wakings;
	if (loss)
		why = xasprintf("lost: %s (%s)",
				switches && wakings ? "switch, waking"
						    : record_info(loss->kind)->word,
				loss_cause_label(loss->cause));
	emit_text(sink, "why", why ? why : "context switch not traced");
	emit_if_known(sink, "evidence", basis);
	emit_if_known(sink, "note", wait_note(interval));
}

/* ---- page faults ---------------------------------------------------------------------- */

static const char *fault_access_label(const Fault *fault)
{
	if (fault->flags & FAULT_FORCED)
		return "by the kernel, without an instruction";
	if (fault->flags & FAULT_EXEC)
		return "execution";
	if (fault->flags & FAULT_USER)
		return fault->flags & FAULT_WRITE ? "write" : "read";
	return fault->flags & FAULT_WRITE ? "write by the kernel" : "read by the kernel";
}

static const char *fault_memory_label(const Fault *fault)
{
	static const char *const labels[MEMORY_COUNT] = {
		[MEMORY_UNKNOWN] = "unknown", [MEMORY_ANONYMOUS] = "anonymous",
		[MEMORY_STACK] = "stack",     [MEMORY_HEAP] = "heap",
		[MEMORY_FILE] = "file",	      [MEMORY_SHARED] = "shared file",
	};

	return labels[fault->memory];
}

/* Returns NULL if it is unknown. */
static const char *fault_page_label(const Fault *fault)
{
	static const char *const labels[PAGE_COUNT] = {
		[PAGE_ABSENT] = "not mapped",
		[PAGE_PROTECTED] = "mapped, access not allowed",
		[PAGE_CACHED] = "in memory",
		[PAGE_AWAITED] = "being read (readahead or another fault)",
		[PAGE_READ] = "read for this fault",
	};

	return labels[fault->page];
}

/* Returns the hook that recorded it. */
static const char *fault_hook_label(const Fault *fault)
{
	switch (fault->hook) {
	case FAULT_HOOK_FUNCTION:
		return "handle_mm_fault";
	case FAULT_HOOK_EVENT:
		return "tracepoint and the kernel's accounting";
	default:
		return "tracepoint; ended no earlier than when the thread ran again";
	}
}

void event_fields_fault(const FieldSink *sink, const Thread *thread, const Fault *fault)
{
	emit_text(sink, "class", fault_class_label(fault_class(fault)));
	emit_text(sink, "access", fault_access_label(fault));
	emit_text(sink, "memory", fault_memory_label(fault));
	emit_if_known(sink, "page", fault_page_label(fault));
	emit_object(sink, fault->file);
	emit_offset(sink, fault->file, fault->offset);
	emit_address(sink, fault->address);
	emit_ns(sink, "waited", fault->waited_ns);
	if (fault->wait != WAIT_NONE) {
		emit_waker(sink, thread, fault->wait);
		emit_delay(sink, thread, fault->wait);
		emit_wait_request(sink, thread, fault->wait);
	}
	emit_text(sink, "evidence", fault_hook_label(fault));
}

/* ---- requests ------------------------------------------------------------------------- */

static void emit_submitter(const FieldSink *sink, const Request *request)
{
	const Timeline *timeline = sink->timeline;
	char comm[COMM_LEN + 1];
	const char *name = task_name(timeline, request->task, comm);
	uint32_t thread = name ? timeline->tasks.items[request->task].thread : THREAD_NONE;

	if (thread < timeline->threads.count && timeline->threads.items[thread].name)
		name = timeline->threads.items[thread].name;
	emit_if_known(sink, "submitter", name);
}

void event_fields_request(const FieldSink *sink, const Request *request)
{
	_cleanup_free_ char *flags = request_flags_text(request);
	_cleanup_free_ char *status = request_status_text(request);

	emit_text(sink, "operation", request_operation(request));
	emit_device(sink, "device", request->device);
	/* Fields of a request that a driver has made of another one for its device. */
	if (request->over_device)
		emit_device(sink, "partOf", request->over_device);
	emit_object(sink, request->file);
	emit_offset(sink, request->file, request->offset);
	emit_number(sink, "bytes", request->bytes);
	emit_number(sink, "sector", request->sector);
	emit_held(sink, request);
	if (!(request->flags & REQUEST_BIO))
		emit_ns(sink, "queued", request_queued_ns(request));
	emit_on_device(sink, request);
	emit_if_known(sink, "flags", flags);
	emit_text(sink, "status", status);
	emit_text(sink, "origin", request_origin(request));
	emit_submitter(sink, request);
	if (request->merges)
		emit_number(sink, "merges", request->merges);
	if (request->issues > 1)
		emit_number(sink, "issues", request->issues);
}

/* ---- losses --------------------------------------------------------------------------- */

void event_fields_loss(const FieldSink *sink, const LossSpan *loss)
{
	const char *kind = record_info(loss->kind)->word;

	emit_text(sink, "kind", kind ? kind : "other");
	emit_text(sink, "why", loss_cause_label(loss->cause));
	emit_number(sink, "cpu", loss->cpu);
	emit_number(sink, "count", loss->count);
}
