/* SPDX-License-Identifier: GPL-2.0-or-later */
/* brief - a program that takes `--ms` in all, half of it computing, half asleep. */
#include "truth.h"

static uint64_t ms = 20;

int main(int argc, char **argv)
{
	TruthThread *self;
	uint64_t begin;

	truth_options(argc, argv, (TruthOption[]){{"ms", &ms}, {}});
	self = truth_begin("brief");
	truth_burn(ms * NSEC_PER_MSEC / 2);
	begin = truth_now();
	truth_sleep(ms * NSEC_PER_MSEC / 2);
	truth_wait(self, "sleep", begin);
	truth_finish(self);
}
