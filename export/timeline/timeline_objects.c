/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The objects of waits by their system calls; and, when all records are read, the names of pipes
 * and sockets with the processes at their ends.
 */
#include "timeline_builder_private.h"
#include <inttypes.h>
#include <sys/socket.h>

#define TIMER_ABSTIME 1 /* linux/time.h */

/* ---- of a wait ----------------------------------------------------------------------------- */

static enum object_kind kind_of_call(const ReasonInput *input)
{
	if (reason_is_epoll_call(input->syscall))
		return OBJECT_EPOLL;
	if (input->syscall == SYSCALL_SENDFILE)
		return OBJECT_FILE; /* the file that is sent, not its destination */
	return object_kind_of(input->fd_kind);
}

/* Returns what a clock showed at ns (CLOCK_MONOTONIC); 0: unknown. */
static uint64_t clock_at(const Timeline *timeline, uint64_t clock, uint64_t ns)
{
	switch (clock) {
	case CLOCK_REALTIME:
		if (!timeline->realtime_start_ns)
			return 0; /* the window is not known yet */
		return timeline->realtime_start_ns + (ns - timeline->start_ns);
	case CLOCK_MONOTONIC:
		return ns;
	default:
		return 0;
	}
}

/* For a sleep until a moment: returns how much of it was left at ns. */
static uint32_t until_moment(Timeline *timeline, const ReasonInput *input, uint64_t ns,
			     uint64_t until_ns)
{
	uint64_t from_ns = clock_at(timeline, (uint32_t)input->args[0], ns);

	return from_ns && until_ns > from_ns
		       ? objects_timer_about(&timeline->objects, until_ns - from_ns)
		       : OBJECT_NONE;
}

/* Sets *ret_object for a call that only sleeps; returns false for any other call. */
static bool find_timer(Timeline *timeline, const ReasonInput *input, uint64_t ns,
		       uint64_t timeout_ns, uint32_t *ret_object)
{
	int32_t timeout_ms;

	*ret_object = OBJECT_NONE;
	switch (input->syscall) {
	case SYSCALL_POLL:
		if (input->fd_count)
			return false;
		timeout_ms = input->args[2];
		timeout_ns = timeout_ms > 0 ? timeout_ms * NSEC_PER_MSEC : 0;
		break;
	case SYSCALL_PPOLL:
		if (input->fd_count)
			return false;
		break;
	case SYSCALL_SELECT:
	case SYSCALL_PSELECT6:
		if ((uint32_t)input->args[0])
			return false;
		break;
	case SYSCALL_CLOCK_NANOSLEEP:
		if (input->args[1] & TIMER_ABSTIME) {
			*ret_object = until_moment(timeline, input, ns, timeout_ns);
			return true;
		}
		break;
	case SYSCALL_NANOSLEEP:
		break;
	default:
		return false;
	}
	if (timeout_ns)
		*ret_object = objects_timer(&timeline->objects, timeout_ns);
	return true;
}

/* For futex_waitv only if it has one word: which of several words ends the wait is unknown. */
static uint32_t find_futex(TimelineBuilder *builder, const BuildThread *target,
			   const ReasonInput *input, uint64_t word)
{
	const BuildProcess *process;
	uint64_t address = input->syscall == SYSCALL_FUTEX_WAITV ? word : input->args[0];

	if (target->process == INDEX_NONE || !address)
		return OBJECT_NONE;
	process = &builder->processes.items[target->process];
	return objects_futex(&builder->timeline->objects, process->process.tgid, process->exec_id,
			     address);
}

static bool is_futex(int syscall)
{
	return syscall == SYSCALL_FUTEX || syscall == SYSCALL_FUTEX_WAIT ||
	       syscall == SYSCALL_FUTEX_WAITV;
}

void waits_add_object(TimelineBuilder *builder, BuildThread *target, uint64_t ns,
		      const ReasonInput *input, const ObjectId *numbers)
{
	Timeline *timeline = builder->timeline;
	uint32_t object;

	if (is_futex(input->syscall))
		object = find_futex(builder, target, input, numbers->inode);
	else if (!find_timer(timeline, input, ns, numbers->inode, &object))
		object = objects_reference(&timeline->objects, kind_of_call(input), numbers->device,
					   numbers->inode, numbers->generation);
	if (object != OBJECT_NONE)
		*vec_push(&target->thread.object_waits) =
			(ObjectWait){.start_ns = chain_last(target)->start_ns, .object = object};
}

/* ---- processes at the ends ----------------------------------------------------------------- */

#define USERS_MAX 4

/* Processes (Timeline::processes) that waited for an object, or ended such waits. */
typedef struct Users {
	uint32_t list[USERS_MAX];
	uint8_t count;
	bool more;
} Users;

