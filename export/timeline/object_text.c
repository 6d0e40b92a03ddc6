/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "object_text.h"
#include "epoll_watches.h"
#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <sys/socket.h>

#define WATCHED_NAMED 4

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
