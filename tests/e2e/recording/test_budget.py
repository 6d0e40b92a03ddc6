# SPDX-License-Identifier: GPL-2.0-or-later
"""--budget: what is left out changes no time and hardly any sum.

One thread waits at six places, for random times that it knows. It is recorded twice at the same time, with a budget
that is too small for it and without one, so both recordings are of the same run.
"""
import copy
import json
import math
import struct
import subprocess
from types import SimpleNamespace

import pytest
from capture_reader import records

from harness import (MS, SLOWNESS, WALLPROF, Profile, check, check_close, check_unexplained, expect_failure, needs_root,
                     wait_until)

# The recordings of one run are compared with each other, whatever else runs.
pytestmark = pytest.mark.untimed

BUDGET, MARK = "0.1%", "[not sampled: --budget]"
SHARE, LEAST = 0.03, 0.01  # between the recordings of one run: of a sum, or of all waits
LATE_NS = 150_000  # by which a timer is late on a busy machine, on average
RUN_MS = 2000 * SLOWNESS
SWITCH, WAKING, SNAPSHOT = 1, 2, 7
PREV, PREEMPT, UNSAMPLED, CHANCE_SHIFT, CERTAIN = 1, 4, 8, 4, 4096
LONG_NS = 20 * MS  # the recorder takes the stacks of longer waits, whatever their chance
SIGMAS = 5
# Its system call of each function (x86-64).
CALLS = {230: ("read_header", "read_body", "write_log"), 202: ("take_lock",), 271: ("await_job",), 232: ("await_client",)}


