/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "jit_processes.h"
#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>

#define NOTES_MAX     256
#define PROCESSES_MAX 4096
/* Ended processes are searched so often. */
#define SWEEP_PAUSE_NS NSEC_PER_SEC

JitCodes *jit_processes_new(void)
{
	JitCodes *codes = xcalloc(1, sizeof(*codes));

	codes->child.sandbox.socket = -1;
	codes->memory = remote_memory_new();
	codes->look.reader.fd = -1;
	codes->next_ns = UINT64_MAX;
	codes->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	return codes;
}

static void process_free(JitProcess *process)
{
	vec_free(&process->notes);
	vec_free(&process->known);
	vec_free(&process->open);
	free(process);
}

void jit_processes_end_look(JitCodes *codes)
{
	JitLook *look = &codes->look;

	vec_free(&look->mapped);
	vec_free(&look->regions);
	vec_free(&look->code);
	jit_memory_close(&look->reader);
	*look = (JitLook){.reader = {.fd = -1}};
}

void jit_processes_free(JitCodes *codes)
{
	if (!codes)
		return;
	jit_processes_end_look(codes);
	jit_child_end(&codes->child);
	remote_memory_free(codes->memory);
	for (size_t i = 0; i < codes->processes.count; i++)
		process_free(codes->processes.items[i]);
	vec_free(&codes->processes);
	map_free(&codes->by_tgid);
	vec_free(&codes->files);
	vec_free(&codes->news);
	closep(&codes->epoll_fd);
	free(codes);
}

int jit_processes_fd(const JitCodes *codes)
{
	return codes->epoll_fd;
}

/* ---- processes ----------------------------------------------------------------------- */

static JitProcess *find_process(const JitCodes *codes, uint32_t ns_tgid)
{
	uint32_t index = map_get(&codes->by_tgid, ns_tgid);

	return index == MAP_NONE ? NULL : codes->processes.items[index];
}

static void count_losses(JitCodeCounts *counts, const JitProcess *process)
{
	if (!process->guessed && !process->stack_ns) /* nor does a stack wait */
		return;
	counts->incomplete += process->omitted;
	counts->disputed += process->disputed;
}

JitCodeCounts jit_processes_counts(const JitCodes *codes)
{
	JitCodeCounts counts = codes->counts;

	for (size_t i = 0; i < codes->processes.count; i++)
		count_losses(&counts, codes->processes.items[i]);
	return counts;
}

static void index_processes(JitCodes *codes)
{
	map_free(&codes->by_tgid);
	for (size_t i = 0; i < codes->processes.count; i++)
		map_set(&codes->by_tgid, codes->processes.items[i]->ns_tgid, i);
}

/* Frees those for which is_over() is true; there is no look at any of them. */
static void drop_processes(JitCodes *codes, bool (*is_over)(const JitProcess *process))
{
	size_t kept = 0;

	for (size_t i = 0; i < codes->processes.count; i++) {
		JitProcess *process = codes->processes.items[i];

		if (process == codes->look.process || !is_over(process)) {
			codes->processes.items[kept++] = process;
			continue;
		}
		count_losses(&codes->counts, process);
		jit_processes_tell(codes, process);
		process_free(process);
	}
	codes->processes.count = kept;
	index_processes(codes);
}

static bool has_ended(const JitProcess *process)
{
	return process->ended;
}

void jit_processes_forget(JitCodes *codes, JitProcess *process)
{
	if (codes->look.process == process)
		jit_processes_end_look(codes);
	process->ended = true;
	drop_processes(codes, has_ended);
}

void jit_processes_leave(JitCodes *codes)
{
	bool ended = codes->look.process->ended;

	jit_processes_end_look(codes);
	if (ended)
		drop_processes(codes, has_ended);
}

static bool is_gone(const JitProcess *process)
{
	return process->ended || (kill(process->ns_tgid, 0) && errno == ESRCH);
}

/*
 * Events of a process that has ended may come after its end, and then it is known again. Other
 * processes get its room.
 */
