# SPDX-License-Identifier: GPL-2.0-or-later
"""A build: hundreds of short processes are separate in the capture and folded on the screen.

Some sources do not compile. What is true is in the log of the project's scripts (c_project.py).
"""
import bisect
import collections
import copy
import functools
import itertools
import os
import re
import subprocess
from pathlib import Path

import pytest

from c_project import write_project
from harness import (MS, STATES, Recording, by_state, check, check_close, check_unexplained, expect_failure)

pytestmark = pytest.mark.host_only("it needs a compiler")

JOBS = 4
STAMP_NS = 50_000  # the profile's start and bash's clock are rounded


class Build:
    """A recording of a build, and what its scripts wrote down."""

    def __init__(self, context):
        folder, output = context.path("project"), context.path("p.json.gz")
        rng = context.random
        self.sources, self.bad = write_project(rng, folder, rng.randint(120, 150),
                                               rng.randint(2, 6))
        # The first to compile would else wait for cc1's pages, and be no short process.
        subprocess.run(["gcc", "-O1", "-c", "-x", "c", "-o", "/dev/null", "-"],
                       input="int main(void) { return 0; }", text=True, check=True)
        # make says with 2 that some could not be made.
        context.wallprof("-q", "--keep-capture", "-o", output, "--", "make", "-k", f"-j{JOBS}",
                         status=2, cwd=folder, env={**os.environ, "LC_ALL": "C"})
        self.recording = Recording(context, output)
        self.report, self.profile = self.recording.report, self.recording.profile
        self.reported = collections.defaultdict(dict)  # by name and pid, what follows in the log
        for line in (folder / "log").read_text().splitlines():
            name, pid, *rest = line.split(" ")
            self.reported[name][int(pid)] = rest
        self.check_log()

    def check_log(self):
        """The scripts' account is what the project must give."""
        wanted = {"compile": len(self.sources) + 1, "cc1": len(self.sources),
                  "as": len(self.sources) - len(self.bad)}
        got = {name: len(pids) for name, pids in self.reported.items()}
        check(got == wanted, f"the scripts wrote down {got}, should be {wanted}")

    def counts(self):
        """Returns the number of processes of each name."""
        return {**{name: len(pids) for name, pids in self.reported.items()},
                "gcc": len(self.reported["compile"]), "make": 1, "collect2": 1, "ld": 1}

    def processes(self, name):
        """By pid, those that the report calls so."""
        return {p["pid"]: p for p in self.report["processes"] if p["name"] == name}

    def status_of(self, name, pid):
        """Returns the status that the scripts wrote down."""
        if name == "compile":
            return int(self.reported[name][pid][2])
        is_bad = name == "cc1" and any(f"{source}.c" in self.reported[name][pid] for source in self.bad)
        return 1 if is_bad else 0

    def window_ns(self, seconds):
        """bash's $EPOCHREALTIME as a time of the window."""
        whole, micros = seconds.split(".")
        return (int(whole) * 1_000_000 + int(micros)) * 1000 - self.profile.start_ns


def check_kept_apart(build):
    """Every process is in the capture, with its parent and its exit status."""
    got = collections.Counter(p["name"] for p in build.report["processes"])
    check(got == build.counts(), f"processes recorded: {got}, should be {build.counts()}")
    for name, reported in build.reported.items():
        found = build.processes(name)
        check(found.keys() == reported.keys(), f"{name}: other pids than the scripts': "
              f"{sorted(found.keys() ^ reported.keys())}")
        for pid, process in found.items():
            check((process["exit_status"], process["exit_signal"])
                  == (build.status_of(name, pid), None),
                  f"{name} {pid} ended with {process['exit_status']}, {process['exit_signal']}; "
                  f"should be {build.status_of(name, pid)}")
    compilers = build.processes("gcc")
    check({p["parent"] for p in compilers.values()} == build.reported["compile"].keys(),
          "gcc: another parent than it had")
    for pid, process in compilers.items():
        check(process["exit_status"] == build.status_of("compile", process["parent"]),
              f"gcc {pid} ended with {process['exit_status']}, its parent says otherwise")
    for name, parents in (("compile", build.processes("make")), ("cc1", compilers),
                          ("as", compilers)):
        check({p["parent"] for p in build.processes(name).values()} <= parents.keys(),
              f"{name}: another parent than it had")
    check([p["exit_status"] for p in build.processes("make").values()] == [2], "make's status")


