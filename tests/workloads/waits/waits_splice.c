/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Calls that move data between two descriptors without a copy, and a close that lingers. */
#include "truth.h"
#include "waits.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

bool set_up_splice_from(struct wait_state *state)
{
	state->other = open("/dev/null", O_WRONLY | O_CLOEXEC);
	return state->other >= 0 && set_up_pipe(state);
}

bool set_up_splice_to(struct wait_state *state)
{
	/* Splicing from /dev/zero is possible since 6.5. */
	state->other = memfd_create("splice", MFD_CLOEXEC);
	return state->other >= 0 && write(state->other, "x", 1) == 1 &&
	       lseek(state->other, 0, SEEK_SET) == 0 && set_up_full_pipe(state);
}

void wait_splice_from(struct wait_state *state)
{
	truth_check(splice(state->fd[0], NULL, state->other, NULL, 1, 0) == 1, "splice");
}

void wait_splice_to(struct wait_state *state)
{
	truth_check(splice(state->other, NULL, state->fd[1], NULL, 1, 0) == 1, "splice");
}

/* From a pipe that has something in it. */
void wait_tee(struct wait_state *state)
{
	int full[2];

	truth_check(pipe2(full, O_CLOEXEC) == 0 && write(full[1], "x", 1) == 1, "pipe");
	truth_check(tee(full[0], state->fd[1], 1, 0) == 1, "tee");
	close(full[0]);
	close(full[1]);
}

void wait_vmsplice(struct wait_state *state)
{
	struct iovec one = {.iov_base = "x", .iov_len = 1};

	truth_check(vmsplice(state->fd[1], &one, 1, 0) == 1, "vmsplice");
}