static void drop_gone(JitCodes *codes)
{
	uint64_t now = now_ns();

	if (now < codes->swept_ns + SWEEP_PAUSE_NS)
		return;
	codes->swept_ns = now;
	drop_processes(codes, is_gone);
}

/* Returns NULL if there are too many. */
static JitProcess *get_process(JitCodes *codes, uint32_t ns_tgid)
{
	JitProcess *process = find_process(codes, ns_tgid);

	if (process)
		return process;
	if (codes->processes.count == PROCESSES_MAX)
		drop_gone(codes);
	if (codes->processes.count == PROCESSES_MAX) {
		codes->counts.omitted++;
		return NULL;
	}
	process = xcalloc(1, sizeof(*process));
	process->ns_tgid = ns_tgid;
	process->pause_ns = JIT_FIRST_PAUSE_NS;
	map_set(&codes->by_tgid, ns_tgid, codes->processes.count);
	*vec_push(&codes->processes) = process;
	return process;
}

static void note_due(JitCodes *codes, const JitProcess *process)
{
	codes->next_ns = MIN(codes->next_ns, process->next_ns);
}

static bool cannot_tell(const JitProcess *process)
{
	return process->checked && !process->can_tell;
}

static void add_note(JitCodes *codes, JitProcess *process, const JitNote *note)
{
	if (process->notes.count == NOTES_MAX) {
		process->notes.count--;
		memmove(process->notes.items, process->notes.items + 1,
			process->notes.count * sizeof(JitNote));
		if (codes->look.process == process && codes->look.notes)
			codes->look.notes--;
	}
	*vec_push(&process->notes) = *note;
}

void jit_processes_note(JitCodes *codes, uint32_t ns_tgid, const JitNote *note)
{
	JitProcess *process = get_process(codes, ns_tgid);

	if (!process || note->start >= note->end || cannot_tell(process))
		return;
	add_note(codes, process, note);
	process->pause_ns = JIT_FIRST_PAUSE_NS;
	process->next_ns = process->rest_ns;
	note_due(codes, process);
}

void jit_processes_on_file(JitCodes *codes, uint32_t ns_tgid, const JitNote *note)
{
	JitProcess *process = find_process(codes, ns_tgid);

	if (!process)
		return;
	if (cannot_tell(process))
		jit_processes_tell(codes, process);
	process->checked = false;
	if (note->start < note->end)
		add_note(codes, process, note);
}

void jit_processes_want(JitCodes *codes, uint32_t ns_tgid)
{
	JitProcess *process = find_process(codes, ns_tgid);

	if (!process || cannot_tell(process))
		return;
	process->guessed = true;
	if (process->wanted)
		return;
	process->wanted = true;
	note_due(codes, process);
}

/* ---- what may still be said ------------------------------------------------------------ */

static bool overlaps_range(const JitRanges *ranges, uint64_t start, uint64_t last)
{
	size_t next = partition_point(middle, ranges->count, ranges->items[middle].end <= start);

	return next < ranges->count && ranges->items[next].start <= last;
}

static bool overlaps_note(const JitNote *note, uint64_t start, uint64_t last)
{
	return !note->file && note->start <= last && start < note->end;
}

/* Returns whether code of which nothing is known may be in [start, last]. */
static bool is_open(const JitProcess *process, uint64_t start, uint64_t last)
{
	if (cannot_tell(process))
		return false;
	for (size_t i = process->notes.count; i-- > 0;)
		if (overlaps_note(&process->notes.items[i], start, last))
			return true;
	return process->active && overlaps_range(&process->open, start, last);
}

/* Returns whether the pc is in code that is known, and nothing was mapped there since. */
static bool is_known(const JitProcess *process, uint64_t pc)
{
	size_t next = partition_point(middle, process->known.count,
				      process->known.items[middle].end <= pc);

	if (next == process->known.count || process->known.items[next].start > pc)
		return false;
	for (size_t i = process->notes.count; i-- > 0;)
		if (!process->notes.items[i].looked &&
		    overlaps_note(&process->notes.items[i], pc, pc))
			return false;
	return true;
}

