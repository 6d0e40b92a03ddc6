/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "truth.h"
#include "waits.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <poll.h>
#include <pty.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

bool make_file(struct wait_state *state)
{
	const char *beside = truth_file(), *slash = beside ? strrchr(beside, '/') : NULL;

	/* In the folder of the truth, which the test deletes. */
	snprintf(state->path, sizeof(state->path), "%.*swaits-XXXXXX",
		 slash ? (int)(slash + 1 - beside) : 0, slash ? beside : "");
	state->fd[0] = mkostemp(state->path, O_CLOEXEC);
	return state->fd[0] >= 0;
}

static struct timespec from_now(clockid_t clock, uint64_t ns)
{
	struct timespec now;

	clock_gettime(clock, &now);
	ns += (uint64_t)now.tv_nsec;
	return (struct timespec){now.tv_sec + (time_t)(ns / NSEC_PER_SEC),
				 (long)(ns % NSEC_PER_SEC)};
}

/* ---- pthread ------------------------------------------------------------------------------- */

static bool set_up_mutex(struct wait_state *state)
{
	return pthread_mutex_init(&state->sync.mutex, NULL) == 0;
}

static void hold_mutex(struct wait_state *state)
{
	pthread_mutex_lock(&state->sync.mutex);
}

static void release_mutex(struct wait_state *state)
{
	pthread_mutex_unlock(&state->sync.mutex);
}

static void hold_known(struct wait_state *state)
{
	(void)state;
	pthread_mutex_lock(&known_mutex);
}

static void release_known(struct wait_state *state)
{
	(void)state;
	pthread_mutex_unlock(&known_mutex);
}

static bool set_up_rwlock(struct wait_state *state)
{
	return pthread_rwlock_init(&state->sync.rwlock, NULL) == 0;
}

static void hold_rwlock(struct wait_state *state)
{
	pthread_rwlock_wrlock(&state->sync.rwlock);
}

static void wait_rwlock(struct wait_state *state)
{
	pthread_rwlock_rdlock(&state->sync.rwlock);
}

static void release_rwlock(struct wait_state *state)
{
	pthread_rwlock_unlock(&state->sync.rwlock);
}

static bool set_up_condition(struct wait_state *state)
{
	return pthread_mutex_init(&state->sync.condition.mutex, NULL) == 0 &&
	       pthread_cond_init(&state->sync.condition.changed, NULL) == 0;
}

static void wait_condition(struct wait_state *state)
{
	pthread_mutex_lock(&state->sync.condition.mutex);
	while (!state->sync.condition.done)
		pthread_cond_wait(&state->sync.condition.changed, &state->sync.condition.mutex);
	pthread_mutex_unlock(&state->sync.condition.mutex);
}

static void release_condition(struct wait_state *state)
{
	pthread_mutex_lock(&state->sync.condition.mutex);
	state->sync.condition.done = true;
	pthread_mutex_unlock(&state->sync.condition.mutex);
	pthread_cond_signal(&state->sync.condition.changed);
}

void wait_join(struct wait_state *state)
{
	pthread_join(state->helper, NULL);
}

#define OWN_PROTOCOL 31337

static bool set_up_word(struct wait_state *state)
{
	state->sync.word = OWN_PROTOCOL;
	return true;
}

static void wait_word(struct wait_state *state)
{
	while (__atomic_load_n(&state->sync.word, __ATOMIC_SEQ_CST) == OWN_PROTOCOL)
		syscall(SYS_futex, &state->sync.word, FUTEX_WAIT_PRIVATE, OWN_PROTOCOL, NULL);
}

static void release_word(struct wait_state *state)
{
	__atomic_store_n(&state->sync.word, 0, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, &state->sync.word, FUTEX_WAKE_PRIVATE, 1);
}

/* ---- time ---------------------------------------------------------------------------------- */

static void wait_sleep(struct wait_state *state)
{
	truth_sleep(state->ns);
}

static int start_timer(const struct wait_state *state)
{
	struct itimerspec once = {.it_value = {.tv_nsec = (long)state->ns}};
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);

	timerfd_settime(fd, 0, &once, NULL);
	return fd;
}

static void wait_timer(struct wait_state *state)
{
	int fd = start_timer(state);
	uint64_t count;

	truth_check(read(fd, &count, sizeof(count)) == sizeof(count), "timerfd");
	close(fd);
}