def check_lifetimes(build):
    """The lifetimes contain what the scripts wrote down about themselves, and that contains gcc's."""
    compilers = {p["parent"]: p for p in build.processes("gcc").values()}
    for pid, (begin, end, _) in build.reported["compile"].items():
        begin, end = build.window_ns(begin), build.window_ns(end)
        outer, inner = build.processes("compile")[pid], compilers[pid]
        lifetimes = (outer["start_ns"], begin, inner["start_ns"], inner["end_ns"], end,
                     outer["end_ns"])
        check(all(a <= b + STAMP_NS for a, b in zip(lifetimes, lifetimes[1:])),
              f"compile {pid}: not one inside the other: {[ns / MS for ns in lifetimes]} ms")
    for name in ("cc1", "as"):
        for pid, (stamp, *_) in build.reported[name].items():
            process = build.processes(name)[pid]
            check(process["start_ns"] <= build.window_ns(stamp) + STAMP_NS
                  and build.window_ns(stamp) <= process["end_ns"] + STAMP_NS,
                  f"{name} {pid}: it was alive before its birth or after its exit")


def check_nothing_lost(build):
    for kind, total in build.report["totals"].items():
        check(total["sent"] == total["received"] and total["lost"] == 0, f"{kind}: {total}")
    check(build.report["losses"] == [], "losses without a loss")
    check_unexplained(build.report)


def lanes_of(build, name):
    """The rows of the processes of that name; they must be called for all of them."""
    title = f"{name} ×{build.counts()[name]}"
    lanes = [t for t in build.profile.threads if t.process == title]
    check(lanes and lanes[0].name == title, f"no row called {title}, but "
          f"{sorted({t.process for t in build.profile.threads})}")
    check(not any(t.process == name for t in build.profile.threads), f"{name} not folded")
    # make starts the next when it has heard of an end, which may be before the last switch-out.
    check(len(lanes) <= 2 * JOBS, f"{name}: {len(lanes)} rows, and make -j{JOBS}")
    return lanes


def check_folded(build, name):
    """The lanes of a name add up to its processes, and each time names its process."""
    lanes, processes = lanes_of(build, name), build.processes(name)
    ledgers = [t for t in build.report["threads"] if t["process"] == name]
    weights, painted = collections.Counter(), collections.Counter()
    for lane in lanes:
        weights.update(lane.weight_by(by_state))
        painted.update(lane.painted_by(
            lambda category, leaf: "gap" if leaf == "[not alive]" else by_state(category, leaf)))
    check_close(f"{name}: weights against lifetimes", sum(weights.values()),
                sum(t["lifetime_ns"] for t in ledgers), 0, 1000 * len(ledgers))
    for state in STATES:
        reported = sum(t["states"][state] for t in ledgers)
        check_close(f"{name}, {state}: weights against ledgers", weights[state], reported, 0.005, MS)
        check_close(f"{name}, {state}: track against ledgers", painted[state], reported, 0.005, MS)
    lifetimes = {int(m["data"]["process"]): m for lane in lanes for m in lane.markers()
                 if m["name"] == "Process"}
    check(lifetimes.keys() == processes.keys(), f"{name}: the markers are those of other processes")
    for pid, marker in lifetimes.items():
        check_close(f"{name} {pid}: start", marker["start"], processes[pid]["start_ns"], 0, 2000)
        check_close(f"{name} {pid}: end", marker["end"], processes[pid]["end_ns"], 0, 2000)


def check_lanes_are_apart(build, name):
    """In no row are two processes at a time."""
    for lane in lanes_of(build, name):
        lifetimes = sorted((m["start"], m["end"]) for m in lane.markers() if m["name"] == "Process")
        check(all(a[1] <= b[0] for a, b in zip(lifetimes, lifetimes[1:])), f"{lane.name}: two at a time")


