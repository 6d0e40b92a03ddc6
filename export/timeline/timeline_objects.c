/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the system call of a wait is about; and, when all is known, what that is called: pipes and
 * sockets by the processes that were seen at their ends, too.
 */
#include "object_text.h"
#include "timeline_builder.h"
#include <inttypes.h>
#include <sys/socket.h>

#define TIMER_ABSTIME 1 /* linux/time.h */

/* ---- of a wait ----------------------------------------------------------------------------- */

static enum object_kind kind_of_call(const ReasonInput *facts)
{
	if (reason_is_epoll_call(facts->syscall))
		return OBJECT_EPOLL;
	if (facts->syscall == SYSCALL_SENDFILE)
		return OBJECT_FILE; /* what is sent, not where to */
	return object_kind_of(facts->fd_kind);
}

/* What a clock showed at ns, a moment of CLOCK_MONOTONIC; 0: it is not known. */
static uint64_t clock_at(const Timeline *timeline, uint64_t clock, uint64_t ns)
{
	switch (clock) {
	case CLOCK_REALTIME:
		if (!timeline->realtime_start_ns)
			return 0; /* before the window was told */
		return timeline->realtime_start_ns + (ns - timeline->start_ns);
	case CLOCK_MONOTONIC:
		return ns;
	default:
		return 0;
	}
}

/* Until a moment: at ns, so long was left. */
static uint32_t until_moment(Timeline *timeline, const ReasonInput *facts, uint64_t ns,
			     uint64_t until_ns)
{
	uint64_t from_ns = clock_at(timeline, (uint32_t)facts->args[0], ns);

	return from_ns && until_ns > from_ns
		       ? objects_timer_about(&timeline->objects, until_ns - from_ns)
		       : OBJECT_NONE;
}

/* Sets *ret_object to what a call is about that only sleeps; false: it does not. */
static bool find_timer(Timeline *timeline, const ReasonInput *facts, uint64_t ns,
		       uint64_t timeout_ns, uint32_t *ret_object)
{
	int32_t timeout_ms;

	*ret_object = OBJECT_NONE;
	switch (facts->syscall) {
	case SYSCALL_POLL:
		if (facts->fd_count)
			return false;
		timeout_ms = facts->args[2];
		timeout_ns = timeout_ms > 0 ? timeout_ms * NSEC_PER_MSEC : 0;
		break;
	case SYSCALL_PPOLL:
		if (facts->fd_count)
			return false;
		break;
	case SYSCALL_SELECT:
	case SYSCALL_PSELECT6:
		if ((uint32_t)facts->args[0])
			return false;
		break;
	case SYSCALL_CLOCK_NANOSLEEP:
		if (facts->args[1] & TIMER_ABSTIME) {
			*ret_object = until_moment(timeline, facts, ns, timeout_ns);
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

/* For futex_waitv only if it has one word: it is not known which of several will end the wait. */
static uint32_t find_futex(TimelineBuilder *builder, const BuildThread *life,
			   const ReasonInput *facts, uint64_t word)
{
	const BuildProcess *process;
	uint64_t address = facts->syscall == SYSCALL_FUTEX_WAITV ? word : facts->args[0];

	if (life->process == INDEX_NONE || !address)
		return OBJECT_NONE;
	process = &builder->processes.items[life->process];
	return objects_futex(&builder->timeline->objects, process->process.tgid, process->exec_id,
			     address);
}

static bool is_futex(int syscall)
{
	return syscall == SYSCALL_FUTEX || syscall == SYSCALL_FUTEX_WAIT ||
	       syscall == SYSCALL_FUTEX_WAITV;
}

void waits_add_object(TimelineBuilder *builder, BuildThread *life, uint64_t ns,
		      const ReasonInput *facts, const ObjectId *numbers)
{
	Timeline *timeline = builder->timeline;
	uint32_t object;

	if (is_futex(facts->syscall))
		object = find_futex(builder, life, facts, numbers->inode);
	else if (!find_timer(timeline, facts, ns, numbers->inode, &object))
		object = objects_reference(&timeline->objects, kind_of_call(facts), numbers->device,
					   numbers->inode, numbers->generation);
	if (object != OBJECT_NONE)
		*vec_push(&life->thread.object_waits) =
			(ObjectWait){.start_ns = chain_last(life)->start_ns, .object = object};
}

/* ---- who is at the ends -------------------------------------------------------------------- */

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

/* Who writes to a pipe, or to a socket of this machine alone, wakes who reads there himself. */
static bool woken_by_other_end(const Object *object)
{
	return object->kind == OBJECT_PIPE ||
	       (object->kind == OBJECT_SOCKET && object->told && object->told->kind == REC_SOCKET &&
		((const struct rec_socket *)object->told)->family == AF_UNIX);
}

/* Not for a lock, memory, or to be let go on. */
static bool is_for_data(const Interval *wait)
{
	enum category category = reason_info[wait->reason].category;

	return category == CATEGORY_PIPE || category == CATEGORY_NETWORK ||
	       wait->reason == REASON_POLL || wait->reason == REASON_EPOLL;
}

/* Whoever sent a signal is not at the other end; as far as it is known from where it was woken. */
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

/* By Timeline::objects; to be freed. Waits and what they are for are both in order of time. */
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

/* Sockets by what tells which is the other end of one. */
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

	return object->kind == OBJECT_SOCKET && object->told && object->told->kind == REC_SOCKET
		       ? (const struct rec_socket *)object->told
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

/* OBJECT_NONE: it was not seen. */
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

/* " (gzip 4711, tar 4712)"; to be freed. Takes the text. */
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

/* Of a socket of this machine whose other end was not seen: who was there when it was connected. */
static void add_credentials(const Map *process_of_tgid, const struct rec_socket *socket,
			    Users *users)
{
	uint32_t process = map_get(process_of_tgid, socket->peer_tgid);

	if (socket->family == AF_UNIX && users->count <= 1 && process != MAP_NONE)
		add_user(users, process);
}

void objects_name_users(Timeline *timeline)
{
	Users *users = find_users(timeline);
	Ends ends = find_ends(timeline);
	Map process_of_tgid = {};

	for (size_t i = 0; i < timeline->processes.count; i++)
		map_set(&process_of_tgid, timeline->processes.items[i].tgid, i);
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

/* First what is watched, then what watches it. */
static void name_described(Timeline *timeline)
{
	for (size_t i = 0; i < timeline->objects.list.count; i++) {
		Object *object = &timeline->objects.list.items[i];

		if (object->kind != OBJECT_SOCKET || !object->told ||
		    object->told->kind != REC_SOCKET)
			continue;
		free(object->name);
		object->name = object_socket_text((const struct rec_socket *)object->told);
	}
	for (size_t i = 0, count = timeline->objects.list.count; i < count; i++) {
		const struct record *told = timeline->objects.list.items[i].told;
		char *name;

		if (timeline->objects.list.items[i].kind != OBJECT_EPOLL || !told ||
		    told->kind != REC_WATCH)
			continue;
		name = object_watch_text(&timeline->objects, (const struct rec_watch *)told);
		free(timeline->objects.list.items[i].name);
		timeline->objects.list.items[i].name = name;
	}
}

void objects_finish(Timeline *timeline)
{
	name_described(timeline);
}
