/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * symbol_messages.h - the parent's side of the messages to the sandboxed child that reads one
 * object (symbol_child.h). Nothing that arrives is trusted.
 */
#ifndef WALLPROF_SYMBOL_MESSAGES_H
#define WALLPROF_SYMBOL_MESSAGES_H

#include "symbol_jobs.h"

/* In SymbolJob::places: the address has no name. */
#define SYMBOL_NO_ANSWER SIZE_MAX

/*
 * Removes complete messages from job->received, and answers requests on the job's socket. Returns
 * false if a message is invalid.
 */
bool symbol_messages_consume(SymbolJob *job, const SymbolJobsOptions *options);

#endif
