/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "moved_suspects.h"
#include <string.h>

#define SUSPECTS_MAX   64
#define PROCESSES_MAX  4096
#define FIRST_PAUSE_NS (2 * NSEC_PER_MSEC)

void moved_process_free(MovedProcess *process)
{
	vec_free(&process->suspects);
	vec_free(&process->compared);
	free(process);
}

void moved_suspects_free(MovedSuspects *moved)
{
	for (size_t i = 0; i < moved->processes.count; i++)
		moved_process_free(moved->processes.items[i]);
	vec_free(&moved->processes);
}

/* Returns NULL if there are too many. */
static MovedProcess *get_process(MovedSuspects *moved, uint32_t ns_tgid)
{
	MovedProcess *process;

	for (size_t i = 0; i < moved->processes.count; i++)
		if (moved->processes.items[i]->ns_tgid == ns_tgid)
			return moved->processes.items[i];
	if (moved->processes.count == PROCESSES_MAX)
		return NULL;
	process = xcalloc(1, sizeof(*process));
	process->ns_tgid = ns_tgid;
	process->pause_ns = FIRST_PAUSE_NS;
	*vec_push(&moved->processes) = process;
	return process;
}

void moved_suspects_note(MovedSuspects *moved, uint32_t ns_tgid, const MovedSuspect *suspect)
{
	MovedProcess *process = get_process(moved, ns_tgid);

	if (!process || suspect->start >= suspect->end)
		return;
	if (process->suspects.count == SUSPECTS_MAX) {
		process->suspects.count--;
		memmove(process->suspects.items, process->suspects.items + 1,
			process->suspects.count * sizeof(*suspect));
	}
	*vec_push(&process->suspects) = *suspect;
	moved->next_ns = MIN(moved->next_ns, process->next_ns);
}
