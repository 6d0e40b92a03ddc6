/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "requests.h"
#include <stdio.h>
#include <string.h>

#define LEAST_START_NS 1000
#define LEAST_MAX_NS   (UINT64_MAX / 4)

/*
 * include/linux/blk_types.h, the same from 6.1 to 7.3, except that zone append was 13 before 6.8,
 * which is "other" now.
 */
#define REQ_OP_MASK 0xff
enum {
	REQ_OP_READ = 0,
	REQ_OP_WRITE = 1,
	REQ_OP_FLUSH = 2,
	REQ_OP_DISCARD = 3,
	REQ_OP_SECURE_ERASE = 5,
	REQ_OP_ZONE_APPEND = 7,
	REQ_OP_WRITE_ZEROES = 9,
	REQ_OP_DRV_IN = 34,
	REQ_OP_DRV_OUT = 35,
};

static const struct {
	uint32_t bit;
	const char *name;
} opf_flags[] = {
	{11, "sync"},	   {12, "metadata"},   {17, "FUA"},    {18, "preflush"},
	{19, "readahead"}, {20, "background"}, {21, "nowait"},
};

static const struct {
	uint8_t flag;
	const char *name;
} request_flag_words[] = {
	{REQUEST_METADATA, "of the device or the file system itself"},
	{REQUEST_SPLIT, "part of a larger one"},
	{REQUEST_MIXED, "of several threads or files"},
	{REQUEST_BIO, "passed on by the device"},
};

void requests_free(Requests *requests)
{
	for (size_t i = 0; i < requests->devices.count; i++) {
		free(requests->devices.items[i].name);
		free(requests->devices.items[i].lies_on);
		free(requests->devices.items[i].mounted);
		vec_free(&requests->devices.items[i].requests);
	}
	vec_free(&requests->devices);
	vec_free(&requests->list);
	map_free(&requests->device_of_number);
}

uint32_t requests_device(Requests *requests, uint32_t number)
{
	uint32_t place = map_get(&requests->device_of_number, number);

	if (place != MAP_NONE)
		return place;
	place = requests->devices.count;
	*vec_push(&requests->devices) = (BlockDevice){
		.number = number,
		.name = number ? xasprintf("%u:%u", number >> 20, number & 0xfffff)
			       : xstrdup("unknown device"),
		.lies_on = xstrdup(""),
		.mounted = xstrdup(""),
	};
	map_set(&requests->device_of_number, number, place);
	return place;
}

/* Copies the text at *at and moves *at behind it; "" at the end. */
static char *next_text(const char **at, const char *end)
{
	size_t length = strnlen(*at, end - *at);
	char *text = xasprintf("%.*s", (int)length, *at);

	*at += MIN(length + 1, (size_t)(end - *at));
	return text;
}

/* A field that is missing at the end keeps its earlier value. */
static void parse_text(char **text, const char **at, const char *end)
{
	char *next = next_text(at, end);

	if (!*next) {
		free(next);
		return;
	}
	free(*text);
	*text = next;
}

void requests_add_device(Requests *requests, const struct rec_device *record)
{
	const char *at = record->text, *end = at + record->size;
	uint32_t place = requests_device(requests, record->device); /* may move the list */
	BlockDevice *device = &requests->devices.items[place];

	if (record->size == 0)
		return;
	device->disk = record->disk;
	parse_text(&device->name, &at, end);
	parse_text(&device->lies_on, &at, end);
	parse_text(&device->mounted, &at, end);
}

bool requests_lie_on_file(const Requests *requests, uint32_t number)
{
	uint32_t place = map_get(&requests->device_of_number, number);

	return place != MAP_NONE && *requests->devices.items[place].lies_on == '/';
}

char *request_device_text(const Requests *requests, uint32_t number)
{
	uint32_t place = map_get(&requests->device_of_number, number);
	const BlockDevice *device = place == MAP_NONE ? NULL : &requests->devices.items[place];

	if (!device)
		return xasprintf("%u:%u", number >> 20, number & 0xfffff);
	return *device->lies_on ? xasprintf("%s (%s)", device->name, device->lies_on)
				: xstrdup(device->name);
}

