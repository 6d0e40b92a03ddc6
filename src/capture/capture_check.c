/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * capture_check.c - the checks that a record must pass before it is used: its length fits its kind,
 * its counted tails are inside, its strings are terminated.
 */
#include "capture_format.h"
#include "record_info.h"
#include "util.h"
#include <string.h>

/* docs/reference/capture-format.md states these; a change here is a change of the format. */
_Static_assert(sizeof(struct record) == 16, "header");
_Static_assert(sizeof(struct rec_switch) == 120, "REC_SWITCH");
_Static_assert(offsetof(struct rec_switch, parts) == 32, "REC_SWITCH");
_Static_assert(offsetof(struct rec_switch, kstack) == SWITCH_SHORT_LEN, "REC_SWITCH");
_Static_assert(offsetof(struct rec_switch, inode) == SWITCH_OUT_LEN, "REC_SWITCH");
_Static_assert(sizeof(struct rec_waking) == 48, "REC_WAKING");
_Static_assert(offsetof(struct rec_waking, parts) == 24, "REC_WAKING");
_Static_assert(offsetof(struct rec_waking, kstack) == WAKING_SHORT_LEN, "REC_WAKING");
_Static_assert(sizeof(struct rec_task) == 72, "REC_TASK");
_Static_assert(offsetof(struct rec_task, comm) == 48, "REC_TASK");
_Static_assert(sizeof(struct rec_exec) == 176, "REC_EXEC");
_Static_assert(offsetof(struct rec_exec, path) == 48, "REC_EXEC");
_Static_assert(sizeof(struct rec_exit) == 48, "REC_EXIT");
_Static_assert(offsetof(struct rec_exit, parts) == 28, "REC_EXIT");
_Static_assert(sizeof(struct rec_stats) == 112, "REC_STATS");
_Static_assert(offsetof(struct rec_stats, parts) == 20, "REC_STATS");
_Static_assert(sizeof(struct rec_snapshot) == 104, "REC_SNAPSHOT");
_Static_assert(offsetof(struct rec_snapshot, parts) == 78, "REC_SNAPSHOT");
_Static_assert(offsetof(struct rec_snapshot, owner) == 96, "REC_SNAPSHOT");
_Static_assert(offsetof(struct rec_snapshot, syscall) == 72, "REC_SNAPSHOT");
_Static_assert(offsetof(struct rec_snapshot, inode) == SNAPSHOT_SHORT_LEN, "REC_SNAPSHOT");
_Static_assert(sizeof(struct rec_sample) == 40, "REC_SAMPLE");
_Static_assert(sizeof(struct rec_fault) == 72, "REC_FAULT");
_Static_assert(sizeof(struct rec_inode) == 40, "REC_INODE");
_Static_assert(sizeof(struct rec_request) == 112, "REC_REQUEST");
_Static_assert(offsetof(struct rec_socket, text) == 88, "REC_SOCKET");
_Static_assert(sizeof(struct watched) == 24, "REC_WATCH");
_Static_assert(offsetof(struct rec_watch, watched) == 40, "REC_WATCH");
_Static_assert(sizeof(struct rec_futex) == 56, "REC_FUTEX");
_Static_assert(offsetof(struct rec_device, text) == 32, "REC_DEVICE");
_Static_assert(offsetof(struct rec_stack, frames) == 40, "REC_STACK");
_Static_assert(sizeof(struct stack_gap) == sizeof(u64), "REC_STACK");
_Static_assert(sizeof(struct rec_window) == 24, "REC_WINDOW");
_Static_assert(offsetof(struct rec_file, base_svma) == 48, "REC_FILE");
_Static_assert(offsetof(struct rec_file, path) == 72, "REC_FILE");
_Static_assert(sizeof(struct rec_mapping) == 56, "REC_MAPPING");
_Static_assert(sizeof(struct rec_code) == 56, "REC_CODE");
_Static_assert(offsetof(struct rec_code, bias) == 48, "REC_CODE");
_Static_assert(sizeof(struct rec_space) == 24, "REC_SPACE");
_Static_assert(offsetof(struct rec_symbol, text) == 48, "REC_SYMBOL");
_Static_assert(sizeof(struct rec_loss) == 48, "REC_LOSS");
_Static_assert(sizeof(struct rec_total) == 40, "REC_TOTAL");
_Static_assert(offsetof(struct rec_note, text) == 24, "REC_NOTE");
_Static_assert(offsetof(struct rec_source, data) == 24, "REC_SOURCE");
_Static_assert(sizeof(struct rec_script) == 56, "REC_SCRIPT");
_Static_assert(offsetof(struct rec_script_stack, frames) == 40, "REC_SCRIPT_STACK");
_Static_assert(sizeof(struct script_frame) == 16, "REC_SCRIPT_STACK");
_Static_assert(offsetof(struct rec_script_code, name) == 48, "REC_SCRIPT_CODE");
_Static_assert(sizeof(struct rec_script_code) == 816, "REC_SCRIPT_CODE");
_Static_assert(sizeof(struct capture_header) == 32, "file header");

