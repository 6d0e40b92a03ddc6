/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "disk_line.h"
#include "path_waits.h"
#include "short_names.h"
#include "text.h"
#include "wait_fields.h"

/* A smaller part of the waits for disks, or of the time that passed, is not worth a line. */
#define OTHERS_SHARE 0.2
#define TIME_SHARE   0.05
/* What is waited for disks is the subject of the run from this part of the path on. */
#define PATH_SHARE 0.5
/* So many processes are named. */
#define NAMED 2

typedef struct DiskUser {
	char *name;
	uint64_t ns;
} DiskUser;

typedef struct DiskUsers {
	const Timeline *timeline;
	Strings names;
	VEC(DiskUser) list;
	uint64_t waits_ns, others_ns;
	uint32_t device; /* of the wait with the most time of others; index in Requests::devices */
	uint64_t device_ns;
} DiskUsers;

/* Returns the name of what submitted a request. */
static char *submitter_name(const Timeline *timeline, const Request *request)
{
	char buffer[COMM_LEN + 1];
	const char *name;

	if (request->thread < timeline->threads.count)
		return short_names_process(timeline,
					   timeline->threads.items[request->thread].process);
	name = task_name(timeline, request->task, buffer);
	/* Workers of the kernel differ in numbers that say nothing: "kworker/u8:3". */
	if (name && timeline->tasks.items[request->task].kernel && !strncmp(name, "kworker/", 8))
		return xstrdup("kworker");
	return name ? text_printable(name) : xstrdup("unknown");
}

static void charge_other(DiskUsers *users, const Request *request, uint64_t ns)
{
	char *name = submitter_name(users->timeline, request);
	uint32_t number = strings_intern(&users->names, name);

	if (number == users->list.count)
		*vec_push(&users->list) = (DiskUser){.name = name};
	else
		free(name);
	users->list.items[number].ns += ns;
}

static bool is_other(const Timeline *timeline, const Thread *thread, const Request *request)
{
	return request->thread >= timeline->threads.count
		       ? request->task < timeline->tasks.count
		       : timeline->threads.items[request->thread].process != thread->process;
}

/*
 * Charges a wait for a request, from begin_ns to end_ns, to what the device completed meanwhile. Of
 * the wait only `ns` counts; the rest is not on the path.
 */
static void charge_wait(DiskUsers *users, const Thread *thread, const Request *own,
			uint64_t begin_ns, uint64_t end_ns, uint64_t ns)
{
	const Requests *requests = &users->timeline->requests;
	uint32_t index = map_get(&requests->device_of_number, own->device);
	const BlockDevice *device;
	uint64_t last_ns = begin_ns, others_ns = 0;
	double part = (double)ns / (end_ns - begin_ns);

	users->waits_ns += ns;
	if (index == MAP_NONE)
		return;
	device = &requests->devices.items[index];
	for (size_t i = partition_point(
		     middle, device->requests.count,
		     requests->list.items[device->requests.items[middle]].end_ns <= begin_ns);
	     i < device->requests.count; i++) {
		const Request *request = &requests->list.items[device->requests.items[i]];

		if (request->end_ns > own->end_ns || request->end_ns > end_ns || request == own)
			break;
		if (is_other(users->timeline, thread, request)) {
			charge_other(users, request, part * (request->end_ns - last_ns));
			others_ns += part * (request->end_ns - last_ns);
		}
		last_ns = request->end_ns;
	}
	users->others_ns += others_ns;
	if (others_ns > users->device_ns) {
		users->device_ns = others_ns;
		users->device = index;
	}
}

static void add_wait(DiskUsers *users, const Thread *thread, size_t i, uint64_t ns)
{
	enum category category = reason_info[wait_reason(&thread->intervals.items[i])].category;
	uint32_t number = thread_wait_request(thread, i);
	uint64_t begin_ns = thread->intervals.items[i].start_ns, end_ns = interval_end(thread, i);
	const Request *request;

	if (number == REQUEST_NONE || ns == 0 || begin_ns >= end_ns ||
	    (category != CATEGORY_DISK && category != CATEGORY_FAULT))
		return;
	request = &users->timeline->requests.list.items[number];
	/* What a limit held back did not wait for the disk. */
	begin_ns = MAX(begin_ns, MIN(request_let_go(request), end_ns - 1));
	charge_wait(users, thread, request, begin_ns, end_ns, MIN(ns, end_ns - begin_ns));
}

