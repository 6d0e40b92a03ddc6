/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cpu_rows.h - the sample rows of a CPU: which task ran on it. A row's stack is a process and a
 * thread of it.
 */
#ifndef WALLPROF_CPU_ROWS_H
#define WALLPROF_CPU_ROWS_H

#include "sample_rows.h"

/*
 * Runs that are shorter than fold_ns (0: nothing is folded) have no rows of their own: their time
 * is added up by task and shown when it reaches fold_ns, so that every sum stays exact.
 */
typedef struct CpuPlan {
	uint64_t fold_ns;
	uint64_t folded; /* runs */
} CpuPlan;

/* Returns the densest plan by which all CPUs together keep to the budget of rows. */
void cpu_plan_fit(CpuPlan *plan, const Timeline *timeline, uint64_t budget);

/*
 * Like sample_rows_walk() with stacks, for a CPU (Timeline::cpus): time that is not idle counts as
 * running.
 */
void cpu_rows_walk(StackTable *tables, const CpuPlan *plan, uint32_t cpu, RowVisitor visit,
		   void *user);

/* Returns the name of a run for the user: "worker"; "idle". The caller frees it. */
char *cpu_run_text(const Timeline *timeline, uint32_t task);
/* The same with what tells a process from others of its name: "cc1 lvm.c". */
char *cpu_run_label(const Timeline *timeline, uint32_t task);

#endif