/* An optional part of a kind's records: the offset of its mask, and where the part ends. */
typedef struct Part {
	uint8_t kind;
	uint16_t mask_at, bit, end;
} Part;

#define PART(kind, type, bit, last)                                                                \
	{                                                                                          \
		kind, offsetof(struct type, parts), bit,                                           \
			offsetof(struct type, last) + sizeof(((struct type *)0)->last)             \
	}

static const Part parts[] = {
	PART(REC_SWITCH, rec_switch, SWITCH_HAS_OUT, place),
	PART(REC_SWITCH, rec_switch, SWITCH_HAS_OBJECT, generation),
	PART(REC_WAKING, rec_waking, WAKING_HAS_STACKS, ustack),
	PART(REC_EXIT, rec_exit, EXIT_HAS_STARTS, process_start_boottime),
	PART(REC_STATS, rec_stats, STATS_HAS_BYTES, write_bytes),
	PART(REC_STATS, rec_stats, STATS_HAS_CLOCK, clock_ahead),
	PART(REC_SNAPSHOT, rec_snapshot, SNAPSHOT_HAS_OBJECT, generation),
	PART(REC_SNAPSHOT, rec_snapshot, SNAPSHOT_HAS_OWNER, reserved2),
};

static bool has_its_parts(const struct record *record)
{
	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		uint16_t mask;

		if (parts[i].kind != record->kind || record->len >= parts[i].end)
			continue;
		memcpy(&mask, (const uint8_t *)record + parts[i].mask_at, sizeof(mask));
		if (mask & parts[i].bit)
			return false;
	}
	return true;
}

static bool has_end(const char *text, size_t size)
{
	return memchr(text, '\0', size) != NULL;
}

static bool check_symbol(const struct rec_symbol *symbol)
{
	const char *end = (const char *)symbol + symbol->h.len;
	const char *p = symbol->text;

	for (uint32_t i = 0; i < symbol->count; i++) {
		if ((size_t)(end - p) < sizeof(u32))
			return false;
		p += sizeof(u32);
		for (int strings = 0; strings < 2; strings++) { /* name, source path */
			const char *nul = memchr(p, '\0', end - p);

			if (!nul)
				return false;
			p = nul + 1;
		}
	}
	if (symbol->lib == 0)
		return true;
	return symbol->lib < (size_t)(end - symbol->text) &&
	       has_end(symbol->text + symbol->lib, end - symbol->text - symbol->lib);
}

static bool check_source(const struct rec_source *source, size_t tail)
{
	const char *nul = memchr(source->data, '\0', tail);

	return nul && source->text_size <= tail - (nul + 1 - source->data);
}

/* A watcher comes before the object that it watches in the list. */
static bool watch_is_good(const struct rec_watch *watch, size_t tail)
{
	if (watch->count > tail / sizeof(struct watched))
		return false;
	for (uint32_t i = 0; i < watch->count; i++)
		if (watch->watched[i].via > i)
			return false;
	return true;
}

