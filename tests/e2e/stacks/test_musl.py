# SPDX-License-Identifier: GPL-2.0-or-later
"""Locks of musl. Their values differ from glibc's: 2 is a condition variable there, not a mutex."""
import pytest

from harness import MS, ROOT, Profile, check, expect_failure, needs_command
from object_files import run

# Shares of waits, and not how long they are.
pytestmark = [pytest.mark.untimed, pytest.mark.host_only("compilers are not in the guests")]
SOURCE = ROOT / "tests" / "workloads" / "waits" / "locks.c"
WAITS = {"mutex": "mutex wait", "condvar": "condition variable wait", "join": "thread join wait"}
# The reasons that glibc's rules derive from musl's values.
FALSE = {**WAITS, "condvar": "mutex wait", "join": "mutex wait"}


def waits_of(profile):
    """{thread: Counter-like of ns by reason}, of the workload's threads; each has the name of its wait."""
    sums = {}
    for thread in profile.threads:
        for marker in thread.markers():
            ns = marker["end"] - marker["start"]
            if thread.name in WAITS and marker["data"].get("type") == "Wait" and ns > 5 * MS:
                kinds = sums.setdefault(thread.name, {})
                kinds[marker["name"].lower()] = kinds.get(marker["name"].lower(), 0) + ns
    return sums


def check_waits(profile, wanted, allowed):
    """Each thread's waits have their name, or a less specific one."""
    sums = waits_of(profile)
    check(set(sums) == set(wanted), f"threads that wait are {sums}")
    for thread, kinds in sums.items():
        names = {k for k in kinds if not k.startswith("runnable")}
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
    """The same program has the same waits with glibc, and all have their names."""
    check_libc(context, "gcc")
