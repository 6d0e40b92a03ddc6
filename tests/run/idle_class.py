# SPDX-License-Identifier: GPL-2.0-or-later
"""Work that runs beside the guests is in SCHED_IDLE, so that it takes only CPU time that they leave."""
import os
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def idle_class():
    """This thread is in the class meanwhile. The processes that it starts inherit that, and stay there."""
    before = os.sched_getscheduler(0)
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    try:
        yield
    finally:
        os.sched_setscheduler(0, before, os.sched_param(0))


def leave_idle_class(pid):
    """Takes the process and all that came of it out of the class. No task may enter it from now on."""
    # A task that is still in the class may start another one during the pass.
    while any([_leave(task) for process in (pid, *children_of(pid)) for task in _tasks_of(process)]):
        pass


def children_of(pid):
    """The processes that it started, those that these started, and so on."""
    children = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = path.read_text().rpartition(")")[2].split()[1]
        except OSError:  # it has ended meanwhile
            continue
        children.setdefault(int(parent), []).append(int(path.parent.name))
    found, left = [], [pid]
    while left:
        more = children.get(left.pop(), [])
        found += more
        left += more
    return found


def _tasks_of(pid):
    try:
        return [int(name) for name in os.listdir(f"/proc/{pid}/task")]
    except OSError:  # the process has ended
        return []


def _leave(task):
    """Returns whether the thread was in SCHED_IDLE."""
    try:
        if os.sched_getscheduler(task) != os.SCHED_IDLE:
            return False
        os.sched_setscheduler(task, os.SCHED_OTHER, os.sched_param(0))
        return True
    except OSError:  # the thread has ended
        return False
