/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * symbol_messages.h - the parent's side of what passes between it and the sandboxed child that
 * reads one object (symbol_child.h). Nothing that comes is believed.
 */
#ifndef WALLPROF_SYMBOL_MESSAGES_H
#define WALLPROF_SYMBOL_MESSAGES_H

#include "symbol_jobs.h"

/* In SymbolJob::places: the address has no name. */
#define SYMBOL_NO_ANSWER SIZE_MAX

/*
 * Takes the messages that have come whole out of job->received, and answers on the job's socket
 * those that ask. Returns false if one is not as it should be.
 */
bool symbol_messages_consume(SymbolJob *job, const SymbolJobsOptions *options);

#endif
