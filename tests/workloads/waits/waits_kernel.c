/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "truth.h"
#include "waits.h"
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <linux/filter.h>
#include <linux/membarrier.h>
#include <linux/seccomp.h>
#include <linux/userfaultfd.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/fanotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE 4096

/* ---- a device that is no terminal ---------------------------------------------------------- */

bool set_up_log(struct wait_state *state)
{
	state->fd[0] = open("/dev/kmsg", O_RDONLY | O_CLOEXEC);
	state->fd[1] = open("/dev/kmsg", O_WRONLY | O_CLOEXEC);
	return state->fd[0] >= 0 && state->fd[1] >= 0 && lseek(state->fd[0], 0, SEEK_END) == 0;
}

void release_log(struct wait_state *state)
{
	static const char line[] = "<7>waits: a line\n";

	truth_check(write(state->fd[1], line, sizeof(line) - 1) > 0, "log");
}

/* ---- a page that is brought late ----------------------------------------------------------- */

bool set_up_fault(struct wait_state *state)
{
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register range = {.mode = UFFDIO_REGISTER_MODE_MISSING};

	state->other = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	if (state->other < 0 || ioctl(state->other, UFFDIO_API, &api) != 0)
		return false;
	state->page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	range.range = (struct uffdio_range){(uintptr_t)state->page, PAGE};
	return state->page != MAP_FAILED && ioctl(state->other, UFFDIO_REGISTER, &range) == 0;
}

void wait_fault(struct wait_state *state)
{
	*(volatile char *)state->page;
}

void release_page(struct wait_state *state)
{
	struct uffdio_zeropage zero = {
		.range = {(uintptr_t)state->page, PAGE},
	};

	truth_check(ioctl(state->other, UFFDIO_ZEROPAGE, &zero) == 0, "UFFDIO_ZEROPAGE");
}

/* ---- a thread that holds a lock of the kernel while it waits for a page----------------------- */

static void *write_page(void *arg)
{
	struct wait_state *state = arg;

	pthread_setname_np(pthread_self(), "holder");
	truth_check(write(state->fd[1], state->page, PAGE) == PAGE, "write of a late page");
	return NULL;
}

void hold_by_write(struct wait_state *state)
{
	struct pollfd fault = {.fd = state->other, .events = POLLIN};

	truth_check(pthread_create(&state->holder, NULL, write_page, state) == 0, "pthread_create");
	truth_check(poll(&fault, 1, -1) == 1, "poll of userfaultfd");
}

void release_holder(struct wait_state *state)
{
	release_page(state);
	pthread_join(state->holder, NULL);
}

bool set_up_inode_lock(struct wait_state *state)
{
	state->fd[1] = make_file(state) ? state->fd[0] : -1;
	return state->fd[1] >= 0 && unlink(state->path) == 0 && set_up_fault(state);
}

bool set_up_pipe_lock(struct wait_state *state)
{
	return pipe2(state->fd, O_CLOEXEC) == 0 && set_up_fault(state);
}

bool set_up_socket_lock(struct wait_state *state)
{
	return make_connection(state) && set_up_fault(state);
}

void wait_write(struct wait_state *state)
{
	truth_check(write(state->fd[1], "x", 1) == 1, "write");
}

/* Without the place in the file, which has a lock of its own. */
void wait_write_at(struct wait_state *state)
{
	truth_check(pwrite(state->fd[1], "x", 1, 0) == 1, "pwrite");
}

void wait_socket_option(struct wait_state *state)
{
	int one = 1;

	truth_check(setsockopt(state->fd[1], IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) == 0,
		    "setsockopt");
}

/* ---- RCU ----------------------------------------------------------------------------------- */

bool set_up_grace_period(struct wait_state *state)
{
	long commands = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);

	(void)state;
	return commands > 0 && commands & MEMBARRIER_CMD_GLOBAL;
}

void wait_grace_period(struct wait_state *state)
{
	(void)state;
	truth_check(syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) == 0, "membarrier");
}

/* ---- a supervisor of system calls ---------------------------------------------------------- */

#define SUPERVISED SYS_getpgrp

bool set_up_supervisor(struct wait_state *state)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SUPERVISED, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(filter) / sizeof(*filter), filter};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return false;
	state->other = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
			       SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
	return state->other >= 0;
}

void wait_supervisor(struct wait_state *state)
{
	(void)state;
	syscall(SUPERVISED);
}

void release_supervisor(struct wait_state *state)
{
	struct seccomp_notif call = {};
	struct seccomp_notif_resp answer = {};

	truth_check(ioctl(state->other, SECCOMP_IOCTL_NOTIF_RECV, &call) == 0, "NOTIF_RECV");
	answer.id = call.id;
	truth_check(ioctl(state->other, SECCOMP_IOCTL_NOTIF_SEND, &answer) == 0, "NOTIF_SEND");
}

/* ---- leases and permissions --------------------------------------------------------------- */

bool set_up_permission(struct wait_state *state)
{
	if (!make_file(state))
		return false;
	state->other = fanotify_init(FAN_CLASS_CONTENT | FAN_CLOEXEC, O_RDONLY | O_CLOEXEC);
	return state->other >= 0 &&
	       fanotify_mark(state->other, FAN_MARK_ADD, FAN_OPEN_PERM, AT_FDCWD, state->path) == 0;
}

void wait_open(struct wait_state *state)
{
	int fd = open(state->path, O_RDONLY | O_CLOEXEC);

	truth_check(fd >= 0, state->path);
	close(fd);
	unlink(state->path);
}

void release_permission(struct wait_state *state)
{
	struct fanotify_event_metadata event;
	struct fanotify_response answer = {.response = FAN_ALLOW};

	truth_check(read(state->other, &event, sizeof(event)) == sizeof(event), "fanotify");
	answer.fd = event.fd;
	truth_check(write(state->other, &answer, sizeof(answer)) == sizeof(answer), "fanotify");
	close(event.fd);
}

/* ---- io_uring ------------------------------------------------------------------------------ */

bool set_up_ring(struct wait_state *state)
{
	struct io_uring *ring = calloc(1, sizeof(*ring));
	int error = io_uring_queue_init(4, ring, 0);

	state->page = ring;
	errno = -error;
	return error == 0;
}

bool set_up_ring_of_connection(struct wait_state *state)
{
	return make_connection(state) && set_up_ring(state);
}

void wait_ring_receive(struct wait_state *state)
{
	struct io_uring *ring = state->page;
	struct io_uring_sqe *entry = io_uring_get_sqe(ring);
	struct io_uring_cqe *done;
	char byte;

	io_uring_prep_recv(entry, state->fd[0], &byte, 1, 0);
	io_uring_submit(ring);
	truth_check(io_uring_wait_cqe(ring, &done) == 0 && done->res == 1, "io_uring_wait_cqe");
}

void wait_ring(struct wait_state *state)
{
	struct io_uring *ring = state->page;
	struct __kernel_timespec time = {.tv_nsec = (long long)state->ns};
	struct io_uring_sqe *entry = io_uring_get_sqe(ring);
	struct io_uring_cqe *done;

	io_uring_prep_timeout(entry, &time, 0, 0);
	io_uring_submit(ring);
	truth_check(io_uring_wait_cqe(ring, &done) == 0, "io_uring_wait_cqe");
}
