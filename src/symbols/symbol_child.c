/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbol_child.h"
#include "sandbox.h"
#include <errno.h>

#define BUFFER_SIZE (256u << 10)

int (*symbol_child_find)(const ObjectRequest *, const ObjectHost *) = object_names_find;

typedef struct Channel {
	int socket;
	VEC(uint8_t) buffer;
} Channel;

static int flush(void *user)
{
	Channel *channel = user;
	int r = sandbox_send(channel->socket, channel->buffer.items, channel->buffer.count, -1);

	channel->buffer.count = 0;
	return r;
}

static int post(Channel *channel, enum symbol_message type, const void *data, size_t size)
{
	struct symbol_message_head head = {.len = size, .type = type};
	int r = 0;

	if (size > SYMBOL_MESSAGE_MAX) /* for example an inline chain of thousands */
		return 0;
	if (channel->buffer.count > BUFFER_SIZE)
		r = flush(channel);
	vec_append(&channel->buffer, (const uint8_t *)&head, sizeof(head));
	vec_append(&channel->buffer, (const uint8_t *)data, size);
	return r;
}

static int emit(void *user, const struct rec_symbol *symbol)
{
	return post(user, SYMBOL_MESSAGE_SYMBOL, symbol, symbol->h.len);
}

static int find(void *user, const Companion *companion)
{
	Channel *channel = user;
	uint8_t byte;
	int fd, r = post(channel, SYMBOL_MESSAGE_FIND, companion, sizeof(*companion));

	if (r == 0)
		r = flush(channel);
	if (r == 0)
		r = sandbox_receive(channel->socket, &byte, 1, &fd);
	if (r < 0)
		return r;
	return fd >= 0 ? fd : -ENOENT;
}

static int missing(void *user, const ObjectMissing *missing)
{
	return post(user, SYMBOL_MESSAGE_MISSING, missing, sizeof(*missing));
}

void symbol_child_main(int socket, const int *fds, const void *argument)
{
	ObjectRequest request = *(const ObjectRequest *)argument;
	Channel channel = {.socket = socket};
	ObjectHost host = {
		.find = find, .emit = emit, .flush = flush, .missing = missing, .user = &channel};
	int64_t r;

	/* These are the child's descriptors. */
	request.fd = fds[0];
	request.debug_fd = fds[1];
	r = symbol_child_find(&request, &host);
	post(&channel, SYMBOL_MESSAGE_END, &r, sizeof(r));
	flush(&channel);
}
