# SPDX-License-Identifier: GPL-2.0-or-later
"""Chrome traces, checked by the rules of the Trace Event Format and not by wallprof's reader."""
import gzip
import json
from collections import defaultdict
from pathlib import Path

from harness import CRITICAL_PATH, check

US = 1000  # ns
# Slices are times in microseconds with three decimals: as floating-point numbers, nearly exact.
ROUNDING_NS = 2


class Trace:
    def __init__(self, data):
        self.data, self.events = data, data["traceEvents"]
        self.by_phase = defaultdict(list)
        for event in self.events:
            self.by_phase[event["ph"]].append(event)

    @classmethod
    def load(cls, path):
        raw = Path(path).read_bytes()
        return cls(json.loads(gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw))

    def names(self):
        """Name by tid, of threads."""
        return {e["tid"]: e["args"]["name"] for e in self.by_phase["M"]
                if e["name"] == "thread_name" and e["pid"] != self.devices_pid}

    @property
    def devices_pid(self):
        return next((e["pid"] for e in self.by_phase["M"] if e["name"] == "process_name"
                     and e["args"]["name"] == "Block devices"), None)

    @property
    def path_tid(self):
        """Returns the slices of the critical path's track."""
        return next((e["tid"] for e in self.by_phase["M"] if e["name"] == "process_name"
                     and e["args"]["name"] == CRITICAL_PATH), None)

    def spans(self, name):
        """The beginnings of asynchronous spans of that name, by tid."""
        found = defaultdict(list)
        for event in self.by_phase["b"]:
            if event["name"] == name:
                found[event["tid"]].append(event)
        return found

    def slices(self, tid):
        """(start ns, end ns, event) of a thread's slices, in order."""
        return sorted(((e["ts"] * US, (e["ts"] + e["dur"]) * US, e)
                       for e in self.by_phase["X"] if e["tid"] == tid),
                      key=lambda s: (s[0], -s[1]))

    def ns_by_state(self, tid):
        """Returns the times of the thread states that Perfetto shows."""
        sums = defaultdict(float)
        for event in self.by_phase["T"]:
            if event["tid"] == tid:
                sums[STATE_OF[event["name"]]] += event["dur"] * US
        return sums

    def ns_by_category(self, tid):
        sums = defaultdict(float)
        for _, _, event in self.slices(tid):
            sums[event["cat"]] += event["dur"] * US
        return sums


STATE_OF = {"Running": "running", "R": "runnable", "R+": "runnable", "S": "blocked", "D": "blocked"}
PHASES = {"M", "X", "T", "s", "f", "b", "e", "i", "C"}
NEEDS = {"X": ("ts", "dur", "cat"), "T": ("ts", "dur", "args"), "s": ("ts", "id", "cat"),
         "f": ("ts", "id", "cat", "bp"), "b": ("ts", "id", "cat"), "e": ("ts", "id", "cat"),
         "i": ("ts", "s"), "C": ("ts", "args"), "M": ("args",)}


def check_members(trace):
    for event in trace.events:
        check(event["ph"] in PHASES, f"an event of phase {event['ph']}")
        missing = [key for key in ("name", "pid", "tid", *NEEDS[event["ph"]]) if key not in event]
        check(not missing, f"{event} has no {missing}")
        check(0 <= event["pid"] < 2**32 and 0 <= event["tid"] < 2**32, f"numbers of {event}")
        check(event.get("ts", 0) >= 0 and event.get("dur", 0) >= 0, f"times of {event}")
    for tid in {e["tid"] for e in trace.events if e["ph"] in "XTsf"}:
        check(tid in trace.names(), f"thread {tid} has no name")


def check_nesting(trace):
    """Slices of a thread lie in each other or beside each other."""
    for tid in trace.names():
        open_ends = []
        for start, end, event in trace.slices(tid):
            while open_ends and open_ends[-1] <= start + ROUNDING_NS:
                open_ends.pop()
            check(not open_ends or end <= open_ends[-1] + ROUNDING_NS,
                  f"thread {tid}: {event} reaches beyond the slice that it begins in")
            open_ends.append(end)


def check_asyncs(trace):
    begun = {}
    for event in trace.by_phase["b"]:
        key = event["pid"], event["cat"], event["name"], event["id"]
        check(key not in begun, f"{event} begins twice")
        begun[key] = event["ts"]
    for event in trace.by_phase["e"]:
        key = event["pid"], event["cat"], event["name"], event["id"]
        check(key in begun, f"{event} ends and did not begin")
        check(begun.pop(key) <= event["ts"], f"{event} ends before it begins")
    check(not begun, f"{len(begun)} spans do not end")


def check_flows(trace):
    """Each from a slice of its waker's to one of the thread that it woke."""
    starts = {e["id"]: e for e in trace.by_phase["s"]}
    check(len(starts) == len(trace.by_phase["s"]), "two flows have one number")
    slices = {tid: [(s, e) for s, e, _ in trace.slices(tid)] for tid in trace.names()}
    for event in trace.by_phase["f"]:
        start = starts.pop(event["id"], None)
        check(start, f"{event} comes from nowhere")
        check((start["name"], start["cat"]) == (event["name"], event["cat"]),
              f"{start} and {event} have different names")
        check(start["ts"] <= event["ts"], f"{event} ends before it begins")
        check(start["tid"] != event["tid"], f"{event}: a thread that woke itself")
        for end in (start, event):
            at = end["ts"] * US
            check(any(s - ROUNDING_NS <= at <= e + ROUNDING_NS for s, e in slices[end["tid"]]),
                  f"{end} is in no slice")
    check(not starts, f"{len(starts)} flows lead nowhere")


def check_stacks(trace):
    frames = trace.data["stackFrames"]
    for user in trace.data["samples"] + [e for e in trace.by_phase["X"] if "sf" in e]:
        check(str(user["sf"]) in frames, f"{user} has a stack that is not there")
    for name, frame in frames.items():
        seen = set()
        while "parent" in frame:
            check(frame["parent"] in frames, f"stack frame {name} has no parent")
            check(frame["parent"] not in seen, f"stack frame {name} is its own ancestor")
            seen.add(frame["parent"])
            frame = frames[frame["parent"]]


def check_trace(trace):
    for function in (check_members, check_nesting, check_asyncs, check_flows, check_stacks):
        function(trace)
