/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "jit_code.h"
#include "jit_look.h"
#include <poll.h>

/* Returns as go_on(). */
static int begin_next(MappedFiles *files)
{
	JitCodes *codes = mapped_files_jit_codes(files);
	uint64_t now = now_ns();
	int error;

	if (now < codes->next_ns)
		return 0;
	codes->next_ns = UINT64_MAX;
	for (size_t left = codes->processes.count; left > 0; left--) {
		JitProcess *process;

		codes->turn = (codes->turn + 1) % codes->processes.count;
		process = codes->processes.items[codes->turn];
		if (!jit_processes_is_due(process, now))
			continue;
		codes->next_ns = 0; /* others may be due */
		error = jit_look_begin(files, process);
		return error ? error : 1;
	}
	for (size_t i = 0; i < codes->processes.count; i++) {
		const JitProcess *process = codes->processes.items[i];

		if (process->wanted || process->writable || jit_processes_has_new(process))
			codes->next_ns = MIN(codes->next_ns, process->next_ns);
	}
	return 0;
}

static int check(MappedFiles *files, uint64_t deadline_ns, uint64_t watermark_ns)
{
	JitCodes *codes = mapped_files_jit_codes(files);
	uint64_t begin_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID), now;
	int r;

	do {
		r = codes->look.stage == LOOK_NONE
			    ? begin_next(files)
			    : jit_look_go_on(files, deadline_ns, watermark_ns);
		now = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		codes->look.took_ns += now - begin_ns;
		codes->counts.took_ns += now - begin_ns;
		begin_ns = now;
	} while (r > 0 && now_ns() < deadline_ns);
	return MIN(r, 0);
}

int jit_code_check(MappedFiles *files, uint64_t max_ns, uint64_t watermark_ns)
{
	const JitCodes *codes = mapped_files_jit_codes(files);

	if (codes->look.stage == LOOK_NONE && codes->next_ns == UINT64_MAX)
		return 0;
	return check(files, now_ns() + max_ns, watermark_ns);
}

void jit_code_wait(MappedFiles *files)
{
	struct pollfd answers = {.fd = mapped_files_jit_codes(files)->epoll_fd, .events = POLLIN};

	poll(&answers, 1, 1);
}

/* Memory that its process may write to is read in the second look only. */
static bool is_new(const JitProcess *process)
{
	return !process->seen_ns || process->wide != process->seen_wide;
}

bool jit_code_has_new(MappedFiles *files, uint64_t until_ns)
{
	const JitCodes *codes = mapped_files_jit_codes(files);

	for (size_t i = 0; i < codes->processes.count; i++)
		if (is_new(codes->processes.items[i]) &&
		    jit_processes_is_due(codes->processes.items[i], until_ns))
			return true;
	return false;
}

bool jit_code_has_waiting(MappedFiles *files, uint64_t until_ns)
{
	const JitCodes *codes = mapped_files_jit_codes(files);
	bool any = false;

	for (size_t i = 0; i < codes->processes.count; i++)
		any |= jit_processes_is_waiting(codes->processes.items[i]);
	return any && (codes->look.stage != LOOK_NONE || codes->next_ns < until_ns);
}
