/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * chrome_spans.c - page faults, requests to block devices, and lost events: asynchronous spans,
 * because they overlap or belong to no thread.
 */
#include "chrome_parts.h"

#define PAGE_FAULT "Page fault"

static void write_fault_end(Chrome *chrome, const char *phase, const Thread *thread,
			    const Fault *fault)
{
	FieldSink sink = chrome_field_sink(chrome);
	Json *json = &chrome->json;

	chrome_begin_of(chrome, phase, PAGE_FAULT, thread);
	json_key_string(json, "cat", category_info[CATEGORY_FAULT].name);
	json_key_u64(json, "id", chrome->faults);
	chrome_key_time(chrome, *phase == 'b' ? fault->start_ns : fault->end_ns);
	if (*phase == 'b') {
		chrome_begin_data(chrome);
		event_fields_fault(&sink, thread, fault);
		chrome_end_data(chrome);
	}
	json_end_object(json);
}

/* A fault begins within one slice and may end within another, so it cannot be a slice itself. */
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

static void write_request_end(Chrome *chrome, const char *phase, const Request *request, size_t id)
{
	FieldSink sink = chrome_field_sink(chrome);
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
	if (*phase == 'b') {
		chrome_begin_data(chrome);
		event_fields_request(&sink, request);
		chrome_end_data(chrome);
	}
	json_end_object(json);
}

/* A request of a thread in the trace is shown with the thread, any other one with its device. */
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
	FieldSink sink = chrome_field_sink(chrome);
	Json *json = &chrome->json;

	chrome_begin(chrome, phase, CHROME_EVENTS_LOST, CHROME_SYSTEM_PID, CHROME_SYSTEM_PID);
	json_key_string(json, "cat", category_info[CATEGORY_UNKNOWN].name);
	json_key_u64(json, "id", number);
	chrome_key_time(chrome, ns);
	if (*phase == 'b') {
		chrome_begin_data(chrome);
		event_fields_loss(&sink, &chrome->timeline->losses.items[number]);
		chrome_end_data(chrome);
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
