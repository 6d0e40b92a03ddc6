/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sandbox.h - a child process that can do next to nothing but compute: what parses files that
 * may have been made to hurt runs there.
 *
 * It has the memory of its parent (fork), the descriptors that it was given and a
 * socket to its parent; no user (nobody, if the parent was root), no capability, no
 * file that it could open, no process that it could make, bounded memory and CPU time.
 * Follows seccomp(2), Documentation/userspace-api/seccomp_filter.rst, no_new_privs.rst.
 */
#ifndef WALLPROF_SANDBOX_H
#define WALLPROF_SANDBOX_H

#include "util.h"
#include <sys/types.h>

typedef struct SandboxLimits {
	uint64_t memory;      /* bytes besides the parent's, and the stack; 0 = SANDBOX_MEMORY */
	uint64_t cpu_seconds; /* then SIGXCPU; 0 = no bound */
} SandboxLimits;

#define SANDBOX_MEMORY	(1ULL << 30)
#define SANDBOX_FDS_MAX 4
/* The exit status of a child that could not be confined, and so did nothing. */
#define SANDBOX_UNSAFE 77

typedef struct Sandbox {
	pid_t pid;  /* 0 = not running */
	int socket; /* SOCK_STREAM; the parent's end, which never blocks */
} Sandbox;

/*
 * What the child does; when it returns, the child is gone. socket is its end, fds are those
 * that were given, in their order (-1 stays -1).
 */
typedef void (*SandboxMain)(int socket, const int *fds, const void *argument);

/* Returns 0 or a negative errno. fds stay the parent's. */
int sandbox_start(SandboxMain main, const int *fds, size_t fd_count, const void *argument,
		  const SandboxLimits *limits, Sandbox *ret_sandbox);

/* Lets it take so many seconds of CPU time more, if we may. */
void sandbox_extend(const Sandbox *sandbox, uint64_t cpu_seconds);

/* Ends it if it runs, and frees all. Returns its status as wait(2) has it, or 0 if it did not run.
 */
int sandbox_end(Sandbox *sandbox);

/*
 * For a child: ignores the signals that Ctrl-C and timeout(1) send to the whole process group; the
 * parent decides what they end.
 */
void sandbox_ignore_group_signals(void);

/*
 * Sends all of data, and a descriptor with it (-1: none). Returns 0 or a negative errno (-EPIPE:
 * the other side is gone).
 */
int sandbox_send(int socket, const void *data, size_t size, int fd);
/*
 * Waits for so many bytes, and the descriptor that came with the first. Returns 0 (*ret_fd may be
 * -1), or a negative errno (-EPIPE: the other side is gone).
 */
int sandbox_receive(int socket, void *ret_data, size_t size, int *ret_fd);

#endif