static void add_user(Users *users, uint32_t process)
{
	for (size_t i = 0; i < users->count; i++)
		if (users->list[i] == process)
			return;
	if (users->count == USERS_MAX)
		users->more = true;
	else
		users->list[users->count++] = process;
}

static void add_users(Users *users, const Users *others)
{
	for (size_t i = 0; i < others->count; i++)
		add_user(users, others->list[i]);
	users->more |= others->more;
}

/* The process that writes to a pipe, or to a local socket, wakes the reader directly. */
static bool woken_by_other_end(const Object *object)
{
	return object->kind == OBJECT_PIPE ||
	       (object->kind == OBJECT_SOCKET && object->description &&
		object->description->kind == REC_SOCKET &&
		((const struct rec_socket *)object->description)->family == AF_UNIX);
}

/* Other waits are for a lock, for memory, or for permission to continue. */
static bool is_for_data(const Interval *wait)
{
	enum category category = reason_info[wait->reason].category;

	return category == CATEGORY_PIPE || category == CATEGORY_NETWORK ||
	       wait->reason == REASON_POLL || wait->reason == REASON_EPOLL;
}

/*
 * The sender of a signal is not at the other end; signals are recognized as far as the waker's
 * stack is recorded.
 */
static bool by_signal(const Thread *thread, const Interval *wait)
{
	const WakerStack *stack = thread_waker_stack(thread, wait - thread->intervals.items);

	return stack && stack->by_signal;
}

static void add_users_of_wait(const Timeline *timeline, const Thread *thread, const Interval *wait,
			      uint32_t number, Users *users)
{
	const Object *object = &timeline->objects.list.items[number];
	uint32_t other = wait->waker < timeline->tasks.count
				 ? timeline->tasks.items[wait->waker].thread
				 : THREAD_NONE;

	if (object->kind != OBJECT_PIPE && object->kind != OBJECT_SOCKET)
		return;
	add_user(&users[number], thread->process);
	if (woken_by_other_end(object) && is_for_data(wait) && !by_signal(thread, wait) &&
	    other < timeline->threads.count)
		add_user(&users[number], timeline->threads.items[other].process);
}

/*
 * Indexed by Timeline::objects; the caller frees it. Waits and their objects are both sorted by
 * time.
 */
static Users *find_users(const Timeline *timeline)
{
	Users *users = xcalloc(timeline->objects.list.count + 1, sizeof(*users));

	for (size_t t = 0; t < timeline->threads.count; t++) {
		const Thread *thread = &timeline->threads.items[t];
		size_t at = 0;

		for (size_t i = 0; i < thread->object_waits.count; i++) {
			const ObjectWait *wait = &thread->object_waits.items[i];

			while (at < thread->intervals.count &&
			       thread->intervals.items[at].start_ns < wait->start_ns)
				at++;
			if (at < thread->intervals.count &&
			    thread->intervals.items[at].start_ns == wait->start_ns &&
			    thread->intervals.items[at].state == STATE_BLOCKED)
				add_users_of_wait(timeline, thread, &thread->intervals.items[at],
						  wait->object, users);
		}
	}
	return users;
}

/* Indexes of sockets by the addresses that identify the other end. */
typedef struct Ends {
	Map of_address; /* hash of both addresses of TCP and the like -> Timeline::objects */
	Map of_inode;	/* AF_UNIX: hash of device and inode -> Timeline::objects */
} Ends;

static uint64_t hash_ends(const struct rec_socket *socket, bool from_other_end)
{
	const uint8_t *near = from_other_end ? socket->remote : socket->local;
	const uint8_t *far = from_other_end ? socket->local : socket->remote;
	uint32_t ports = from_other_end ? (uint32_t)socket->remote_port << 16 | socket->local_port
					: (uint32_t)socket->local_port << 16 | socket->remote_port;
	uint64_t key = (uint64_t)socket->protocol << 32 | ports, word;

	for (size_t i = 0; i < sizeof(socket->local); i += sizeof(word)) {
		memcpy(&word, near + i, sizeof(word));
		key = hash_mix(key, word);
		memcpy(&word, far + i, sizeof(word));
		key = hash_mix(key, word);
	}
	return key;
}

static const struct rec_socket *socket_of(const Timeline *timeline, size_t number)
{
	const Object *object = &timeline->objects.list.items[number];

	return object->kind == OBJECT_SOCKET && object->description &&
			       object->description->kind == REC_SOCKET
		       ? (const struct rec_socket *)object->description
		       : NULL;
}

