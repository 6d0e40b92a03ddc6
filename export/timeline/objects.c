/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "objects.h"
#include "epoll_watches.h"
#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#define WATCHED_NAMED 4

#define DEVICE_MAJOR(device) ((device) >> 20)
#define DEVICE_MINOR(device) ((device)&0xfffff)
#define TIMER_ABOUT	     1 /* Object::generation of a rounded time */

void objects_free(Objects *objects)
{
	for (size_t i = 0; i < objects->list.count; i++) {
		free(objects->list.items[i].name);
		free(objects->list.items[i].description);
	}
	vec_free(&objects->list);
	map_free(&objects->index);
}

enum object_kind object_kind_of(enum fd_kind kind)
{
	switch (kind) {
	case FD_PIPE:
		return OBJECT_PIPE;
	case FD_INET:
	case FD_UNIX:
	case FD_SOCKET:
	case FD_LISTEN:
		return OBJECT_SOCKET;
	case FD_ANON:
		return OBJECT_ANONYMOUS;
	default:
		return OBJECT_FILE;
	}
}

void object_json(Json *json, const Object *object)
{
	static const char *const kinds[OBJECT_KINDS] = {
		[OBJECT_FILE] = "file",
		[OBJECT_PIPE] = "pipe",
		[OBJECT_SOCKET] = "socket",
		[OBJECT_EPOLL] = "epoll",
		[OBJECT_ANONYMOUS] = "descriptor",
		[OBJECT_TIMER] = "timer",
		[OBJECT_FUTEX] = "futex",
		[OBJECT_MMAP_LOCK] = "lock",
	};

	if (!object) {
		json_key_null(json, "object");
		json_key_null(json, "object_kind");
		return;
	}
	json_key_string(json, "object", object->name);
	json_key_string(json, "object_kind", kinds[object->kind]);
}

/* "250 ms", "1.5 s": requested times are mostly round. */
static char *time_text(uint64_t ns, bool about)
{
	static const struct {
		uint64_t ns;
		const char *unit;
	} units[] = {{NSEC_PER_SEC, "s"}, {NSEC_PER_MSEC, "ms"}, {NSEC_PER_USEC, "us"}, {1, "ns"}};
	size_t i = 0;

	while (i + 1 < ARRAY_LEN(units) && ns < units[i].ns)
		i++;
	return xasprintf("%s%.9g %s", about ? "about " : "", (double)ns / units[i].ns,
			 units[i].unit);
}

/* The name until a record has a better one. */
static char *number_text(const Object *object)
{
	unsigned long long as_text = object->number;

	switch (object->kind) {
	case OBJECT_PIPE:
		return xasprintf("pipe:[%llu]", as_text);
	case OBJECT_SOCKET:
		return xasprintf("socket:[%llu]", as_text);
	case OBJECT_ANONYMOUS:
		return xstrdup("[anonymous]");
	case OBJECT_EPOLL:
		return xstrdup("[eventpoll]");
	case OBJECT_TIMER:
		return time_text(object->number, object->generation == TIMER_ABOUT);
	case OBJECT_FUTEX:
		return xasprintf("0x%llx", as_text);
	case OBJECT_MMAP_LOCK:
		return xstrdup("mmap_lock");
	default:
		return xasprintf("inode %llu of device %u:%u", as_text,
				 DEVICE_MAJOR(object->device), DEVICE_MINOR(object->device));
	}
}

/* An inode has one index, whatever kind it turns out to be. */
static enum object_kind kind_of_numbers(enum object_kind kind)
{
	return kind >= OBJECT_TIMER ? kind : OBJECT_FILE;
}

