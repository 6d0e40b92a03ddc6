/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "futex_kinds.h"
#include "idle_private.h"
#include <sys/socket.h>

/*
 * The limit of requests that complete after a wait begins and are searched for one that began
 * before it.
 */
#define REQUESTS_SEARCHED 256

/* ---- which end of a connection a socket is --------------------------------------------------- */

/* The first of the ports that the kernel gives to a socket that does not bind to one. */
#define EPHEMERAL_PORT_MIN 32768

static const struct rec_socket *socket_of(const Object *object)
{
	return object->description && object->description->kind == REC_SOCKET
		       ? (const struct rec_socket *)object->description
		       : NULL;
}

static bool is_inet(const struct rec_socket *socket)
{
	return socket->family == AF_INET || socket->family == AF_INET6;
}

/* Returns the ports of the listening sockets that were recorded. The caller frees them. */
static bool *find_listened_ports(const Objects *objects)
{
	bool *ports = xcalloc(UINT16_MAX + 1, sizeof(bool));

	for (size_t i = 0; i < objects->list.count; i++) {
		const struct rec_socket *socket = socket_of(&objects->list.items[i]);

		if (socket && is_inet(socket) && socket->h.flags & SOCKET_LISTENS)
			ports[socket->local_port] = true;
	}
	return ports;
}

/* An accepted socket has the name of the listening one; a client's socket rarely has a name. */
static bool is_for_clients(const struct rec_socket *socket, const bool *listened_ports)
{
	if (socket->h.flags & SOCKET_LISTENS)
		return true;
	if (socket->family == AF_UNIX)
		return socket->size > 0 && socket->peer_inode &&
		       !(socket->h.flags & SOCKET_PEER_PATH);
	if (!is_inet(socket) || !socket->remote_port)
		return false;
	return listened_ports[socket->local_port] || (socket->local_port < EPHEMERAL_PORT_MIN &&
						      socket->remote_port >= EPHEMERAL_PORT_MIN);
}

static uint64_t inode_key(uint32_t device, uint64_t inode)
{
	return hash_mix(device, inode);
}

static bool watches_clients(const struct rec_watch *watch, const Map *clients)
{
	for (uint32_t i = 0; i < watch->count; i++)
		if (map_get(clients, inode_key(watch->watched[i].device,
					       watch->watched[i].inode)) != MAP_NONE)
			return true;
	return false;
}

void idle_find_clients(IdleFinder *finder)
{
	const Objects *objects = &finder->timeline->objects;
	_cleanup_free_ bool *listened_ports = find_listened_ports(objects);
	Map clients = {};

	finder->for_clients = xcalloc(objects->list.count + 1, sizeof(bool));
	for (size_t i = 0; i < objects->list.count; i++) {
		const Object *object = &objects->list.items[i];
		const struct rec_socket *socket = socket_of(object);

		if (!socket || !is_for_clients(socket, listened_ports))
			continue;
		finder->for_clients[i] = true;
		map_set(&clients, inode_key(object->device, object->number), i);
	}
	for (size_t i = 0; i < objects->list.count; i++) {
		const struct record *record = objects->list.items[i].description;

		if (record && record->kind == REC_WATCH)
			finder->for_clients[i] =
				watches_clients((const struct rec_watch *)record, &clients);
	}
	map_free(&clients);
}

/* ---- which waits can be idle ----------------------------------------------------------------- */

bool idle_is_for_end(const Interval *wait)
{
	return wait->reason == REASON_JOIN || wait->reason == REASON_CHILD;
}

bool idle_is_without_work(const Timeline *timeline, const Interval *wait)
{
	return wait->user_stack != STACK_NONE &&
	       timeline->stacks.items[wait->user_stack].without_work;
}

/*
 * A futex may be a lock of the program, a ring holds the thread's own requests, and a thread
 * without work is classified without its loop.
 */
bool idle_can_be_for_job(const IdleFinder *finder, const Interval *wait)
{
	return wait->reason != REASON_FUTEX && wait->reason != REASON_IO_URING &&
	       wait->reason != REASON_AIO && !idle_is_for_end(wait) &&
	       !idle_is_without_work(finder->timeline, wait);
}

bool idle_is_for_client(const IdleFinder *finder, const Thread *thread, size_t i)
{
	const Interval *wait = &thread->intervals.items[i];
	uint32_t object;

	switch (wait->reason) {
	case REASON_ACCEPT:
		return true;
	case REASON_EPOLL:
	case REASON_POLL:
	case REASON_NETWORK_POLL:
	case REASON_UNIX_POLL:
	case REASON_NETWORK_RECEIVE:
	case REASON_UNIX_RECEIVE:
		object = thread_wait_object(thread, i);
		return object != OBJECT_NONE && finder->for_clients[object];
	}
	return false;
}

