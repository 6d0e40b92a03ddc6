# SPDX-License-Identifier: GPL-2.0-or-later
"""The timer of the CPU samples interrupts those CPUs alone on which a target runs, and follows it to others."""
import bisect
import contextlib
import json
import math
import os
import re
import struct
import time

import pytest

import cgroups
from capture_reader import records
from harness import (IN_GUEST, MS, WALLPROF, Skip, check, check_timed, expect_failure, needs_root,
                     noticeable, wait_until)

SAMPLE, WINDOW, START = 16, 34, 1
PERIOD_NS = 1_000_000_000 // 999
REST_MS = 1000  # where no target runs it rests after so long
FULL_NS, SHARE_OF_CPU, LEAST_HZ = 2_000_000_000, 0.01, 99  # of -F auto
SIGMAS = 5
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
    done = context.wallprof("record", "-F", "999", "--cost", "--defer-symbols", "-o", capture, "--",
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
    done = context.wallprof("record", "-F", "999", "--cost", "--defer-symbols", "-o", context.path("c.wp"), "--",
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
        recorder = context.start([WALLPROF, "record", "-F", "999", "-q", "-o", capture, "--cgroup", group, "-d",
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


def start_of(capture):
    return min(ns for _, flags, ns, _ in records(capture, {WINDOW}) if flags & START)


class Part:
    """The samples of a process in a part of a recording, and what wallprof reports of the part."""
    def __init__(self, context, capture, pid, begin, end):
        bounds = [start_of(capture) + ns for ns in (begin, end)]
        samples = samples_of(capture, pid)
        report = json.loads(context.wallprof("report", "--json", "--from", f"{begin / 1e9:.9f}s", "--to",
                                             f"{end / 1e9:.9f}s", capture).stdout)
        self.count = bisect.bisect(samples, bounds[1]) - bisect.bisect(samples, bounds[0])
        self.running = sum(thread["states"]["running"] for thread in report["threads"])
        self.functions = {row["function"]: row["self_ns"] for row in report["running_functions"]}


def check_rate(what, part, hz, may_miss=0):
    """There is a sample for each period that the process ran."""
    period = 1_000_000_000 / hz
    chance = SIGMAS * math.sqrt(max(part.running / period, 1))
    check_timed(f"{what}, sampled at {hz} Hz", part.count * period, part.running, 0.1, (chance + may_miss) * period)


def check_shares(one, other):
    """The process does the same all the time, so its functions have the same shares of either part."""
    sizes = 1 / max(one.count, 1) + 1 / max(other.count, 1)
    sums = [sum(part.functions.values()) for part in (one, other)]
    for name in one.functions:
        a, b = (part.functions.get(name, 0) / total for part, total in zip((one, other), sums))
        mean = (one.functions[name] + other.functions.get(name, 0)) / sum(sums)
        most = SIGMAS * math.sqrt(mean * (1 - mean) * sizes) + 0.02
        check(abs(a - b) <= most, f"{name}: {a:.3f} and {b:.3f} of the time, at most {most:.3f} apart")


def check_chosen(ticks):
    """The rate is the first one for as long as it must be, and then costs no more than it may, or is the lowest."""
    first, *later = ticks["rates"]
    check(first == {"from_ns": 0, "hz": 999} and len(later) <= 1, f"rates: {ticks['rates']}")
    check(ticks["interrupt_ns"], f"the cost of an interrupt is not known: {ticks}")
    check(ticks["share_ppm"] == SHARE_OF_CPU * 1e6, f"the share of a CPU: {ticks}")
    for rate in later:
        check(rate["from_ns"] >= FULL_NS, f"the first rate was too short: {ticks}")
        check(rate["hz"] == LEAST_HZ or rate["hz"] * ticks["interrupt_ns"] <= SHARE_OF_CPU * 1e9, f"too costly: {ticks}")
    if not later:
        check(999 * ticks["interrupt_ns"] <= SHARE_OF_CPU * 1e9, f"the rate did not fall: {ticks}")
    check(ticks["all_interrupts_ns"] == ticks["all"] * ticks["interrupt_ns"], f"the sum: {ticks}")


@pytest.mark.host_only("a guest's clock is not its own")
def test_adapts(context):
    """-F auto has as many ticks as cost little after two seconds, -F 999 has 999. Both record the same process."""
    needs_root()
    # On a busy machine it would have too few samples.
    target = context.start([*context.workload("paths"), "1000000"], preexec_fn=lambda: os.nice(-8))
    captures = {rate: context.path(f"{rate}.wp") for rate in ("auto", "999")}
    recorders = [context.start([WALLPROF, "record", "-q", "-F", rate, "-d", "4s", "-o", capture, "-p", target.pid])
                 for rate, capture in captures.items()]
    for recorder in recorders:
        check(recorder.wait(timeout=context.timeout_s) == 0, "a recording failed")
    target.kill()
    reports = {rate: json.loads(context.wallprof("report", "--json", capture).stdout)
               for rate, capture in captures.items()}
    ticks = reports["auto"]["ticks"]
    check_chosen(ticks)
    expect_failure(check_chosen, {**ticks, "rates": [{"from_ns": 0, "hz": 999}], "interrupt_ns": 20_000})
    expect_failure(check_chosen, {**ticks, "rates": [{"from_ns": 0, "hz": 999}, {"from_ns": FULL_NS - 1, "hz": 249}]})
    check([rate["hz"] for rate in reports["999"]["ticks"]["rates"]] == [999], f"-F 999: {reports['999']['ticks']}")
    change, hz, end = ticks["rates"][-1]["from_ns"] or FULL_NS, ticks["rates"][-1]["hz"], reports["auto"]["window_ns"]
    before, after = (Part(context, captures["auto"], target.pid, *part) for part in ((0, change), (change, end)))
    print(f"# {before.count} samples in {before.running / MS:.0f} ms, then {after.count} in {after.running / MS:.0f} ms; "
          f"{ticks}", flush=True)
    may_miss = missing(reports["auto"])
    check_rate("before", before, 999, may_miss)
    check_rate("after", after, hz, may_miss)
    if hz < 500:
        expect_failure(check_rate, "before", before, hz, may_miss)
        expect_failure(check_rate, "after", after, 999, may_miss)
    check_shares(before, after)
    swapped = sorted(after.functions, key=after.functions.get, reverse=True)
    after.functions = dict(zip(swapped, reversed([after.functions[name] for name in swapped])))
    if after.count >= 100:
        expect_failure(check_shares, before, after)
    fixed = Part(context, captures["999"], target.pid, change, reports["999"]["window_ns"])
    check_rate("-F 999", fixed, 999, missing(reports["999"]))
