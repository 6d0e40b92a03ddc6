/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * symbol_jobs.h - asks many objects for names, each in a sandboxed child of its own, several at
 * a time. A child that crashes, hangs or lies costs that object's names and is told.
 */
#ifndef WALLPROF_SYMBOL_JOBS_H
#define WALLPROF_SYMBOL_JOBS_H

#include "object_names.h"
#include "sandbox.h"

typedef struct SymbolJob {
	/* Set by the caller, and kept until the end; request.addresses too. */
	ObjectRequest request;
	void *user;
	/* What came of it. */
	VEC(uint8_t) records; /* REC_SYMBOLs, file 0 */
	VEC(size_t) places;   /* in records, of each address; SIZE_MAX = no name */
	int result;	      /* of object_names_find(), if it came to its end */
	char *problem;	      /* else what happened, as text; NULL = nothing */
	/* While it runs. */
	Sandbox sandbox;
	VEC(uint8_t) received;
	uint64_t deadline_ns;
	unsigned finds; /* companions that it asked for */
	size_t names;	/* that it sent */
	bool ended;
} SymbolJob;

typedef struct SymbolJobsOptions {
	unsigned parallel;    /* children at a time; 0 = one for each CPU */
	uint64_t seconds;     /* CPU time that a child may take; 0 = by the size of its files */
	uint64_t deadline_ns; /* CLOCK_MONOTONIC, for all jobs; 0 = none */
	/*
	 * A file that the job's object says belongs to it, opened for reading (closed here), or a
	 * negative errno.
	 */
	int (*find)(void *user, SymbolJob *job, const Companion *companion);
	void *find_user;
} SymbolJobsOptions;

/* Every job has its outcome afterwards. */
void symbol_jobs_run(SymbolJob *jobs, size_t count, const SymbolJobsOptions *options);
void symbol_job_free(SymbolJob *job);

/* CPU time that a file may take, by its size. */
uint64_t symbol_job_seconds(int fd);

/* The REC_SYMBOL of request.addresses[i], or NULL. */
const struct rec_symbol *symbol_job_answer(const SymbolJob *job, size_t i);

#endif
