# SPDX-License-Identifier: GPL-2.0-or-later
"""The timer of the CPU samples interrupts those CPUs alone on which a target runs, and follows it to others."""
import bisect
import contextlib
import json
import os
import re
import struct
import time

import pytest

import cgroups
from capture_reader import records
from harness import (IN_GUEST, MS, WALLPROF, Skip, check, check_timed, expect_failure, noticeable,
                     wait_until)

SAMPLE = 16
PERIOD_NS = 1_000_000_000 // 999
REST_MS = 1000  # where no target runs it rests after so long
# An emulated CPU may be at a tick for longer than a period: the kernel leaves out those that are over by then.
SHARE, OMITTED = 0.05, 0.35 if IN_GUEST else 0.05


def samples_of(capture, tid):
    """When they were, in order."""
    return sorted(ns for _, _, ns, record in records(capture, {SAMPLE})
                  if struct.unpack_from("<I", record, 16)[0] == tid)


def missing(report):
    """Returns how many samples may be missing, as wallprof reports."""
    found = [re.match(r"CPU samples: (\d+) missing at most", note) for note in report["notes"]]
    return sum(int(match[1]) for match in found if match)


def check_sampled(what, samples, begin, end, ran, may_miss):
    """There is a sample for each period that a thread ran, except those reported as missing."""
    count = bisect.bisect(samples, end) - bisect.bisect(samples, begin)
    check(count > 0, f"{what}: no sample at all")
    sampled = count * PERIOD_NS
    check_timed(f"{what}, sampled", sampled, ran, OMITTED if sampled < ran else SHARE, (5 + may_miss) * MS)


def needs_two_cpus():
    cpus = os.sched_getaffinity(0)
    if len(cpus) < 2:
        raise Skip("one CPU: there is no other to move to")
    return len(cpus)


def keep_busy(context, cpu):
    """Keeps the CPU busy with a non-target at the lowest priority: the timer of an idle CPU may be stopped."""
    def wait_until_idle():
        os.sched_setaffinity(0, {cpu})
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))

    context.start(context.workload("burn", threads=1, cpus=1, ms=10**6), preexec_fn=wait_until_idle)


def ticks(cost):
    """Returns how often the kernel ran the sampling program."""
    return int(re.search(r"^on_tick +(\d+) ", cost, re.M)[1])


def check_rested(count, cpus, ms, stays):
    """The CPU that it stays on all the time, the others for as long as they may after it has gone."""
    most = (ms * stays + REST_MS * (cpus - 2 + stays)) * MS / PERIOD_NS
    check(count < 1.15 * most, f"{count} ticks, should be at most {most:.0f}")


def test_followed(context):
    """A thread that computes on one CPU for so long that ticks rest on the others, then on another."""
    cpus, stays = needs_two_cpus(), 2
    ms, capture, truth = 2 * REST_MS + context.random.randint(200, 500), context.path("c.wp"), context.path("truth")
    for cpu in os.sched_getaffinity(0):
        keep_busy(context, cpu)
    done = context.wallprof("record", "--cost", "--defer-symbols", "-o", capture, "--",
                            *context.workload("roam", truth=truth, ms=ms, stays=stays))
    report = json.loads(context.wallprof("report", "--json", capture).stdout)
    [thread] = json.loads(truth.read_text())["threads"]
    samples = samples_of(capture, thread["tid"])
    count = ticks(done.stderr)
    print(f"# {count} ticks on {cpus} CPUs, {len(samples)} samples, {missing(report)} missing", flush=True)
    check_rested(count, cpus, ms, stays)
    expect_failure(check_rested, cpus * ms * stays * MS // PERIOD_NS, cpus, ms, stays)
    for i, (_, begin, end) in enumerate(thread["waits"]):
        check_sampled(f"stay {i}", samples, begin, end, ms * MS, missing(report))
        expect_failure(check_sampled, f"stay {i}", samples, begin, end, noticeable(2 * ms * MS, ms * MS),
                       missing(report))
    expect_failure(check_sampled, "a stay before it", samples, 0, thread["waits"][0][1] - ms * MS, ms * MS, 0)


def check_waited(count, stays, pause_ms):
    """The other CPUs have the first second, and this one rests before it comes back for the first time."""
    least = (REST_MS + stays * pause_ms - (pause_ms - REST_MS)) * MS / PERIOD_NS
    check(count > 0.9 * least, f"{count} ticks, should be at least {least:.0f}")


@pytest.mark.host_only("a guest's clock is not its own")
def test_waited_for(context):
    """A thread that wakes up now and then has a timer that runs, but for the first time."""
    needs_two_cpus()
    stays, pause_ms = 4, context.random.randint(1700, 1900)
    for cpu in os.sched_getaffinity(0):
        keep_busy(context, cpu)
    done = context.wallprof("record", "--cost", "--defer-symbols", "-o", context.path("c.wp"), "--",
                            *context.workload("roam", truth=context.path("truth"), ms=1, stays=stays, cpus=1,
                                              pause=pause_ms))
    count = ticks(done.stderr)
    print(f"# {count} ticks, {stays} pauses of {pause_ms} ms", flush=True)
    check_waited(count, stays, pause_ms)
    expect_failure(check_waited, REST_MS * (stays + 1), stays, pause_ms)


def test_joined(context):
    """A process that enters a recorded cgroup is sampled, also on CPUs whose ticks are stopped."""
    needs_two_cpus()
    enters_ms, stays_ms = REST_MS + context.random.randint(500, 800), context.random.randint(400, 700)
    capture, truth = context.path("c.wp"), context.path("truth")
    with contextlib.ExitStack() as left:
        root = cgroups.old("pids") or cgroups.unified(context, left, "pids")
        group = root / f"wallprof-{os.getpid()}"
        group.mkdir()
        left.callback(group.rmdir)
        left.callback(context.close, True)
        recorder = context.start([WALLPROF, "record", "-q", "-o", capture, "--cgroup", group, "-d",
                                  f"{enters_ms + stays_ms + 1000}ms"])
        wait_until(lambda: capture.exists() or recorder.poll() is not None, "the recording begins")
        target = context.start(context.workload("roam", truth=truth, ms=enters_ms + stays_ms, stays=1))
        time.sleep(enters_ms / 1000)  # the time outside the group, which the check compares
        (group / "cgroup.procs").write_text(str(target.pid))
        joined = time.monotonic_ns()
        check(target.wait(timeout=context.timeout_s) == 0, "the target failed")
        check(recorder.wait(timeout=context.timeout_s) == 0, "the recording failed")
    report = json.loads(context.wallprof("report", "--json", capture).stdout)
    [thread] = json.loads(truth.read_text())["threads"]
    [(_, _, end)] = thread["waits"]
    samples = samples_of(capture, target.pid)
    ran = (end - joined) * thread["cpu_ns"] / (thread["end_ns"] - thread["begin_ns"])
    check_sampled("since it joined", samples, joined, end, ran, missing(report) + 30)
    expect_failure(check_sampled, "since it joined", samples, joined, end, noticeable(3 * ran, ran),
                   missing(report) + 30)
