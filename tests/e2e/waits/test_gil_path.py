# SPDX-License-Identifier: GPL-2.0-or-later
"""The critical path goes through the threads that have Python's global interpreter lock.

tests/workloads/scripts/gil_path.py has a main thread that always wants the lock or has it.
"""
import json

import pytest

from harness import CRITICAL_PATH, MS, ROOT, Profile, Skip, capture_of, check, expect_failure, needs_root, read_report
from test_python import interpreter

pytestmark = pytest.mark.untimed
WORKLOAD = ROOT / "tests/workloads/scripts/gil_path.py"
ROUNDS = 8
LEAST = 0.9
WAITED_NS = 40 * MS  # at least: so little would prove nothing


def overlap(a, b):
    return max(0, min(a[1], b[1]) - max(a[0], b[0]))


def common(waits, held):
    """(begin, end, holder's tid) of the time in which the main thread waits and another one has the lock."""
    for wait in waits:
        for tid, _, begin, end in held:
            if overlap(wait, (begin, end)):
                yield max(wait[0], begin), min(wait[1], end), tid


def check_path(profile, held, offset, main):
    """While the main thread waits for the lock, the thread that has it is on the path."""
    held = [(tid, kind, begin + offset, end + offset) for tid, kind, begin, end in held if tid != main]
    waits = [(m["start"], m["end"]) for m in profile.thread(main).markers() if m["name"] == "Python GIL wait"]
    track = next(row for row in profile.rows if row.process == CRITICAL_PATH)
    steps = [(m["start"], m["end"], m["data"].get("thread")) for m in track.markers() if m["name"] == "On the path"]
    total = right = 0
    for begin, end, tid in common(waits, held):
        total += end - begin
        right += sum(overlap((begin, end), step) for step in steps if step[2] == tid)
    print(f"# of {total / MS:.1f} ms, {100 * right / max(total, 1):.1f} % have the holder on the path", flush=True)
    check(total >= WAITED_NS, f"only {total / MS} ms of waits for a planted holder")
    check(right >= LEAST * total, f"the holder is on the path for {right} ns of {total}")


@pytest.mark.parametrize("version", ["3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14"])
def test_path(context, version):
    needs_root()
    python = interpreter(version)
    if not python or not python.exists():
        raise Skip("that Python is not installed")
    truth, output = context.path("truth.json"), context.path("p.json.gz")
    context.wallprof("-q", "-o", output, "--", python, WORKLOAD, context.random.randint(1, 1 << 30), truth, ROUNDS)
    truth, profile = json.loads(truth.read_text()), Profile.load(output)
    main = read_report(context, capture_of(output))["critical_path"]["end_tid"]
    held, offset = truth["held"], truth["offset"] - profile.start_ns
    check_path(profile, held, offset, main)
    tids = sorted({tid for tid, *_ in held} - {main})
    altered = [(tids[(tids.index(tid) + 1) % len(tids)] if tid in tids else tid, *rest) for tid, *rest in held]
    expect_failure(check_path, profile, altered, offset, main)