static uint32_t refer(Objects *objects, const Object *wanted)
{
	enum object_kind numbers = kind_of_numbers(wanted->kind);
	uint64_t key = hash_mix(hash_mix(wanted->device, wanted->number),
				(uint64_t)numbers << 32 | wanted->generation);
	uint32_t place = map_get(&objects->index, key);
	Object *object;

	if (place != MAP_NONE) {
		object = &objects->list.items[place];
		if (object->device == wanted->device && object->number == wanted->number &&
		    object->generation == wanted->generation &&
		    kind_of_numbers(object->kind) == numbers)
			return place;
	}
	place = objects->list.count;
	object = vec_push(&objects->list);
	*object = *wanted;
	object->name = number_text(object);
	object->alike = place;
	map_set(&objects->index, key, place);
	return place;
}

uint32_t objects_reference(Objects *objects, enum object_kind kind, uint32_t device,
			   uint64_t number, uint32_t generation)
{
	Object wanted = {
		.kind = kind, .device = device, .number = number, .generation = generation};
	Object *object;
	uint32_t place;

	if (number == 0)
		return OBJECT_NONE;
	place = refer(objects, &wanted);
	object = &objects->list.items[place];
	if (kind == OBJECT_FILE || object->kind == kind ||
	    (kind == OBJECT_ANONYMOUS && object->kind == OBJECT_EPOLL))
		return place;
	object->kind = kind;
	if (!object->has_path) {
		free(object->name);
		object->name = number_text(object);
	}
	return place;
}

/*
 * A round time has at most three digits. More digits mean that the program computed what is left of
 * a time.
 */
static bool is_round(uint64_t ns)
{
	while (ns >= 1000 && ns % 10 == 0)
		ns /= 10;
	return ns < 1000;
}

uint32_t objects_timer(Objects *objects, uint64_t ns)
{
	if (!is_round(ns))
		return objects_timer_about(objects, ns);
	return refer(objects, &(Object){.kind = OBJECT_TIMER, .number = ns});
}

/*
 * Rounds to two digits: a thread that sleeps until a moment has a little less to sleep each time.
 */
uint32_t objects_timer_about(Objects *objects, uint64_t ns)
{
	uint64_t unit = 1;

	while (ns / unit >= 100)
		unit *= 10;
	/* The sum of ns and half a unit may be too large. */
	return refer(objects,
		     &(Object){.kind = OBJECT_TIMER,
			       .generation = TIMER_ABOUT,
			       .number = (ns / unit + (ns % unit >= (unit + 1) / 2)) * unit});
}

uint32_t objects_futex(Objects *objects, uint32_t tgid, uint32_t exec_id, uint64_t address)
{
	return refer(objects, &(Object){.kind = OBJECT_FUTEX,
					.device = tgid,
					.generation = exec_id,
					.number = address});
}

uint32_t objects_mmap_lock(Objects *objects, uint64_t number, const char *process)
{
	uint32_t place = refer(objects, &(Object){.kind = OBJECT_MMAP_LOCK, .number = number});
	Object *object = &objects->list.items[place];

	free(object->name);
	object->name = xasprintf("mmap_lock of %s", process);
	return place;
}

/* Names lie leaf first, each with its NUL. */
static char *make_path(const struct rec_inode *record)
{
	const char *begin = record->text, *end = begin + record->size;
	char *path = xcalloc(1, record->size + sizeof("/… (deleted)")), *to = path;

	if (record->h.flags & INODE_NO_PATH)
		return memcpy(path, begin, strnlen(begin, record->size));
	if (!(record->h.flags & (INODE_FULL_PATH | INODE_MOUNT)))
		to = stpcpy(to, "…"); /* the path was too long */
	while (end > begin) {
		const char *name = --end; /* at its NUL */

		while (name > begin && name[-1])
			name--;
		*to++ = '/';
		to = mempcpy(to, name, end - name);
		end = name;
	}
	if (record->h.flags & INODE_DELETED)
		strcpy(to, " (deleted)");
	return path;
}

static int path_completeness(uint8_t flags)
{
	return flags & INODE_FULL_PATH ? 2 : flags & INODE_MOUNT ? 1 : 0;
}

