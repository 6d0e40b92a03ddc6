/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "make_record.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void fill_parts(struct record *record)
{
	uint32_t len = record->len;

	switch (record->kind) {
	case REC_SWITCH:
		((struct rec_switch *)record)->parts =
			(len >= SWITCH_OUT_LEN ? SWITCH_HAS_OUT : 0) |
			(len >= sizeof(struct rec_switch) ? SWITCH_HAS_OBJECT : 0);
		break;
	case REC_WAKING:
		((struct rec_waking *)record)->parts =
			len >= sizeof(struct rec_waking) ? WAKING_HAS_STACKS : 0;
		break;
	case REC_EXIT:
		((struct rec_exit *)record)->parts =
			len >= sizeof(struct rec_exit) ? EXIT_HAS_STARTS : 0;
		break;
	case REC_STATS:
		((struct rec_stats *)record)->parts =
			(len >= offsetof(struct rec_stats, clock_ahead) ? STATS_HAS_BYTES : 0) |
			(len >= sizeof(struct rec_stats) ? STATS_HAS_CLOCK : 0);
		break;
	case REC_SNAPSHOT:
		((struct rec_snapshot *)record)->parts =
			(len >= offsetof(struct rec_snapshot, owner) ? SNAPSHOT_HAS_OBJECT : 0) |
			(len >= sizeof(struct rec_snapshot) ? SNAPSHOT_HAS_OWNER : 0);
		break;
	}
}

void *make_record(int kind, int flags, uint64_t ns, size_t fixed, const void *tail,
		  size_t tail_size)
{
	size_t len = (fixed + tail_size + 7) & ~(size_t)7;
	struct record *record = xcalloc(1, len);

	*record = (struct record){.len = len, .kind = kind, .flags = flags, .ns = ns};
	if (tail_size > 0)
		memcpy((char *)record + fixed, tail, tail_size);
	fill_parts(record);
	return record;
}

struct record *make_waking(uint64_t ns, uint32_t tid, uint32_t waker)
{
	struct rec_waking *waking = make_record(REC_WAKING, 0, ns, sizeof(*waking), NULL, 0);

	waking->tid = tid;
	waking->waker_tid = waker;
	return &waking->h;
}

struct record *make_stack(uint64_t id, int flags, uint32_t tgid, const uint64_t *frames,
			  uint16_t count)
{
	struct rec_stack *stack =
		make_record(REC_STACK, flags, 1, sizeof(*stack), frames, count * sizeof(*frames));

	stack->id = id;
	stack->tgid = tgid;
	stack->count = count;
	return &stack->h;
}

struct record *make_file(uint32_t id, int flags, const char *path, uint64_t base)
{
	struct rec_file *file = make_record(REC_FILE, flags, 1, offsetof(struct rec_file, path),
					    path, strlen(path) + 1);

	file->id = id;
	file->base_svma = base;
	return &file->h;
}

struct record *make_mapping(uint64_t ns, int flags, uint32_t ns_tgid, uint32_t file, uint64_t start,
			    uint64_t end, uint64_t bias)
{
	struct rec_mapping *mapping =
		make_record(REC_MAPPING, flags, ns, sizeof(*mapping), NULL, 0);

	mapping->ns_tgid = ns_tgid;
	mapping->file = file;
	mapping->start = start;
	mapping->end = end;
	mapping->bias = bias;
	return &mapping->h;
}

struct record *make_code(uint64_t ns, uint32_t ns_tgid, uint32_t file, uint64_t start, uint64_t end,
			 uint64_t bias)
{
	struct rec_code *code = make_record(REC_CODE, 0, ns, sizeof(*code), NULL, 0);

	code->ns_tgid = ns_tgid;
	code->file = file;
	code->start = start;
	code->end = end;
	code->bias = bias;
	return &code->h;
}

struct record *make_space(uint64_t ns, int flags, uint32_t ns_tgid, uint32_t parent)
{
	struct rec_space *space = make_record(REC_SPACE, flags, ns, sizeof(*space), NULL, 0);

	space->ns_tgid = ns_tgid;
	space->ns_parent = parent;
	return &space->h;
}

struct record *make_symbol(int flags, uint32_t file, uint64_t address, uint64_t function,
			   const char *name, const char *module)
{
	char text[256] = {};
	size_t length = sizeof(u32) + strlen(name) + 2;
	struct rec_symbol *symbol;

	strcpy(text + sizeof(u32), name);
	if (module)
		strcpy(text + length, module);
	symbol = make_record(REC_SYMBOL, flags, 0, offsetof(struct rec_symbol, text), text,
			     length + (module ? strlen(module) + 1 : 0));
	symbol->file = file;
	symbol->count = 1;
	symbol->address = address;
	symbol->function = function;
	symbol->function_size = 64;
	symbol->lib = module ? length : 0;
	return &symbol->h;
}

struct record *make_task(uint32_t tid, uint32_t tgid, uint32_t ns_tgid)
{
	struct rec_task *task = make_record(REC_TASK, 0, 1, sizeof(*task), NULL, 0);

	task->tid = tid;
	task->tgid = tgid;
	task->ns_tid = task->ns_tgid = ns_tgid;
	return &task->h;
}

struct record *make_source(const char *path, const char *text, uint32_t size)
{
	size_t path_size = strlen(path) + 1;
	struct rec_source *source = make_record(
		REC_SOURCE, 0, 0, offsetof(struct rec_source, data) + path_size, text, size);

	memcpy(source->data, path, path_size);
	source->text_size = size;
	return &source->h;
}

char *make_temporary(int *ret_fd)
{
	const char *folder = getenv("TMPDIR");
	char *path = xasprintf("%s/wallprof-test-XXXXXX", folder ? folder : "/tmp");

	*ret_fd = mkstemp(path);
	if (*ret_fd < 0) {
		perror(path);
		exit(1);
	}
	return path;
}
