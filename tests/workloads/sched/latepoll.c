/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * latepoll - a client asks over TCP loopback, `--rounds` times, and polls its one
 * descriptor until the server, which thinks for `--delay-ms` each time, answers.
 */
#include "truth.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

static uint64_t rounds = 3, delay_ms = 60;

static void *server(void *arg)
{
	TruthThread *self = truth_begin("server");
	int listener = (int)(uintptr_t)arg, fd;

	fd = accept(listener, NULL, NULL);
	truth_check(fd >= 0, "accept");
	for (uint64_t i = 0; i < rounds; i++) {
		uint64_t begin = truth_now();
		char byte;

		truth_check(recv(fd, &byte, 1, 0) == 1, "recv");
		truth_wait(self, "network", begin);
		begin = truth_now();
		truth_sleep(delay_ms * NSEC_PER_MSEC);
		truth_wait(self, "sleep", begin);
		truth_check(send(fd, "b", 1, 0) == 1, "send");
	}
	truth_park(self);
}

static int connect_to(int listener)
{
	struct sockaddr_in address;
	socklen_t length = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;

	truth_check(getsockname(listener, (struct sockaddr *)&address, &length) == 0,
		    "getsockname");
	truth_check(fd >= 0 && connect(fd, (struct sockaddr *)&address, length) == 0, "connect");
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return fd;
}

static void ask(int fd, TruthThread *self)
{
	struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
	uint64_t begin;
	char byte;

	truth_check(send(fd, "a", 1, 0) == 1, "send");
	begin = truth_now();
	truth_check(poll(&poll_fd, 1, -1) == 1, "poll");
	truth_wait(self, "network", begin);
	truth_check(recv(fd, &byte, 1, 0) == 1, "recv");
}

int main(int argc, char **argv)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int listener = socket(AF_INET, SOCK_STREAM, 0), fd;
	TruthThread *self;

	truth_options(argc, argv,
		      (TruthOption[]){{"rounds", &rounds}, {"delay-ms", &delay_ms}, {}});
	self = truth_begin("client");
	truth_check(listener >= 0 &&
			    bind(listener, (struct sockaddr *)&address, sizeof(address)) == 0 &&
			    listen(listener, 1) == 0,
		    "listen");
	truth_spawn(server, (uint64_t)listener);
	fd = connect_to(listener);
	for (uint64_t i = 0; i < rounds; i++)
		ask(fd, self);
	truth_finish(self);
}
