# SPDX-License-Identifier: GPL-2.0-or-later
"""Who holds Python's global interpreter lock while others wait for it, and in which function.

tests/workloads/scripts/gil.py plants the holders.
"""
import bisect
import json

import pytest

from harness import IN_GUEST, MS, ROOT, Profile, Skip, capture_of, check, expect_failure, needs_root, read_report
from test_python import interpreter, system_python

pytestmark = pytest.mark.untimed
WORKLOAD = ROOT / "tests/workloads/scripts/gil.py"
LEAST = 0.99
SHORT_NS = 1 * MS
# What the planted thread does before and after its function, in which it also has the lock.
AROUND_NS = MS // 5
EARLY_NS = MS // 2
TICK_NS = 10 * MS  # the holder has a tick or a switch in this time


class Fight:
    """A recording of the workload."""

    def __init__(self, context, python, rounds=24):
        if not python or not python.exists():
            raise Skip("that Python is not installed")
        truth, output = context.path("truth.json"), context.path("p.json.gz")
        done = context.wallprof("--all-frames", "-o", output, "--", python, WORKLOAD,
                                context.random.randint(1, 1 << 30), truth, rounds)
        self.summary = done.stderr
        self.output, self.profile, self.truth = output, Profile.load(output), json.loads(truth.read_text())
        offset = self.truth["offset"] - self.profile.start_ns
        self.held = sorted((begin + offset, end + offset, tid, kind) for tid, kind, begin, end in self.truth["held"])

    def held_at(self, held, begin, end):
        """The planted (begin, end, tid, function) that holds the lock from begin to end, or None."""
        at = bisect.bisect_right(held, (begin, float("inf"))) - 1
        return held[at] if at >= 0 and held[at][0] <= begin and end <= held[at][1] + AROUND_NS else None

    def waits(self):
        """(begin, end, holder's tid, holder's stack) of each wait for the lock that is not short."""
        for thread in self.profile.threads:
            if thread.tid not in self.truth["waiters"]:
                continue
            for marker in thread.markers():
                data = marker["data"]
                if marker["name"] == "Python GIL wait" and marker["end"] - marker["start"] >= SHORT_NS:
                    yield marker["start"], marker["end"], data.get("holder"), thread.text(data.get("heldIn"))


def check_holders(fight, held):
    """Nearly all planted waits have the right holder, and the right function where they have one."""
    total = right = known = good = 0
    wrong = []
    for begin, end, holder, stack in fight.waits():
        planted = fight.held_at(held, begin, end)
        if not planted:
            continue
        total += 1
        right += holder == planted[2]
        # A wait that begins with the function, or when that is nearly over, may see the holder beside it.
        judged = stack and begin - planted[0] >= EARLY_NS and planted[1] - begin >= TICK_NS
        known += bool(judged)
        good += bool(judged) and planted[3] in stack
        if holder != planted[2] or (judged and planted[3] not in stack):
            wrong.append((begin, end, holder, stack, planted))
    print(f"# {total} waits, {100 * right / max(total, 1):.1f} % with the right holder; "
          f"{known} with a function, {100 * good / max(known, 1):.1f} % with the right one", flush=True)
    check(total >= 30, f"only {total} waits")
    check(right >= LEAST * total and good >= LEAST * known and known >= 5, f"wrong: {wrong[:2]}")


def check_sums(fight, report, least):
    """The report's section has the planted functions, and those that kept the lock while they slept."""
    lock = max(report["interpreter_locks"], key=lambda lock: lock["total_ns"])
    kinds = {kind: 0 for _, _, _, kind in fight.held}
    for holding in lock["holders"]:
        for kind in kinds:
            if holding["function"] == f"{kind} (gil.py)":
                kinds[kind] += holding["waited_ns"]
    # What main() and the waiting threads do with the lock is little.
    share = sum(kinds.values()) / lock["total_ns"]
    print(f"# {100 * share:.1f} % of {lock['total_ns'] / MS:.0f} ms for the lock is in planted functions: {kinds}", flush=True)
    check(share >= least and all(kinds.values()), f"{100 * share:.1f} % is in planted functions: {kinds}")
    kept = {(wait["reason"], wait["function"]) for wait in lock["holders_waits"]}
    check(("[sleep]", "sleep_with_lock (gil.py)") in kept, f"a sleep with the lock is missing: {kept}")


@pytest.mark.parametrize("version", ["3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14"])
def test_holders(context, version):
    needs_root()
    fight = Fight(context, interpreter(version))
    check_holders(fight, fight.held)
    tids = sorted({held[2] for held in fight.held})
    altered = [(begin, end, tids[(tids.index(tid) + 1) % len(tids)], kind) for begin, end, tid, kind in fight.held]
    expect_failure(check_holders, fight, altered)
    functions = sorted({held[3] for held in fight.held})
    altered = [(begin, end, tid, functions[(functions.index(kind) + 1) % len(functions)])
               for begin, end, tid, kind in fight.held]
    expect_failure(check_holders, fight, altered)


def test_sums(context):
    needs_root()
    fight = Fight(context, system_python(), rounds=12 if IN_GUEST else 24)
    lines = [line for line in fight.summary.splitlines() if line.startswith("Python GIL: ")]
    check(lines and " (gil.py)" in lines[0], f"the summary lacks the lock: {fight.summary}")
    report = read_report(context, capture_of(fight.output))
    check_sums(fight, report, 0.8)
    expect_failure(check_sums, fight, report, 1.2)