static void poll_timer(struct wait_state *state)
{
	struct pollfd one = {.fd = start_timer(state), .events = POLLIN};

	truth_check(poll(&one, 1, -1) == 1, "poll of a timerfd");
	close(one.fd);
}

/* Descriptors below 0 are none. */
static void wait_poll_nothing(struct wait_state *state)
{
	struct pollfd none[] = {{.fd = -1}, {.fd = -2}};

	truth_check(poll(none, 2, (int)(state->ns / NSEC_PER_MSEC)) == 0, "poll of nothing");
}

/* ---- what is read and written -------------------------------------------------------------- */

bool set_up_pipe(struct wait_state *state)
{
	return pipe2(state->fd, O_CLOEXEC) == 0;
}

static bool set_up_unix(struct wait_state *state)
{
	return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, state->fd) == 0;
}

/*
 * Until a blocking write would wait, and in so many milliseconds nothing makes room by itself:
 * TCP's buffers grow, and acknowledgements and probes of a full window come up to 200 ms later.
 */
static bool fill(int fd, unsigned int ms)
{
	static const char block[4096];
	int flags = fcntl(fd, F_GETFL);
	unsigned int full_ms = 0;

	fcntl(fd, F_SETFL, flags | O_NONBLOCK);
	do {
		while (write(fd, block, sizeof(block)) > 0)
			full_ms = 0;
		if (ms)
			truth_sleep(5 * NSEC_PER_MSEC);
		full_ms += 5;
	} while (full_ms < ms);
	return fcntl(fd, F_SETFL, flags) == 0;
}

bool set_up_full_pipe(struct wait_state *state)
{
	return set_up_pipe(state) && fill(state->fd[1], 0);
}

static bool set_up_full_unix(struct wait_state *state)
{
	return set_up_unix(state) && fill(state->fd[1], 0);
}

static bool listen_at(int *ret_fd, struct sockaddr_in *ret_address)
{
	socklen_t length = sizeof(*ret_address);

	*ret_address =
		(struct sockaddr_in){.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	*ret_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	return *ret_fd >= 0 && bind(*ret_fd, (struct sockaddr *)ret_address, length) == 0 &&
	       listen(*ret_fd, 1) == 0 &&
	       getsockname(*ret_fd, (struct sockaddr *)ret_address, &length) == 0;
}

static int connect_to(const struct sockaddr_in *address)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (const struct sockaddr *)address, sizeof(*address)) != 0)
		return -1;
	return fd;
}

bool make_connection(struct wait_state *state)
{
	struct sockaddr_in address;
	int listener;

	if (!listen_at(&listener, &address))
		return false;
	state->fd[1] = connect_to(&address);
	state->fd[0] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	close(listener);
	return state->fd[0] >= 0 && state->fd[1] >= 0;
}

static bool set_up_full_connection(struct wait_state *state)
{
	return make_connection(state) && fill(state->fd[1], 300);
}

static void wait_read(struct wait_state *state)
{
	char byte;

	truth_check(read(state->fd[0], &byte, 1) == 1, "read");
}

static void wait_write_byte(struct wait_state *state)
{
	truth_check(write(state->fd[1], "x", 1) == 1, "write");
}

static void wait_poll(struct wait_state *state)
{
	struct pollfd one = {.fd = state->fd[0], .events = POLLIN};

	truth_check(poll(&one, 1, -1) == 1, "poll");
}

static void release_byte(struct wait_state *state)
{
	truth_check(write(state->fd[1], "x", 1) == 1, "write");
}

/* More than half of what a socket or a pipe holds must be gone before it takes more. */
static void release_room(struct wait_state *state)
{
	struct pollfd more = {.fd = state->fd[0], .events = POLLIN};
	static char block[4096];

	while (poll(&more, 1, 20) == 1)
		truth_check(read(state->fd[0], block, sizeof(block)) > 0, "read");
}

static bool set_up_fifo(struct wait_state *state)
{
	if (!make_file(state))
		return false;
	close(state->fd[0]);
	unlink(state->path);
	return mkfifo(state->path, 0600) == 0;
}

static void wait_fifo(struct wait_state *state)
{
	state->fd[0] = open(state->path, O_RDONLY | O_CLOEXEC);
	truth_check(state->fd[0] >= 0, state->path);
	unlink(state->path);
}

static void release_fifo(struct wait_state *state)
{
	state->fd[1] = open(state->path, O_WRONLY | O_CLOEXEC);
}

