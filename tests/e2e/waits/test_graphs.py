# SPDX-License-Identifier: GPL-2.0-or-later
"""The critical path of task graphs that a seed draws and that run beside busy processes (tests/workloads/sched/graphs.h)."""
import copy
import os
from collections import Counter
from dataclasses import dataclass

import pytest

from harness import (IN_GUEST, MS, Failure, TimingFailure, check, check_unexplained, expect_failure, is_long, noise,
                     noticeable)
from task_graphs import MAIN, TaskGraph
from untraced_tasks import hidden_tasks

pytestmark = pytest.mark.untimed  # a busy machine's delays are part of the path, and of what the tasks record

COUNT = 12 if IN_GUEST else 200 if is_long() else 50
# More are drawn, because in some the tasks or the report record a cause for another path than the one that is known:
# threads of a process wait for each other's page faults when they create a thread or a process (mmap_lock); from 6.12
# on the kernel counts the sleep of a task as runnable time if it moves the task to another CPU before it dequeues it
# (sched_delayed); and the kernel may hide switches from tracers, which the report says. On busy CPUs these came to at
# most 8 %. Such graphs are left out, whether their path is right or not, and the first COUNT others must all be right.
DRAWN = COUNT * 3 // 2
# A kernel that hides switches does not trace every wakeup either, and nothing records that (1 graph in 600). In a guest
# the CPU that is to run a woken task may itself wait for a CPU of the host, and the kernel counts the task's time awake
# only from when that CPU has taken it.
UNEXPLAINED = 1 if IN_GUEST or hidden_tasks() else 0


@dataclass
class Outcome:
    differences: list  # what is wrong with a graph's path
    excuse: str  # why the graph is left out, or ""


def tolerance(ns):
    return max(0.01 * ns, MS, noise(ns))


def measured_parts(report):
    """Counter of ns on the path by tid."""
    parts = Counter()
    for thread in report["critical_path"]["threads"]:
        parts[thread["tid"]] += thread["ns"]
    return parts


def unknown_parts(report):
    """Counter of ns by tid in which the thread's state is not known."""
    return Counter({thread["tid"]: thread["states"].get("unknown", 0) for thread in report["threads"]})


def differences(graph, path, measured):
    tasks = list(zip(graph.tasks, path))[MAIN:]
    pairs = [("the path", sum(measured[task["tid"]] for task, _ in tasks), sum(ns for _, ns in tasks))]
    pairs += [(f"thread {task['tid']}", measured[task["tid"]], ns) for task, ns in tasks]
    return [f"{what} has {got / MS:.3f} ms, should have {wanted / MS:.3f}"
            for what, got, wanted in pairs if abs(got - wanted) > tolerance(wanted)]


def outcome_of(graph, measured, unknown):
    least = min((differences(graph, path, measured) for path in graph.paths()), key=len)
    excuse = ""
    if any(unknown[task["tid"]] for task in graph.tasks):
        excuse = "a switch was not traced"
    elif graph.has_unplanned_waits():
        excuse = "a task waited for what is not in its plan"
    elif graph.has_early_wakings():
        excuse = "the kernel counted a task's sleep as time ready to run"
    return Outcome(least, excuse)


def outcomes_of(recording):
    path = recording.report["critical_path"]
    check(path, "no critical path")
    measured, unknown = measured_parts(recording.report), unknown_parts(recording.report)
    return [outcome_of(TaskGraph(graph["tasks"]), measured, unknown) for graph in recording.truth.data["graphs"]]


def check_graphs(recording):
    """In each of the first COUNT graphs that are not left out, each thread is on the path for as long as the tasks' own
    clocks say."""
    compared = [(number, outcome) for number, outcome in enumerate(outcomes_of(recording)) if not outcome.excuse][:COUNT]
    if len(compared) < COUNT:
        raise TimingFailure(f"only {len(compared)} of {DRAWN} graphs could be compared")
    wrong = [f"graph {number}: {'; '.join(outcome.differences)}" for number, outcome in compared if outcome.differences]
    if len(wrong) > UNEXPLAINED:
        raise TimingFailure(f"{len(wrong)} of {COUNT} have another path: " + "\n".join(wrong[:5]))


def note_left_out(recording):
    outcomes = outcomes_of(recording)
    excuses = Counter(outcome.excuse for outcome in outcomes if outcome.excuse)
    wrong = sum(bool(outcome.differences) for outcome in outcomes if outcome.excuse)
    print(f"# {excuses.total()} of {len(outcomes)} graphs were left out, {wrong} with another path: "
          + (", ".join(f"{excuse} ({count})" for excuse, count in excuses.items()) or "none"), flush=True)


def check_not_trivial(recording):
    """Most graphs' paths are as constructed, and lie in several tasks."""
    as_made = several = 0
    graphs = [TaskGraph(graph["tasks"]) for graph in recording.truth.data["graphs"]]
    for graph in graphs:
        path = graph.path()
        as_made += all(ns >= made - tolerance(made) for ns, made in zip(path[MAIN:], graph.constructed()[MAIN:]))
        several += sum(ns > MS for ns in path[MAIN:]) >= 3
    check(as_made >= 0.5 * len(graphs), f"only {as_made} of {len(graphs)} paths are as constructed")
    check(several >= 0.5 * len(graphs), f"only {several} of {len(graphs)} paths lie in three tasks or more")


def can_write_past_the_cache(path):
    """Not on every file system in memory."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_DIRECT, 0o600))
    except OSError:
        return False
    return True


OP_TIMES = ("from_ns", "to_ns", "from_awake_ns", "awake_ns", "waiter_awake_ns")


def stretch(tasks, factor):
    for task in tasks:
        for name in ("begin_ns", "age_ns", "end_ns", "waiter_awake_ns"):
            task[name] = int(task[name] * factor)
        for op in task["ops"]:
            for name in (*OP_TIMES, *(["arg"] if op["kind"] == "sleep" else [])):
                op[name] = int(op[name] * factor)


def altered_truth(recording):
    """In some of the graphs that have the right path two tasks have changed places.

    Where clocks are held to less than that, the graph has taken longer, too.
    """
    altered, left = copy.copy(recording), 3 + COUNT // 10
    altered.truth = copy.deepcopy(recording.truth)
    for data, outcome in zip(altered.truth.data["graphs"], outcomes_of(recording)):
        path = TaskGraph(data["tasks"]).path()
        shortest, *_, longest = sorted(range(MAIN, len(path)), key=path.__getitem__)
        if outcome.excuse or outcome.differences or path[longest] - path[shortest] < 2 * MS:
            continue
        tasks = data["tasks"]
        tasks[longest]["tid"], tasks[shortest]["tid"] = tasks[shortest]["tid"], tasks[longest]["tid"]
        stretch(tasks, noticeable(path[longest], path[longest]) / path[longest])
        left -= 1
        if left == 0:
            return altered
    raise Failure("too few graphs have the right path")


def test_graphs(context):
    recording = context.record(
        "graphs", undisturbed=False, count=DRAWN, seed=context.random.randint(1, 1 << 30),
        burners=len(os.sched_getaffinity(0)), disk=int(can_write_past_the_cache(context.path("truth.json.disk"))))
    check_unexplained(recording.report)
    check_not_trivial(recording)
    check_graphs(recording)
    note_left_out(recording)
    expect_failure(check_graphs, altered_truth(recording))