void jit_processes_on_known(JitProcess *process)
{
	if (is_known(process, process->stack_pc))
		process->stack_ns = 0;
}

void jit_processes_want_at(JitCodes *codes, uint32_t ns_tgid, uint64_t pc, uint64_t ns)
{
	JitProcess *process = find_process(codes, ns_tgid);

	if (!process || !is_open(process, pc, pc) || is_known(process, pc))
		return;
	for (size_t i = 0; i < process->notes.count; i++) {
		JitNote *note = &process->notes.items[i];

		if (overlaps_note(note, pc, pc) && !note->stack_ns)
			note->stack_ns = ns;
	}
	process->stack_ns = MAX(process->stack_ns, ns);
	process->stack_pc = pc;
	process->wanted = true;
	process->next_ns = MIN(process->next_ns, process->rest_ns);
	note_due(codes, process);
}

bool jit_processes_is_pending(const JitCodes *codes, uint32_t ns_tgid, uint64_t start,
			      uint64_t last, uint64_t ns)
{
	const JitProcess *process = find_process(codes, ns_tgid);

	return process && (!process->seen_ns || process->seen_ns < ns) &&
	       is_open(process, start, last);
}

bool jit_processes_may_describe(const JitCodes *codes, uint32_t ns_tgid)
{
	const JitProcess *process = find_process(codes, ns_tgid);

	return !process || !cannot_tell(process);
}

void jit_processes_tell(JitCodes *codes, const JitProcess *process)
{
	*vec_push(&codes->news) = process->ns_tgid;
}

bool jit_processes_next_news(JitCodes *codes, uint32_t *ret_ns_tgid)
{
	if (codes->news.count == 0)
		return false;
	*ret_ns_tgid = codes->news.items[--codes->news.count];
	return true;
}

/* ---- the life of a process -------------------------------------------------------------- */

/* After a fork the child has the same code, with the same files. */
static void inherit(JitCodes *codes, uint32_t ns_tgid, uint32_t parent)
{
	const JitProcess *from = find_process(codes, parent);
	JitProcess *process;

	if (!from || !from->known.count)
		return;
	process = get_process(codes, ns_tgid);
	from = find_process(codes, parent); /* it may have had to make room */
	if (!process || !from)
		return;
	vec_append(&process->known, from->known.items, from->known.count);
	vec_append(&process->open, from->open.items, from->open.count);
	process->seen_ns = from->seen_ns;
	process->replaces = from->replaces;
	process->writable = from->writable;
	process->checked = from->checked;
	process->can_tell = from->can_tell;
	process->next_ns = now_ns() + JIT_CHECK_PAUSE_NS;
	note_due(codes, process);
}

void jit_processes_on_space(JitCodes *codes, const struct rec_space *record)
{
	JitProcess *before = find_process(codes, record->ns_tgid);

	if (!(record->h.flags & (SPACE_FORK | SPACE_EXEC)))
		return;
	if (before)
		jit_processes_forget(codes, before);
	if (record->h.flags & SPACE_FORK)
		inherit(codes, record->ns_tgid, record->ns_parent);
}

void jit_processes_on_exit(JitCodes *codes, uint32_t ns_tgid)
{
	JitProcess *process = find_process(codes, ns_tgid);

	if (!process)
		return;
	process->ended = true;
	if (codes->look.process != process)
		jit_processes_forget(codes, process);
}

bool jit_processes_has_new(const JitProcess *process)
{
	for (size_t i = process->notes.count; i-- > 0;)
		if (!process->notes.items[i].file && !process->notes.items[i].looked)
			return true;
	return false;
}

bool jit_processes_is_waiting(const JitProcess *process)
{
	return process->stack_ns && process->stack_ns >= process->seen_ns && !cannot_tell(process);
}

bool jit_processes_is_due(const JitProcess *process, uint64_t now)
{
	return now >= process->next_ns &&
	       (process->wanted || process->writable || jit_processes_has_new(process));
}
