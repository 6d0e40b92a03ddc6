/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * capture_old.c - converts records of version 2 of the capture file to the present format.
 *
 * In version 2 (wallprof 0.1.0) the length of a record said which optional parts it had, and some
 * records had no room for a mask.
 */
#include "capture_format.h"
#include "util.h"
#include <stdlib.h>
#include <string.h>

/* The most by which a record can grow. */
#define GROWTH 24

/* A range of a version 2 record, from `from` up to `to`, that is at another offset now. */
typedef struct Moved {
	uint8_t kind;
	uint16_t from, to, now;
} Moved;

static const Moved moved[] = {
	{REC_SWITCH, 0, 32, 0},
	{REC_SWITCH, 72, 74, offsetof(struct rec_switch, fd_kind)},
	{REC_SWITCH, 32, 72, offsetof(struct rec_switch, kstack)},
	{REC_SWITCH, 76, 80, offsetof(struct rec_switch, owner)},
	{REC_SWITCH, 80, 96, offsetof(struct rec_switch, inode)},
	{REC_WAKING, 0, 24, 0},
	{REC_WAKING, 24, 40, offsetof(struct rec_waking, kstack)},
	{REC_EXIT, 0, 48, 0},
	{REC_STATS, 0, 104, 0},
	{REC_SNAPSHOT, 0, 104, 0},
};

/* A version 2 record of this length had this part; its length in the present format. */
typedef struct OldPart {
	uint8_t kind;
	uint16_t length, mask_at, bit, length_now;
} OldPart;

static const OldPart old_parts[] = {
	{REC_SWITCH, 32, 0, 0, SWITCH_SHORT_LEN},
	{REC_SWITCH, 80, offsetof(struct rec_switch, parts), SWITCH_HAS_OUT, SWITCH_OUT_LEN},
	{REC_SWITCH, 96, offsetof(struct rec_switch, parts), SWITCH_HAS_OBJECT,
	 sizeof(struct rec_switch)},
	{REC_WAKING, 24, 0, 0, WAKING_SHORT_LEN},
	{REC_WAKING, 40, offsetof(struct rec_waking, parts), WAKING_HAS_STACKS,
	 sizeof(struct rec_waking)},
	{REC_EXIT, 32, 0, 0, 32},
	{REC_EXIT, 48, offsetof(struct rec_exit, parts), EXIT_HAS_STARTS, sizeof(struct rec_exit)},
	{REC_STATS, 88, 0, 0, 88},
	{REC_STATS, 104, offsetof(struct rec_stats, parts), STATS_HAS_BYTES, 104},
	{REC_SNAPSHOT, 80, 0, 0, SNAPSHOT_SHORT_LEN},
	{REC_SNAPSHOT, 96, offsetof(struct rec_snapshot, parts), SNAPSHOT_HAS_OBJECT, 96},
	{REC_SNAPSHOT, 104, offsetof(struct rec_snapshot, parts), SNAPSHOT_HAS_OWNER,
	 sizeof(struct rec_snapshot)},
};

static void move_fields(const uint8_t *old, uint32_t length, uint8_t kind, uint8_t *now)
{
	for (size_t i = 0; i < ARRAY_LEN(moved); i++) {
		const Moved *field = &moved[i];

		if (field->kind == kind && field->to <= length)
			memcpy(now + field->now, old + field->from, field->to - field->from);
		else if (field->kind == kind && field->from == 0)
			/* Ranges that kept their layout are copied as far as the record extends. */
			memcpy(now, old, length);
	}
}

/*
 * Writes the record in the present format to `now`. Returns its length; 0: it is unchanged (its
 * kind has not changed, or it is too short for its kind).
 */
static uint32_t renew(const struct record *old, uint8_t *now)
{
	uint32_t length = 0;

	for (size_t i = 0; i < ARRAY_LEN(old_parts); i++)
		if (old_parts[i].kind == old->kind && old->len >= old_parts[i].length)
			length = old_parts[i].length_now;
	if (length == 0)
		return 0;
	memset(now, 0, length);
	move_fields((const uint8_t *)old, MIN(old->len, length), old->kind, now);
	for (size_t i = 0; i < ARRAY_LEN(old_parts); i++) {
		const OldPart *part = &old_parts[i];
		uint16_t mask;

		if (part->kind != old->kind || part->bit == 0)
			continue;
		memcpy(&mask, now + part->mask_at, sizeof(mask));
		/* Fields that were reserved in version 2 have no meaning. */
		mask = part->bit == 1 ? 0 : mask;
		mask |= old->len >= part->length ? part->bit : 0;
		memcpy(now + part->mask_at, &mask, sizeof(mask));
	}
	((struct record *)now)->len = length;
	return length;
}

static bool is_possible(const struct record *record, size_t left)
{
	return left >= sizeof(*record) && record->len >= sizeof(*record) && record->len % 8 == 0 &&
	       record->len <= left;
}

CaptureFrame *capture_old_renew(CaptureFrame *frame)
{
	/* The shortest record that grows has 24 bytes. */
	size_t room = frame->size + (frame->size / 24 + 1) * GROWTH, used = 0, at = 0;
	CaptureFrame *now = xmalloc(sizeof(*now) + room);

	*now = *frame;
	while (is_possible((const struct record *)(frame->data + at), frame->size - at)) {
		const struct record *old = (const struct record *)(frame->data + at);
		uint32_t length = renew(old, now->data + used);

		if (length == 0) {
			length = old->len;
			memcpy(now->data + used, old, length);
		}
		at += old->len;
		used += length;
	}
	memcpy(now->data + used, frame->data + at, frame->size - at);
	now->size = used + (frame->size - at);
	free(frame);
	return now;
}