static Ends find_ends(const Timeline *timeline)
{
	Ends ends = {};

	for (size_t i = 0; i < timeline->objects.list.count; i++) {
		const struct rec_socket *socket = socket_of(timeline, i);

		if (socket && socket->family == AF_UNIX)
			map_set(&ends.of_inode, hash_mix(socket->device, socket->inode), i);
		else if (socket && socket->remote_port)
			map_set(&ends.of_address, hash_ends(socket, false), i);
	}
	return ends;
}

/* Returns OBJECT_NONE if it is not recorded. */
static uint32_t other_end(const Ends *ends, const struct rec_socket *socket)
{
	uint32_t found = MAP_NONE;

	if (socket->family == AF_UNIX && socket->peer_inode)
		found = map_get(&ends->of_inode, hash_mix(socket->device, socket->peer_inode));
	else if (socket->family != AF_UNIX && socket->remote_port)
		found = map_get(&ends->of_address, hash_ends(socket, true));
	return found == MAP_NONE ? OBJECT_NONE : found;
}

/* ---- names --------------------------------------------------------------------------------- */

/* Returns " (gzip 4711, tar 4712)" appended to the text, which it takes. The caller frees it. */
static char *append_users(char *text, const Timeline *timeline, const Users *users)
{
	for (size_t i = 0; i < users->count; i++) {
		const Process *process = &timeline->processes.items[users->list[i]];
		char *longer = xasprintf("%s%s%s %" PRIu32, text, i == 0 ? " (" : ", ",
					 process->name ? process->name : "unknown",
					 process->ns_tgid ? process->ns_tgid : process->tgid);

		free(text);
		text = longer;
	}
	if (users->count > 0) {
		char *closed = xasprintf("%s%s)", text, users->more ? ", …" : "");

		free(text);
		text = closed;
	}
	return text;
}

/*
 * For a local socket whose other end is not recorded: the process that was there when it was
 * connected.
 */
static void add_credentials(const Map *process_of_tgid, const struct rec_socket *socket,
			    Users *users)
{
	uint32_t process = map_get(process_of_tgid, socket->peer_tgid);

	if (socket->family == AF_UNIX && users->count <= 1 && process != MAP_NONE)
		add_user(users, process);
}

/*
 * Files whose names the recorder withheld (src/recorder/file_names.h) are shown as one for each
 * device.
 */
static void name_withheld(Timeline *timeline)
{
	const char *recorded = timeline_meta(timeline, "file-names");

	if (!recorded || !strcmp(recorded, "all"))
		return;
	for (size_t i = 0; i < timeline->requests.list.count; i++) {
		const Request *request = &timeline->requests.list.items[i];

		if (request->file != OBJECT_NONE && !(request->flags & REQUEST_TARGET))
			objects_name_by_device(&timeline->objects, request->file);
	}
}

void objects_name_users(Timeline *timeline)
{
	Users *users = find_users(timeline);
	Ends ends = find_ends(timeline);
	Map process_of_tgid = {};

	for (size_t i = 0; i < timeline->processes.count; i++)
		map_set(&process_of_tgid, timeline->processes.items[i].tgid, i);
	name_withheld(timeline);
	for (size_t i = 0; i < timeline->objects.list.count; i++) {
		const struct rec_socket *socket = socket_of(timeline, i);
		Object *object = &timeline->objects.list.items[i];
		uint32_t other = socket ? other_end(&ends, socket) : OBJECT_NONE;
		Users all = users[i];

		if (other != OBJECT_NONE)
			add_users(&all, &users[other]);
		if (socket)
			add_credentials(&process_of_tgid, socket, &all);
		object->name = append_users(object->name, timeline, &all);
	}
	map_free(&ends.of_address);
	map_free(&ends.of_inode);
	map_free(&process_of_tgid);
	free(users);
}

/* Names watched sockets first, then the epoll descriptors that watch them. */
void objects_finish(Timeline *timeline)
{
	for (size_t i = 0; i < timeline->objects.list.count; i++) {
		Object *object = &timeline->objects.list.items[i];

		if (object->kind != OBJECT_SOCKET || !object->description ||
		    object->description->kind != REC_SOCKET)
			continue;
		free(object->name);
		object->name = object_socket_text((const struct rec_socket *)object->description);
	}
	for (size_t i = 0, count = timeline->objects.list.count; i < count; i++) {
		const struct record *description = timeline->objects.list.items[i].description;
		char *name;

		if (timeline->objects.list.items[i].kind != OBJECT_EPOLL || !description ||
		    description->kind != REC_WATCH)
			continue;
		name = object_watch_text(&timeline->objects, (const struct rec_watch *)description);
		free(timeline->objects.list.items[i].name);
		timeline->objects.list.items[i].name = name;
	}
}
