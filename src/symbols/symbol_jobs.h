/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * symbol_jobs.h - gets names from many objects, each in its own sandboxed child, several at a time.
 * If a child crashes, hangs or sends invalid data, that object's names are missing, which is
 * reported.
 */
#ifndef WALLPROF_SYMBOL_JOBS_H
#define WALLPROF_SYMBOL_JOBS_H

#include "object_names.h"
#include "sandbox.h"

typedef struct SymbolJob {
	/* The caller sets it, and keeps it until the end, request.addresses too. */
	ObjectRequest request;
	void *user;
	/* The result. */
	VEC(uint8_t) records;	    /* REC_SYMBOLs, file 0 */
	VEC(size_t) offsets;	    /* offset in records for each address; SIZE_MAX = no name */
	int result;		    /* of object_names_find(), if the child came to its end */
	VEC(ObjectMissing) missing; /* debug information that was not used, each kind once */
	char *problem;		    /* otherwise what happened, as text; NULL = nothing */
	/* The state while it runs. */
	Sandbox sandbox;
	VEC(uint8_t) received;
	uint64_t deadline_ns;
	unsigned finds; /* companions that it requested */
	size_t names;	/* that it sent */
	bool ended;
} SymbolJob;

typedef struct SymbolJobsOptions {
	unsigned parallel;    /* children at a time; 0 = one for each CPU */
	uint64_t seconds;     /* CPU time of a child; 0 = by the size of its files */
	uint64_t deadline_ns; /* CLOCK_MONOTONIC, for all jobs; 0 = none */
	/*
	 * Returns a file that belongs to the job's object, opened for reading (closed by the
	 * caller), or a negative errno.
	 */
	int (*find)(void *user, SymbolJob *job, const Companion *companion);
	void *find_user;
} SymbolJobsOptions;

/* Afterwards every job has a result. */
void symbol_jobs_run(SymbolJob *jobs, size_t count, const SymbolJobsOptions *options);
void symbol_job_free(SymbolJob *job);

/*
 * Returns why no more names may be looked up: the deadline (CLOCK_MONOTONIC; 0 = none), or an
 * interrupt (signals.h). NULL = they may be.
 */
const char *symbol_jobs_why_over(uint64_t deadline_ns);

/* Returns the CPU time for a file of this size. */
uint64_t symbol_job_seconds(int fd);

/* Returns the REC_SYMBOL of request.addresses[i], or NULL. */
const struct rec_symbol *symbol_job_answer(const SymbolJob *job, size_t i);

#endif
