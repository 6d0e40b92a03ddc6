# SPDX-License-Identifier: GPL-2.0-or-later
"""Text that a program has moved to anonymous memory has the stacks and names of its file, if it is the same text."""
import os

import pytest

from chains import Announcements, check_reported, compare
from harness import WORKLOADS, Profile, check, expect_failure, hit, wait_until
from stack_roots import Roots

pytestmark = pytest.mark.untimed
LIBRARY = WORKLOADS / "libmoved.so"
ENDLESS = 1_000_000


def announced(context):
    path = context.path("announced")
    path.unlink(missing_ok=True)
    return path, {**os.environ, "WALLPROF_ANNOUNCE": str(path)}


def record(context, mode):
    path, environment = announced(context)
    output = context.path("p.json.gz")
    ms, rounds = hit(context.random.randint(10, 20)), context.random.randint(20, 30)
    context.wallprof("-q", "-o", output, "--", WORKLOADS / "moved-text", mode, ms, rounds, LIBRARY, env=environment)
    return Profile.load(output), Announcements(path)


def attach(context, mode):
    """The same, of a program whose text was moved before the recording began."""
    path, environment = announced(context)
    output = context.path("p.json.gz")
    target = context.start([WORKLOADS / "moved-text", mode, hit(10), ENDLESS, LIBRARY], env=environment)
    wait_until(lambda: path.exists() and path.read_text().count("\n") > 2, "it has called its library")
    context.wallprof("-q", "-o", output, "-p", target.pid, "-d", "500ms")
    target.terminate()
    target.wait()
    return Profile.load(output), Announcements(path)


def check_whole(profile, reported):
    roots = Roots(profile)
    verdict = check_reported(profile, reported, roots, marked_share=0.02)
    other = reported.altered(lambda chain: chain.replace("within_moved", "within_other"))
    expect_failure(check_reported, profile, other, roots, marked_share=0.02)
    check(sum(verdict.exact.values()) > 10, f"hardly a stack: {verdict.exact}")


@pytest.mark.parametrize("mode", ["copy", "half", "remap"])
def test_moved(context, mode):
    check_whole(*record(context, mode))


@pytest.mark.parametrize("mode", ["copy", "half", "remap"])
def test_moved_before(context, mode):
    check_whole(*attach(context, mode))


def names_in_library(profile):
    """Names that the library's text has been given."""
    return {name for thread in profile.threads for i in range(len(thread.times)) for name in thread.frames_of(i)
            if name.startswith(("enter_moved", "within_moved"))}


def check_unnamed(profile, reported):
    found = compare(profile, reported, Roots(profile))
    check(not names_in_library(profile), f"text that differs has the file's names: {names_in_library(profile)}")
    check(not found.exact and sum(found.marked.values()) + len(found.wrong) > 10, f"not what was to be seen: {found}")


@pytest.mark.parametrize("recorded", [record, attach])
def test_changed(context, recorded):
    """One byte differs, so nothing is known of it."""
    profile, reported = recorded(context, "changed")
    check_unnamed(profile, reported)
    expect_failure(check_unnamed, *recorded(context, "copy"))
