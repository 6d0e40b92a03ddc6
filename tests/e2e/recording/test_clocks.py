# SPDX-License-Identifier: GPL-2.0-or-later
"""The wall clock is set while it is recorded, or the machine is suspended: no time of the recording depends on it."""
import copy
import datetime
import json
import platform
import re
import time
from pathlib import Path

import pytest

from capture_reader import SAMPLE, cpus_since
from harness import (IN_GUEST, MS, WALLPROF, Skip, capture_of, check, check_timed, expect_failure, needs_root,
                     read_report, wait_until)

pytestmark = pytest.mark.untimed  # it runs in guests alone
JUMPS_S = (3600, -7200, 3600)  # all of them together are nothing
MEM_SLEEP, STATE = Path("/sys/power/mem_sleep"), Path("/sys/power/state")
ALARM = Path("/sys/class/rtc/rtc0/wakealarm")
ALARM_S = 6  # an emulated machine takes two seconds or more to suspend; if the alarm is too early, guest.py wakes it


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


def suspended_ns():
    """For how long the machine has been suspended since it was booted."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) - time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def suspend():
    """Suspends the machine to memory until its clock wakes it. Returns for how long."""
    before = suspended_ns()
    MEM_SLEEP.write_text("deep")
    ALARM.write_text("0")
    ALARM.write_text(f"+{ALARM_S}")
    STATE.write_text("mem")
    return suspended_ns() - before


def check_suspend(report, ns):
    """It is reported once, with its length. The clocks are read one after the other."""
    notes = [re.match(r"suspend: the machine was suspended for ([\d.]+) s, at ([\d.]+) s; ", note)
             for note in report["notes"]]
    lengths = [float(note[1]) * 1000 * MS for note in notes if note]
    check(len(lengths) == 1 and abs(lengths[0] - ns) < 20 * MS, f"suspended for {lengths}, not for {ns} ns")


def check_undisturbed(report):
    """Nothing is lost, and no thread waited for anything in the time that was not there."""
    for kind, total in report["totals"].items():
        check(total["sent"] == total["received"] and total["lost"] == 0, f"{kind}: {total}")
    check(report["contradictions"] == 0, f"{report['contradictions']} missed switches")
    for thread in report["threads"]:
        check(thread["states"].get("unknown", 0) == 0, f"{thread['name']} has unknown time")


def check_sampled(capture, since_ns, cpus=frozenset((0, 1))):
    """CPUs that are offline in a suspend are sampled again."""
    check(cpus_since(capture, SAMPLE, since_ns) >= cpus, f"sampled: CPUs {cpus_since(capture, SAMPLE, since_ns)}")


def test_suspend(context):
    """A sleep goes on for as long after it as was left of it; a note says how long the time in between was."""
    needs_root()
    if not IN_GUEST or not ALARM.exists() or "deep" not in MEM_SLEEP.read_text():
        raise Skip("only guests with a clock that can wake them are suspended")
    if platform.release().startswith("6.1."):
        raise Skip("a guest with 6.1 does not always resume")
    output, truths = context.path("p.json.gz"), [context.path(name) for name in ("sleeps", "burn")]
    script = " & ".join(" ".join(map(str, words)) for words in (
        context.workload("burn", threads=2, cpus=2, ms=4000, truth=truths[1]),
        context.workload("sleeps", threads=1, rounds=5, ms=1000, truth=truths[0])))
    recorder = context.start([WALLPROF, "-q", "--keep-capture", "-o", output, "--", "/bin/sh", "-c", f"{script}; wait"])
    wait_until(lambda: capture_of(output).exists(), "the recording has begun")
    time.sleep(1)  # so that threads run and sleep when it begins
    ns, resumed_ns = suspend(), time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    check(ns > 100 * MS, f"the machine was suspended for {ns} ns")
    check(recorder.wait(timeout=context.timeout_s) == 0, "the recording failed")
    report, truth = read_report(context, capture_of(output)), json.loads(truths[0].read_text())
    check_suspend(report, ns)
    check_undisturbed(report)
    check_times(report, truth)
    check_sampled(capture_of(output), resumed_ns)
    expect_failure(check_sampled, capture_of(output), time.clock_gettime_ns(time.CLOCK_MONOTONIC))
    expect_failure(check_suspend, report, 0)
    without = copy.deepcopy(report)
    without["notes"] = []
    expect_failure(check_suspend, without, ns)
    sleeper(truth)["waits"][2][2] += ns
    expect_failure(check_times, report, truth)