class Symbols:
    """The functions that nm knows, by the file's own addresses; they may lie one in another."""

    def __init__(self, functions):
        self.functions = sorted(functions)
        self.starts = [start for start, _, _ in self.functions]
        # The largest end up to each of them: a search back from an address need go no further.
        self.ends = list(itertools.accumulate((end for _, end, _ in self.functions), max))

    def names_at(self, address):
        names, i = set(), bisect.bisect_right(self.starts, address) - 1
        while i >= 0 and self.ends[i] > address:
            if self.functions[i][1] > address:
                names |= self.functions[i][2]
            i -= 1
        return names


@functools.cache
def symbols_of(path):
    found = {}
    for table in ([], ["-D"]):
        for style in ([], ["-C"]):
            text = subprocess.run(["nm", "-S", "--defined-only", *table, *style, path],
                                  capture_output=True, text=True).stdout
            for value, size, name in re.findall(r"^(\w{16}) (\w{16}) [TtWi] (.*)$", text, re.M):
                names = found.setdefault((int(value, 16), int(size, 16)), set())
                names.add(name.split("@")[0])
    return Symbols((start, start + size, names) for (start, size), names in found.items() if size)


@functools.cache
def base_of(path):
    text = subprocess.run(["readelf", "-lW", path], capture_output=True, text=True).stdout
    return min(int(address, 16) for address in re.findall(r"^ +LOAD +\w+ (\w+)", text, re.M)) & ~0xFFF


def user_frames(profile):
    """(path, address in the file, name) of each frame in a mapped file."""
    shared = profile.data["shared"]
    frames, functions, strings = (shared[t] for t in ("frameTable", "funcTable", "stringArray"))
    for i in range(frames["length"]):
        function = frames["func"][i]
        resource = functions["resource"][function]
        library = shared["resourceTable"]["lib"][resource] if resource >= 0 else None
        path = profile.data["libs"][library]["path"] if library is not None else ""
        if frames["inlineDepth"][i] == 0 and Path(path).is_file():
            yield path, frames["address"][i] + base_of(path), strings[functions["name"][function]]


def check_symbols(frames):
    """Whatever address nm has a name for has that name."""
    known = 0
    for path, address, name in frames:
        names = symbols_of(path).names_at(address)
        check(not names or name in names,
              f"{path}, {address:#x}: called {name}, should be {sorted(names)}")
        known += bool(names)
    check(known >= 200, f"only {known} addresses in functions with names: no test")


def test_make(context):
    build = Build(context)
    check_nothing_lost(build)
    check_kept_apart(build)
    check_lifetimes(build)
    for name in ("compile", "gcc", "cc1", "as"):
        check_folded(build, name)
        check_lanes_are_apart(build, name)
    frames = list(user_frames(build.profile))
    check({"cc1", "make", "libc.so.6"} <= {Path(path).name for path, _, _ in frames}, "files")
    check_symbols(frames)
    check_negative(build, frames)


def check_negative(build, frames):
    """Each of these notices one process, one status, one name or a time that is wrong."""
    def fails(function, alter, *arguments):
        altered = copy.copy(build)
        altered.report, altered.reported = copy.deepcopy(build.report), copy.deepcopy(build.reported)
        alter(altered)
        expect_failure(function, altered, *arguments)

    def first(altered, name):
        return next(iter(altered.processes(name).values()))

    def shift(altered):
        reported = next(iter(altered.reported["compile"].values()))
        # A busy machine may delay a shell before it writes its line.
        reported[0] = f"{float(reported[0]) - 5:.6f}"

    fails(check_nothing_lost, lambda a: a.report["totals"]["switch"].update(lost=1))
    fails(check_kept_apart, lambda a: a.report["processes"].remove(first(a, "as")))
    fails(check_kept_apart, lambda a: first(a, "cc1").update(exit_status=3))
    fails(check_kept_apart, lambda a: first(a, "gcc").update(parent=1))
    fails(check_kept_apart, lambda a: setattr(a, "bad", a.bad - {min(a.bad)}))
    fails(check_lifetimes, shift)
    fails(check_folded, lambda a: a.reported["cc1"].popitem(), "cc1")
    fails(check_folded, lambda a: a.report["threads"].remove(
        max((t for t in a.report["threads"] if t["process"] == "cc1"),
            key=lambda t: t["lifetime_ns"])), "cc1")
    expect_failure(check_symbols, [(path, address, name + "x") for path, address, name in frames])
