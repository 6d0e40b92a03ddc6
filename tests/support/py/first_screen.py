# SPDX-License-Identifier: GPL-2.0-or-later
"""What a profile shows when the Firefox Profiler opens it: the selected row and its call tree.

The viewer sorts the callees of a function by their time. It opens the first one of each level, 17 levels deep at most,
and none whose category is "Idle" if there is another; see CallTree.tsx, maybeProcureInterestingInitialSelection().
"""
from dataclasses import dataclass, field

from harness import check

OPENED_LEVELS = 17
SEEN = 0.2  # of a row's time
ROWS = 12  # of the call tree, that a small window shows


@dataclass
class Node:
    """A function below a path of callers."""
    name: str
    category: str
    ns: int = 0
    callees: dict = field(default_factory=dict)

    def sorted_callees(self):
        return sorted(self.callees.values(), key=lambda node: -node.ns)

    def first_callee(self):
        """The one that the viewer opens, or None."""
        callees = self.sorted_callees()
        return next((node for node in callees if node.category != "Idle"), callees[0] if callees else None)


class Stacks:
    """The frames of a profile's stacks, outermost first: (function, name, category)."""

    def __init__(self, profile, thread):
        self.tables = [profile.table(thread.data, name) for name in ("stackTable", "frameTable", "funcTable")]
        self.strings, self.categories = profile.table(thread.data, "stringArray"), profile.categories

    def frames(self, stack):
        stacks, frames, functions = self.tables
        found = []
        while stack is not None:
            frame = stacks["frame"][stack]
            category = stacks["category"][stack] if "category" in stacks else None
            category = frames["category"][frame] if category is None else category
            function = frames["func"][frame]
            found.append((function, self.strings[functions["name"][function]], self.categories[category or 0]))
            if "prefixOffset" in stacks:
                offset = stacks["prefixOffset"][stack]
                stack = stack - offset if offset else None
            else:
                stack = stacks["prefix"][stack]
        return reversed(found)


def call_tree(profile, thread):
    """The root of the thread's call tree."""
    stacks, root = Stacks(profile, thread), Node("", "")
    for stack, weight in zip(thread.data["samples"]["stack"], thread.weights):
        node = root
        node.ns += weight
        for function, name, category in stacks.frames(stack):
            node = node.callees.setdefault(function, Node(name, category))
            node.ns += weight
    return root


def opened_rows(root):
    """The lines of the call tree as the viewer opens it: [(depth, node)]."""
    def rows_of(node, depth, is_opened):
        callees = node.sorted_callees() if is_opened else []
        opened = node.first_callee() if depth <= OPENED_LEVELS else None
        for callee in callees:
            yield depth, callee
            yield from rows_of(callee, depth + 1, callee is opened)
    return list(rows_of(root, 0, True))


def selected_thread(profile):
    """The row that is selected, which must be the first one."""
    (number,) = profile.meta["initialSelectedThreads"]
    check(profile.meta["initialVisibleThreads"][0] == number, f"the selected row {number} is not the first one")
    return profile.rows[number]


def colors_of(thread):
    """The categories whose colours are seen in the row: each has a fifth of the time or more."""
    times = {}
    for category, weight in zip(thread.sample_categories, thread.weights):
        times[category] = times.get(category, 0) + weight
    return [category for category, time in times.items() if time >= SEEN * sum(times.values())]


def lines(profile):
    """The selected row, its colours, and the call tree's first rows."""
    thread = selected_thread(profile)
    root = call_tree(profile, thread)
    return [f"{thread.process}: {thread.row}", f"colours: {', '.join(colors_of(thread))}",
            *(f"{100 * node.ns / (root.ns or 1):5.1f} %  {'  ' * depth}{node.name}"
              for depth, node in opened_rows(root)[:ROWS])]
