/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "track.h"

#define ID_TEXT_SIZE 40

static void id_text(char text[ID_TEXT_SIZE], TrackId id)
{
	char *p = text;

	if (id.host)
		p = stpcpy(p, "host ");
	p = json_format_u64(p, id.number);
	if (id.reuse > 0) {
		*p++ = '.';
		p = json_format_u64(p, id.reuse);
	}
	*p = '\0';
}

void track_json_pid(Json *json, TrackId id)
{
	char text[ID_TEXT_SIZE];

	if (id.word) {
		json_put_string(json, id.word);
		return;
	}
	id_text(text, id);
	json_put_string(json, text);
}

void track_json_tid(Json *json, TrackId id)
{
	if (id.word || id.host || id.reuse > 0)
		track_json_pid(json, id);
	else
		json_u64(json, id.number);
}

void track_tell_apart(Tracks *tracks)
{
	VEC(uint32_t) counts = {};
	Strings names = {};

	for (size_t i = 0; i < tracks->list.count; i++) {
		uint32_t name = strings_intern(&names, tracks->list.items[i].name);

		while (counts.count <= name)
			*vec_push(&counts) = 0;
		counts.items[name]++;
	}
	for (size_t i = 0; i < tracks->list.count; i++) {
		Track *track = &tracks->list.items[i];
		char tid[ID_TEXT_SIZE], *plain = track->name;

		if (track->is_main || track->is_lane || track->tid.word ||
		    counts.items[strings_intern(&names, plain)] < 2)
			continue;
		id_text(tid, track->tid);
		track->name = xasprintf("%s (%s)", plain, tid);
		free(plain);
	}
	strings_free(&names);
	vec_free(&counts);
}
