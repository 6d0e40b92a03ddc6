/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sandbox.h"
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOBODY	     65534
#define FIRST_FD     3 /* of those that stay open: the socket, then the given ones */
#define STACK_MEMORY (64ULL << 20)

#if defined(__x86_64__)
#define SANDBOX_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define SANDBOX_ARCH AUDIT_ARCH_AARCH64
#else
#error "sandbox.c: which AUDIT_ARCH is this?"
#endif

/* ---- system calls ---------------------------------------------------------------- */

#define FIELD(name)  BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, name))
#define RETURN(what) BPF_STMT(BPF_RET | BPF_K, what)
#define ALLOW(name)                                                                                \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_##name, 0, 1), RETURN(SECCOMP_RET_ALLOW)
#define REFUSE RETURN(SECCOMP_RET_ERRNO | EPERM)
/* Continues with the next call unless the argument of the system call has a bit of mask. */
#define REFUSE_WITH(name, argument, mask)                                                          \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_##name, 0, 4), FIELD(args[argument]),             \
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, mask, 0, 1), REFUSE, FIELD(nr)

/*
 * Allowed is what reading open files, getting memory, sending answers and ending need. All else
 * fails with EPERM instead of killing the process, because libraries try to open files and continue
 * without them.
 */
static const struct sock_filter filter[] = {
	FIELD(arch),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SANDBOX_ARCH, 1, 0),
	RETURN(SECCOMP_RET_KILL_PROCESS),
	FIELD(nr),
	ALLOW(read),
	ALLOW(pread64),
	ALLOW(lseek),
	ALLOW(fstat),
	ALLOW(newfstatat),
	ALLOW(close),
	ALLOW(write),
	ALLOW(sendmsg),
	ALLOW(recvmsg),
	ALLOW(brk),
	ALLOW(munmap),
	ALLOW(mremap),
	ALLOW(madvise),
	ALLOW(futex),
	ALLOW(getrandom),
	ALLOW(clock_gettime),
	ALLOW(rt_sigreturn),
	ALLOW(exit),
	ALLOW(exit_group),
	REFUSE_WITH(mmap, 2, PROT_EXEC),
	/* RLIMIT_DATA counts only private memory, and no stack. */
	REFUSE_WITH(mmap, 3, MAP_SHARED | MAP_GROWSDOWN),
	ALLOW(mmap),
	REFUSE_WITH(mprotect, 2, PROT_EXEC | PROT_GROWSDOWN),
	ALLOW(mprotect),
	REFUSE,
};

static bool install_filter(void)
{
	struct sock_fprog program = {.len = ARRAY_LEN(filter),
				     .filter = (struct sock_filter *)filter};

	return !syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
}

/* ---- dropping the user ------------------------------------------------------------- */

/* Keeps standard input, output and error (replaced by null files), the socket and fds. */
static bool keep_only(int *socket, int *fds, size_t count)
{
	int null = open_null();
	int kept[SANDBOX_FDS_MAX + 1];

	/* They are first moved away from the numbers that they will get. */
	kept[0] = fcntl(*socket, F_DUPFD, FIRST_FD + 16);
	for (size_t i = 0; i < count; i++)
		kept[i + 1] = fds[i] < 0 ? -1 : fcntl(fds[i], F_DUPFD, FIRST_FD + 16);
	for (int fd = 0; fd < FIRST_FD; fd++)
		if (dup2(null, fd) < 0)
			return false;
	*socket = dup2(kept[0], FIRST_FD);
	for (size_t i = 0; i < count; i++)
		fds[i] = kept[i + 1] < 0 ? -1 : dup2(kept[i + 1], FIRST_FD + 1 + i);
	for (size_t i = 0; i < count; i++)
		if (kept[i + 1] < 0)
			close(FIRST_FD + 1 + i);
	return *socket == FIRST_FD && !close_range(FIRST_FD + 1 + count, ~0U, 0);
}