bool idle_is_for_reply(const IdleFinder *finder, const Thread *thread, size_t i)
{
	const Interval *wait = &thread->intervals.items[i];
	uint32_t object = thread_wait_object(thread, i);
	const struct rec_socket *socket =
		object == OBJECT_NONE ? NULL
				      : socket_of(&finder->timeline->objects.list.items[object]);

	if (!socket || finder->for_clients[object] ||
	    (wait->reason != REASON_NETWORK_POLL && wait->reason != REASON_UNIX_POLL))
		return false;
	return is_inet(socket) ? socket->remote_port : socket->h.flags & SOCKET_PEER_PATH;
}

/* Returns whether a request that the thread has made is in flight when the wait begins. */
static bool has_request(const Timeline *timeline, const Thread *thread, uint64_t ns)
{
	const Request *requests = timeline->requests.list.items;
	size_t i = partition_point(middle, thread->requests.count,
				   requests[thread->requests.items[middle]].end_ns <= ns);

	/* Requests are sorted by their end; those that end later may begin earlier. */
	for (size_t looked = 0; i < thread->requests.count && looked < REQUESTS_SEARCHED; looked++)
		if (request_begin(&requests[thread->requests.items[i++]]) <= ns)
			return true;
	/* After this many requests one may be in flight; an undecidable wait counts. */
	return i < thread->requests.count;
}

bool idle_is_candidate(const IdleFinder *finder, const Thread *thread, size_t i)
{
	const Interval *wait = &thread->intervals.items[i];

	if (wait->state != STATE_BLOCKED || reason_idle(wait->reason) == REASON_NONE ||
	    (wait->sleep == SLEEP_FOR_DISK && wait->reason != REASON_IO_URING) ||
	    thread_wait_request(thread, i) != REQUEST_NONE)
		return false;
	return (wait->reason != REASON_IO_URING && wait->reason != REASON_AIO) ||
	       !has_request(finder->timeline, thread, wait->start_ns);
}

/* A signal ended the wait and the thread, so the thread did not wait for it. */
static bool was_killed(const Thread *thread, size_t i)
{
	const WakerStack *stack = thread->exited_in_window ? thread_waker_stack(thread, i) : NULL;

	if (!stack || !stack->by_signal)
		return false;
	while (++i < thread->intervals.count)
		if (thread->intervals.items[i].state == STATE_BLOCKED)
			return false;
	return true;
}

/* Returns whether the thread's process is the parent of the one that ended the wait. */
static bool is_by_child(const Timeline *timeline, const Thread *thread, const Interval *wait)
{
	uint32_t waker = wait->waker < timeline->tasks.count
				 ? timeline->tasks.items[wait->waker].thread
				 : THREAD_NONE;
	uint32_t process = waker < timeline->threads.count ? timeline->threads.items[waker].process
							   : THREAD_NONE;

	return process < timeline->processes.count &&
	       timeline->processes.items[process].parent == thread->process;
}

/*
 * A signal interrupts a wait for connections, mostly SIGCHLD of a child that ends, but no
 * connection has come. If the waker's stack is unknown, a child's wakeup is taken to be a signal.
 */
static bool was_interrupted(const Timeline *timeline, const Thread *thread, size_t i)
{
	const Interval *wait = &thread->intervals.items[i];
	const WakerStack *stack;

	if (wait->reason != REASON_ACCEPT || wait->flags & INTERVAL_WAKER_IRQ)
		return false;
	stack = thread_waker_stack(thread, i);
	return stack && stack->kernel_stack != STACK_NONE ? stack->by_signal
							  : is_by_child(timeline, thread, wait);
}

enum ending idle_ending(const IdleFinder *finder, const Thread *thread, size_t i)
{
	const Timeline *timeline = finder->timeline;
	const Interval *wait = &thread->intervals.items[i];
	const WakerStack *stack;

	if (wait->flags & INTERVAL_OPEN_END || was_killed(thread, i))
		return ENDING_OPEN;
	if (was_interrupted(timeline, thread, i))
		return ENDING_OUTSIDE;
	/*
	 * Short waits have no waker's stack. In an interrupt only a timeout ends a wait for a
	 * futex.
	 */
	if (wait->flags & INTERVAL_WAKER_IRQ) {
		stack = thread_waker_stack(thread, i);
		return (stack ? stack->source == INTERRUPT_TIMER : futex_kind_reason(wait->reason))
			       ? ENDING_TIMER
			       : ENDING_OUTSIDE;
	}
	if (wait->waker >= timeline->tasks.count)
		return ENDING_UNKNOWN;
	return timeline->tasks.items[wait->waker].thread < timeline->threads.count ? ENDING_THREAD
										   : ENDING_OUTSIDE;
}
