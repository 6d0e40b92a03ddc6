# SPDX-License-Identifier: GPL-2.0-or-later
"""Where a program waited, in the summary: its wrappers of waits say no more than the reason does."""
import re

import pytest

from harness import WORKLOADS, check, expect_failure, needs_root, read_report

pytestmark = pytest.mark.untimed
NEARLY_ALL = 95  # percent: from there on no share is said
TOLERANCE = 6    # percent: each sleep is longer than its time by a wakeup, and these are not equally long


def slept(context, *arguments):
    """What the answer says of the main thread's sleeps."""
    needs_root()
    capture, output = context.path("p.capture"), context.path("p.json")
    context.wallprof("-o", output, "--", WORKLOADS / "wrappers", *arguments)
    parts = read_report(context, capture)["answer"]["parts"]
    found = [part["what"] for part in parts if part["what"].startswith("[sleep]") and not part["who"].startswith("other")]
    check(len(found) == 1, f"not one part has the sleeps: {parts}")
    return found[0]


def check_place(what, function, caller, percent=100):
    said = re.match(r"\[sleep\](?: of about [^,]*| of [^,]*)?(?:, (\d+) %)? in (\w+) (?:←|<-) (\w+)", what)
    check(said, f"no functions: {what}")
    check(said[2] == function and said[3] == caller, f"{said[2]} of {said[3]}, should be {function} of {caller}: {what}")
    check((said[1] is None) == (percent >= NEARLY_ALL), f"the share is {percent:.1f} %: {what}")
    check(said[1] is None or abs(int(said[1]) - percent) <= TOLERANCE, f"the share should be {percent:.1f} %: {what}")


def test_differing_calls(context):
    """One of two callers is drawn to have most of the time, or nearly all of it."""
    for lock_us in (context.random.randint(5500, 8000), context.random.randint(9850, 9900)):
        flush_us = 10000 - lock_us
        what, percent = slept(context, 40, lock_us, flush_us, 0), 100 * lock_us / 10000
        print(f"# {percent:.1f} %: {what}")
        check_place(what, "wait_latch", "lock_row", percent)
        expect_failure(check_place, what, "wait_latch", "flush_log", percent)
        expect_failure(check_place, what, "truth_sleep", "wait_event", percent)
        expect_failure(check_place, what, "wait_latch", "lock_row", percent - 30)


def test_calls_elsewhere(context):
    """Another thread has shown that the function is a wrapper."""
    lock_us = context.random.randint(5000, 9000)
    what = slept(context, 20, lock_us, 0, 20 * lock_us // 2)
    check_place(what, "wait_latch", "lock_row")
    expect_failure(check_place, what, "truth_sleep", "wait_event")


def test_no_wrapper(context):
    """Without another call the innermost functions say most."""
    what = slept(context, 20, context.random.randint(5000, 9000), 0, 0)
    check_place(what, "truth_sleep", "wait_event")
    expect_failure(check_place, what, "wait_latch", "lock_row")
