# SPDX-License-Identifier: GPL-2.0-or-later
"""Options that select what is exported, and how it is compressed."""
import gzip
import json
import os
import shutil
import subprocess

import pytest

from harness import (MS, Profile, by_state, check, check_close, expect_failure, needs_command, noise, read_report)

pytestmark = [pytest.mark.untimed, pytest.mark.host_only("it is about files")]


def recorded(context, **options):
    """A recording of threads that sleep for known times, and its capture."""
    recording = context.record("sleeps", undisturbed=False, **options)
    return recording, recording.capture


def export(context, capture, name, *arguments):
    context.wallprof("export", *arguments, "-o", name, capture)
    return context.path(name)


def unpacked(path):
    if path.suffix == ".gz":
        return gzip.decompress(path.read_bytes())
    if path.suffix == ".zst":
        needs_command("zstd")
        return subprocess.run(["zstd", "-dc", path], check=True, capture_output=True).stdout
    return path.read_bytes()


def test_packing(context):
    """The same bytes, in files that are smaller the more work is put in."""
    _, capture = recorded(context, threads=4, rounds=20, ms=5)
    plain = unpacked(export(context, capture, "a.json"))
    for kind, levels in (("gz", (1, 9)), ("zst", (1, 19))):
        sizes = []
        for level in levels:
            path = export(context, capture, f"a.json.{kind}", "--compression", level)
            check(unpacked(path) == plain, f".{kind} at level {level} is another profile")
            sizes.append(path.stat().st_size)
        check(sizes[0] > sizes[1] > 0, f".{kind}: {sizes} bytes at levels {levels}")
    trace = unpacked(export(context, capture, "a.trace.json.zst"))
    check("traceEvents" in json.loads(trace), "a trace that is packed is none")
    for name, level, words in (("a.json.gz", 10, "compressed by gzip"), ("a.json.gz", 0, "--compression"),
                               ("a.json.xz", 3, "ends in")):
        done = context.wallprof("export", "--compression", level, "-o", name, capture, status=125)
        check(words in done.stderr, done.stderr)


def test_capture_levels(context):
    """A capture holds the same whatever work was put in; tests/unit/test_capture_levels.c compares sizes."""
    for level in ("1", "19", "3,4"):
        output = context.path(f"{level}.json")
        context.wallprof("-q", "--keep-capture", "--capture-compression", level, "-o", output, "--",
                         *context.workload("sleeps", threads=8, rounds=400, ms=1, step_us=10))
        report = read_report(context, context.path(f"{level}.capture"))
        check(len(report["threads"]) == 9 and report["totals"]["switch"]["lost"] == 0, f"level {level}: {report}")
    for level in ("0", "20", "3,0", "3,x"):
        context.wallprof("--capture-compression", level, "--", "true", status=125)


def slept(truth, begin, end):
    """Returns how long a thread slept in that range by its own account."""
    return sum(max(min(until, end) - max(since, begin), 0)
               for kind, since, until in truth["waits"] if kind == "sleep")


def check_range(recording, begin, end, report):
    """Checks that only that part of the window, from begin to end (ns), is left, with what threads did in it."""
    check_close("the window", report["window_ns"], end - begin, 0, 1)
    threads = {t["tid"]: t for t in report["threads"]}
    for truth in recording.truth.named("sleeper"):
        wanted = slept({"waits": [(k, recording.at(s), recording.at(e)) for k, s, e in truth["waits"]]}, begin, end)
        thread = threads.get(truth["tid"], {"reasons": {}, "states": {}, "lifetime_ns": 0})
        check(sum(thread["states"].values()) == thread["lifetime_ns"], f"{thread}")
        # To the thread it goes on until it has a CPU again; what a switch that was not seen leaves open may be sleep.
        late = sum(thread["states"].get(state, 0) for state in ("runnable", "running", "unknown"))
        asleep = thread["reasons"].get("[sleep]", 0)
        check(wanted - late - 3 * MS - noise(wanted) <= asleep <= wanted + 3 * MS + noise(wanted),
              f"{truth['name']}: {asleep / MS} ms asleep, and {late / MS} on its way; it says {wanted / MS}")


