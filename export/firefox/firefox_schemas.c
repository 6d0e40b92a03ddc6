/* SPDX-License-Identifier: GPL-2.0-or-later */
/* firefox_schemas.c - describes each type of marker that firefox_markers.c writes to the viewer. */
#include "firefox_parts.h"

typedef struct SchemaField {
	const char *key, *label, *format;
} SchemaField;

typedef struct Schema {
	const char *name, *description, *label;
	const SchemaField *fields;
	size_t count;
	const char *place; /* where it is shown besides the chart and the table */
} Schema;

static const SchemaField wait_fields[] = {
	{"reason", "Reason", "unique-string"},
	{"evidence", "Evidence", "unique-string"},
	{"wokenBy", "Woken by", "unique-string"},
	{"wokenFrom", "Waker's stack", "unique-string"},
	{"waker", "Waking thread", "tid"},
	{"heldBy", "Lock held by", "unique-string"},
	{"holder", "Holding thread", "tid"},
	{"heldIn", "Holder's stack", "unique-string"},
	{"wholeWait", "With its other parts", "duration"},
	{"ranInstead", "CPU used by", "unique-string"},
	{"rival", "Longest CPU user", "tid"},
	{"cpu", "On CPU", "integer"},
	{"runq", "Run-queue delay", "duration"},
	{"note", "Note", "unique-string"},
	{"device", "Device", "unique-string"},
	{"filename", "File", "unique-string"},
	{"offset", "At", "bytes"},
	{"object", "For", "unique-string"},
	{"held", "Held back by a cgroup's limit", "duration"},
	{"onDevice", "On the device", "duration"},
};
static const SchemaField fault_fields[] = {
	{"class", "Class", "unique-string"},
	{"filename", "File", "unique-string"},
	{"offset", "At", "bytes"},
	{"object", "Of", "unique-string"},
	{"access", "Access", "unique-string"},
	{"memory", "Memory", "unique-string"},
	{"page", "Page before", "unique-string"},
	{"address", "Address", "string"},
	{"waited", "Waited", "duration"},
	{"device", "Device", "unique-string"},
	{"held", "Held back by a cgroup's limit", "duration"},
	{"onDevice", "On the device", "duration"},
	{"wokenBy", "Woken by", "unique-string"},
	{"wokenFrom", "Waker's stack", "unique-string"},
	{"waker", "Waking thread", "tid"},
	{"runq", "Run-queue delay", "duration"},
	{"evidence", "Evidence", "unique-string"},
};
static const SchemaField request_fields[] = {
	{"operation", "Operation", "unique-string"},
	{"device", "Device", "unique-string"},
	{"partOf", "Part of a request to", "unique-string"},
	{"filename", "File", "unique-string"},
	{"offset", "At", "bytes"},
	{"bytes", "Size", "bytes"},
	{"held", "Held back by a cgroup's limit", "duration"},
	{"queued", "Queued", "duration"},
	{"onDevice", "On the device", "duration"},
	{"flags", "Flags", "unique-string"},
	{"origin", "Origin", "unique-string"},
	{"submitter", "Submitted by", "unique-string"},
	{"status", "Result", "unique-string"},
	{"sector", "Sector", "integer"},
	{"merges", "Merged requests", "integer"},
	{"issues", "Issued to the driver", "integer"},
};
static const SchemaField unknown_fields[] = {
	{"why", "Why", "unique-string"},
	{"evidence", "Evidence", "unique-string"},
	{"note", "Note", "unique-string"},
};
static const SchemaField loss_fields[] = {
	{"kind", "Kind", "unique-string"},
	{"count", "Events", "integer"},
	{"cpu", "CPU", "integer"},
	{"why", "Why", "unique-string"},
};
static const SchemaField process_fields[] = {
	{"name", "Name", "unique-string"},     {"process", "Process", "pid"},
	{"mostly", "Mostly", "unique-string"}, {"status", "Status", "unique-string"},
	{"path", "Program", "file-path"},      {"args", "Arguments", "unique-string"},
};
static const SchemaField end_fields[] = {
	{"status", "Status", "unique-string"},
	{"path", "Program", "file-path"},
	{"args", "Arguments", "unique-string"},
};
static const SchemaField path_fields[] = {
	{"name", "Thread", "unique-string"},
	{"thread", "Thread ID", "tid"},
	{"mostly", "Mostly", "unique-string"},
};
static const SchemaField run_fields[] = {
	{"name", "Thread", "unique-string"},
	{"thread", "Thread ID", "tid"},
	{"process", "Process", "unique-string"},
};

