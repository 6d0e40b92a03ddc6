/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * chrome_spans.c - page faults, requests to block devices, and what was lost: asynchronous spans,
 * for they overlap or are no thread's.
 */
#include "chrome_private.h"
#include "fault.h"
#include "labels.h"

#define PAGE_FAULT "Page fault"

static void write_fault_data(Chrome *chrome, const Fault *fault)
{
	Json *json = &chrome->json;

	json_key_object(json, "args");
	json_key_object(json, "data");
	json_key_string(json, "class", fault_class_label(fault_class(fault)));
	json_key_string(json, "access", fault_access_label(fault));
	json_key_string(json, "memory", fault_memory_label(fault));
	if (fault_page_label(fault))
		json_key_string(json, "page", fault_page_label(fault));
	if (fault->file != OBJECT_NONE) {
		json_key_string(json, "file",
				chrome->timeline->objects.list.items[fault->file].name);
		if (fault->offset != OFFSET_UNKNOWN)
			json_key_u64(json, "offset", fault->offset);
	}
	json_key_ms(json, "waitedMs", fault->waited_ns);
	json_end_object(json);
	json_end_object(json);
}

static void write_fault_end(Chrome *chrome, const char *phase, const Thread *thread,
			    const Fault *fault)
{
	Json *json = &chrome->json;

	chrome_begin_of(chrome, phase, PAGE_FAULT, thread);
	json_key_string(json, "cat", category_info[CATEGORY_FAULT].name);
	json_key_u64(json, "id", chrome->faults);
	chrome_key_time(chrome, *phase == 'b' ? fault->start_ns : fault->end_ns);
	if (*phase == 'b')
		write_fault_data(chrome, fault);
	json_end_object(json);
}

/* A fault begins within one slice and may end within another, so it can be none itself. */
void chrome_write_faults(Chrome *chrome, const Thread *thread)
{
	for (size_t i = 0; i < thread->faults.count; i++) {
		const Fault *fault = &thread->faults.items[i];

		if (fault->end_ns - fault->start_ns < chrome->fault_ns)
			continue;
		write_fault_end(chrome, "b", thread, fault);
		write_fault_end(chrome, "e", thread, fault);
		chrome->faults++;
	}
}

static void write_request_data(Chrome *chrome, const Request *request)
{
	const Timeline *timeline = chrome->timeline;
	_cleanup_free_ char *device = device_text(&timeline->requests, request->device);
	_cleanup_free_ char *over = request->over_device
					    ? device_text(&timeline->requests, request->over_device)
					    : NULL;
	_cleanup_free_ char *flags = request_flags_text(request);
	_cleanup_free_ char *status = request_status_text(request);
	Json *json = &chrome->json;

	json_key_object(json, "args");
	json_key_object(json, "data");
	json_key_string(json, "operation", request_operation(request));
	json_key_string(json, "whose", request_origin(request));
	json_key_string(json, "device", device);
	if (over)
		json_key_string(json, "partOf", over);
	if (request->file != OBJECT_NONE)
		json_key_string(json, "file", timeline->objects.list.items[request->file].name);
	if (request->file != OBJECT_NONE && request->offset != OFFSET_UNKNOWN)
		json_key_u64(json, "offset", request->offset);
	json_key_u64(json, "bytes", request->bytes);
	json_key_u64(json, "sector", request->sector);
	if (request->held_ns > 0)
		json_key_ms(json, "heldMs", request->held_ns);
	if (!(request->flags & REQUEST_BIO)) {
		json_key_ms(json, "queuedMs", request_queued_ns(request));
		json_key_ms(json, "deviceMs", request_device_ns(request));
	}
	json_key_string(json, "flags", flags);
	json_key_string(json, "result", status);
	json_end_object(json);
	json_end_object(json);
}

static void write_request_end(Chrome *chrome, const char *phase, const Request *request, size_t id)
{
	Json *json = &chrome->json;

	if (request->thread != THREAD_NONE)
		chrome_begin_of(chrome, phase, CHROME_BLOCK_IO,
				&chrome->timeline->threads.items[request->thread]);
	else
		chrome_begin(chrome, phase, CHROME_BLOCK_IO, CHROME_DEVICES_PID,
			     CHROME_DEVICES_TID +
				     map_get(&chrome->timeline->requests.device_of_number,
					     request->device));
	json_key_string(json, "cat", category_info[CATEGORY_DISK].name);
	json_key_u64(json, "id", id);
	chrome_key_time(chrome, *phase == 'b'
					? MAX(request_begin(request), chrome->timeline->start_ns)
					: request->end_ns);
	if (*phase == 'b')
		write_request_data(chrome, request);
	json_end_object(json);
}

/* Of threads that are in the trace, there; all others on the device. */
void chrome_write_requests(Chrome *chrome)
{
	const Requests *requests = &chrome->timeline->requests;

	for (size_t i = 0; i < requests->list.count; i++) {
		const Request *request = &requests->list.items[i];

		if (request->end_ns - request_begin(request) < chrome->request_ns)
			continue;
		write_request_end(chrome, "b", request, i);
		write_request_end(chrome, "e", request, i);
	}
}

static void write_loss_end(Chrome *chrome, const char *phase, size_t number, uint64_t ns)
{
	const LossSpan *loss = &chrome->timeline->losses.items[number];
	const char *kind = record_kind_label(loss->kind);
	Json *json = &chrome->json;

	chrome_begin(chrome, phase, CHROME_EVENTS_LOST, CHROME_SYSTEM_PID, CHROME_SYSTEM_PID);
	json_key_string(json, "cat", category_info[CATEGORY_UNKNOWN].name);
	json_key_u64(json, "id", number);
	chrome_key_time(chrome, ns);
	if (*phase == 'b') {
		json_key_object(json, "args");
		json_key_object(json, "data");
		json_key_string(json, "kind", kind ? kind : "other");
		json_key_string(json, "why", loss_cause_label(loss->cause));
		json_key_u64(json, "cpu", loss->cpu);
		json_key_u64(json, "count", loss->count);
		json_end_object(json);
		json_end_object(json);
	}
	json_end_object(json);
}

void chrome_write_losses(Chrome *chrome)
{
	for (size_t i = 0; i < chrome->timeline->losses.count; i++) {
		const LossSpan *loss = &chrome->timeline->losses.items[i];

		write_loss_end(chrome, "b", i, loss->from_ns);
		write_loss_end(chrome, "e", i, MAX(loss->from_ns, loss->to_ns));
	}
}