void objects_add_inode(Objects *objects, const struct rec_inode *record)
{
	uint32_t place = objects_reference(objects, OBJECT_FILE, record->device, record->inode,
					   record->generation);
	Object *object;

	if (place == OBJECT_NONE || record->size == 0)
		return;
	object = &objects->list.items[place];
	if (path_completeness(object->flags) > path_completeness(record->h.flags))
		return;
	free(object->name);
	object->name = make_path(record);
	object->has_path = true;
	object->flags = record->h.flags;
}

void objects_name_by_device(Objects *objects, uint32_t place)
{
	Object *object = &objects->list.items[place];

	if (object->has_path)
		return;
	free(object->name);
	object->name = xasprintf("unnamed files of device %u:%u", DEVICE_MAJOR(object->device),
				 DEVICE_MINOR(object->device));
}

static bool has_address(const struct record *record)
{
	const struct rec_socket *socket = (const struct rec_socket *)record;

	return record->kind == REC_SOCKET &&
	       ((socket->remote_port && socket->local_port) || socket->peer_inode);
}

/* Keeps the last record of an object, unless it is of a socket that was closed meanwhile. */
static void store_description(Objects *objects, uint32_t place, const struct record *record)
{
	Object *object;

	if (place == OBJECT_NONE)
		return;
	object = &objects->list.items[place];
	if (object->description && has_address(object->description) && !has_address(record))
		return;
	free(object->description);
	object->description = memcpy(xmalloc(record->len), record, record->len);
}

/* "::ffff:10.0.0.1": an IPv4 address, as an IPv6 socket has it. */
static bool is_mapped(const u8 address[16])
{
	static const u8 prefix[12] = {[10] = 0xff, [11] = 0xff};

	return !memcmp(address, prefix, sizeof(prefix));
}

static void unmap(u8 address[16])
{
	memmove(address, address + 12, 4);
	memset(address + 4, 0, 12);
}

/* Both ends of a connection get the same family, so that they are found by it. */
static void normalize_family(struct rec_socket *socket)
{
	if (socket->family != AF_INET6 || !is_mapped(socket->local) || !is_mapped(socket->remote))
		return;
	socket->family = AF_INET;
	unmap(socket->local);
	unmap(socket->remote);
}

void objects_add_socket(Objects *objects, const struct rec_socket *record)
{
	uint32_t place = objects_reference(objects, OBJECT_SOCKET, record->device, record->inode,
					   record->generation);

	store_description(objects, place, &record->h);
	if (place != OBJECT_NONE && objects->list.items[place].description->kind == REC_SOCKET)
		normalize_family((struct rec_socket *)objects->list.items[place].description);
}

void objects_add_watch(Objects *objects, const struct rec_watch *record)
{
	uint32_t place = objects_reference(objects, OBJECT_EPOLL, record->device, record->inode,
					   record->generation);
	struct record *known;

	if (place == OBJECT_NONE)
		return;
	known = objects->list.items[place].description;
	if (known && known->kind != REC_WATCH) {
		free(known);
		known = NULL;
	}
	objects->list.items[place].description =
		&epoll_watches_add((struct rec_watch *)known, record)->h;
}

const struct rec_watch *object_watches(const Object *object)
{
	return object->kind == OBJECT_EPOLL && object->description &&
			       object->description->kind == REC_WATCH
		       ? (const struct rec_watch *)object->description
		       : NULL;
}

bool object_listens(const Object *object)
{
	const struct rec_watch *watch = object_watches(object);
	uint32_t kinds;

	if (watch) {
		epoll_watches_leaves(watch, &kinds);
		return kinds & 1U << FD_LISTEN;
	}
	return object->kind == OBJECT_SOCKET && object->description &&
	       object->description->kind == REC_SOCKET &&
	       object->description->flags & SOCKET_LISTENS;
}

