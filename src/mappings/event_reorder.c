/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "event_reorder.h"

void event_reorder_free(EventReorder *order)
{
	vec_free(&order->bytes);
	vec_free(&order->list);
}

void event_reorder_add(EventReorder *order, uint64_t ns, const void *event, size_t size)
{
	size_t room = (size + 7) & ~(size_t)7;

	*vec_push(&order->list) = (OrderedEvent){
		.ns = ns, .sequence = order->sequence++, .at = order->bytes.count, .size = size};
	vec_reserve(&order->bytes, order->bytes.count + room);
	memcpy(order->bytes.items + order->bytes.count, event, size);
	order->bytes.count += room;
}

static int compare(const void *a, const void *b)
{
	const OrderedEvent *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns < y->ns ? -1 : 1;
	return x->sequence < y->sequence ? -1 : x->sequence > y->sequence;
}

/* Kept events are interleaved with delivered ones; this compacts the buffer. */
static void close_gaps(EventReorder *order, size_t delivered)
{
	VEC(uint8_t) bytes = {};
	size_t count = order->list.count - delivered;

	memmove(order->list.items, order->list.items + delivered, count * sizeof(OrderedEvent));
	order->list.count = count;
	for (size_t i = 0; i < count; i++) {
		OrderedEvent *event = &order->list.items[i];
		size_t room = (event->size + 7) & ~(size_t)7, at = bytes.count;

		vec_append(&bytes, order->bytes.items + event->at, room);
		event->at = at;
	}
	vec_free(&order->bytes);
	order->bytes.items = bytes.items;
	order->bytes.count = bytes.count;
	order->bytes.capacity = bytes.capacity;
}

int event_reorder_deliver(EventReorder *order, uint64_t watermark_ns,
			  int (*take)(void *user, const void *event, uint64_t ns), void *user)
{
	uint64_t claimed_ns = order->watermark_ns;
	size_t delivered = 0;
	int error = 0;

	order->watermark_ns = MAX(watermark_ns, claimed_ns);
	if (order->list.count == 0)
		return 0;
	qsort(order->list.items, order->list.count, sizeof(OrderedEvent), compare);
	while (delivered < order->list.count &&
	       order->list.items[delivered].ns <= order->watermark_ns) {
		const OrderedEvent *event = &order->list.items[delivered++];
		bool late = claimed_ns && event->ns <= claimed_ns;

		order->late += late;
		if (!error)
			error = take(user, order->bytes.items + event->at,
				     late ? claimed_ns + 1 : event->ns);
	}
	close_gaps(order, delivered);
	return error;
}

uint64_t event_reorder_youngest_ns(const EventReorder *order,
				   bool (*matters)(const void *user, const void *event),
				   const void *user)
{
	for (size_t i = order->list.count; i-- > 0;) {
		const OrderedEvent *event = &order->list.items[i];

		if (matters(user, order->bytes.items + event->at))
			return event->ns;
	}
	return 0;
}
