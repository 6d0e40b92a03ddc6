# SPDX-License-Identifier: GPL-2.0-or-later
"""Waits of run-time systems: Python's lock and the thread that has it; Go's threads without work."""
import json
import os
import shutil
import sys

import pytest

from harness import (MS, ROOT, Failure, Profile, capture_of, check, expect_failure, needs_command, read_report)
from object_files import run

pytestmark = pytest.mark.untimed  # shares of waits, and not how long they are

# "holder" computes in one step that does not release the GIL, while "waiter" takes it after each of its sleeps.
GIL = """
import json, sys, threading, time

path, rounds, bits = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
number, over = (1 << bits) - 1, threading.Event()

def call_self(name):
    with open("/proc/self/task/%d/comm" % threading.get_native_id(), "w") as file:
        file.write(name)

def hold():
    call_self("holder")
    for _ in range(rounds + 1):  # in the first one, threads may still begin
        time.sleep(0.005)
        begin = time.monotonic_ns()
        number * number
        held.append([begin, time.monotonic_ns()])
    over.set()

def wait():
    call_self("waiter")
    while not over.is_set():
        time.sleep(0.001)

held = []
threads = [threading.Thread(target=hold), threading.Thread(target=wait)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
with open(path, "w") as file:
    json.dump({"held": held[1:], "waiter": threads[1].native_id,
               "offset": time.time_ns() - time.monotonic_ns()}, file)
"""
SLEEP_NS = MS  # the waiter's
HOLD_NS = 15 * MS  # at least: longer than the 5 ms after which the GIL is asked for again


def gil_waits(profile, truth):
    """The waiter's waits while the other thread held the GIL: (reason, holder, ns), and how long it was held."""
    thread, sums, all_ns = profile.thread(truth["waiter"]), {}, 0
    for held in truth["held"]:
        begin, end = (ns + truth["offset"] - profile.start_ns for ns in held)
        all_ns += max(end - begin - SLEEP_NS, 0)
        for marker in thread.markers():
            ns = min(end, marker["end"]) - max(begin, marker["start"])
            if marker["data"].get("type") == "Wait" and ns > 0:
                key = marker["name"], thread.text(marker["data"].get("heldBy"))
                sums[key] = sums.get(key, 0) + ns
    return sums, all_ns


def check_gil(profile, truth, reason, holder):
    """The holder is not seen if the waiter waits for a CPU at the release, but it is never another thread."""
    sums, wanted = gil_waits(profile, truth)
    by_holder = {by: ns for (name, by), ns in sums.items() if name == reason}
    got, right = sum(by_holder.values()), by_holder.get(holder, 0)
    # The waiter waits for a CPU after each time-out, and the sleep may take longer.
    late = sum(ns for (name, _), ns in sums.items() if name in ("Runnable (woken)", "Runnable (preempted)", "Sleep"))
    if wanted < len(truth["held"]) * HOLD_NS / 2:
        raise Failure(f"the GIL was held for {wanted / MS:.1f} ms only")
    check(got >= 0.9 * (wanted - late), f"[{reason}]: {got / MS:.1f} of {wanted / MS:.1f} ms: {sums}")
    check(set(by_holder) <= {holder, None} and right >= 0.5 * got, f"[{reason}] is for {holder}: {sums}")


def check_python(context, python):
    script, log, output = (context.path(name) for name in ("gil.py", "truth.json", "p.json.gz"))
    script.write_text(GIL)
    context.wallprof("-q", "--keep-capture", "-o", output, "--", python, script, log,
                     context.random.randint(3, 6), context.random.randint(400_000, 600_000))
    profile, truth = Profile.load(output), json.loads(log.read_text())
    check_gil(profile, truth, "Python GIL wait", "holder")
    expect_failure(check_gil, profile, truth, "Python GIL wait", "waiter")
    expect_failure(check_gil, profile, truth, "Condition variable wait", "holder")


