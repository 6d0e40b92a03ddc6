/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * process_table.h - the recorded processes of one recording, and whether their mappings are wanted.
 *
 * BPF's records name a process by its id in the kernel's first PID namespace (tgid), perf's events
 * by its id in the recorder's (ns_tgid). The table has one entry for each ns_tgid, which stays for
 * a while when the process ends, because its last events may still come; a later process with the
 * same id gets the same entry.
 */
#ifndef WALLPROF_PROCESS_TABLE_H
#define WALLPROF_PROCESS_TABLE_H

#include "records.h"
#include "util.h"

enum process_state {
	PROCESS_NOT_WANTED, /* not, or no longer */
	PROCESS_ENDED, /* its last events may still come, but its mappings cannot be read again */
	PROCESS_WANTED,
	PROCESS_UNREAD, /* it is wanted, and its mappings are to be read again */
};

typedef struct Process {
	uint32_t ns_tgid;
	uint32_t tgid;		 /* 0 = BPF has not reported it yet, as for the next one */
	uint64_t start_boottime; /* of its main thread; 0 = not reported */
	enum process_state state;
	uint64_t begun_ns; /* the youngest time at which it was alive */
	uint64_t ended_ns; /* the time of its end */
	/* Of the argument list that was recorded last (args_hash()); 0 = none was. */
	uint64_t args_hash;
} Process;

typedef struct ProcessTable {
	VEC(Process) list; /* pointers into it are valid until an entry is added or freed */
	size_t enough;	   /* with fewer entries process_table_forget() does nothing */
	Map by_ns_tgid;	   /* -> index in list */
	Map by_tgid;	   /* the same */
} ProcessTable;

void process_table_free(ProcessTable *table);

/* Return NULL if there is no such process. */
Process *process_table_find(const ProcessTable *table, uint32_t ns_tgid);
Process *process_table_find_tgid(const ProcessTable *table, uint32_t tgid);

/* Returns the process's entry, which is added if there is none. */
Process *process_table_get(ProcessTable *table, uint32_t ns_tgid);

/* Takes the ids and the start of a recorded thread's process from BPF's report of the thread. */
void process_table_describe(ProcessTable *table, const struct rec_task *task);

/*
 * Notes that the process was alive at that time, and that its mappings are wanted. Returns whether
 * that is new: it was not wanted before, or had ended before that time.
 */
bool process_table_want(ProcessTable *table, uint32_t ns_tgid, uint64_t ns);

/*
 * Frees the entries of processes that ended before that time, and of those that are not wanted and
 * did not live after it. So the size of the table depends on how many processes live, not on how
 * many there were. It is cheap if it is called often.
 */
void process_table_forget(ProcessTable *table, uint64_t before_ns);

/* Notes that it ended at that time, unless another process had the same id later. */
void process_table_end(ProcessTable *table, uint32_t ns_tgid, uint64_t ns);

#endif
