/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * anonymizer.h - records of a capture without names of files, hosts, arguments and users.
 *
 *	while (capture_read(reader, &record) > 0)
 *		anonymizer_learn(anonymizer, record);
 *	capture_reader_rewind(reader);
 *	timeline_builder_add(builder, anonymizer_mark(anonymizer, REC_META));
 *	while (capture_read_sorted(reader, &record) > 0)
 *		if ((record = anonymizer_replace(anonymizer, record)))
 *			timeline_builder_add(builder, record);
 *
 * The same capture has the same replacements each time. docs/user/anonymize.md lists what is
 * replaced, dropped and kept.
 */
#ifndef WALLPROF_ANONYMIZER_H
#define WALLPROF_ANONYMIZER_H

#include "records.h"
#include "util.h"

/* The key of META that an anonymized recording has. */
#define ANONYMIZER_META "anonymized"

typedef struct Anonymizer Anonymizer;

/* Different names, and records, so far. */
typedef struct AnonymizerCounts {
	size_t files, folders, threads, sockets, hosts, arguments; /* replaced */
	size_t sources, notes, settings, build_ids, unknown;	   /* dropped */
	size_t functions, system_files, kernel_threads;		   /* kept */
} AnonymizerCounts;

Anonymizer *anonymizer_new(void);
void anonymizer_free(Anonymizer *anonymizer);
DEFINE_CLEANUP(Anonymizer *, anonymizer_free)

/* Looks at a record that capture_check() has verified, in order of the file, before any other call.
 */
void anonymizer_learn(Anonymizer *anonymizer, const struct record *record);

/*
 * Returns what stands for a record that capture_check() has verified: the record itself if it has
 * no names, one that is valid until the next call, or NULL if it is dropped.
 */
const struct record *anonymizer_replace(Anonymizer *anonymizer, const struct record *record);

/*
 * Returns a record that says what was done: REC_META, the setting ANONYMIZER_META, or REC_NOTE, for
 * readers. It is valid until the next call.
 */
const struct record *anonymizer_mark(Anonymizer *anonymizer, enum record_kind kind);

/*
 * Returns, for --process and --thread, ids and patterns that select among the replaced names what
 * the given ones select among the true names of threads, processes and programs; NULL if patterns
 * is NULL. The caller frees it.
 */
char *anonymizer_filter(Anonymizer *anonymizer, const char *patterns);

AnonymizerCounts anonymizer_counts(const Anonymizer *anonymizer);

/* Logs, in two lines, how many names were replaced and dropped, and how many are kept. */
void anonymizer_log(const Anonymizer *anonymizer);

#endif
