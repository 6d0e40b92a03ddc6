# SPDX-License-Identifier: GPL-2.0-or-later
"""What Python programs wait for, by what they called (tests/workloads/scripts/calls.py, pool.py)."""
import json

import pytest

from harness import MS, ROOT, Profile, Skip, capture_of, check, expect_failure, needs_root, read_report
from test_python import interpreter, system_python

pytestmark = pytest.mark.untimed
WORKLOADS = ROOT / "tests/workloads/scripts"
VERSIONS = ["3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14"]
REASONS = {"lock": "lock", "recursive lock": "lock", "condition": "condition variable", "event": "event",
           "semaphore": "semaphore", "barrier": "barrier", "get": "queue", "put": "queue", "future": "future",
           "join": "thread join", "loop": "epoll"}
ROUNDS = 6
LEAST = 0.95
LONG_NS = 4 * MS
IDLE_LEAST, WAITED_LEAST = 0.7, 0.5


def reason_of(name):
    """Such a wait may be between jobs, as threads come one after the other."""
    return name.lower().replace("between jobs: ", "").replace("idle: ", "").replace(" wait", "")


def waits_of(profile):
    """{tid: [(start, end, marker's name)]} of waits that are not short."""
    return {thread.tid: [(marker["start"], marker["end"], marker["name"]) for marker in thread.markers()
                         if marker["data"].get("type") == "Wait" and marker["end"] - marker["start"] >= LONG_NS]
            for thread in profile.threads}


def check_waits(profile, truth, planted):
    """Each planted wait has the reason of what the program called."""
    offset, found = truth["offset"] - profile.start_ns, waits_of(profile)
    total, good, wrong = dict.fromkeys(REASONS, 0), dict.fromkeys(REASONS, 0), []
    for tid, kind, begin, end in planted:
        for start, stop, name in found.get(tid, []):
            if name == "Python GIL wait" or name.startswith("Runnable") or not begin + offset <= start < stop <= end + offset:
                continue
            total[kind] += 1
            good[kind] += reason_of(name) == REASONS[kind]
            if reason_of(name) != REASONS[kind]:
                wrong.append((kind, name))
    print(f"# {sum(total.values())} waits, {sum(good.values())} with the planted reason; {wrong[:3]}", flush=True)
    check(all(count >= ROUNDS / 2 for count in total.values()), f"too few waits: {total}")
    check(sum(good.values()) >= LEAST * sum(total.values()), f"wrong: {wrong[:5]}")


def find(version):
    python = interpreter(version)
    if not python or not python.exists():
        raise Skip("that Python is not installed")
    return python


@pytest.mark.parametrize("version", VERSIONS)
def test_reasons(context, version):
    needs_root()
    truth, output = context.path("truth.json"), context.path("p.json.gz")
    context.wallprof("-q", "-o", output, "--", find(version), WORKLOADS / "calls.py",
                     context.random.randint(1, 1 << 30), truth, ROUNDS)
    truth, profile = json.loads(truth.read_text()), Profile.load(output)
    check_waits(profile, truth, truth["waits"])
    kinds = sorted(REASONS)
    altered = [(tid, kinds[(kinds.index(kind) + 3) % len(kinds)], begin, end)
               for tid, kind, begin, end in truth["waits"]]
    expect_failure(check_waits, profile, truth, altered)


def pool_of(context, kind):
    output = context.path(f"{kind}.json.gz")
    context.wallprof("-q", "-o", output, "--", system_python(), WORKLOADS / "pool.py", 1.5, kind)
    return read_report(context, capture_of(output))


def check_idle(report):
    """The pool's waits for jobs do not count, and are nearly all that its threads do."""
    workers = [t for t in report["threads"] if t["tid"] != t["pid"]]
    life = sum(t["lifetime_ns"] for t in workers)
    tids = {t["tid"]: t["blocked_ns"] for t in report["critical_path"]["threads"]}
    idle = sum(ns for t in workers for reason, ns in t["reasons"].items()
               if reason.startswith(("[idle: ", "[between jobs: ")))
    on_path = sum(tids.get(t["tid"], 0) for t in workers)
    print(f"# {100 * idle / life:.1f} % of {life / MS:.0f} ms idle, {100 * on_path / life:.1f} % on the path", flush=True)
    check(idle >= IDLE_LEAST * life, "the pool is not idle")


def check_locks(report):
    """Threads that want a lock are not idle."""
    waited = sum(wait["total_ns"] for wait in report["waits"] if wait["reason"] == "[lock wait]")
    life = sum(t["lifetime_ns"] for t in report["threads"] if t["tid"] != t["pid"])
    print(f"# {100 * waited / life:.1f} % of {life / MS:.0f} ms for a lock", flush=True)
    check(waited >= WAITED_LEAST * life, "the waits for the lock do not count")


def test_pools(context):
    needs_root()
    pools = {kind: pool_of(context, kind) for kind in ("queue", "executor", "lock")}
    check_idle(pools["queue"])
    check_idle(pools["executor"])
    check_locks(pools["lock"])
    expect_failure(check_idle, pools["lock"])
    expect_failure(check_locks, pools["queue"])
