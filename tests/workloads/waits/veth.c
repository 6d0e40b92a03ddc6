/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "veth.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define PORT 9

static const char *const names[] = {"wakers0", "wakers1"};
static const char *const addresses[] = {"10.213.7.1", "10.213.7.2"};

typedef struct Message {
	struct nlmsghdr head;
	struct ifinfomsg link;
	char attributes[256];
} Message;

static struct rtattr *end_of(Message *message)
{
	return (struct rtattr *)((char *)message + NLMSG_ALIGN(message->head.nlmsg_len));
}

/* Returns the attribute; what is appended before end_nest() is nested in it. */
static struct rtattr *put(Message *message, uint16_t type, const void *data, size_t size)
{
	struct rtattr *attribute = end_of(message);

	attribute->rta_type = type;
	attribute->rta_len = (uint16_t)RTA_LENGTH(size);
	if (size > 0)
		memcpy(RTA_DATA(attribute), data, size);
	message->head.nlmsg_len = NLMSG_ALIGN(message->head.nlmsg_len) + (uint32_t)RTA_LENGTH(size);
	return attribute;
}

static void end_nest(Message *message, struct rtattr *attribute)
{
	attribute->rta_len = (uint16_t)((char *)end_of(message) - (char *)attribute);
}

static void put_string(Message *message, uint16_t type, const char *text)
{
	put(message, type, text, strlen(text) + 1);
}

/* Returns the kernel's answer to the message: 0 or an error number. */
static int ask(const Message *message)
{
	struct {
		struct nlmsghdr head;
		struct nlmsgerr error;
		char rest[512];
	} answer;
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE), error = 0;

	if (fd < 0)
		return errno;
	if (send(fd, message, message->head.nlmsg_len, 0) < 0 ||
	    recv(fd, &answer, sizeof(answer), 0) < (ssize_t)offsetof(typeof(answer), rest))
		error = errno ? errno : EPROTO;
	else
		error = -answer.error.error;
	close(fd);
	return error;
}

/* Creates one end in this namespace, the other one in `other`. */
static bool create_pair(int other)
{
	Message message = {
		.head = {.nlmsg_len = offsetof(Message, attributes),
			 .nlmsg_type = RTM_NEWLINK,
			 .nlmsg_flags = NLM_F_REQUEST | NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK},
	};
	struct rtattr *info, *data, *peer;

	put_string(&message, IFLA_IFNAME, names[0]);
	info = put(&message, IFLA_LINKINFO, NULL, 0);
	put_string(&message, IFLA_INFO_KIND, "veth");
	data = put(&message, IFLA_INFO_DATA, NULL, 0);
	peer = put(&message, VETH_INFO_PEER, &(struct ifinfomsg){}, sizeof(struct ifinfomsg));
	put_string(&message, IFLA_IFNAME, names[1]);
	put(&message, IFLA_NET_NS_FD, &other, sizeof(other));
	end_nest(&message, peer);
	end_nest(&message, data);
	end_nest(&message, info);
	errno = ask(&message);
	return errno == 0;
}

static struct sockaddr_in address_of(int end)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(PORT)};

	inet_pton(AF_INET, addresses[end], &address.sin_addr);
	return address;
}

/* In this namespace: sets the end's address, and creates a socket that is bound to it. */
static int open_end(int end)
{
	struct sockaddr_in own = address_of(end), other = address_of(!end);
	struct ifreq request = {};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool good;

	if (fd < 0)
		return -1;
	strcpy(request.ifr_name, names[end]);
	memcpy(&request.ifr_addr, &own, sizeof(own));
	good = ioctl(fd, SIOCSIFADDR, &request) == 0;
	request.ifr_flags = IFF_UP;
	good = good && ioctl(fd, SIOCSIFFLAGS, &request) == 0 &&
	       bind(fd, (struct sockaddr *)&own, sizeof(own)) == 0 &&
	       connect(fd, (struct sockaddr *)&other, sizeof(other)) == 0;
	if (!good) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Enters a new namespace; returns a descriptor of it, or -1. */
static int enter_new(void)
{
	return unshare(CLONE_NEWNET) == 0 ? open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC)
					  : -1;
}

bool veth_sockets(int *ret_ends)
{
	int own = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC), second, error;
	bool good;

	if (own < 0)
		return false;
	second = enter_new();
	good = second >= 0 && unshare(CLONE_NEWNET) == 0 && create_pair(second);
	ret_ends[0] = good ? open_end(0) : -1;
	good = good && setns(second, CLONE_NEWNET) == 0;
	ret_ends[1] = good ? open_end(1) : -1;
	error = errno;
	if (second >= 0)
		close(second);
	good = setns(own, CLONE_NEWNET) == 0 && ret_ends[0] >= 0 && ret_ends[1] >= 0;
	close(own);
	errno = error;
	return good;
}