void objects_add_futex(Objects *objects, const struct rec_futex *record)
{
	store_description(objects,
			  objects_futex(objects, record->tgid, record->exec_id, record->address),
			  &record->h);
}

void object_mounted(Object *object, const char *path)
{
	char *whole = xasprintf("%s%s", strcmp(path, "/") ? path : "", object->name);

	free(object->name);
	object->name = whole;
	object->flags ^= INODE_MOUNT | INODE_FULL_PATH;
}

void object_not_mounted(Object *object, const char *device)
{
	char *path = xasprintf("%s:%s", device, object->name);

	free(object->name);
	object->name = path;
	object->flags ^= INODE_MOUNT;
}

/* ---- what is called the same --------------------------------------------------------------- */

static int compare_names(const Object *x, const Object *y)
{
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	if (x->device != y->device)
		return x->device < y->device ? -1 : 1;
	return strcmp(x->name, y->name);
}

static int compare_called(const void *a, const void *b)
{
	const Object *x = *(const Object *const *)a, *y = *(const Object *const *)b;
	int order = compare_names(x, y);

	return order ? order : (x > y) - (x < y);
}

void objects_find_alike(Objects *objects)
{
	size_t count = objects->list.count;
	_cleanup_free_ Object **sorted = xcalloc(count + 1, sizeof(*sorted));
	const Object *first = NULL;

	for (size_t i = 0; i < count; i++)
		sorted[i] = &objects->list.items[i];
	if (count > 1)
		qsort(sorted, count, sizeof(*sorted), compare_called);
	for (size_t i = 0; i < count; i++) {
		if (!first || compare_names(first, sorted[i]))
			first = sorted[i];
		sorted[i]->alike = first - objects->list.items;
	}
}

/* ---- the names of sockets and of epoll descriptors, by their records ------------------------ */

static char *address_text(uint16_t family, const uint8_t *address, uint16_t port)
{
	char text[INET6_ADDRSTRLEN];

	if (!inet_ntop(family, address, text, sizeof(text)))
		return xstrdup("?");
	return xasprintf(family == AF_INET6 ? "[%s]:%u" : "%s:%u", text, port);
}

static const char *protocol_name(const struct rec_socket *socket)
{
	switch (socket->protocol) {
	case IPPROTO_TCP:
		return "tcp";
	case IPPROTO_MPTCP:
		return "mptcp";
	case IPPROTO_UDP:
		return "udp";
	case IPPROTO_ICMP:
	case IPPROTO_ICMPV6:
		return "icmp";
	case IPPROTO_SCTP:
		return "sctp";
	default:
		return socket->type == SOCK_RAW ? "raw IP" : "IP";
	}
}

static char *inet_text(const struct rec_socket *socket)
{
	_cleanup_free_ char *local =
		address_text(socket->family, socket->local, socket->local_port);
	_cleanup_free_ char *remote =
		address_text(socket->family, socket->remote, socket->remote_port);
	const char *protocol = protocol_name(socket);

	if (socket->h.flags & SOCKET_LISTENS)
		return xasprintf("%s listening on %s", protocol, local);
	if (socket->remote_port)
		return xasprintf("%s %s → %s", protocol, local, remote);
	if (socket->local_port)
		return xasprintf("%s %s", protocol, local);
	return xasprintf("%s socket:[%" PRIu64 "], not connected", protocol,
			 (uint64_t)socket->inode);
}

/* As ss prints names without a file: a NUL becomes an @. */
static char *unix_path(const struct rec_socket *socket)
{
	size_t size = socket->size;
	char *path = xcalloc(1, size + 1);

	memcpy(path, socket->text, size);
	if (!(socket->h.flags & SOCKET_ABSTRACT))
		return path;
	for (size_t i = 0; i < size; i++)
		if (path[i] == '\0')
			path[i] = '@';
	return path;
}

