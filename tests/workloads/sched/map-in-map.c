/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * map-in-map - threads that each put `--updates` maps into an array of maps, where the kernel waits
 * for a grace period of RCU each time; with `--plain 1` numbers into an array, where it does not.
 */
#include "truth.h"
#include <bpf/bpf.h>

static uint64_t thread_count = 8, updates = 20, plain;
static int map, inner;

static void *updater(void *arg)
{
	uint64_t number = (uint64_t)(uintptr_t)arg;
	TruthThread *self = truth_begin("updater %lu", number);
	uint32_t key = (uint32_t)number;
	uint64_t value = plain ? number : (uint64_t)inner;

	for (uint64_t i = 0; i < updates; i++) {
		uint64_t begin = truth_now();

		truth_check(bpf_map_update_elem(map, &key, &value, BPF_ANY) == 0,
			    "bpf_map_update_elem");
		truth_wait(self, "RCU grace period wait", begin);
	}
	truth_park(self);
}

int main(int argc, char **argv)
{
	TruthThread *self;
	struct bpf_map_create_opts options = {.sz = sizeof(options)};

	truth_options(
		argc, argv,
		(TruthOption[]){
			{"threads", &thread_count}, {"updates", &updates}, {"plain", &plain}, {}});
	self = truth_begin("map-in-map");
	inner = bpf_map_create(BPF_MAP_TYPE_ARRAY, "inner", 4, 8, 1, NULL);
	truth_check(inner >= 0, "bpf_map_create");
	options.inner_map_fd = (uint32_t)inner;
	map = bpf_map_create(plain ? BPF_MAP_TYPE_ARRAY : BPF_MAP_TYPE_ARRAY_OF_MAPS, "map", 4,
			     plain ? 8 : 4, (uint32_t)thread_count, plain ? NULL : &options);
	truth_check(map >= 0, "bpf_map_create");
	for (uint64_t i = 0; i < thread_count; i++)
		truth_spawn(updater, i);
	truth_finish(self);
}