static bool set_up_listener(struct wait_state *state)
{
	struct sockaddr_in address;

	if (!listen_at(&state->fd[0], &address))
		return false;
	state->other = ntohs(address.sin_port);
	return true;
}

static void wait_accept(struct wait_state *state)
{
	truth_check(accept4(state->fd[0], NULL, NULL, SOCK_CLOEXEC) >= 0, "accept");
}

static void release_connect(struct wait_state *state)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_port = htons((uint16_t)state->other),
				      .sin_addr = {htonl(INADDR_LOOPBACK)}};

	truth_check(connect_to(&address) >= 0, "connect");
}

/* ---- many descriptors ---------------------------------------------------------------------- */

static bool set_up_event(struct wait_state *state)
{
	state->fd[0] = state->fd[1] = eventfd(0, EFD_CLOEXEC);
	return state->fd[0] >= 0;
}

/* Other threads open and close files meanwhile: the second one watched is to have a higher number.
 */
static bool set_up_epoll(struct wait_state *state)
{
	struct epoll_event event = {.events = EPOLLIN};
	int second;

	state->other = epoll_create1(EPOLL_CLOEXEC);
	return set_up_pipe(state) &&
	       epoll_ctl(state->other, EPOLL_CTL_ADD, state->fd[0], &event) == 0 &&
	       (second = fcntl(eventfd(0, EFD_CLOEXEC), F_DUPFD_CLOEXEC, state->fd[0] + 1)) >= 0 &&
	       epoll_ctl(state->other, EPOLL_CTL_ADD, second, &event) == 0;
}

static void wait_epoll(struct wait_state *state)
{
	struct epoll_event event;

	truth_check(epoll_wait(state->other, &event, 1, -1) == 1, "epoll_wait");
}

static void wait_poll_two(struct wait_state *state)
{
	struct pollfd two[2] = {{.fd = state->fd[0], .events = POLLIN},
				{.fd = state->fd[1], .events = POLLIN}};

	truth_check(poll(two, 2, -1) == 1, "poll");
}

static void wait_event(struct wait_state *state)
{
	uint64_t count;

	truth_check(read(state->fd[0], &count, sizeof(count)) == sizeof(count), "eventfd");
}

static void release_event(struct wait_state *state)
{
	uint64_t one = 1;

	truth_check(write(state->fd[1], &one, sizeof(one)) == sizeof(one), "eventfd");
}

static bool set_up_watch(struct wait_state *state)
{
	if (!make_file(state))
		return false;
	state->fd[1] = state->fd[0];
	state->fd[0] = inotify_init1(IN_CLOEXEC);
	return state->fd[0] >= 0 && inotify_add_watch(state->fd[0], state->path, IN_MODIFY) >= 0;
}

static void wait_watch(struct wait_state *state)
{
	char event[256];

	truth_check(read(state->fd[0], event, sizeof(event)) > 0, "inotify");
	unlink(state->path);
}

static bool set_up_terminal(struct wait_state *state)
{
	/* fd[1] the master, fd[0] the slave */
	return openpty(&state->fd[1], &state->fd[0], NULL, NULL, NULL) == 0;
}

static void release_line(struct wait_state *state)
{
	truth_check(write(state->fd[1], "\n", 1) == 1, "terminal");
}

/* ---- signals, processes -------------------------------------------------------------------- */

static void wait_signal(struct wait_state *state)
{
	struct timespec time = {.tv_nsec = (long)state->ns};
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGUSR1);
	sigtimedwait(&signals, NULL, &time);
}

/* In another process, with memory of its own or not: no more than these two calls. */
static void sleep_and_exit(uint64_t ns)
{
	struct timespec time = {.tv_nsec = (long)ns};

	syscall(SYS_nanosleep, &time, NULL);
	_exit(0);
}

static void hold_child(struct wait_state *state)
{
	state->other = fork();
	if (state->other == 0)
		sleep_and_exit(state->ns);
}

static void wait_child(struct wait_state *state)
{
	truth_check(waitpid(state->other, NULL, 0) == state->other, "waitpid");
}

static void wait_vfork(struct wait_state *state)
{
	pid_t child = vfork();

	if (child == 0)
		sleep_and_exit(state->ns);
	state->other = child;
}

static void reap(struct wait_state *state)
{
	/* Children of the process, whichever thread made them. */
	while (state->other == 0 || waitpid(state->other, NULL, 0) != state->other)
		truth_sleep(NSEC_PER_MSEC);
}

