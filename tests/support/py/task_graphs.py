# SPDX-License-Identifier: GPL-2.0-or-later
"""The critical path of a graph of tasks (tests/workloads/sched/graphs.h), by what its tasks recorded."""
from dataclasses import dataclass

from harness import IN_GUEST

RUN, MAIN = 0, 1  # TASK_RUN and TASK_MAIN
# A wakeup that is less than EARLY_NS too early by another clock is not an error. The order of two moments that are at
# most CLOSE_NS apart is not known: in a guest a task takes that long from reading the clock to its sleep.
EARLY_NS, CLOSE_NS = (3_000_000, 1_000_000) if IN_GUEST else (300_000, 100_000)


@dataclass
class Wait:
    """A task is asleep from begin to woken."""
    kind: str
    begin: int
    woken: int
    giver: int = RUN  # the task that ended it, if kind is "task"
    is_early: bool = False


class TaskGraph:
    def __init__(self, tasks, late_ns=0):
        """late_ns: how much later than by the tasks' own times a timer ends a sleep."""
        self.tasks, self.late_ns = tasks, late_ns
        self.ops = [(number, op) for number, task in enumerate(tasks) for op in task["ops"]]
        self.gives = {op["arg"]: (number, op) for number, op in self.ops if op["kind"] == "give"}
        self.creations = {op["arg"]: (number, op) for number, op in self.ops if op["kind"] in ("thread", "child")}
        self.waits = [[wait for op in task["ops"] if (wait := self._wait(op))] for task in tasks]
        self.end = tasks[RUN]["ops"][-1]["to_ns"]

    def _wait(self, op):
        begin, end, kind = op["from_ns"], op["to_ns"], op["kind"]
        if kind == "disk":
            return Wait(kind, begin, end)
        if not op["sleeps"] or kind not in ("sleep", "take", "join", "reap"):
            return None
        if kind == "sleep":
            # A timer may be late. The time for which the task was running or runnable comes after the timer, as far as
            # there is room for it.
            woken = max(begin + op["arg"] * 1000, end - op["awake_ns"])
            before = max(op["awake_ns"] - (end - woken), 0) if op["preemptions"] else 0
            return Wait(kind, min(begin + before, woken), min(woken + self.late_ns, end))
        if kind == "take":
            giver, gave = self.gives[op["arg"]]
            # The last operation of a pool's task may not be over when the graph is.
            first, last, seen = gave["from_ns"], min(gave["to_ns"] or end, end), gave
        else:
            giver, last = op["arg"], end
            first, seen = self.tasks[giver]["end_ns"], self.tasks[giver]
        # The time for which it was running or runnable, before the wait and after it: the task that ends the wait has
        # read the account. From 6.12 on the kernel also counts time of sleepers that it moves to another CPU before
        # they are dequeued (sched_delayed).
        before = min(max(seen["waiter_awake_ns"] - op["from_awake_ns"], 0), op["awake_ns"])
        woken = end - (op["awake_ns"] - before)
        is_early = woken < first - EARLY_NS
        woken = max(min(woken, last), first)
        return Wait("task", min(begin + before, woken) if op["preemptions"] else begin, woken, giver, is_early)

    def _birth(self, number):
        """(creator, moment)"""
        task, (creator, op) = self.tasks[number], self.creations[number]
        return creator, max(min(task["begin_ns"] - task["age_ns"], op["to_ns"]), op["from_ns"])

    def _last_wait(self, number, moment):
        return next((wait for wait in reversed(self.waits[number]) if wait.begin < moment), None)

    def _back(self, sleep, moment, waiting, margin):
        """(index in waiting, moment) where the path goes if it leaves a timer's sleep before that begins, or None."""
        for k in reversed(range(len(waiting))):
            number, since = waiting[k]
            if since <= sleep.begin + margin:  # it waits for the whole of the sleep
                return None
            wait = self._last_wait(number, moment)
            awake = wait.begin if wait and moment <= wait.woken else moment
            if awake > sleep.begin + margin if k + 1 == len(waiting) else awake == moment:
                return k, awake
        return None

    def paths(self):
        """The path, and its alternative if it depends on the order of two moments that are close to each other."""
        for difference in (0, CLOSE_NS, -CLOSE_NS):
            yield self.path(difference)
            yield TaskGraph(self.tasks, difference).path()

    def path(self, margin=0):
        """[ns of each task]: backwards from the end of the graph to its creation, as critical_path.h says.

        margin: how much later than the sleep of the task that it waits for a task's own sleep must begin for it to have
        been awake.
        """
        parts, at, moment = [0] * len(self.tasks), RUN, self.end
        waiting = []  # (task, since when) of those that wait for `at`, the last one directly
        while True:
            wait = self._last_wait(at, moment)
            if not wait:
                following, until = self._birth(at) if at != RUN else (RUN, moment)
            elif moment > wait.woken:
                following, until = at, wait.woken
            elif wait.kind == "task":
                waiting.append((at, wait.begin))
                following, until = wait.giver, moment
            elif wait.kind == "sleep" and (back := self._back(wait, moment, waiting, margin)):
                k, until = back
                following = waiting[k][0]
                del waiting[k:]
            else:
                following, until = at, wait.begin
            until = min(until, moment)
            parts[at] += moment - until
            if following == RUN and at != RUN or not wait and at == RUN:
                return parts
            if following != at:
                waiting = [entry for entry in waiting if entry[0] != following]
            at, moment = following, until

    def constructed(self):
        """[ns of each task] in which it had the token and did something: the path that the graph is made to have."""
        parts = [0] * len(self.tasks)
        for number, op in self.ops:
            if op["has_token"]:
                parts[number] += op["to_ns"] - op["from_ns"]
        return parts

    def has_unplanned_waits(self):
        """A task slept for something outside of its plan: a mutex that a ticker held, or a kernel lock."""
        planned = {"compute": 0, "give": 0, "thread": 0, "child": 0, "sleep": 1}
        return (any(task["sleeps"] for task in self.tasks)
                or any(op["sleeps"] > planned.get(op["kind"], op["sleeps"]) for _, op in self.ops))

    def has_early_wakings(self):
        """By the kernel's account of its time awake, a task was woken before what it waited for had ended: the account
        is wrong."""
        return any(wait.is_early for waits in self.waits for wait in waits)
