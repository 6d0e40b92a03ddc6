/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * script_programs.bpf.h - what the programs of bpf/probes leave to those of bpf/scripts.
 */
#ifndef WALLPROF_SCRIPT_PROGRAMS_BPF_H
#define WALLPROF_SCRIPT_PROGRAMS_BPF_H

#include "wallprof.bpf.h"

#include "script_maps.h"

/* Programs that others go on with; none until an interpreter is mapped. */
struct script_programs_map {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, SCRIPT_CONTINUATIONS);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(u32));
};

/* All programs of a map have the same type and hook, so that of functions is another one. */
extern struct script_programs_map script_on_event SEC(".maps"), script_on_function SEC(".maps");
extern u8 scripts_loaded; /* these programs run */

/*
 * Notes that on_switch_script is to read the frames of the thread that is switched out. An ended
 * thread has none. Here the switch-out is complete, and the verifier follows it once.
 */
static __always_inline void script_switch(struct cpu_account *account,
					  const struct rec_switch *record)
{
	if (!scripts_loaded || !(record->parts & SWITCH_HAS_OUT) ||
	    record->parts & SWITCH_UNSAMPLED || record->prev_state & TASK_DEAD)
		return;
	account->script_notes[SCRIPT_AT_SWITCH].ns = record->h.ns;
	account->script_notes[SCRIPT_AT_SWITCH].tid = record->prev_tid;
}

/*
 * Notes that the frames of the thread are to be read for a record of that time, which has its user
 * stack, if it is the current one. It is a global function, because the verifier would follow its
 * branches through the rest of each program. globals.bpf.c defines it.
 */
extern int script_note(u32 event, u32 tid, u64 ns);

#endif
