/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sandbox.h - a child process that can do little but compute: code that parses untrusted files runs
 * there.
 *
 * The child has a copy of its parent's memory (fork), the descriptors that it was given and a
 * socket to its parent. It has no user (nobody, if the parent was root) and no capabilities, can
 * open no files and make no processes, and its memory and CPU time are limited. See seccomp(2),
 * Documentation/userspace-api/seccomp_filter.rst, no_new_privs.rst.
 */
#ifndef WALLPROF_SANDBOX_H
#define WALLPROF_SANDBOX_H

#include "util.h"
#include <sys/types.h>

typedef struct SandboxLimits {
	uint64_t
		memory; /* bytes in addition to the parent's and to the stack; 0 = SANDBOX_MEMORY */
	uint64_t cpu_seconds; /* after that, SIGXCPU; 0 = no limit */
} SandboxLimits;

#define SANDBOX_MEMORY	(1ULL << 30)
#define SANDBOX_FDS_MAX 4
/* The exit status of a child that could not be confined, and therefore did nothing. */
#define SANDBOX_UNSAFE 77

typedef struct Sandbox {
	pid_t pid;  /* 0 = not running */
	int socket; /* SOCK_STREAM; the parent's end, which never blocks */
} Sandbox;

/*
 * The child's function; the child ends when it returns. socket is the child's end; fds are the
 * given ones in the same order (-1 stays -1).
 */
typedef void (*SandboxMain)(int socket, const int *fds, const void *argument);

/* Returns 0 or a negative errno. fds stay the parent's. */
int sandbox_start(SandboxMain main, const int *fds, size_t fd_count, const void *argument,
		  const SandboxLimits *limits, Sandbox *ret_sandbox);

/* Allows so many seconds more of CPU time, if that is permitted. */
void sandbox_extend(const Sandbox *sandbox, uint64_t cpu_seconds);

/*
 * Ends the child if it runs, and frees all. Returns its status as wait(2) has it, or 0 if it did
 * not run.
 */
int sandbox_end(Sandbox *sandbox);

/*
 * The same for a child that may be in an uninterruptible wait: it is killed, and its end is waited
 * for so long. Returns whether it has ended. If not, it ends when the kernel lets it, and a later
 * call reaps it.
 */
bool sandbox_end_in_time(Sandbox *sandbox, uint64_t max_ns);

/*
 * For a child: ignores the signals that Ctrl-C and timeout(1) send to the whole process group; the
 * parent decides when the child ends.
 */
void sandbox_ignore_group_signals(void);

/*
 * Sends all of data, and a descriptor with it (-1: none). Returns 0 or a negative errno (-EPIPE:
 * the other side has ended).
 */
int sandbox_send(int socket, const void *data, size_t size, int fd);
/*
 * Waits for so many bytes, and the descriptor that comes with the first. Returns 0 (*ret_fd may be
 * -1), or a negative errno (-EPIPE: the other side has ended).
 */
int sandbox_receive(int socket, void *ret_data, size_t size, int *ret_fd);

#endif
