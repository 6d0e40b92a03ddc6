/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "peer_user.h"
#include "util.h"
#include <arpa/inet.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* TCP_ESTABLISHED of the kernel's net/tcp_states.h */
#define ESTABLISHED 1

#define ANSWER_SECONDS 1 /* the kernel answers within the call that asks */

/* ---- sock_diag ----------------------------------------------------------------------------- */

typedef struct Question {
	struct nlmsghdr header;
	struct inet_diag_req_v2 request;
} Question;

/* Asks for the socket at `from`:from_port that is connected to the loopback address and to_port. */
static bool ask(int fd, struct in_addr from, uint16_t from_port, uint16_t to_port,
		struct inet_diag_msg *ret_answer)
{
	static uint32_t sequence;
	Question question = {
		.header = {.nlmsg_len = sizeof(question),
			   .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			   .nlmsg_flags = NLM_F_REQUEST,
			   .nlmsg_seq = ++sequence},
		.request = {.sdiag_family = AF_INET,
			    .sdiag_protocol = IPPROTO_TCP,
			    .idiag_states = ~0U,
			    .id = {.idiag_sport = htons(from_port),
				   .idiag_dport = htons(to_port),
				   .idiag_cookie = {INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE}}},
	};
	_Alignas(struct nlmsghdr) char buffer[1024];
	const struct nlmsghdr *header = (const struct nlmsghdr *)buffer;
	ssize_t got;

	question.request.id.idiag_src[0] = from.s_addr;
	question.request.id.idiag_dst[0] = to_port ? htonl(INADDR_LOOPBACK) : 0;
	if (send(fd, &question, sizeof(question), 0) != sizeof(question))
		return false;
	do
		got = TEMP_FAILURE_RETRY(recv(fd, buffer, sizeof(buffer), 0));
	while (got >= (ssize_t)sizeof(*header) && header->nlmsg_seq != sequence);
	if (got < (ssize_t)NLMSG_LENGTH(sizeof(*ret_answer)) ||
	    header->nlmsg_type != SOCK_DIAG_BY_FAMILY)
		return false;
	memcpy(ret_answer, NLMSG_DATA(header), sizeof(*ret_answer));
	return true;
}

int peer_user_open(uint16_t listening_port)
{
	struct timeval timeout = {.tv_sec = ANSWER_SECONDS};
	struct in_addr loopback = {htonl(INADDR_LOOPBACK)};
	struct inet_diag_msg answer;
	int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);

	/* A kernel that finds the listening socket finds others, too. */
	if (fd >= 0 && (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)) ||
			!ask(fd, loopback, listening_port, 0, &answer)))
		closep(&fd);
	return fd;
}

/* ---- /proc/net/tcp ----------------------------------------------------------------------- */

/*
 * Finds the client's socket in /proc/net/tcp or tcp6 (proc(5)), which writes addresses in the form
 * of `client`. Only a connected socket has its owner there: a closed one is listed with root as the
 * owner.
 */
static bool find_socket(const char *table, const char *client, uint16_t port, uint16_t our_port,
			uid_t *ret_uid)
{
	_cleanup_fclose_ FILE *file = fopen(table, "re");
	_cleanup_free_ char *line = NULL;
	size_t room = 0;

	while (file && getline(&line, &room, file) > 0) {
		unsigned int from_port, to_port, state, uid;
		char address[33];

		if (sscanf(line,
			   " %*d: %32[0-9A-F]:%4x %*32[0-9A-F]:%4x %2x %*x:%*x %*x:%*x %*x %u",
			   address, &from_port, &to_port, &state, &uid) == 5 &&
		    !strcmp(address, client) && from_port == port && to_port == our_port &&
		    state == ESTABLISHED) {
			*ret_uid = uid;
			return true;
		}
	}
	return false;
}

static bool find_in_table(const struct sockaddr_in *peer, uint16_t our_port, uid_t *ret_uid)
{
	uint16_t port = ntohs(peer->sin_port);
	char mapped[33], *client = mapped + 24;

	snprintf(mapped, sizeof(mapped), "0000000000000000FFFF0000%08X", peer->sin_addr.s_addr);
	return find_socket("/proc/net/tcp", client, port, our_port, ret_uid) ||
	       find_socket("/proc/net/tcp6", mapped, port, our_port, ret_uid);
}

/* ---- both ----------------------------------------------------------------------------------- */

bool peer_user_find(int diag_fd, const struct sockaddr_in *peer, uint16_t our_port, uid_t *ret_uid)
{
	struct inet_diag_msg answer;

	if (diag_fd < 0)
		return find_in_table(peer, our_port, ret_uid);
	/* If there is no such connection, the kernel may answer with a socket that listens there.
	 */
	if (!ask(diag_fd, peer->sin_addr, ntohs(peer->sin_port), our_port, &answer) ||
	    answer.idiag_state != ESTABLISHED)
		return false;
	*ret_uid = answer.idiag_uid;
	return true;
}
