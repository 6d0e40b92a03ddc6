# SPDX-License-Identifier: GPL-2.0-or-later
"""The wall clock is set while it is recorded: no time of the recording depends on it."""
import datetime
import json
import time

import pytest

from harness import (IN_GUEST, MS, WALLPROF, Skip, capture_of, check, check_timed, expect_failure, needs_root,
                     read_report, wait_until)

pytestmark = pytest.mark.untimed  # it runs in guests alone
JUMPS_S = (3600, -7200, 3600)  # all of them together are nothing


def recorded(context):
    """The report of a program that sleeps while the clock is set, and what it says of itself."""
    output, truth = context.path("p.json.gz"), context.path("truth")
    recorder = context.start([WALLPROF, "-q", "--keep-capture", "-o", output, "--",
                              *context.workload("sleeps", threads=1, rounds=4, ms=1000, truth=truth)])
    wait_until(lambda: capture_of(output).exists(), "the recording has begun")
    set_clock_to_and_fro()
    check(recorder.wait(timeout=context.timeout_s) == 0, "the recording failed")
    return read_report(context, capture_of(output)), json.loads(truth.read_text())


def sleeper(truth):
    return next(thread for thread in truth["threads"] if thread["name"] == "sleeper 0")


def check_times(report, truth):
    for thread in report["threads"]:
        check(sum(thread["states"].values()) == thread["lifetime_ns"], f"the states do not add up: {thread}")
    told = sleeper(truth)
    slept = sum(end - begin for what, begin, end in told["waits"] if what == "sleep")
    ledger = next(t for t in report["threads"] if t["tid"] == told["tid"])
    check_timed("asleep", ledger["states"]["blocked"], slept, 0.05, 100 * MS)


def check_start(report, real_s):
    begun = datetime.datetime.fromisoformat(report["start_time"][:26] + "+00:00").timestamp()
    check(abs(begun - real_s) < 60, f"it began at {begun}, not at {real_s}")


def set_clock_to_and_fro():
    for jump in JUMPS_S:
        time.clock_settime(time.CLOCK_REALTIME, time.time() + jump)
        time.sleep(0.5)  # so that switches are recorded in between


def test_clock_is_set(context):
    """Forwards, backwards, and to what it was."""
    needs_root()
    if not IN_GUEST:
        raise Skip("the clock of guests alone is set")
    begun = time.time()
    report, truth = recorded(context)
    check_times(report, truth)
    check_start(report, begun)
    expect_failure(check_start, report, begun + JUMPS_S[0])
    sleeper(truth)["waits"][0][2] += JUMPS_S[0] * 1000 * MS
    expect_failure(check_times, report, truth)
