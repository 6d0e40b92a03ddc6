/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "bpf_options.h"
#include "proc_status.h"
#include "programs_private.h"
#include "util.h"
#include <bpf/bpf.h>
#include <errno.h>
#include <unistd.h>

DEFINE_CLEANUP(struct bpf_link *, bpf_link__destroy)

#define PROGRAM(programs, name) ((programs)->groups[LOAD_GROUP_TICK]->progs.name)

/*
 * Runs an iterator to its end, over the threads of a process or (pid 0) over all tasks. An iterator
 * that writes a byte per task is read in pieces, and between() is called after each; it may be
 * NULL.
 */
static int run_iterator(const Programs *programs, struct bpf_program *program, pid_t pid,
			int (*between)(void *user), void *user)
{
	_cleanup_(bpf_link__destroyp) struct bpf_link *link = NULL;
	_cleanup_close_ int fd = -1; /* closed before the link is destroyed */
	union bpf_iter_link_info info;
	BPF_OPTIONS(bpf_iter_attach_opts, options);
	char buffer[SNAPSHOT_PIECE_MAX];

	/* gcc 15 and later clear only the member of a union that an initializer names. */
	memset(&info, 0, sizeof(info));
	info.task.pid = pid;
	options.link_info = &info;
	options.link_info_len = sizeof(info);
	link = bpf_program__attach_iter(program, pid ? &options : NULL);
	if (!link)
		return -errno;
	fd = bpf_iter_create(bpf_link__fd(link));
	if (fd < 0)
		return -errno;
	for (;;) {
		ssize_t got = read(fd, buffer, programs->snapshot_piece);
		int error;

		if (got < 0 && errno != EAGAIN && errno != EINTR)
			return -errno;
		error = between ? between(user) : 0;
		if (error || got == 0)
			return error;
	}
}

int programs_init_own_ids(Programs *programs)
{
	return run_iterator(programs, PROGRAM(programs, init_own_ids), getpid(), NULL, NULL);
}

int programs_mark(Programs *programs, pid_t pid)
{
	return run_iterator(programs, PROGRAM(programs, mark_target), pid, NULL, NULL);
}

/*
 * Before 6.12 (and 6.1.115 and similar stable releases), an iterator over one thread finds only
 * leaders. So the iterator visits the process, and BPF compares the thread ID.
 */
int programs_mark_thread(Programs *programs, pid_t tid)
{
	struct wallprof__bss *state = programs->groups[LOAD_GROUP_SWITCH]->bss;
	pid_t pid = proc_status_number(tid, "Tgid:");
	int error;

	state->wanted_tid = tid;
	state->wanted_found = 0;
	error = pid ? run_iterator(programs, PROGRAM(programs, mark_target), pid, NULL, NULL)
		    : -ESRCH;
	return error || state->wanted_found ? error : -ESRCH;
}

int programs_mark_command(Programs *programs, pid_t pid)
{
	int error = run_iterator(programs, PROGRAM(programs, mark_command), pid, NULL, NULL);

	if (!error && !programs->groups[LOAD_GROUP_SWITCH]->bss->command_tgid)
		return -ESRCH;
	return error;
}

int programs_mark_descendants(Programs *programs)
{
	return run_iterator(programs, PROGRAM(programs, mark_descendants), 0, NULL, NULL);
}

int programs_mark_scope_targets(Programs *programs)
{
	struct bpf_program *program = PROGRAM(programs, mark_scope_targets);
	int error = run_iterator(programs, program, 0, NULL, NULL);

	/*
	 * A child may have a lower ID than its parent and is visited first, so two runs are needed.
	 */
	return error ? error : run_iterator(programs, program, 0, NULL, NULL);
}

void programs_tables_ready(Programs *programs)
{
	programs->groups[LOAD_GROUP_SWITCH]->bss->tables_pending = false;
}

/*
 * The stacks are sent first, because the records of the second iterator refer to them. A command
 * that has not begun has none.
 */
static int run_snapshot(Programs *programs, pid_t pid, int (*between)(void *user), void *user)
{
	struct wallprof__bss *state = programs->groups[LOAD_GROUP_SWITCH]->bss;
	int error = 0;

	state->snapshot_ns = now_ns();
	if (!state->snapshot_at_end && bpf_program__fd(PROGRAM(programs, snapshot_stacks)) >= 0)
		error = run_iterator(programs, PROGRAM(programs, snapshot_stacks), pid, between,
				     user);
	return error ? error
		     : run_iterator(programs, PROGRAM(programs, snapshot), pid, between, user);
}

int programs_snapshot(Programs *programs, bool at_end, int (*between)(void *user), void *user)
{
	programs->groups[LOAD_GROUP_SWITCH]->bss->snapshot_at_end = at_end;
	return run_snapshot(programs, /* pid= */ 0, between, user);
}

int programs_snapshot_sleepers(Programs *programs, int (*between)(void *user), void *user)
{
	struct wallprof__bss *state = programs->groups[LOAD_GROUP_SWITCH]->bss;
	int error;

	state->snapshot_sleepers = true;
	error = programs_snapshot(programs, /* at_end= */ false, between, user);
	state->snapshot_sleepers = false;
	return error;
}

int programs_snapshot_process(Programs *programs, pid_t pid, int (*between)(void *user), void *user)
{
	return run_snapshot(programs, pid, between, user);
}
