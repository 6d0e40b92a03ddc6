# SPDX-License-Identifier: GPL-2.0-or-later
"""Locks of musl, whose values mean something else than glibc's: 2 is a condition variable there, and no mutex."""
from harness import MS, ROOT, Profile, check, expect_failure, needs_command
from object_files import run

HOST_ONLY = "compilers are not in the guests"
UNTIMED = True  # shares of waits, and not how long they are
SOURCE = ROOT / "tests" / "workloads" / "locks.c"
WAITS = {"mutex": "mutex wait", "condvar": "condition variable wait", "join": "thread join wait"}
# By what glibc's rules take musl's values for.
FALSE = {**WAITS, "condvar": "mutex wait", "join": "mutex wait"}


def waits_of(profile):
    """{thread: Counter-like of ns by reason}, of the workload's threads, whose names are what they wait for."""
    sums = {}
    for thread in profile.threads:
        for marker in thread.markers():
            ns = marker["end"] - marker["start"]
            if thread.name in WAITS and marker["data"].get("type") == "Wait" and ns > 5 * MS:
                kinds = sums.setdefault(thread.name, {})
                kinds[marker["name"].lower()] = kinds.get(marker["name"].lower(), 0) + ns
    return sums


def check_waits(profile, wanted, allowed):
    """Each thread's waits have their name, or one of those that say less."""
    sums = waits_of(profile)
    check(set(sums) == set(wanted), f"threads that wait are {sums}")
    for thread, kinds in sums.items():
        names = {k for k in kinds if k not in ("woken", "preempted")}
        check(names <= {wanted[thread], *allowed} and names, f"{thread} waits: {kinds}, should be {wanted[thread]}")


def check_libc(context, compiler, *options, allowed=()):
    needs_command(compiler)
    program, output = context.path("locks"), context.path("p.json.gz")
    run(compiler, "-O1", "-g", "-pthread", *options, SOURCE, "-o", program)
    context.wallprof("-q", "-o", output, "--", program, context.random.randint(60, 90))
    profile = Profile.load(output)
    check_waits(profile, WAITS, allowed)
    expect_failure(check_waits, profile, FALSE, allowed)


def test_dynamic(context):
    check_libc(context, "musl-gcc", allowed=("futex wait",))


def test_static(context):
    check_libc(context, "musl-gcc", "-static", allowed=("futex wait",))


def test_glibc(context):
    """The same program has the same waits there, where all have their names."""
    check_libc(context, "gcc")
