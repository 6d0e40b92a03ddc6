/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What each case waits for, from the kernel by other ways than a profiler's. */
#include "waits.h"
#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

pthread_mutex_t known_mutex = PTHREAD_MUTEX_INITIALIZER;

/* "pipe:[123]", "socket:[123]", "anon_inode:[eventfd]", or a path. */
static void describe_descriptor(int fd, char text[TRUTH_OBJECT_SIZE])
{
	char path[64];
	ssize_t length;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	length = readlink(path, text, TRUTH_OBJECT_SIZE - 1);
	text[length > 0 ? length : 0] = '\0';
}

void object_fd0(const struct wait_state *state, char text[TRUTH_OBJECT_SIZE])
{
	describe_descriptor(state->fd[0], text);
}

void object_fd1(const struct wait_state *state, char text[TRUTH_OBJECT_SIZE])
{
	describe_descriptor(state->fd[1], text);
}

static size_t add_address(char *text, size_t size, const struct sockaddr_in *address)
{
	char number[INET_ADDRSTRLEN];

	inet_ntop(AF_INET, &address->sin_addr, number, sizeof(number));
	return (size_t)snprintf(text, size, "%s:%u", number, ntohs(address->sin_port));
}

static void describe_connection(int fd, char text[TRUTH_OBJECT_SIZE])
{
	struct sockaddr_in local, remote;
	socklen_t local_length = sizeof(local), remote_length = sizeof(remote);
	size_t used;

	truth_check(getsockname(fd, (struct sockaddr *)&local, &local_length) == 0, "getsockname");
	if (getpeername(fd, (struct sockaddr *)&remote, &remote_length) != 0) {
		used = (size_t)snprintf(text, TRUTH_OBJECT_SIZE, "tcp listening on ");
		add_address(text + used, TRUTH_OBJECT_SIZE - used, &local);
		return;
	}
	used = (size_t)snprintf(text, TRUTH_OBJECT_SIZE, "tcp ");
	used += add_address(text + used, TRUTH_OBJECT_SIZE - used, &local);
	used += (size_t)snprintf(text + used, TRUTH_OBJECT_SIZE - used, " → ");
	add_address(text + used, TRUTH_OBJECT_SIZE - used, &remote);
}

void object_connection0(const struct wait_state *state, char text[TRUTH_OBJECT_SIZE])
{
	describe_connection(state->fd[0], text);
}

void object_connection1(const struct wait_state *state, char text[TRUTH_OBJECT_SIZE])
{
	describe_connection(state->fd[1], text);
}

void object_epoll(const struct wait_state *state, char text[TRUTH_OBJECT_SIZE])
{
	char pipe[TRUTH_OBJECT_SIZE];

	describe_descriptor(state->fd[0], pipe);
	snprintf(text, TRUTH_OBJECT_SIZE, "epoll of %.100s, [eventfd]", pipe);
}

void object_ring(const struct wait_state *state, char text[TRUTH_OBJECT_SIZE])
{
	char connection[TRUTH_OBJECT_SIZE];

	describe_connection(state->fd[0], connection);
	snprintf(text, TRUTH_OBJECT_SIZE, "io_uring of %.200s", connection);
}

void object_word(const struct wait_state *state, char text[TRUTH_OBJECT_SIZE])
{
	snprintf(text, TRUTH_OBJECT_SIZE, "0x%" PRIxPTR " (anonymous memory)",
		 (uintptr_t)&state->sync);
}

void object_static(const struct wait_state *state, char text[TRUTH_OBJECT_SIZE])
{
	(void)state;
	snprintf(text, TRUTH_OBJECT_SIZE, "0x%" PRIxPTR " (waits: known_mutex)",
		 (uintptr_t)&known_mutex);
}

void object_time(const struct wait_state *state, char text[TRUTH_OBJECT_SIZE])
{
	snprintf(text, TRUTH_OBJECT_SIZE, "%llu ms",
		 (unsigned long long)(state->ns / NSEC_PER_MSEC));
}
