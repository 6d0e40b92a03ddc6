# SPDX-License-Identifier: GPL-2.0-or-later
"""Threads that wait for locks of each other, and what only looks like it."""
import re
import subprocess
from pathlib import Path

import pytest

from harness import WORKLOADS, check, current_call, expect_failure, needs_root, read_report, wait_until

pytestmark = pytest.mark.untimed
FUTEX = 202


def rotated(list_):
    """From its smallest item on."""
    at = list_.index(min(list_))
    return list_[at:] + list_[:at]


def check_circle(text, tids):
    """The text names all threads of the circle in the order in which they wait for each other; of many the first four."""
    check(text and text.startswith("deadlock: "), f"no deadlock is reported: {text}")
    named = [int(tid) for tid in re.findall(r"\((\d+)\)(?=,? (?:which )?waits? for|, which waits for|$)", text)]
    if len(tids) > 4:
        at = tids.index(named[0]) if named[0] in tids else 0
        check(f"and so on: {len(tids)} threads" in text, f"not all of {len(tids)} threads are counted: {text}")
        check((tids + tids)[at:at + 4] == named[:4], f"not in the order {tids}: {text}")
        return
    check(named[0] == named[-1] and rotated(named[:-1]) == rotated(tids), f"not the circle {tids}: {text}")


def start(context, ring, behind, closed):
    process = context.start([WORKLOADS / "deadlock", ring, behind, closed], stdout=subprocess.PIPE, text=True)
    tids = [int(tid) for tid in process.stdout.readline().split()]
    tasks = Path(f"/proc/{process.pid}/task")
    wait_until(lambda: sum(current_call(task.name)[:1] == [FUTEX] for task in tasks.iterdir())
               == ring + behind + closed, "the threads wait")  # and the main thread, for one of them
    return process, tids


@pytest.mark.parametrize("ring", [2, 3, 4, 7])
def test_ring(context, ring):
    """Attached to; threads that wait behind the circle are not of it."""
    needs_root()
    process, tids = start(context, ring, context.random.randint(0, 3), 1)
    capture, output = context.path("p.capture"), context.path("p.json")
    done = context.wallprof("-d", "0.3", "-p", process.pid, "-o", output)
    process.kill()
    lines = [line for line in done.stderr.splitlines() if line.startswith("deadlock: ")]
    check(len(lines) == 1, f"not in the summary: {done.stderr}")
    text = read_report(context, capture)["answer"]["deadlock"]
    check_circle(text, tids)
    expect_failure(check_circle, text, tids[::-1] if ring > 2 else [tids[0], tids[1] + 1])
    expect_failure(check_circle, text, tids[:-1] if ring > 2 else tids[:1])


def test_killed(context):
    """A command that is killed in it, as one is that takes too long."""
    needs_root()
    command = f"{WORKLOADS}/deadlock 2 1 1 & sleep 1; kill -9 $!; wait $!"
    done = context.wallprof("-o", context.path("p.json"), "--", "/bin/sh", "-c", command, status=137)
    check_circle(read_report(context, context.path("p.capture"))["answer"]["deadlock"],
                 [int(tid) for tid in done.stdout.split()])


def test_chain(context):
    """A chain of threads that ends with one that sleeps is none."""
    needs_root()
    process, _ = start(context, 4, 2, 0)
    context.wallprof("-q", "-d", "0.3", "-p", process.pid, "-o", context.path("p.json"))
    process.kill()
    report = read_report(context, context.path("p.capture"))["answer"]
    check(report["deadlock"] is None, f"a chain is called a deadlock: {report['deadlock']}")
    check("mutex wait" in report["parts"][0]["what"], f"no thread waited: {report}")