def pythons():
    """This interpreter and the system's, which may be stripped."""
    found = {os.path.realpath(p) for p in (sys.executable, shutil.which("python3", path="/usr/bin")) if p}
    return sorted(found)


def test_gil(context):
    for python in pythons():
        check_python(context, python)


GO = ROOT / "tests" / "workloads" / "go" / "threads.go"


def go_waits(profile, tid, begin, end):
    """Counter of ns by name of the thread's waits."""
    sums = {}
    for marker in profile.thread(tid).markers():
        ns = min(end, marker["end"]) - max(begin, marker["start"])
        if marker["data"].get("type") == "Wait" and ns > 0:
            sums[marker["name"]] = sums.get(marker["name"], 0) + ns
    return sums


def check_bound(profile, truth, reason):
    """The waits of the goroutine that is bound to its thread for another goroutine."""
    waited = got = 0
    for begin, end in truth["waits"]:
        begin, end = (ns + truth["offset_ns"] - profile.start_ns for ns in (begin, end))
        sums = go_waits(profile, truth["tid"], begin, end)
        waited += end - begin - sum(ns for name, ns in sums.items() if name in ("Runnable (woken)", "Runnable (preempted)"))
        got += sums.get(reason, 0)
    check(0.9 * waited <= got <= 1.05 * waited, f"[{reason}]: {got / MS:.1f} of {waited / MS:.1f} ms")


def check_without_work(report, truth, share):
    """Nearly none of the other threads' waits count, except on the critical path."""
    counted = idle = 0
    on_path = {t["tid"]: t["blocked_ns"] for t in report["critical_path"]["threads"]}
    for thread in report["threads"]:
        if thread["tid"] == truth["tid"]:
            continue
        waits = {name: ns for name, ns in thread["reasons"].items() if not name.startswith(("[runnable", "[unknown"))}
        without = sum(ns for name, ns in waits.items() if name.startswith(("[idle", "[between jobs")))
        idle += without
        counted += max(sum(waits.values()) - without - on_path.get(thread["tid"], 0), 0)
    check(idle > truth["slept_ns"], f"only {idle / MS:.1f} ms are without work")
    check(counted <= share * idle, f"{counted / MS:.1f} ms count, {idle / MS:.1f} are without work")


def check_scheduler(report):
    """Go's threads wake the one in epoll_wait() by a pipe or an eventfd, for which nothing else waits here."""
    names = {name for thread in report["threads"] for name in thread["reasons"]}
    check(any("epoll" in name for name in names), f"no wait of the scheduler: {sorted(names)}")
    check(not any(word in name for name in names for word in ("pipe", "event")), f"waits for Go's own pipe: {sorted(names)}")


@pytest.mark.host_only("it needs Go")
def test_go(context):
    needs_command("go")
    program, log, output = (context.path(name) for name in ("threads", "truth", "p.json.gz"))
    run("go", "build", *context.random.choice(((), ("-ldflags", "-s -w"))), "-o", program, GO,
        env={**os.environ, "GOTOOLCHAIN": "local", "GOFLAGS": ""})
    context.wallprof("-q", "--keep-capture", "-o", output, "--", program, log,
                     context.random.randint(5, 9), context.random.randint(20, 40))
    profile, report = Profile.load(output), read_report(context, capture_of(output))
    truth = json.loads(log.read_text())
    check_bound(profile, truth, "Park wait")
    check_without_work(report, truth, 0.02)
    check_scheduler(report)
    expect_failure(check_scheduler, {"threads": [*report["threads"], {"reasons": {"[pipe poll wait]": 1}}]})
    expect_failure(check_bound, profile, truth, "Futex wait")
    other = next(t.tid for t in profile.threads if t.tid != truth["tid"])
    expect_failure(check_bound, profile, {**truth, "tid": other}, "Park wait")
    expect_failure(check_without_work, report, {**truth, "slept_ns": 100 * truth["slept_ns"]}, 0.02)