static bool bound(int resource, uint64_t value)
{
	struct rlimit limit = {value, value};

	return !setrlimit(resource, &limit);
}

/* The limit sends SIGXCPU, which the child cannot ignore, so that SIGKILL means something else. */
static bool bound_cpu(uint64_t seconds)
{
	struct rlimit limit = {seconds, seconds + 1};

	return !seconds || !setrlimit(RLIMIT_CPU, &limit);
}

/* The bytes that RLIMIT_DATA counts already: memory inherited from the parent. */
static uint64_t own_data(void)
{
	_cleanup_fclose_ FILE *file = fopen("/proc/self/status", "re");
	char line[256];
	uint64_t kib;

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "VmData: %" SCNu64, &kib) == 1)
			return kib << 10;
	return 0;
}

static uint64_t memory_bound(const SandboxLimits *limits)
{
#ifdef __SANITIZE_ADDRESS__
	(void)limits; /* AddressSanitizer's own memory exceeds all limits */
	return own_data() ? RLIM_INFINITY : 0;
#else
	return own_data() + (limits->memory ? limits->memory : SANDBOX_MEMORY);
#endif
}

static bool set_limits(const SandboxLimits *limits)
{
	return bound(RLIMIT_CORE, 0) && bound(RLIMIT_FSIZE, 0) && bound(RLIMIT_NPROC, 0) &&
	       bound(RLIMIT_STACK, STACK_MEMORY) && bound(RLIMIT_DATA, memory_bound(limits)) &&
	       bound_cpu(limits->cpu_seconds);
}

static bool drop_privileges(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {};

	/*
	 * In a user namespace without that id, or without the right to change, the user stays the
	 * same.
	 */
	if (geteuid() == 0 && !setgroups(0, NULL) && !setresgid(NOBODY, NOBODY, NOBODY) &&
	    setresuid(NOBODY, NOBODY, NOBODY))
		return false;
	return !syscall(SYS_capset, &header, none);
}

void sandbox_ignore_group_signals(void)
{
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
}

/* SIGABRT and the like must end the child whatever the parent had set. */
static void reset_signals(void)
{
	sigset_t none;

	for (int number = 1; number < NSIG; number++)
		signal(number, SIG_DFL);
	sandbox_ignore_group_signals();
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static bool enter(pid_t parent, int *socket, int *fds, size_t count, const SandboxLimits *limits)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent)
		return false;
	reset_signals();
	/*
	 * A change of user resets PDEATHSIG and DUMPABLE, so both are set after it; DUMPABLE also
	 * before, so that no other process can attach in between.
	 */
	return keep_only(socket, fds, count) && set_limits(limits) && !prctl(PR_SET_DUMPABLE, 0) &&
	       drop_privileges() && !prctl(PR_SET_PDEATHSIG, SIGKILL) &&
	       !prctl(PR_SET_DUMPABLE, 0) && !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	       install_filter();
}

int sandbox_start(SandboxMain main, const int *fds, size_t fd_count, const void *argument,
		  const SandboxLimits *limits, Sandbox *ret_sandbox)
{
	int sockets[2], kept[SANDBOX_FDS_MAX], error;
	pid_t parent = getpid(), pid;

	*ret_sandbox = (Sandbox){.socket = -1};
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets))
		return -errno;
	pid = fork();
	if (pid == 0) {
		for (size_t i = 0; i < fd_count; i++)
			kept[i] = fds[i];
		if (!enter(parent, &sockets[1], kept, fd_count, limits))
			_exit(SANDBOX_UNSAFE);
		main(sockets[1], kept, argument);
		_exit(0);
	}
	error = pid < 0 ? -errno : 0;
	close(sockets[1]);
	if (error) {
		close(sockets[0]);
		return error;
	}
	/* A child that does not read must not block its parent. */
	fcntl(sockets[0], F_SETFL, O_NONBLOCK);
	*ret_sandbox = (Sandbox){.pid = pid, .socket = sockets[0]};
	return 0;
}