uint64_t request_begin(const Request *request)
{
	uint64_t begin = request->end_ns;

	if (request->submit_ns)
		begin = MIN(begin, request->submit_ns);
	if (request->start_ns)
		begin = MIN(begin, request->start_ns);
	if (request->issue_ns)
		begin = MIN(begin, request->issue_ns);
	return begin;
}

uint64_t request_let_go(const Request *request)
{
	uint64_t begin = request_begin(request);

	return begin + MIN(request->held_ns, request->end_ns - begin);
}

uint64_t request_queued_ns(const Request *request)
{
	uint64_t until = request->issue_ns ? request->issue_ns : request->end_ns;
	uint64_t from = request_let_go(request);

	until = MIN(until, request->end_ns);
	return until - MIN(from, until);
}

uint64_t request_device_ns(const Request *request)
{
	return request->issue_ns ? request->end_ns - MIN(request->issue_ns, request->end_ns) : 0;
}

bool request_is_read(const Request *request)
{
	return (request->opf & REQ_OP_MASK) == REQ_OP_READ;
}

bool request_is_write(const Request *request)
{
	uint32_t operation = request->opf & REQ_OP_MASK;

	return operation == REQ_OP_WRITE || operation == REQ_OP_ZONE_APPEND;
}

const char *request_operation(const Request *request)
{
	switch (request->opf & REQ_OP_MASK) {
	case REQ_OP_READ:
		return "read";
	case REQ_OP_WRITE:
		/* A flush with nothing to write is a write of no bytes until the driver has it. */
		return request->bytes || request->sector ? "write" : "flush";
	case REQ_OP_FLUSH:
		return "flush";
	case REQ_OP_DISCARD:
	case REQ_OP_SECURE_ERASE:
		return "discard";
	case REQ_OP_ZONE_APPEND:
		return "append";
	case REQ_OP_WRITE_ZEROES:
		return "write zeroes";
	case REQ_OP_DRV_IN:
	case REQ_OP_DRV_OUT:
		return "command";
	default:
		return "other";
	}
}

char *request_flags_text(const Request *request)
{
	char room[256] = "", *to = room; /* holds all of them */

	for (size_t i = 0; i < ARRAY_LEN(opf_flags); i++)
		if (request->opf >> opf_flags[i].bit & 1)
			to += sprintf(to, "%s%s", *room ? ", " : "", opf_flags[i].name);
	for (size_t i = 0; i < ARRAY_LEN(request_flag_words); i++)
		if (request->flags & request_flag_words[i].flag)
			to += sprintf(to, "%s%s", *room ? ", " : "", request_flag_words[i].name);
	return xstrdup(room);
}

char *request_status_text(const Request *request)
{
	return request->status ? xasprintf("failed (status %u)", request->status) : xstrdup("done");
}

/* THREAD_NONE has all bits set, like REQUEST_NONE. */
uint64_t requests_count(const Requests *requests, uint64_t least_ns, uint64_t *ret_others)
{
	uint64_t count = 0, others = 0;

	for (size_t i = 0; i < requests->list.count; i++) {
		const Request *request = &requests->list.items[i];

		uint64_t rows = request->thread == REQUEST_NONE ? 1 : 2;

		if (request->end_ns - request_begin(request) >= least_ns)
			count += rows;
		else
			others += rows;
	}
	*ret_others = others;
	return count;
}

uint64_t requests_fit_rows(CountRows count, const void *user, uint64_t budget)
{
	uint64_t least_ns = 0, others;

	while (count(user, least_ns, &others) > budget) {
		if (least_ns > LEAST_MAX_NS)
			return UINT64_MAX;
		least_ns = least_ns ? 2 * least_ns : LEAST_START_NS;
	}
	return least_ns;
}

static uint64_t count_rows(const void *requests, uint64_t least_ns, uint64_t *ret_others)
{
	return requests_count(requests, least_ns, ret_others);
}

uint64_t requests_fit(const Requests *requests, uint64_t budget)
{
	return requests_fit_rows(count_rows, requests, budget);
}

const char *request_origin(const Request *request)
{
	if (request->flags & REQUEST_TARGET)
		return request->via == VIA_RING_WORKER ? "direct, by a worker of io_uring"
						       : "direct";
	if (request->flags & REQUEST_KTHREAD)
		return "on behalf, by the kernel";
	return request->flags & REQUEST_SUBMITTED ? "of another process" : "not known";
}