/* ---- files' locks, System V, POSIX --------------------------------------------------------- */

static bool set_up_flock(struct wait_state *state)
{
	if (!make_file(state))
		return false;
	state->fd[1] = open(state->path, O_RDWR | O_CLOEXEC);
	return state->fd[1] >= 0 && unlink(state->path) == 0;
}

static void hold_flock(struct wait_state *state)
{
	truth_check(flock(state->fd[1], LOCK_EX) == 0, "flock");
}

static void wait_flock(struct wait_state *state)
{
	truth_check(flock(state->fd[0], LOCK_EX) == 0, "flock");
}

static void release_flock(struct wait_state *state)
{
	flock(state->fd[1], LOCK_UN);
}

static void lock_range(int fd, int command, short type)
{
	struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_len = 1};

	truth_check(fcntl(fd, command, &lock) == 0, "fcntl");
}

static void hold_range(struct wait_state *state)
{
	lock_range(state->fd[1], F_OFD_SETLK, F_WRLCK);
}

static void wait_range(struct wait_state *state)
{
	lock_range(state->fd[0], F_OFD_SETLKW, F_WRLCK);
}

static void release_range(struct wait_state *state)
{
	lock_range(state->fd[1], F_OFD_SETLK, F_UNLCK);
}

struct message {
	long type;
	char text[1];
};

static bool set_up_messages(struct wait_state *state)
{
	state->other = msgget(IPC_PRIVATE, 0600);
	return state->other >= 0;
}

static void wait_message(struct wait_state *state)
{
	struct message message;

	truth_check(msgrcv(state->other, &message, 1, 0, 0) == 1, "msgrcv");
	msgctl(state->other, IPC_RMID, NULL);
}

static void release_message(struct wait_state *state)
{
	struct message message = {.type = 1};

	truth_check(msgsnd(state->other, &message, 1, 0) == 0, "msgsnd");
}

static bool set_up_semaphores(struct wait_state *state)
{
	state->other = semget(IPC_PRIVATE, 1, 0600);
	return state->other >= 0;
}

static void change(struct wait_state *state, short by)
{
	struct sembuf operation = {.sem_op = by};

	truth_check(semop(state->other, &operation, 1) == 0, "semop");
}

static void wait_semaphore(struct wait_state *state)
{
	change(state, -1);
	semctl(state->other, 0, IPC_RMID);
}

static void release_semaphore(struct wait_state *state)
{
	change(state, 1);
}

static bool set_up_queue(struct wait_state *state)
{
	struct mq_attr attributes = {.mq_maxmsg = 1, .mq_msgsize = 1};

	snprintf(state->path, sizeof(state->path), "/waits-%d", getpid());
	state->other = mq_open(state->path, O_RDWR | O_CREAT | O_CLOEXEC, 0600, &attributes);
	return state->other >= 0 && mq_unlink(state->path) == 0;
}

static void wait_queue(struct wait_state *state)
{
	struct timespec far = from_now(CLOCK_REALTIME, 100 * NSEC_PER_SEC);
	char byte;

	truth_check(mq_timedreceive(state->other, &byte, 1, NULL, &far) == 1, "mq_timedreceive");
}

static void release_queue(struct wait_state *state)
{
	truth_check(mq_send(state->other, "x", 1, 0) == 0, "mq_send");
}

