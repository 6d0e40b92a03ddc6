/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which cgroup's limit on CPU time throttles, with the kernel's files made up. */
#include "cgroup.h"
#include "test_tools.h"
#include <sys/stat.h>

typedef struct World {
	char *root, *proc;
	CgroupCpuLimits limits;
} World;

static void make_path(const char *root, const char *path)
{
	_cleanup_free_ char *folder = xasprintf("%s%s", root, path);

	assert_int_equal(mkdir(folder, 0700), 0);
}

static void put(const char *root, const char *path, const char *name, const char *text)
{
	_cleanup_free_ char *folder = xasprintf("%s%s", root, path);

	write_file(folder, name, text);
}

static World world_new(const char *cgroup)
{
	World world = {.root = make_folder(), .proc = make_folder()};

	make_path(world.proc, "/7");
	put(world.proc, "/7", "cgroup", cgroup);
	world.limits.root = world.root;
	world.limits.proc = world.proc;
	return world;
}

static void world_free(World *world)
{
	cgroup_cpu_limits_free(&world->limits);
	remove_folder(world->root);
	remove_folder(world->proc);
}

/* The limit is that of the folder above; a sibling without processes does not count. */
static void test_unified(void **state)
{
	World world = world_new("3:memory:/elsewhere\n0::/web.slice/db.service\n");
	const CgroupCpuLimit *limit;
	uint64_t ns;

	(void)state;
	make_path(world.root, "/web.slice");
	make_path(world.root, "/web.slice/db.service");
	make_path(world.root, "/other");
	put(world.root, "/other", "cpu.max", "1000 100000\n");
	put(world.root, "/other", "cpu.stat", "throttled_usec 99000\n");
	put(world.root, "/web.slice", "cpu.max", "50000 100000\n");
	put(world.root, "/web.slice", "cpu.stat",
	    "usage_usec 5\nnr_throttled 4\nthrottled_usec 1000\n");
	put(world.root, "/web.slice/db.service", "cpu.max", "max 100000\n");
	cgroup_cpu_limits_add(&world.limits, 8); /* no such process */
	assert_int_equal(world.limits.list.count, 0);
	cgroup_cpu_limits_add(&world.limits, 7);
	cgroup_cpu_limits_add(&world.limits, 7);
	assert_int_equal(world.limits.list.count, 1);
	assert_null(cgroup_cpu_limits_most(&world.limits, &ns));
	put(world.root, "/web.slice", "cpu.stat", "usage_usec 5\nthrottled_usec 251000\n");
	limit = cgroup_cpu_limits_most(&world.limits, &ns);
	assert_non_null(limit);
	assert_string_equal(limit->path, "/web.slice");
	assert_int_equal(limit->quota_us, 50000);
	assert_int_equal(limit->period_us, 100000);
	assert_int_equal(ns, 250 * NSEC_PER_MSEC);
	world_free(&world);
}

/* Version 1 has other files, in a hierarchy of the controller; -1 is no limit there. */
static void test_version_1(void **state)
{
	World world = world_new("4:cpu,cpuacct:/a/b\n2:cpuset:/a\n0::/\n");
	const CgroupCpuLimit *limit;
	uint64_t ns;

	(void)state;
	make_path(world.root, "/cpu");
	make_path(world.root, "/cpu/a");
	make_path(world.root, "/cpu/a/b");
	put(world.root, "/cpu", "cpu.cfs_quota_us", "-1\n");
	put(world.root, "/cpu", "cpu.cfs_period_us", "100000\n");
	put(world.root, "/cpu/a", "cpu.cfs_quota_us", "-1\n");
	put(world.root, "/cpu/a", "cpu.cfs_period_us", "100000\n");
	put(world.root, "/cpu/a/b", "cpu.cfs_quota_us", "4000\n");
	put(world.root, "/cpu/a/b", "cpu.cfs_period_us", "20000\n");
	put(world.root, "/cpu/a/b", "cpu.stat", "nr_throttled 0\nthrottled_time 0\n");
	cgroup_cpu_limits_add(&world.limits, 7);
	assert_int_equal(world.limits.list.count, 1);
	put(world.root, "/cpu/a/b", "cpu.stat", "nr_throttled 9\nthrottled_time 7000000\n");
	limit = cgroup_cpu_limits_most(&world.limits, &ns);
	assert_non_null(limit);
	assert_string_equal(limit->path, "/a/b");
	assert_int_equal(ns, 7 * NSEC_PER_MSEC);
	world_free(&world);
}

/* A cgroup that is gone at the end has no time to compare. */
static void test_removed(void **state)
{
	World world = world_new("0::/a\n");
	_cleanup_free_ char *stat = xasprintf("%s/a/cpu.stat", world.root);
	uint64_t ns;

	(void)state;
	make_path(world.root, "/a");
	put(world.root, "/a", "cpu.max", "4000 100000\n");
	put(world.root, "/a", "cpu.stat", "throttled_usec 5\n");
	cgroup_cpu_limits_add(&world.limits, 7);
	assert_int_equal(unlink(stat), 0);
	assert_null(cgroup_cpu_limits_most(&world.limits, &ns));
	world_free(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unified),
		cmocka_unit_test(test_version_1),
		cmocka_unit_test(test_removed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
