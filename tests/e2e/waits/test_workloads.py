# SPDX-License-Identifier: GPL-2.0-or-later
"""The workloads' truths against what the kernel says of the whole process."""
import os
import subprocess

from harness import (CALL_NS, LOAD_NS, MS, SLOWNESS, Truth, check, check_timed, expect_failure, noise, noticeable)

ALL = (("sleeps", {"threads": 4, "ms": 20}), ("sleeps", {"threads": 300, "rounds": 1, "ms": 100}),
       ("convoy", {"threads": 4, "hold_ms": 10}), ("convoy", {"burn": 1, "hold_ms": 10}),
       ("pool", {"convoy_at_ms": 50, "hold_ms": 40, "total_ms": 150}),
       ("pingpong", {"rounds": 5000}), ("pingpong", {"rounds": 5, "pause_us": 11000}),
       ("latepoll", {"delay_ms": 30}), ("burn", {"threads": 4, "ms": 60}), ("brief", {}))


def run(context, name, **options):
    """The truth, and the kernel's usage of the process as its parent learns it."""
    path = context.path("truth.json")
    process = subprocess.Popen(context.workload(name, truth=path, **options))
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    check(process.returncode == 0, f"{name}: status {process.returncode}")
    return Truth(path), usage


def check_usage(truth, usage):
    """Each thread still has its own exit before it when its truth is read."""
    threads = len(truth.threads)
    cpu = (usage.ru_utime + usage.ru_stime) * 1e9
    check_timed("CPU time", sum(t["cpu_ns"] for t in truth.threads), cpu, 0.02,
                (5 + threads * 0.2) * MS * SLOWNESS)
    reported = sum(t["nvcsw"] + t["nivcsw"] for t in truth.threads)
    counted = usage.ru_nvcsw + usage.ru_nivcsw
    check(reported <= counted <= reported + 3 * threads, f"{reported} switches reported, {counted} counted")


def check_waits(truth):
    """Waits lie in the thread's lifetime, one after another, and it did not run meanwhile."""
    for thread in truth.threads:
        now = thread["begin_ns"]
        for kind, begin, end in thread["waits"]:
            check(now <= begin <= end <= thread["end_ns"], f"{thread['name']}: {kind} out of order")
            now = end
        # A mutex that is free is taken without a wait, so a little CPU time is in the waits.
        waited = sum(end - begin for _, begin, end in thread["waits"])
        check(waited + thread["cpu_ns"]
              <= 1.05 * (thread["end_ns"] - thread["begin_ns"]) + 5 * MS + noise(waited)
              + CALL_NS * len(thread["waits"]) + LOAD_NS,
              f"{thread['name']}: ran and waited for longer than it lived")


def test_truths(context):
    for name, options in ALL:
        truth, usage = run(context, name, **options)
        check_usage(truth, usage)
        check_waits(truth)


def test_they_do_as_asked(context):
    ms = context.random.randint(20, 80)
    truth, _ = run(context, "burn", threads=3, ms=ms)
    for thread in truth.named("burner"):
        check_timed("burner", thread["cpu_ns"], ms * MS, 0.03, MS)
    truth, _ = run(context, "convoy", threads=3, rounds=2, hold_ms=ms)
    mutex = sorted(sum(e - b for k, b, e in t["waits"] if k == "mutex")
                   for t in truth.named("convoy"))
    check(mutex[-1] >= 2 * ms * MS * 0.95, "no one queued behind the other two")


def test_negative(context):
    truth, usage = run(context, "burn", threads=2, ms=50)
    truth.threads[0]["cpu_ns"] += noticeable(30 * MS)
    truth.threads[1]["cpu_ns"] += noticeable(30 * MS)
    expect_failure(check_usage, truth, usage)
    truth, usage = run(context, "sleeps")
    truth.threads[0]["nvcsw"] += 20
    expect_failure(check_usage, truth, usage)
    truth.named("sleeper")[0]["waits"][0][2] += 1000 * MS
    expect_failure(check_waits, truth)