const WaitCase wait_cases[] = {
	{"mutex wait", set_up_mutex, hold_mutex, hold_mutex, release_mutex, object_word},
	{"mutex wait", NULL, hold_known, hold_known, release_known, object_static},
	{"rwlock wait", set_up_rwlock, hold_rwlock, wait_rwlock, release_rwlock, NULL},
	{"condition variable wait", set_up_condition, NULL, wait_condition, release_condition,
	 NULL},
	{"semaphore wait", set_up_semaphore, NULL, wait_posted, post_semaphore, NULL},
	{"barrier wait", set_up_barrier, NULL, wait_barrier, wait_barrier, NULL},
	{"thread join wait", NULL, NULL, wait_join, NULL, NULL},
	{"futex wait", set_up_word, NULL, wait_word, release_word, object_word},
	{"futex wait", set_up_count, NULL, wait_count, release_count, NULL},
	{"futex wait", set_up_futex2, NULL, wait_futex2, release_futex2, object_word},
	{"futex wait", set_up_futex2, NULL, wait_futex_of_one, release_futex2, object_word},
	{"futex wait", set_up_shared, NULL, wait_shared, release_shared, NULL},
	{"sleep", NULL, NULL, wait_sleep, NULL, object_time},
	{"timer wait", NULL, NULL, wait_timer, NULL, NULL},
	{"timer wait", NULL, NULL, poll_timer, NULL, NULL},
	{"sleep", NULL, NULL, wait_poll_nothing, NULL, object_time},
	{"pipe read wait", set_up_pipe, NULL, wait_read, release_byte, object_fd0},
	{"pipe write wait", set_up_full_pipe, NULL, wait_write_byte, release_room, object_fd1},
	{"pipe read wait", set_up_splice_from, NULL, wait_splice_from, release_byte, object_fd0},
	{"pipe write wait", set_up_splice_to, NULL, wait_splice_to, release_room, object_fd1},
	{"pipe write wait", set_up_full_pipe, NULL, wait_tee, release_room, object_fd1},
	{"pipe write wait", set_up_full_pipe, NULL, wait_vmsplice, release_room, object_fd1},
	{"pipe poll wait", set_up_pipe, NULL, wait_poll, release_byte, object_fd0},
	{"pipe open wait", set_up_fifo, NULL, wait_fifo, release_fifo, NULL},
	{"unix socket receive wait", set_up_unix, NULL, wait_read, release_byte, object_fd0},
	{"unix socket send wait", set_up_full_unix, NULL, wait_write_byte, release_room,
	 object_fd1},
	{"unix socket poll wait", set_up_unix, NULL, wait_poll, release_byte, object_fd0},
	{"network receive wait", make_connection, NULL, wait_read, release_byte,
	 object_connection0},
	{"network send wait", set_up_full_connection, NULL, wait_write_byte, release_room,
	 object_connection1},
	{"network poll wait", make_connection, NULL, wait_poll, release_byte, object_connection0},
	{"accept wait", set_up_listener, NULL, wait_accept, release_connect, object_connection0},
	{"epoll wait", set_up_epoll, NULL, wait_epoll, release_byte, object_epoll},
	{"poll wait", set_up_pipe, NULL, wait_poll_two, release_byte, NULL},
	{"event wait", set_up_event, NULL, wait_event, release_event, object_fd0},
	{"file event wait", set_up_watch, NULL, wait_watch, release_byte, object_fd0},
	{"terminal wait", set_up_terminal, NULL, wait_read, release_line, object_fd0},
	{"terminal wait", set_up_terminal, NULL, wait_poll, release_line, object_fd0},
	{"device wait", set_up_log, NULL, wait_poll, release_log, object_fd0},
	{"idle: signal", NULL, NULL, wait_signal, NULL, NULL},
	{"child process wait", NULL, hold_child, wait_child, NULL, NULL},
	{"vfork wait", NULL, NULL, wait_vfork, reap, NULL},
	{"file lock wait", set_up_flock, hold_flock, wait_flock, release_flock, object_fd0},
	{"file lock wait", set_up_flock, hold_range, wait_range, release_range, object_fd0},
	{"IPC wait", set_up_messages, NULL, wait_message, release_message, NULL},
	{"IPC wait", set_up_semaphores, NULL, wait_semaphore, release_semaphore, NULL},
	{"IPC wait", set_up_queue, NULL, wait_queue, release_queue, NULL},
	{"idle: io_uring", set_up_ring, NULL, wait_ring, NULL, NULL},
	{"network poll wait", set_up_ring_of_connection, NULL, wait_ring_receive, release_byte,
	 object_ring},
	{"userfaultfd wait", set_up_fault, NULL, wait_fault, release_page, NULL},
	{"kernel rwsem wait", set_up_inode_lock, hold_by_write, wait_write_at, release_holder,
	 object_fd0},
	{"kernel mutex wait", set_up_pipe_lock, hold_by_write, wait_write, release_holder,
	 object_fd1},
	{"socket lock wait", set_up_socket_lock, hold_by_write, wait_socket_option, release_holder,
	 object_connection1},
	{"RCU grace period wait", set_up_grace_period, NULL, wait_grace_period, NULL, NULL},
	{"seccomp supervisor wait", set_up_supervisor, NULL, wait_supervisor, release_supervisor,
	 NULL},
	{"file permission wait", set_up_permission, NULL, wait_open, release_permission, NULL},
};
const size_t wait_case_count = sizeof(wait_cases) / sizeof(*wait_cases);
