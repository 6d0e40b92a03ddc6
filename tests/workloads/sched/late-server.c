/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * late-server - an HTTP server on a loopback port of the kernel's choice, which
 * it prints; answers `--requests` requests, each `--delay-ms` after it came.
 */
#include "truth.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static uint64_t requests = 1, delay_ms = 300;
static const char response[] = "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nlate\n";

static int listen_on_loopback(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	truth_check(fd >= 0 && bind(fd, (struct sockaddr *)&address, length) == 0 &&
			    listen(fd, 8) == 0 &&
			    getsockname(fd, (struct sockaddr *)&address, &length) == 0,
		    "listen");
	printf("%d\n", ntohs(address.sin_port));
	fflush(stdout);
	return fd;
}

static void answer(int fd)
{
	char request[4096];
	size_t length = 0;

	while (length < sizeof(request) - 1) {
		ssize_t n = read(fd, request + length, sizeof(request) - 1 - length);

		if (n <= 0)
			break;
		length += (size_t)n;
		request[length] = '\0';
		if (strstr(request, "\r\n\r\n"))
			break;
	}
	truth_sleep(delay_ms * NSEC_PER_MSEC);
	truth_check(write(fd, response, sizeof(response) - 1) > 0, "write");
}

int main(int argc, char **argv)
{
	int listener;

	truth_options(argc, argv,
		      (TruthOption[]){{"requests", &requests}, {"delay-ms", &delay_ms}, {}});
	listener = listen_on_loopback();
	for (uint64_t i = 0; i < requests; i++) {
		int fd = accept(listener, NULL, NULL);

		truth_check(fd >= 0, "accept");
		answer(fd);
		close(fd);
	}
	return 0;
}