/* `words` follow the fixed part. A gap has frames on both sides. */
static bool stack_is_good(const struct rec_stack *stack, size_t words)
{
	struct stack_gap gap;

	if (!(stack->h.flags & STACK_DEEP) || stack->count >= words)
		return stack->count <= words && !(stack->h.flags & STACK_DEEP);
	memcpy(&gap, stack->frames + stack->count, sizeof(gap));
	return gap.leaf > 0 && gap.leaf < stack->count;
}

/* Frames are left out only between the innermost and the outermost ones. */
static bool script_stack_is_good(const struct rec_script_stack *stack, size_t tail)
{
	return stack->count <= tail / sizeof(struct script_frame) &&
	       (!stack->left_out || stack->count == SCRIPT_FRAMES);
}

static bool script_code_is_good(const struct rec_script_code *code, size_t tail)
{
	return code->name_bytes <= sizeof(code->name) && code->path_bytes <= sizeof(code->path) &&
	       code->table_bytes <= tail;
}

static bool check_tail(const struct record *record)
{
	size_t tail = record->len - record_info(record->kind)->fixed_size;

	switch (record->kind) {
	case REC_SWITCH:
		return !(record->flags & SWITCH_PREV) ||
		       ((const struct rec_switch *)record)->parts & SWITCH_HAS_OUT;
	case REC_TASK:
		return has_end(((const struct rec_task *)record)->comm, COMM_LEN);
	case REC_EXEC: {
		const struct rec_exec *exec = (const void *)record;

		return has_end(exec->comm, COMM_LEN) && has_end(exec->path, EXEC_PATH_LEN);
	}
	case REC_ARGS:
		return ((const struct rec_args *)record)->size <= tail;
	case REC_STACK:
#ifdef WALLPROF_PLANTED_BUG
		tail += sizeof(u64); /* a deliberate error, which tests/fuzz must find */
#endif
		return stack_is_good((const struct rec_stack *)record, tail / sizeof(u64));
	case REC_SCRIPT_STACK:
		return script_stack_is_good((const struct rec_script_stack *)record, tail);
	case REC_SCRIPT_CODE:
		return script_code_is_good((const struct rec_script_code *)record, tail);
	case REC_INODE:
		return ((const struct rec_inode *)record)->size <= tail;
	case REC_SOCKET:
		return ((const struct rec_socket *)record)->size <= tail;
	case REC_WATCH:
		return watch_is_good((const struct rec_watch *)record, tail);
	case REC_DEVICE:
		return ((const struct rec_device *)record)->size <= tail;
	case REC_META:
		return has_end(((const struct rec_meta *)record)->text, tail);
	case REC_FILE: {
		const struct rec_file *file = (const void *)record;

		return file->build_id_len <= sizeof(file->build_id) && has_end(file->path, tail);
	}
	case REC_NOTE:
		return has_end(((const struct rec_note *)record)->text, tail);
	case REC_SYMBOL:
		return check_symbol((const struct rec_symbol *)record);
	case REC_SOURCE:
		return check_source((const struct rec_source *)record, tail);
	default:
		return true;
	}
}

/*
 * The kernel's clock is a signed number. So times can be added and subtracted, doubled, and be a
 * double, without a thought of overflow. A piece of code has a time that a program wrote down.
 */
static bool has_time(const struct record *record)
{
	return record->kind == REC_CODE || record->ns <= INT64_MAX;
}

enum capture_verdict capture_check(const struct record *record)
{
	uint16_t least = record_info(record->kind)->fixed_size;

	if (least == 0)
		return CAPTURE_RECORD_UNKNOWN;
	if (record->len < least || !has_time(record) || !has_its_parts(record) ||
	    !check_tail(record))
		return CAPTURE_RECORD_MALFORMED;
	return CAPTURE_RECORD_GOOD;
}