void sandbox_extend(const Sandbox *sandbox, uint64_t cpu_seconds)
{
	struct rlimit limit;

	if (prlimit(sandbox->pid, RLIMIT_CPU, NULL, &limit) || limit.rlim_cur == RLIM_INFINITY)
		return;
	limit.rlim_cur += cpu_seconds;
	limit.rlim_max += cpu_seconds;
	prlimit(sandbox->pid, RLIMIT_CPU, &limit, NULL);
}

int sandbox_end(Sandbox *sandbox)
{
	int status = 0;

	if (sandbox->pid <= 0)
		return 0;
	closep(&sandbox->socket);
	kill(sandbox->pid, SIGKILL);
	while (waitpid(sandbox->pid, &status, 0) < 0 && errno == EINTR)
		;
	sandbox->pid = 0;
	return status;
}

bool sandbox_end_in_time(Sandbox *sandbox, uint64_t max_ns)
{
	uint64_t end_ns = now_ns() + max_ns;

	if (sandbox->pid <= 0)
		return true;
	closep(&sandbox->socket);
	kill(sandbox->pid, SIGKILL);
	while (waitpid(sandbox->pid, NULL, WNOHANG) == 0) {
		if (now_ns() >= end_ns)
			return false;
		usleep(200);
	}
	sandbox->pid = 0;
	return true;
}

/* ---- messages ------------------------------------------------------------------------ */

int sandbox_send(int socket, const void *data, size_t size, int fd)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {};
	const char *p = data;

	while (size > 0) {
		struct iovec vector = {.iov_base = (char *)p, .iov_len = size};
		struct msghdr message = {.msg_iov = &vector, .msg_iovlen = 1};
		ssize_t sent;

		if (fd >= 0) {
			struct cmsghdr *header;

			message.msg_control = control.bytes;
			message.msg_controllen = sizeof(control.bytes);
			header = CMSG_FIRSTHDR(&message);
			header->cmsg_level = SOL_SOCKET;
			header->cmsg_type = SCM_RIGHTS;
			header->cmsg_len = CMSG_LEN(sizeof(int));
			memcpy(CMSG_DATA(header), &fd, sizeof(fd));
		}
		sent = sendmsg(socket, &message, MSG_NOSIGNAL);
		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0)
			return -errno;
		fd = -1; /* it was sent with the first piece */
		p += sent;
		size -= sent;
	}
	return 0;
}

/* Receives the first piece, with its descriptor. Returns its size, or a negative errno. */
static ssize_t receive_first(int socket, void *data, size_t size, int *ret_fd)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec vector = {.iov_base = data, .iov_len = size};
	struct msghdr message = {.msg_iov = &vector,
				 .msg_iovlen = 1,
				 .msg_control = control.bytes,
				 .msg_controllen = sizeof(control.bytes)};
	struct cmsghdr *header;
	ssize_t got;

	do
		got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
	while (got < 0 && errno == EINTR);
	if (got <= 0)
		return got < 0 ? -errno : -EPIPE;
	header = CMSG_FIRSTHDR(&message);
	if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
	    header->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(ret_fd, CMSG_DATA(header), sizeof(*ret_fd));
	return got;
}

int sandbox_receive(int socket, void *data, size_t size, int *ret_fd)
{
	_cleanup_close_ int fd = -1;
	ssize_t got = receive_first(socket, data, size, &fd);
	char *p = data;

	while (got > 0 && (size_t)got < size) {
		ssize_t more = read(socket, p + got, size - got);

		if (more < 0 && errno == EINTR)
			continue;
		got = more > 0 ? got + more : more < 0 ? -errno : -EPIPE;
	}
	*ret_fd = got < 0 ? -1 : fd;
	if (got > 0)
		fd = -1;
	return got < 0 ? got : 0;
}
