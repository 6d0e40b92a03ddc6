# SPDX-License-Identifier: GPL-2.0-or-later
"""The wall clock is set, and the machine is suspended, while it is recorded: no time of the recording depends on them."""
import datetime
import json
import os
import time
from pathlib import Path

import pytest

from harness import (IN_GUEST, MS, WALLPROF, Skip, capture_of, check, check_timed, expect_failure, needs_root,
                     read_report, wait_until)

pytestmark = pytest.mark.untimed  # it runs in guests alone
STATE, ALARM = Path("/sys/power/state"), Path("/sys/class/rtc/rtc0/wakealarm")
ASLEEP_S = 4
JUMPS_S = (3600, -7200, 3600)  # all of them together are nothing


def recorded(context, disturb):
    """The report of a program that sleeps, what it says of itself, and how long disturb() took by CLOCK_MONOTONIC."""
    output, truth = context.path("p.json.gz"), context.path("truth")
    recorder = context.start([WALLPROF, "-q", "--keep-capture", "-o", output, "--",
                              *context.workload("sleeps", threads=1, rounds=4, ms=1000, truth=truth)])
    wait_until(lambda: capture_of(output).exists(), "the recording has begun")
    begin = time.monotonic()
    disturb()
    took = time.monotonic() - begin
    check(recorder.wait(timeout=context.timeout_s) == 0, "the recording failed")
    return read_report(context, capture_of(output)), json.loads(truth.read_text()), took


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
    report, truth, _ = recorded(context, set_clock_to_and_fro)
    check_times(report, truth)
    check_start(report, begun)
    expect_failure(check_start, report, begun + JUMPS_S[0])
    sleeper(truth)["waits"][0][2] += JUMPS_S[0] * 1000 * MS
    expect_failure(check_times, report, truth)


def suspend():
    ALARM.write_text("0")
    ALARM.write_text(f"+{ASLEEP_S}")
    STATE.write_text("freeze")


def test_suspended(context):
    """CLOCK_MONOTONIC stands still meanwhile, for the recording as for the program."""
    needs_root()
    if not IN_GUEST:
        raise Skip("guests alone are suspended")
    if not os.access(ALARM, os.W_OK) or "freeze" not in STATE.read_text():
        raise Skip("nothing would wake this machine")
    before = time.clock_gettime(time.CLOCK_BOOTTIME) - time.monotonic()
    report, truth, _ = recorded(context, suspend)
    asleep = time.clock_gettime(time.CLOCK_BOOTTIME) - time.monotonic() - before
    check(asleep > ASLEEP_S / 2, f"it was suspended for {asleep:.1f} s")
    check_times(report, truth)
    check(report["window_ns"] < 60 * 1000 * MS, f"a window of {report['window_ns'] / 1e9} s")
    sleeper(truth)["waits"][0][2] += int(asleep * 1000) * MS
    expect_failure(check_times, report, truth)
