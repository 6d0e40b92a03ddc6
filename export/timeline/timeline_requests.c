/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Requests to block devices: their submitters, and which of them ended which wait.
 *
 * A driver completes a request in an interrupt, which wakes the waiting thread. So a wait for a
 * disk that an interrupt ended names the request that completed last on that CPU, if it can have
 * ended that wait. A wait that a kernel thread ended (a worker that completes direct writes, a file
 * system's journal) names the last of the waiting thread's own requests that completed within the
 * wait or, if there is none (a driver that completes in a thread of its own), what completed last
 * on that CPU.
 */
#include "timeline_builder_private.h"

/*
 * The longest time to wake all threads that wait for the pages of one request, except on a slow
 * machine.
 */
#define COMPLETION_NS NSEC_PER_MSEC

void requests_add(TimelineBuilder *builder, const struct rec_request *record)
{
	Timeline *timeline = builder->timeline;
	uint8_t flags = record->h.flags;

	requests_device(&timeline->requests, record->device);
	*vec_push(&timeline->requests.list) = (Request){
		.submit_ns = record->submit_ns,
		.start_ns = record->start_ns,
		.issue_ns = record->issue_ns,
		.end_ns = record->h.ns,
		.sector = record->sector,
		.offset = record->offset,
		.held_ns = record->held_us * 1000ULL,
		.bytes = record->bytes,
		.opf = record->opf,
		.device = record->device,
		.over_device = record->over_device,
		.file = objects_reference(&timeline->objects, OBJECT_FILE, record->file_device,
					  record->inode, record->generation),
		.user_stack =
			scripts_request_stack(builder, stack_reference(builder, record->ustack),
					      record->tid, record->submit_ns),
		.task = flags & REQUEST_SUBMITTED ? tasks_reference(builder, record->tid)
						  : THREAD_NONE,
		.thread = THREAD_NONE,
		.merges = record->merges,
		.issues = record->issues,
		.partials = record->partials,
		.cpu = record->h.cpu,
		.flags = flags,
		.status = record->status,
		.via = record->via,
	};
}

/* ---- submitters -------------------------------------------------------------------------- */

/* Keeps requests that completed in the window. */
static void drop_early(Timeline *timeline)
{
	Requests *requests = &timeline->requests;
	size_t kept = 0;

	for (size_t i = 0; i < requests->list.count; i++)
		if (requests->list.items[i].end_ns >= timeline->start_ns &&
		    requests->list.items[i].end_ns <= timeline->end_ns)
			requests->list.items[kept++] = requests->list.items[i];
	requests->list.count = kept;
}

static int compare_requests(const void *a, const void *b)
{
	const Request *x = a, *y = b;

	return x->end_ns != y->end_ns ? (x->end_ns < y->end_ns ? -1 : 1) : 0;
}

/* Finds the submitter by the tid that it had then; another thread may have the tid by now. */
static void find_thread(Timeline *timeline, uint32_t number)
{
	Request *request = &timeline->requests.list.items[number];
	uint32_t place = request->task < timeline->tasks.count
				 ? timeline->tasks.items[request->task].thread
				 : THREAD_NONE;
	Thread *thread;

	if (!(request->flags & REQUEST_TARGET) || place >= timeline->threads.count)
		return;
	thread = &timeline->threads.items[place];
	if (thread->born_in_window && request->submit_ns < thread->start_ns)
		return;
	request->thread = place;
	*vec_push(&thread->requests) = number;
}

/* ---- waits that requests ended ----------------------------------------------------------- */

/* Requests of each CPU, sorted by time. */
typedef struct Completions {
	VEC(uint32_t) * of_cpu;
	size_t cpus;
} Completions;

static Completions completions_make(const Timeline *timeline)
{
	Completions completions = {};

	for (size_t i = 0; i < timeline->requests.list.count; i++)
		completions.cpus =
			MAX(completions.cpus, timeline->requests.list.items[i].cpu + (size_t)1);
	completions.of_cpu = xcalloc(MAX(completions.cpus, (size_t)1), sizeof(*completions.of_cpu));
	for (size_t i = 0; i < timeline->requests.list.count; i++)
		*vec_push(&completions.of_cpu[timeline->requests.list.items[i].cpu]) = i;
	return completions;
}

static void completions_free(Completions *completions)
{
	for (size_t i = 0; i < completions->cpus; i++)
		vec_free(&completions->of_cpu[i]);
	free(completions->of_cpu);
}

/* Returns the last of `count` requests that completed at or before ns, or REQUEST_NONE. */
static uint32_t last_until(const Timeline *timeline, const uint32_t *numbers, size_t count,
			   uint64_t ns)
{
	size_t next = partition_point(middle, count,
				      timeline->requests.list.items[numbers[middle]].end_ns <= ns);

	return next > 0 ? numbers[next - 1] : REQUEST_NONE;
}

static bool may_wait_for_disk(const Interval *interval)
{
	enum category category = reason_info[interval->reason].category;

	return category == CATEGORY_DISK || category == CATEGORY_FAULT ||
	       interval->reason == REASON_IO_URING || interval->reason == REASON_AIO ||
	       interval->reason == REASON_UNINTERRUPTIBLE;
}

/* Only the first file of a request for several files is known. */
static bool is_of_another_file(const Thread *thread, size_t wait, const Request *request)
{
	uint32_t description = thread_wait_object(thread, wait);

	return description != OBJECT_NONE && request->file != OBJECT_NONE &&
	       description != request->file && !(request->flags & REQUEST_MIXED);
}

/*
 * Returns whether the request that completed last on the CPU can have ended a wait that an
 * interrupt or a driver's thread ended there. The thread's own request can at any time of the wait.
 * Another thread's request can only if it completed just before the end, if the thread waits for a
 * disk and for the same file. It cannot end a pause of a writer, which a timer ends, or a wait for
 * a ring, which may serve a network.
 */
static bool could_end(const Timeline *timeline, const Thread *thread, size_t i,
		      const Request *request)
{
	const Interval *wait = &thread->intervals.items[i];
	const Thread *submitter =
		request->thread == THREAD_NONE ? NULL : &timeline->threads.items[request->thread];

	if (submitter == thread)
		return true;
	if (is_of_another_file(thread, i, request) ||
	    interval_end(thread, i) - request->end_ns > COMPLETION_NS)
		return false;
	switch (wait->reason) {
	case REASON_IO_URING:
	case REASON_AIO:
		return submitter && submitter->process == thread->process;
	case REASON_DISK_WRITE:
		return false;
	default:
		return wait->sleep == SLEEP_FOR_DISK;
	}
}

/* A non-target is, for example, a kernel thread. */
static bool is_non_target_process(const Timeline *timeline, uint32_t task)
{
	return task < timeline->tasks.count && timeline->tasks.items[task].thread == THREAD_NONE;
}

static bool is_kernel(const Timeline *timeline, uint32_t task)
{
	return task < timeline->tasks.count && timeline->tasks.items[task].kernel;
}

/* A kernel thread can have ended it, and not a thread of the program that held a lock. */
static bool may_be_by_kernel_thread(const Timeline *timeline, const Interval *wait)
{
	return wait->sleep == SLEEP_FOR_DISK || is_non_target_process(timeline, wait->waker);
}

/* Returns the last of these requests that completed within wait i, or REQUEST_NONE. */
static uint32_t last_within(const Timeline *timeline, const Thread *thread, size_t i,
			    const uint32_t *numbers, size_t count)
{
	uint32_t found = last_until(timeline, numbers, count, interval_end(thread, i));

	if (found == REQUEST_NONE ||
	    timeline->requests.list.items[found].end_ns < thread->intervals.items[i].start_ns)
		return REQUEST_NONE;
	return found;
}

/* Returns the request that completed last on the CPU where wait i was ended. */
static uint32_t last_on_cpu(const Timeline *timeline, const Completions *completions,
			    const Thread *thread, size_t i)
{
	uint16_t cpu = thread->intervals.items[i].cpu;
	uint32_t found = REQUEST_NONE;

	if (cpu < completions->cpus)
		found = last_within(timeline, thread, i, completions->of_cpu[cpu].items,
				    completions->of_cpu[cpu].count);
	if (found != REQUEST_NONE &&
	    !could_end(timeline, thread, i, &timeline->requests.list.items[found]))
		return REQUEST_NONE;
	return found;
}

/* Returns the request that ended wait i, or REQUEST_NONE. */
static uint32_t find_request(const Timeline *timeline, const Completions *completions,
			     const Thread *thread, size_t i)
{
	const Interval *wait = &thread->intervals.items[i];
	uint32_t found = REQUEST_NONE;

	if (wait->flags & INTERVAL_WAKER_IRQ)
		return last_on_cpu(timeline, completions, thread, i);
	if (may_be_by_kernel_thread(timeline, wait))
		found = last_within(timeline, thread, i, thread->requests.items,
				    thread->requests.count);
	/* A driver may complete its requests in a thread of its own (loop, md). */
	if (found == REQUEST_NONE && is_kernel(timeline, wait->waker))
		found = last_on_cpu(timeline, completions, thread, i);
	return found;
}

static void explain_waits(const Timeline *timeline, const Completions *completions, Thread *thread)
{
	for (size_t i = 0; i < thread->intervals.count; i++) {
		Interval *wait = &thread->intervals.items[i];
		uint32_t request;

		if (wait->state != STATE_BLOCKED || wait->flags & INTERVAL_OPEN_END ||
		    !may_wait_for_disk(wait))
			continue;
		request = find_request(timeline, completions, thread, i);
		if (request == REQUEST_NONE)
			continue;
		*vec_push(&thread->request_waits) = (RequestWait){i, request};
		if (wait->reason == REASON_UNINTERRUPTIBLE && wait->flags & INTERVAL_WAKER_IRQ)
			thread_explain(thread, i, REASON_DISK_OTHER, RULE_REQUEST);
	}
}

/*
 * If it is unknown what is mapped where a thread slept in a fault, the wait for a disk is still for
 * a file.
 */
static void explain_faults(const Timeline *timeline, Thread *thread)
{
	for (size_t i = 0; i < thread->faults.count; i++) {
		Fault *fault = &thread->faults.items[i];
		uint32_t request;

		if (fault->memory != MEMORY_UNKNOWN || fault->file != OBJECT_NONE ||
		    fault->wait == WAIT_NONE)
			continue;
		request = thread_wait_request(thread, fault->wait);
		if (request == REQUEST_NONE)
			continue;
		fault->file = timeline->requests.list.items[request].file;
		fault->offset = OFFSET_UNKNOWN;
	}
}

/* Completes paths that begin at the root of a file system with its mount point. */
static void place_files(Timeline *timeline)
{
	const Requests *requests = &timeline->requests;

	for (size_t i = 0; i < timeline->objects.list.count; i++) {
		Object *object = &timeline->objects.list.items[i];
		uint32_t place = map_get(&requests->device_of_number, object->device);
		_cleanup_free_ char *device = NULL;

		if (!(object->flags & INODE_MOUNT))
			continue;
		if (place != MAP_NONE && *requests->devices.items[place].mounted) {
			object_mounted(object, requests->devices.items[place].mounted);
			continue;
		}
		device = request_device_text(requests, object->device);
		object_not_mounted(object, device);
	}
}

void requests_finish(Timeline *timeline)
{
	Requests *requests = &timeline->requests;
	Completions completions;

	place_files(timeline);
	drop_early(timeline);
	if (requests->list.count == 0)
		return;
	qsort(requests->list.items, requests->list.count, sizeof(Request), compare_requests);
	for (size_t i = 0; i < requests->list.count; i++) {
		uint32_t device = requests_device(requests, requests->list.items[i].device);

		*vec_push(&requests->devices.items[device].requests) = i;
		find_thread(timeline, i);
	}
	completions = completions_make(timeline);
	for (size_t i = 0; i < timeline->threads.count; i++) {
		explain_waits(timeline, &completions, &timeline->threads.items[i]);
		explain_faults(timeline, &timeline->threads.items[i]);
	}
	completions_free(&completions);
}
