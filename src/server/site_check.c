/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "site_check.h"
#include "util.h"
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONNECT_MS 3000

/* An errno, or one of getaddrinfo()'s errors, which are negative numbers; 0: there is none. */
static atomic_int failure;

/* Returns 0, or the errno of the connection. */
static int try_address(const struct addrinfo *address)
{
	_cleanup_close_ int fd =
		socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
		       address->ai_protocol);
	struct pollfd wait = {.fd = fd, .events = POLLOUT};
	socklen_t size = sizeof(int);
	int error = 0;

	if (fd < 0)
		return errno;
	if (!connect(fd, address->ai_addr, address->ai_addrlen))
		return 0;
	if (errno != EINPROGRESS)
		return errno;
	if (poll(&wait, 1, CONNECT_MS) <= 0)
		return ETIMEDOUT;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size))
		return errno;
	return error;
}

static void *check(void *host)
{
	const struct addrinfo wanted = {.ai_socktype = SOCK_STREAM};
	struct addrinfo *addresses = NULL;
	int error = getaddrinfo(host, "443", &wanted, &addresses);

	if (!error) {
		error = EHOSTUNREACH;
		for (const struct addrinfo *at = addresses; at && error; at = at->ai_next)
			error = try_address(at);
		freeaddrinfo(addresses);
	}
	failure = error;
	return NULL;
}

static bool has_proxy(void)
{
	static const char *const names[] = {"https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (getenv(names[i]) && *getenv(names[i]))
			return true;
	return false;
}

void site_check_begin(const char *host)
{
	pthread_t thread;

	if (has_proxy() || pthread_create(&thread, NULL, check, (void *)host))
		return;
	pthread_detach(thread);
}

const char *site_check_take(void)
{
	int error = atomic_exchange(&failure, 0);

	if (error == 0)
		return NULL;
	return error < 0 ? gai_strerror(error) : error_text(-error);
}