def record_twice(context):
    """(the workload's process ID, its truth, both captures and reports)"""
    workload = context.start([*context.workload("places"), context.random.randint(1, 1 << 30), RUN_MS],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    pid = int(workload.stdout.readline())
    captures = {"budget": context.path("budget.wp"), "full": context.path("full.wp")}
    recorders = [context.start([WALLPROF, "record", "-q", *options, "-o", captures[name], "-p", pid])
                 for name, options in (("budget", ["--budget", BUDGET]), ("full", []))]
    wait_until(lambda: all(capture.exists() for capture in captures.values()), "both recordings have begun")
    truth = json.loads(workload.communicate("\n")[0])
    for recorder in recorders:
        check(recorder.wait(timeout=context.timeout_s) == 0, "a recording failed")
    reports = {name: json.loads(context.wallprof("report", "--json", capture).stdout)
               for name, capture in captures.items()}
    return SimpleNamespace(pid=pid, truth=truth, captures=captures, **reports)


def by_function(report, truth):
    return {row["function"]: row["total_ns"] for row in report["functions"] if row["function"] in truth["functions"]}


def by_reason(report, _truth):
    """Without the wait for the line that begins the run, in which the recordings begin, and without states."""
    return {reason: ns for thread in report["threads"] for reason, ns in thread["reasons"].items()
            if reason != "[pipe read wait]" and "runnable" not in reason}


def check_same(sums, wanted):
    """Every sum of the full recording is nearly the same in the other one, and there are no others."""
    check(len(wanted) > 2, f"hardly anything to compare: {wanted}")
    for name in sorted(set(sums) | set(wanted)):
        check_close(name, sums.get(name, 0), wanted.get(name, 0), SHARE, LEAST * sum(wanted.values()))


def waits_of_call(capture, pid, call):
    return [begin for begin, *_, number in waits_of(capture, pid) if number == call]


def delays(run):
    """Call -> by how much its waits begin later in the recording with a budget, because the other one's program, which
    takes stacks, runs before its own. (The timers of the waits run by then.)"""
    begins = {name: {call: waits_of_call(run.captures[name], run.pid, call) for call in CALLS} for name in run.captures}
    check(all(len(begins["budget"][call]) == len(begins["full"][call]) for call in CALLS), "a wait is in one of them only")
    return {call: sum(max(later - begin, 0) for begin, later in zip(begins["full"][call], begins["budget"][call]))
            for call in CALLS}


def check_truth(run, truth):
    """Each function waited as long as it meant to, or a little longer; weights may be somewhat less than what they stand
    for."""
    sums, delayed = by_function(run.budget, truth), delays(run)
    for name, wanted in truth["functions"].items():
        late = LATE_NS * SLOWNESS * wanted["count"]
        delay = next(ns for call, ns in delayed.items() if name in CALLS[call])
        check_close(name, sums.get(name, 0), wanted["ns"] + (late - delay) / 2, SHARE,
                    (late + delay) / 2 + SHARE * wanted["ns"])


def check_exact(report):
    """Nothing is lost, and hardly anything unknown: what is left out is neither."""
    check_unexplained(report)
    for kind, total in report["totals"].items():
        check(total["lost"] == 0 and total["sent"] == total["received"] or kind == "stack", f"{kind}: {total}")
    check(report["stacks"]["results"]["lost"] == 0, "stacks are lost")


def check_left_out(report):
    """Stacks are left out, and that is said. How many it takes to keep the budget depends on the machine."""
    budget = report["budget"]
    check(budget["switch_outs"] / 40 < budget["unsampled"] < budget["switch_outs"], f"left out: {budget}")
    check(sum(place["unsampled"] for place in budget["places"]) == budget["unsampled"], "the places do not add up")
    check(budget["without_stacks_ns"] <= SHARE * budget["unsampled_ns"], f"without any stacks: {budget}")


def waits_of(capture, tid):
    """[(begin, end, chance, whether its stacks were left out, whether they came later, call)] by the records alone"""
    waits, begun = [], None
    events = sorted((ns, kind, flags, bytes(record)) for kind, flags, ns, record in
                    records(capture, {SWITCH, WAKING, SNAPSHOT}))
    for ns, kind, flags, record in events:
        if kind == SWITCH and flags & PREV and struct.unpack_from("<I", record, 16)[0] == tid:
            state, parts = struct.unpack_from("<H", record, 28)[0], struct.unpack_from("<H", record, 32)[0]
            blocks = state and not flags & PREEMPT
            call = struct.unpack_from("<h", record, 30)[0]
            begun = [ns, (parts >> CHANCE_SHIFT) or CERTAIN, bool(parts & UNSAMPLED), False, call] if blocks else None
        elif begun and struct.unpack_from("<I", record, 16)[0] == tid:
            if kind == SNAPSHOT:
                begun[3] |= struct.unpack_from("<Q", record, 32)[0] != 0  # its kernel stack
            elif kind == WAKING:
                waits.append((begun[0], ns, *begun[1:]))
                begun = None
    return waits


def check_long(waits, truth):
    """Each long wait has its stacks, although the place's other waits are short."""
    check(truth["long"], "there were no long waits")
    for begin, end in truth["long"]:
        inside = [wait for wait in waits if begin <= wait[0] and wait[1] <= end and wait[1] - wait[0] >= LONG_NS]
        check(inside, "a long wait is not in the capture")
        check(all(late or not unsampled for *_, unsampled, late, _ in inside), f"a long wait has no stacks: {inside}")


def check_weights(waits):
    """By their chances, those with stacks stand for all (Horvitz and Thompson)."""
    short = [(end - begin, chance / CERTAIN, unsampled) for begin, end, chance, unsampled, *_ in waits
             if end - begin < LONG_NS]
    for power in (0, 1):  # their number, and their time
        total = sum(ns ** power for ns, *_ in short)
        weighted = sum(ns ** power / chance for ns, chance, unsampled in short if not unsampled)
        spread = math.sqrt(sum(ns ** (2 * power) * (1 / chance - 1) for ns, chance, _ in short))
        check(abs(weighted - total) <= SIGMAS * spread, f"by weights {weighted:.0f}, in fact {total}, ±{spread:.0f}")


def reduced(waits):
    """With an eighth of their chances, which multiplies sums by weights by 8; few waits are enough to show it."""
    return [(begin, end, max(chance // 8, 1), *rest) for begin, end, chance, *rest in waits]


def check_marked(profile, pid, wanted):
    """Rows of the waits that lack stacks say so, and have their time. (Runs before and after them say so, too.)"""
    marked = sum(weight for thread in profile.threads if thread.tid == pid
                 for sample, weight in enumerate(thread.weights)
                 if MARK in thread.frames_of(sample)[1:] and thread.leaves[sample] != "[runnable: woken]")
    check_close("what is marked", marked, wanted, SHARE, MS)


def exported(context, name, capture):
    output = context.path(name)
    context.wallprof("export", "-q", "-o", output, capture)
    return output.read_text()


def check_said(text, report):
    """Readers of this file show no report, so it says itself what is left out."""
    budget = report["budget"]
    check(f"--budget 0.1%: {budget['unsampled']} of {budget['switch_outs']} switch-outs not sampled" in text,
          "it is not said")


def test_places(context):
    needs_root()
    run = record_twice(context)
    check_left_out(run.budget)
    check(run.full["budget"] is None, "a recording without a budget has one")
    expect_failure(check_left_out, {"budget": {**run.budget["budget"], "unsampled": 0}})
    check_exact(run.budget)
    lost = copy.deepcopy(run.budget)
    lost["totals"]["switch"]["lost"] = 1
    expect_failure(check_exact, lost)
    for sums in (by_function, by_reason):
        sampled, wanted = sums(run.budget, run.truth), sums(run.full, run.truth)
        check_same(sampled, wanted)
        largest = max(wanted, key=wanted.get)
        expect_failure(check_same, {**sampled, largest: 1.05 * wanted[largest]}, wanted)
    check_truth(run, run.truth)
    swapped = dict(zip(run.truth["functions"], reversed(run.truth["functions"].values())))
    expect_failure(check_truth, run, {"functions": swapped})
    waits = waits_of(run.captures["budget"], run.pid)
    check_long(waits, run.truth)
    expect_failure(check_long, [(*wait[:3], True, False, wait[5]) for wait in waits], run.truth)
    check_weights(waits)
    expect_failure(check_weights, reduced(waits))
    output = context.path("p.json")
    context.wallprof("export", "-q", "-o", output, run.captures["budget"])
    profile, left_out = Profile.load(output), run.budget["budget"]["unsampled_ns"]
    check_marked(profile, run.pid, left_out)
    expect_failure(check_marked, profile, run.pid, 1.1 * left_out + MS)
    for name in ("p.speedscope.json", "p.svg"):
        text = exported(context, name, run.captures["budget"])
        check_said(text, run.budget)
        expect_failure(check_said, text.replace("not sampled", ""), run.budget)