static char *unix_text(const struct rec_socket *socket)
{
	_cleanup_free_ char *path = unix_path(socket);

	if (!*path)
		return xasprintf("unix:[%" PRIu64 "]", (uint64_t)socket->inode);
	return xasprintf("unix %s%s",
			 socket->h.flags & SOCKET_LISTENS     ? "listening on "
			 : socket->h.flags & SOCKET_PEER_PATH ? "to "
							      : "",
			 path);
}

char *object_socket_text(const struct rec_socket *socket)
{
	static const struct {
		uint16_t family;
		const char *name;
	} others[] = {{AF_NETLINK, "netlink"}, {AF_PACKET, "packet"}, {AF_VSOCK, "vsock"}};

	if (socket->family == AF_INET || socket->family == AF_INET6)
		return inet_text(socket);
	if (socket->family == AF_UNIX)
		return unix_text(socket);
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		if (socket->family == others[i].family)
			return xasprintf("%s socket:[%" PRIu64 "]", others[i].name,
					 (uint64_t)socket->inode);
	return xasprintf("socket:[%" PRIu64 "] of family %u", (uint64_t)socket->inode,
			 socket->family);
}

/* ---- epoll --------------------------------------------------------------------------------- */

/* Takes ownership of the text. */
static char *append(char *text, const char *separator, const char *more)
{
	char *longer = xasprintf("%s%s%s", text, separator, more);

	free(text);
	return longer;
}

static char *append_rest(char *text, uint32_t count, bool more)
{
	_cleanup_free_ char *rest = NULL;

	if (count <= WATCHED_NAMED)
		return more ? append(text, " and ", "more") : text;
	rest = xasprintf("%s%" PRIu32 " more", more ? "at least " : "", count - WATCHED_NAMED);
	return append(text, " and ", rest);
}

/* A nested epoll descriptor has a short name here, because its long name may still change. */
static const char *watched_name(Objects *objects, const struct watched *watched)
{
	uint32_t place = objects_reference(objects, object_kind_of(watched->kind), watched->device,
					   watched->inode, watched->generation);
	const Object *object = place == OBJECT_NONE ? NULL : &objects->list.items[place];

	if (!object)
		return "[unknown]";
	return object->kind == OBJECT_EPOLL ? "[eventpoll]" : object->name;
}

/* The kernel lets epoll descriptors watch each other to a depth of five. */
#define DEPTH_MAX 5

/* Returns "pipe:[7], epoll (tcp 10.0.0.1:80 → …) and 3 more": what is watched through `via`. */
static char *list_text(Objects *objects, const struct rec_watch *watch, uint32_t via, int depth)
{
	_cleanup_free_ uint32_t *numbers = xcalloc(watch->count + 1, sizeof(*numbers));
	uint32_t count = epoll_watches_sorted(watch, via, numbers);
	char *text = xstrdup("");

	for (uint32_t i = 0; i < MIN(count, (uint32_t)WATCHED_NAMED); i++) {
		const char *separator = i == 0 ? "" : ", ";
		_cleanup_free_ char *inner = NULL, *whole = NULL;

		if (depth < DEPTH_MAX && epoll_watches_through(watch, numbers[i])) {
			inner = list_text(objects, watch, numbers[i] + 1, depth + 1);
			whole = xasprintf("epoll (%s)", inner);
		}
		text = append(text, separator,
			      whole ? whole : watched_name(objects, &watch->watched[numbers[i]]));
	}
	return append_rest(text, count, via == 0 && watch->more);
}

char *object_watch_text(Objects *objects, const struct rec_watch *watch)
{
	const char *kind = watch->h.flags & WATCH_RING ? "io_uring" : "epoll";
	_cleanup_free_ char *list = NULL;

	if (watch->count == 0)
		return xasprintf("%s of %s", kind, watch->more ? "something" : "nothing");
	list = list_text(objects, watch, 0, 1);
	return xasprintf("%s of %s", kind, list);
}
