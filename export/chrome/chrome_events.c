/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "chrome_events.h"

void chrome_begin(Chrome *chrome, const char *phase, const char *name, uint32_t pid, uint32_t tid)
{
	Json *json = &chrome->json;

	json_begin_object(json);
	json_key_string(json, "ph", phase);
	json_key_string(json, "name", name);
	json_key_u64(json, "pid", pid);
	json_key_u64(json, "tid", tid);
}

void chrome_begin_of(Chrome *chrome, const char *phase, const char *name, const Thread *thread)
{
	chrome_begin(chrome, phase, name, chrome->pids[thread->process],
		     chrome->tids[thread - chrome->timeline->threads.items]);
}

void chrome_key_time(Chrome *chrome, uint64_t ns)
{
	json_key_us(&chrome->json, "ts", timeline_time(chrome->timeline, ns));
}

void chrome_begin_data(Chrome *chrome)
{
	json_key_object(&chrome->json, "args");
	json_key_object(&chrome->json, "data");
}

void chrome_end_data(Chrome *chrome)
{
	json_end_object(&chrome->json);
	json_end_object(&chrome->json);
}

uint32_t chrome_task_tid(const Chrome *chrome, uint32_t number)
{
	const Timeline *timeline = chrome->timeline;
	const Task *task = &timeline->tasks.items[number];

	if (task->thread < timeline->threads.count)
		return chrome->tids[task->thread];
	return task->ns_tid ? task->ns_tid : task->tid;
}

static void write_time(Json *json, const Field *field)
{
	char key[32];

	snprintf(key, sizeof(key), "%sMs", field->key);
	json_key_ms(json, key, field->number);
}

static void write_field(void *user, const Field *field)
{
	Chrome *chrome = user;

	switch (field->kind) {
	case FIELD_TEXT:
	case FIELD_ADDRESS:
		json_key_string(&chrome->json, field->key, field->text);
		break;
	case FIELD_NUMBER:
		json_key_u64(&chrome->json, field->key, field->number);
		break;
	case FIELD_TIME:
		write_time(&chrome->json, field);
		break;
	case FIELD_TASK:
		json_key_u64(&chrome->json, field->key, chrome_task_tid(chrome, field->number));
		break;
	}
}

FieldSink chrome_field_sink(Chrome *chrome)
{
	return (FieldSink){
		.write = write_field,
		.user = chrome,
		.timeline = chrome->timeline,
		.frames = chrome->frames,
		.turn = &chrome->turn,
	};
}
