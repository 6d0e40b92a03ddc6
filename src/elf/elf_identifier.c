/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "elf_identifier.h"
#include "sandbox.h"
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/*
 * The recorder waits for the answer while its rings fill: a normal file takes some 20 us of CPU
 * time, and the rings hold much more than this. If other programs want every CPU, or the file's
 * disk is slow, it takes longer in wall-clock time: all files of a recording together may exceed
 * the limit by SPARE_MS. Each file that exceeds it halves the time of the next one, because a
 * program may map any number of files.
 */
#define ANSWER_MS     500
#define ANSWER_MIN_MS 100
#define SPARE_MS      4000
#define CHECK_MS      20 /* the interval between checks of the child's CPU time */
#define MEMORY	      (64ULL << 20)

struct answer {
	int32_t result;
	uint32_t load_count;
	uint64_t base_svma;
	uint8_t build_id[20];
	uint8_t build_id_len;
	uint8_t is_32;
	uint8_t not_elf;
	uint8_t reserved;
};

struct ElfIdentifier {
	ElfIdentify identify;
	Sandbox child;
	unsigned answer_ms;
	uint64_t spare_ns; /* what is left of SPARE_MS */
};

/* ---- in the child ---------------------------------------------------------------------- */

static int answer_one(int socket, int fd, ElfIdentify identify)
{
	_cleanup_(elf_identity_free) ElfIdentity identity = {};
	struct answer answer = {.result = identify(fd, &identity)};
	int r;

	answer.not_elf = identity.not_elf;
	if (answer.result == 0) {
		answer.base_svma = identity.base_svma;
		answer.load_count = identity.loads.count;
		answer.build_id_len = identity.build_id_len;
		answer.is_32 = identity.is_32;
		memcpy(answer.build_id, identity.build_id, sizeof(answer.build_id));
	}
	r = sandbox_send(socket, &answer, sizeof(answer), -1);
	return r < 0 ? r
		     : sandbox_send(socket, identity.loads.items,
				    answer.load_count * sizeof(*identity.loads.items), -1);
}

static void child_main(int socket, const int *fds, const void *argument)
{
	const ElfIdentifier *identifier = argument;
	uint8_t byte;
	int fd, r;

	(void)fds;
	do {
		r = sandbox_receive(socket, &byte, 1, &fd);
		if (r == 0)
			r = answer_one(socket, fd, identifier->identify);
		closep(&fd);
	} while (r == 0);
}

/* ---- in the recorder ------------------------------------------------------------------- */

ElfIdentifier *elf_identifier_new(ElfIdentify identify)
{
	ElfIdentifier *identifier = xcalloc(1, sizeof(*identifier));

	identifier->identify = identify;
	identifier->child.socket = -1;
	identifier->answer_ms = ANSWER_MS;
	identifier->spare_ns = SPARE_MS * NSEC_PER_MSEC;
	return identifier;
}

void elf_identifier_free(ElfIdentifier *identifier)
{
	if (!identifier)
		return;
	sandbox_end(&identifier->child);
	free(identifier);
}

/* The limits of one question to the child. */
struct timeout {
	clockid_t cpu_clock;
	uint64_t cpu_deadline_ns; /* on cpu_clock */
	uint64_t deadline_ns;	  /* CLOCK_MONOTONIC */
};

static struct timeout timeout_begin(const ElfIdentifier *identifier)
{
	uint64_t cpu_ns = identifier->answer_ms * NSEC_PER_MSEC;
	struct timeout timeout = {.deadline_ns = now_ns() + cpu_ns + identifier->spare_ns};

	/* The child has not been waited for, so it has a clock even if it has ended. */
	if (clock_getcpuclockid(identifier->child.pid, &timeout.cpu_clock) != 0)
		timeout.cpu_clock = CLOCK_MONOTONIC;
	timeout.cpu_deadline_ns = clock_ns(timeout.cpu_clock) + cpu_ns;
	return timeout;
}

static bool timeout_expired(const struct timeout *timeout)
{
	return now_ns() >= timeout->deadline_ns ||
	       clock_ns(timeout->cpu_clock) >= timeout->cpu_deadline_ns;
}

/* Reads exactly size bytes, or fails when the time is over. */
static int receive(int socket, void *data, size_t size, const struct timeout *timeout)
{
	char *p = data;

	while (size > 0) {
		struct pollfd polled = {.fd = socket, .events = POLLIN};
		ssize_t got = 0;

		if (poll(&polled, 1, CHECK_MS) > 0) {
			got = recv(socket, p, size, 0);
			if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
				return -EIO;
		}
		if (got > 0) {
			p += got;
			size -= got;
		}
		if (size > 0 && timeout_expired(timeout))
			return -ETIME;
	}
	return 0;
}

static int receive_answer(const ElfIdentifier *identifier, ElfIdentity *ret_identity)
{
	struct timeout timeout = timeout_begin(identifier);
	int socket = identifier->child.socket;
	ElfIdentity identity = {};
	struct answer answer;
	int r = receive(socket, &answer, sizeof(answer), &timeout);

	if (r < 0)
		return r;
	if (answer.load_count > ELF_LOADS_MAX || answer.build_id_len > sizeof(answer.build_id) ||
	    answer.result > 0)
		return -EIO;
	identity.base_svma = answer.base_svma;
	identity.build_id_len = answer.build_id_len;
	identity.is_32 = answer.is_32 != 0;
	memcpy(identity.build_id, answer.build_id, sizeof(identity.build_id));
	vec_reserve(&identity.loads, answer.load_count);
	identity.loads.count = answer.load_count;
	r = receive(socket, identity.loads.items, answer.load_count * sizeof(ElfSegment), &timeout);
	if (r == 0 && answer.result == 0)
		*ret_identity = identity;
	else
		elf_identity_free(&identity);
	ret_identity->not_elf = answer.not_elf != 0;
	return r < 0 ? r : answer.result;
}

int elf_identifier_identify(ElfIdentifier *identifier, int fd, ElfIdentity *ret_identity)
{
	SandboxLimits limits = {.memory = MEMORY};
	uint64_t began_ns = now_ns(), took_ns;
	int r = 0;

	*ret_identity = (ElfIdentity){};
	if (identifier->child.pid == 0)
		r = sandbox_start(child_main, NULL, 0, identifier, &limits, &identifier->child);
	if (r < 0)
		return r;
	r = sandbox_send(identifier->child.socket, "", 1, fd);
	if (r == 0)
		r = receive_answer(identifier, ret_identity);
	took_ns = now_ns() - began_ns;
	if (took_ns > identifier->answer_ms * NSEC_PER_MSEC)
		identifier->spare_ns -=
			MIN(identifier->spare_ns, took_ns - identifier->answer_ms * NSEC_PER_MSEC);
	if (r == -ETIME)
		identifier->answer_ms = MAX(identifier->answer_ms / 2, (unsigned)ANSWER_MIN_MS);
	if (r == -EIO || r == -ETIME || r == -EPIPE || r == -EAGAIN)
		sandbox_end(&identifier->child); /* the next file gets a new child */
	return r;
}