static void add_all_waits(DiskUsers *users)
{
	const Timeline *timeline = users->timeline;

	for (size_t t = 0; t < timeline->threads.count; t++) {
		const Thread *thread = &timeline->threads.items[t];

		for (size_t i = 0; i < thread->request_waits.count; i++) {
			size_t wait = thread->request_waits.items[i].interval;

			add_wait(users, thread, wait,
				 interval_end(thread, wait) -
					 thread->intervals.items[wait].start_ns);
		}
	}
}

static int compare_disk_users(const void *a, const void *b)
{
	const DiskUser *x = a, *y = b;

	return x->ns != y->ns ? (x->ns > y->ns ? -1 : 1) : strcmp(x->name, y->name);
}

static char *users_text(const DiskUsers *users)
{
	const Requests *requests = &users->timeline->requests;
	_cleanup_free_ char *device = text_printable(requests->devices.items[users->device].name);
	char *text = xasprintf("for %s of %s %s completed requests of others:",
			       DURATION(users->others_ns), DURATION(users->waits_ns), device);

	for (size_t i = 0; i < users->list.count && i < NAMED; i++) {
		char *longer =
			xasprintf("%s%s %s (%s)", text, i > 0 ? "," : "", users->list.items[i].name,
				  DURATION(users->list.items[i].ns));

		free(text);
		text = longer;
	}
	return text;
}

/* ---- what the path waited for disks ------------------------------------------------------ */

typedef struct Moved {
	uint64_t read, written; /* bytes */
} Moved;

static Moved moved_of(const Requests *requests, const BlockDevice *device)
{
	Moved moved = {};

	for (size_t i = 0; i < device->requests.count; i++) {
		const Request *request = &requests->list.items[device->requests.items[i]];

		if (request_is_read(request))
			moved.read += request->bytes;
		else if (request_is_write(request))
			moved.written += request->bytes;
	}
	return moved;
}

/* Returns how long the path waited for disks. */
static uint64_t path_disk_ns(const Timeline *timeline)
{
	const Thread *path = &timeline->path.track;
	uint64_t ns = 0;

	for (size_t i = 0; i < path->intervals.count; i++) {
		const Interval *interval = &path->intervals.items[i];

		if (interval->state == STATE_BLOCKED &&
		    reason_info[wait_reason(interval)].category == CATEGORY_DISK)
			ns += interval_end(path, i) - interval->start_ns;
	}
	return ns;
}

/*
 * Returns how long the path waited for disks, and what the one that moved most moved meanwhile. The
 * reasons of such waits ("dirty-page throttling", "journal wait") do not say that it was a disk,
 * and most of these waits end with no request of their own. NULL: it is less than half of the path.
 */
static char *path_text(const Timeline *timeline, uint64_t ns)
{
	const Requests *requests = &timeline->requests;
	uint64_t path_ns = timeline->path.track.end_ns - timeline->path.track.start_ns;
	_cleanup_free_ char *name = NULL;
	const BlockDevice *most = NULL;
	Moved of_most = {};

	for (size_t i = 0; i < requests->devices.count; i++) {
		Moved moved = moved_of(requests, &requests->devices.items[i]);

		if (moved.read + moved.written > of_most.read + of_most.written) {
			most = &requests->devices.items[i];
			of_most = moved;
		}
	}
	if (!most || ns < PATH_SHARE * path_ns)
		return NULL;
	name = text_printable(most->name);
	return xasprintf("%s of %s waited for it; %s read %.1f MB, wrote %.1f MB", DURATION(ns),
			 DURATION(path_ns), name, of_most.read / 1e6, of_most.written / 1e6);
}

char *disk_line_text(const Timeline *timeline)
{
	DiskUsers users = {.timeline = timeline};
	bool is_path = timeline->path.track.intervals.count > 0;
	PathWaits waits = is_path ? path_waits_find(timeline) : (PathWaits){};
	uint64_t path_ns = path_disk_ns(timeline);
	char *text = NULL;

	for (size_t i = 0; i < waits.count; i++)
		add_wait(&users, &timeline->threads.items[waits.items[i].thread],
			 waits.items[i].interval, waits.items[i].ns);
	if (!is_path)
		add_all_waits(&users);
	if (users.list.count > 1)
		qsort(users.list.items, users.list.count, sizeof(DiskUser), compare_disk_users);
	if (users.others_ns > OTHERS_SHARE * MAX(users.waits_ns, path_ns) &&
	    users.others_ns > TIME_SHARE * (timeline->end_ns - timeline->start_ns))
		text = users_text(&users);
	else if (is_path)
		text = path_text(timeline, path_ns);
	for (size_t i = 0; i < users.list.count; i++)
		free(users.list.items[i].name);
	vec_free(&users.list);
	strings_free(&users.names);
	vec_free(&waits);
	return text;
}