#define FIELDS(list) .fields = (list), .count = ARRAY_LEN(list)

static const Schema schemas[] = {
	{.name = "Wait",
	 .description = "A thread was off the CPU.",
	 .label = "{marker.data.reason}{marker.data.filename ? ': ' : ''}{marker.data.filename}"
		  "{marker.data.object ? ': ' : ''}{marker.data.object}"
		  "{marker.data.heldBy ? ', held by ' : ''}{marker.data.heldBy}"
		  "{marker.data.wokenBy ? ' ← ' : ''}{marker.data.wokenBy}"
		  "{marker.data.ranInstead ? ', CPU: ' : ''}{marker.data.ranInstead}",
	 FIELDS(wait_fields)},
	{.name = "PageFault",
	 .description = "A page was not mapped, or not for that kind of access.",
	 .label = "{marker.data.class}{marker.data.filename ? ': ' : ''}{marker.data.filename}"
		  "{marker.data.object ? ': ' : ''}{marker.data.object}",
	 FIELDS(fault_fields)},
	{.name = "BlockIO",
	 .description = "A request to a block device, submitted by this thread, or to this device.",
	 .label = "{marker.data.operation} {marker.data.device}"
		  "{marker.data.filename ? ': ' : ''}{marker.data.filename}",
	 FIELDS(request_fields),
	 .place = "timeline-fileio"},
	{.name = "Unknown",
	 .description = "What the thread did here cannot be proven.",
	 .label = "{marker.data.why}",
	 FIELDS(unknown_fields)},
	{.name = "EventsLost",
	 .description = "Events were lost here; what they would have shown is unknown.",
	 .label = "{marker.data.count} {marker.data.kind}",
	 FIELDS(loss_fields)},
	{.name = "ProcessExit",
	 .description = "A process ended.",
	 .label = "{marker.data.status}",
	 FIELDS(end_fields)},
	{.name = "Process",
	 .description = "One of the processes that share this lane, from start to end.",
	 .label = "{marker.data.name}: {marker.data.status}",
	 FIELDS(process_fields)},
	{.name = "OnPath",
	 .description = "This thread determined how long the run took here: it ran, or slept "
			"until an event from outside woke it.",
	 .label = "{marker.data.name}: {marker.data.mostly}",
	 FIELDS(path_fields)},
	{.name = "OnCPU",
	 .description = "This thread had the CPU. Each thread has one colour, those of the kernel "
			"have grey.",
	 .label = "{marker.data.name}{marker.data.process ? ' of ' : ''}{marker.data.process}",
	 FIELDS(run_fields)},
};

static void write_schema(Json *json, const Schema *schema)
{
	json_begin_object(json);
	json_key_string(json, "name", schema->name);
	json_key_string(json, "description", schema->description);
	json_key_string(json, "tooltipLabel", "{marker.name}");
	json_key_string(json, "tableLabel", schema->label);
	json_key_string(json, "chartLabel", schema->label);
	json_key_string(json, "colorField", FIREFOX_COLOR_KEY);
	json_key_array(json, "display");
	json_put_string(json, "marker-chart");
	json_put_string(json, "marker-table");
	if (schema->place)
		json_put_string(json, schema->place);
	json_end_array(json);
	json_key_array(json, "fields");
	for (size_t i = 0; i < schema->count; i++) {
		json_begin_object(json);
		json_key_string(json, "key", schema->fields[i].key);
		json_key_string(json, "label", schema->fields[i].label);
		json_key_string(json, "format", schema->fields[i].format);
		json_end_object(json);
	}
	json_end_array(json);
	json_end_object(json);
}

void profile_write_marker_schemas(Json *json)
{
	json_key_array(json, "markerSchema");
	for (size_t i = 0; i < ARRAY_LEN(schemas); i++)
		write_schema(json, &schemas[i]);
	json_end_array(json);
}
