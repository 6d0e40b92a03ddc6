/* SPDX-License-Identifier: GPL-2.0-or-later */
/* profile_reader.h - profiles read back, and what the viewer makes of them. */
#ifndef WALLPROF_TEST_PROFILE_READER_H
#define WALLPROF_TEST_PROFILE_READER_H

#include "firefox.h"
#include "json_reader.h"
#include "timeline_fixture.h"

#define MS NSEC_PER_MSEC

typedef struct Sample {
	uint64_t ns, weight_ns;
	const char *leaf;
	long long category;
} Sample;

typedef struct Profile {
	Node *root;
	const Node *meta, *threads, *shared, *strings;
	Sample **samples; /* by thread */
} Profile;

/* What a thread did, as its track and its weights distinguish it; running is split by mode. */
typedef struct Sums {
	uint64_t states[STATE_COUNT], user, kernel;
} Sums;

/* Writes a profile, reads it, and checks what holds for every profile. */
Profile write_and_read(const Timeline *timeline, Frames *frames, const FirefoxOptions *options);
/* The same for a timeline without names for its stacks. */
Profile make_profile(const Timeline *timeline, const FirefoxOptions *options);
void profile_free(Profile *profile);
void profile_done(Profile *profile, Timeline *timeline); /* frees the timeline, too */

/* ---- tables ------------------------------------------------------------------------------ */

/* A column of a table, as long as the table says. */
const Node *profile_column(const Node *table, const char *name);
/* The same of a table that all threads share. */
const Node *profile_table(const Profile *profile, const char *table, const char *name);
size_t table_length(const Profile *profile, const char *name);
/* The string whose index is item i. */
const char *string_at(const Profile *profile, const Node *items, size_t i);
/* The value with this label in meta.extra, which must be there. */
const Node *profile_extra(const Profile *profile, const char *label);

/* ---- threads and their samples --------------------------------------------------------------- */

size_t thread_count(const Profile *profile);
const Node *thread_at(const Profile *profile, size_t i);
const Node *find_thread(const Profile *profile, const char *tid);
const Node *thread_of(const Profile *profile, const Thread *thread);
size_t sample_count(const Node *thread);
Sample sample_at(const Profile *profile, const Node *thread, size_t i);
enum thread_state state_of(const Sample *sample);
Sums sum_weights(const Profile *profile, const Node *thread);
/* The viewer paints each sample from the middle to its neighbours; times are in half ns. */
Sums sum_paint(const Profile *profile, const Node *thread, uint64_t born, uint64_t died);
uint64_t distance(uint64_t a, uint64_t b);

#endif