def test_range(context):
    recording, capture = recorded(context, threads=3, rounds=10, ms=context.random.randint(15, 30))
    whole = recording.profile.window_ns
    begin = context.random.randint(1, whole // 2 // MS) * MS
    end = begin + context.random.randint(whole // 10 // MS, whole // 3 // MS) * MS
    cut = ["--from", f"{begin}ns", "--to", f"{end}ns"]
    report = json.loads(context.wallprof("report", "--json", *cut, capture).stdout)
    check_range(recording, begin, end, report)
    expect_failure(check_range, recording, begin, end + 20 * MS, report)
    expect_failure(check_range, recording, end, end + end - begin, {**report, "threads": []})
    profile = Profile.load(export(context, capture, "cut.json", *cut))
    check_close("the profile's window", profile.window_ns, end - begin, 0, 1000)
    check_close("its beginning", profile.start_ns - recording.profile.start_ns, begin, 0, MS)
    late = json.loads(context.wallprof("report", "--json", "--from", f"{begin}ns", capture).stdout)
    check_close("to the end", late["window_ns"], whole - begin, 0, 1000)
    done = context.wallprof("report", "--from", "1h", capture, status=1)
    check("select no thread" in done.stderr, done.stderr)
    context.wallprof("report", "--from", "2s", "--to", "1s", capture, status=125)


def names_of(report):
    return sorted(t["name"] for t in report["threads"])


def test_selected_threads(context):
    """Processes and threads by number, name and pattern."""
    recording, capture = recorded(context, threads=3, rounds=2, ms=20)
    pid = recording.truth.pid
    number = recording.truth.named("sleeper 1")[0]["tid"]
    for arguments, wanted in ((["--thread", "sleeper 1"], ["sleeper 1"]),
                              (["--thread", "sleeper [12]"], ["sleeper 1", "sleeper 2"]),
                              (["--thread", f"{number},sleeper 0"], ["sleeper 0", "sleeper 1"]),
                              (["--process", pid], ["sleeper 0", "sleeper 1", "sleeper 2", "sleeps"]),
                              (["--process", "sl*ps", "--thread", "sleeps"], ["sleeps"])):
        report = json.loads(context.wallprof("report", "--json", *arguments, capture).stdout)
        check(names_of(report) == wanted, f"{arguments}: {names_of(report)}")
        profile = Profile.load(export(context, capture, "who.json", *arguments))
        check(sorted(t.name for t in profile.threads if t.process == "sleeps") == wanted,
              f"{arguments}: {[t.name for t in profile.threads]}")
    for arguments in (["--thread", "nobody"], ["--process", "1"]):
        context.wallprof("report", *arguments, capture, status=1)


def check_states(profile, whole, states):
    """They weigh what they did, and the others nothing."""
    for thread in (t for t in profile.threads if t.process == "sleeps"):
        wanted = whole.thread(thread.tid).weight_by(by_state)
        reported = thread.weight_by(lambda category, leaf: "out" if leaf == "[hidden]" else by_state(category, leaf))
        check(reported.pop("out", 0) == 0, f"{thread.name}: what is left out weighs {reported}")
        for state in ("running", "runnable", "blocked"):
            ns = wanted.get(state, 0) if state in states else 0
            check_close(f"{thread.name}, {state}", reported.get(state, 0), ns, 0.001, 1000)


def test_states(context):
    recording, capture = recorded(context, threads=2, rounds=5, ms=10)
    for states in ("blocked", "running,runnable"):
        profile = Profile.load(export(context, capture, "s.json", "--state", states))
        check_states(profile, recording.profile, states.split(","))
        expect_failure(check_states, profile, recording.profile, ["runnable"])
        markers = {m["name"] for t in profile.threads for m in t.markers()}
        check(("Sleep" in markers) == ("blocked" in states), f"{states}: {markers}")
        trace = json.loads(export(context, capture, "s.trace.json", "--state", states).read_text())
        slices = {e["name"] for e in trace["traceEvents"] if e["ph"] == "X"}
        check(("Running" in slices) == ("running" in states), f"{states}: {slices}")
    done = context.wallprof("export", "--state", "asleep", capture, status=125)
    check("--state" in done.stderr, done.stderr)


def test_golden(context):
    """One canned capture in each format is, to the byte, what it was."""
    golden = Golden(context)
    for name, arguments in golden.formats:
        golden.compare(name, golden.make(name, arguments))
    changed = golden.make("golden.json", ["--to", "1ms"])
    expect_failure(golden.compare, "golden.json", changed)


class Golden:
    """tests/golden: a capture, and what was made of it."""
    formats = (("golden.json", []), ("golden.anonymous.json", ["--anonymize"]), ("golden.trace.json", []),
               ("golden.folded", []), ("golden.pb", []), ("golden.speedscope.json", []), ("golden.svg", []),
               ("golden.txt", None), ("golden.page.txt", None),
               ("golden.report.json", None))

    def __init__(self, context):
        from harness import ROOT
        self.context, self.folder = context, ROOT / "tests/golden"
        self.capture = context.path("golden.capture")
        shutil.copy(self.folder / "golden.capture", self.capture)

    def make(self, name, arguments):
        if arguments is None:
            form = {"golden.txt": ["--full"], "golden.page.txt": [], "golden.report.json": ["--json"]}[name]
            env = {**os.environ, "COLUMNS": "100", "LC_ALL": "C.UTF-8"}
            return self.context.wallprof("report", *form, self.capture, env=env).stdout.encode()
        return export(self.context, self.capture, name, *arguments).read_bytes()

    def compare(self, name, got):
        wanted = gzip.decompress((self.folder / f"{name}.gz").read_bytes())
        if got == wanted:
            return
        at = next((i for i, (a, b) in enumerate(zip(got, wanted)) if a != b), min(len(got), len(wanted)))
        check(False, f"{name} is another one from byte {at} on: {got[at - 60:at + 60]}, "
                     f"and was {wanted[at - 60:at + 60]} (if that is right: tests/golden/update)")
