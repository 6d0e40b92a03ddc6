# SPDX-License-Identifier: GPL-2.0-or-later
"""The Chrome trace has the same times and fields as the Firefox profile, and is well made."""
import copy
import json
import os
import subprocess
from pathlib import Path

import pytest

from chrome_trace import Trace, check_flows, check_asyncs, check_nesting, check_stacks, check_trace
from harness import (GIVE_UP_S, MS, ROOT, WORKLOADS, Profile, Skip, Viewer, by_category, by_state, check, check_close,
                     check_timed, expect_failure, needs_command, needs_root, read_report)

pytestmark = [pytest.mark.untimed, pytest.mark.host_only("the same capture gives the same bytes anywhere")]

RUNNING = ("User", "Kernel", "Recording")
OFF = ("Running", "Unknown")


def export(context, recording):
    output = context.path("p.trace.json.gz")
    context.wallprof("export", "-q", "-o", output, recording.capture)
    return Trace.load(output)


def check_same_times(trace, recording):
    """Per thread: of each state and each category as the Firefox profile has it, to 0.1 %."""
    reported = [t["tid"] for t in recording.report["threads"]]
    named = set(trace.names()) - {trace.path_tid}
    check(set(reported) == named, f"threads {set(reported) ^ named}")
    check_close("the critical path", sum(end - begin for begin, end, _ in trace.slices(trace.path_tid)),
                recording.report["critical_path"]["length_ns"], 0.001, 100)
    for tid in reported:
        thread = recording.profile.thread(tid)
        states, wanted = trace.ns_by_state(tid), thread.weight_by(by_state)
        for state in ("running", "runnable", "blocked"):
            check_close(f"{thread.name} {tid}: {state}", states.get(state, 0),
                        wanted.get(state, 0), 0.001, 100)
        categories, wanted = trace.ns_by_category(tid), thread.weight_by(by_category)
        wanted["Running"] = sum(wanted.pop(c, 0) for c in RUNNING)
        for category in set(categories) | set(wanted):
            check_close(f"{thread.name} {tid}: {category}", categories.get(category, 0),
                        wanted.get(category, 0), 0.001, 100)


def waits_in_truth(trace, recording):
    """Each wait that the workload made is a slice, as long as it was."""
    for truth in recording.truth.threads:
        slices = [(s, e) for s, e, event in trace.slices(truth["tid"]) if event["cat"] not in OFF]
        for _, begin, end in truth["waits"]:
            begin, end = recording.at(begin), recording.at(end)
            inside = sum(min(e, end) - max(s, begin) for s, e in slices if s < end and e > begin)
            check_timed(f"{truth['name']}: a wait", inside, end - begin, 0.02, 5 * MS)


RECORDED = (("sleeps", {"threads": 3, "ms": 12, "rounds": 5}), ("convoy", {"threads": 4}),
            ("pingpong", {"rounds": 2000}), ("burn", {"threads": 3, "ms": 100}))


def test_same_times(context):
    for name, options in RECORDED:
        recording = context.record(name, undisturbed=False, **options)
        trace = export(context, recording)
        check_trace(trace)
        check_same_times(trace, recording)
    waits_in_truth(*record_sleeps(context))


def record_sleeps(context):
    recording = context.record("sleeps", threads=2, ms=context.random.randint(10, 40), rounds=4)
    return export(context, recording), recording


def test_flows(context):
    """Two threads that wake each other: as many flows as times they did."""
    rounds = context.random.randint(200, 600)
    recording = context.record("pingpong", undisturbed=False, rounds=rounds)
    trace = export(context, recording)
    check_trace(trace)
    players = {t["tid"] for t in recording.truth.threads if t["waits"] is not None}
    between = [e for e in trace.by_phase["s"] if e["tid"] in players]
    check(len(between) >= rounds, f"{len(between)} flows of {rounds} rounds")


def check_requests(trace, report):
    """Every request of the report is a span: of the thread that submitted it, or of the device."""
    spans = trace.spans("Block I/O")
    for thread in report["threads"]:
        io = thread["io"]
        check(len(spans.pop(thread["tid"], [])) == io["reads"] + io["writes"] + io["others"],
              f"requests of {thread['name']}: {io}")
    check(all(e["pid"] == trace.devices_pid for found in spans.values() for e in found),
          "requests without a submitter that are not the devices'")
    reported = sum(d["reads"] + d["writes"] + d["others"] for d in report["devices"])
    check(len(trace.by_phase["b"]) >= reported > 0 and
          sum(len(found) for found in trace.spans("Block I/O").values()) == reported,
          f"{reported} requests in the report")


def fields_in_profile(profile, kind):
    """Returns the fields of all markers of one kind in the Firefox profile, in the formats of its schema."""
    (schema,) = [s for s in profile.meta["markerSchema"] if s["name"] == kind]
    formats = {field["key"]: field["format"] for field in schema["fields"]}
    strings, found = profile.data["shared"]["stringArray"], set()
    for thread in profile.data["threads"]:
        for data in thread["markers"]["data"]:
            if data["type"] != kind:
                continue
            reported = {key: value for key, value in data.items() if key not in ("type", "cause", "reason", "color")}
            check(set(reported) <= set(formats), f"{kind}: no schema has {set(reported) - set(formats)}")
            found.add(tuple(sorted(
                (key + "Ms" if formats[key] == "duration" else key,
                 strings[value] if formats[key] == "unique-string" else value)
                for key, value in reported.items() if formats[key] != "tid")))
    return found


def check_same_fields(trace, profile):
    """Both formats have the same fields for faults, requests and waits."""
    spans = [event for name in ("Page fault", "Block I/O") for e in trace.spans(name).values() for event in e]
    slices = [e for e in trace.by_phase["X"] if "sf" in e and e["cat"] not in OFF]
    for kind, events in (("PageFault", [e for e in spans if e["name"] == "Page fault"]),
                         ("BlockIO", [e for e in spans if e["name"] == "Block I/O"]), ("Wait", slices)):
        # A number of a thread is text in one of them if it is not the only one.
        ours = {tuple(sorted((key, value) for key, value in e["args"]["data"].items()
                             if key not in ("waker", "holder", "rival"))) for e in events}
        theirs = fields_in_profile(profile, kind)
        if kind == "Wait":  # only one format has short waits and those within a fault
            check(len(theirs & ours) == len(theirs) > 0, f"waits only in Firefox: {theirs - ours}")
        else:
            check(ours == theirs and ours, f"{kind}: in one format only: {list(ours ^ theirs)[:4]}")


def test_requests_and_faults(context):
    """Read from a disk by calls and by faults."""
    needs_root()
    path, truth, capture = (context.path(n) for n in ("data", "truth", "c.wallprof"))
    path.write_bytes(os.urandom(4 << 20))
    context.wallprof("record", "-q", "-o", capture, "--", WORKLOADS / "io", truth, path,
                     "cold:64", "map:1024")
    output = context.path("p.trace.json")
    context.wallprof("export", "-q", "-o", output, capture)
    trace, report = Trace.load(output), read_report(context, capture)
    check_trace(trace)
    check_requests(trace, report)
    files = {e["args"]["data"].get("filename") for found in trace.spans("Block I/O").values()
             for e in found}
    check(os.path.realpath(path) in files, f"files: {files}")
    mapped = next(json.loads(t) for t in truth.read_text().splitlines() if '"map"' in t)
    faults = trace.spans("Page fault")[mapped["pid"]]
    named = [e for e in faults if e["args"]["data"].get("filename") == os.path.realpath(path)]
    classes = {e["args"]["data"]["class"] for e in named}
    check(named and classes <= {"file, major", "file, minor"}, f"faults: {faults}")
    report["devices"][0]["reads"] += 1
    expect_failure(check_requests, trace, report)
    context.wallprof("export", "-q", "-o", context.path("p.json"), capture)
    profile = Profile.load(context.path("p.json"))
    check("folded intervals" not in trace.data["otherData"], f"left out: {trace.data['otherData']}")
    check_same_fields(trace, profile)
    faults[0]["args"]["data"]["address"] = "0x1"
    expect_failure(check_same_fields, trace, profile)


def test_formats_by_option(context):
    recording = context.record("sleeps", threads=1, ms=5, rounds=1)
    plain, zipped, named = (context.path(n) for n in ("a.trace.json", "a.trace.json.gz", "b.json"))
    for output, options in ((plain, ()), (zipped, ()), (named, ("--format", "chrome"))):
        context.wallprof("export", "-q", *options, "-o", output, recording.capture)
    check(Trace.load(plain).data == Trace.load(zipped).data == Trace.load(named).data,
          "one capture, and different traces")
    context.wallprof("export", "-q", "--format", "gecko", "-o", plain, recording.capture)
    check(b'"meta"' in plain.read_bytes()[:100], "--format gecko did not win over the name")
    context.wallprof("export", "--format", "png", recording.capture, status=125)
    context.wallprof("export", "--format", "chrome", "--cpu-graph", recording.capture, status=125)
    context.wallprof("-q", "--format", "chrome", "--", "true")
    check_trace(Trace.load(context.path("wallprof.trace.json.gz")))


def check_imported(markers, slices):
    """Both formats have the same slices of each name, with the same lengths."""
    seen = {m["markerName"]: m for m in markers["byType"]}
    names = {event["name"] for _, _, event in slices}
    check(set(seen) >= names, f"the importer lost {names - set(seen)}")
    for name in names:
        times = [end - start for start, end, event in slices if event["name"] == name]
        check(seen[name]["count"] == len(times),
              f"{name}: {seen[name]['count']} markers of {len(times)} slices")
        check_close(f"{name}, all together", seen[name]["count"] * MS *
                    seen[name]["durationStats"]["avg"], sum(times), 0.001, 10 * len(times))


def test_firefox_importer(context):
    """The viewer's importer of such traces, which is not ours, finds the same waits."""
    trace, recording = record_sleeps(context)
    with Viewer() as viewer:
        viewer.load(context.path("p.trace.json.gz"))
        handles = viewer.thread_handles()
        for tid in (t["tid"] for t in recording.truth.threads):
            slices = trace.slices(tid)
            # The importer makes tids unique by the pid.
            (handle,) = [h for t, h in handles.items() if t.endswith(f":{tid}")]
            markers = viewer.query("thread", "markers", "--thread", handle, "--list", "--limit", 0)
            check_imported(markers, slices)
            expect_failure(check_imported, markers, slices + slices[:1])


def test_chromium(context):
    """The viewer of chrome://tracing lists the threads, with as many slices, samples and flows."""
    needs_command("chromium")
    viewers = sorted(Path("/usr/share").glob("go-*/src/cmd/trace/static"))
    if not viewers:
        raise Skip("no trace_viewer_full.html (Debian: golang-1.19-src)")
    trace, recording = record_sleeps(context)
    plain, picture = context.path("plain.trace.json"), context.path("tracing.png")
    plain.write_text(json.dumps(trace.data))
    done = subprocess.run([os.environ.get("WALLPROF_NODE", "node"),
                           ROOT / "tests" / "support" / "py" / "tracing.mjs", "chromium", viewers[-1], plain,
                           picture], capture_output=True, text=True, timeout=GIVE_UP_S)
    check(done.returncode == 0, f"the viewer: {done.stderr[-1000:]}")
    seen = json.loads(done.stdout)
    # To it a thread's state is a step of an async span.
    warnings = [w for w in seen["warnings"] if "require an id parameter" not in w]
    check(not warnings and len(seen["warnings"]) == len(trace.by_phase["T"]),
          f"the viewer warns: {seen['warnings']}")
    threads = {t["tid"]: t for t in seen["threads"]}
    for tid, name in trace.names().items():
        check(tid in threads and threads[tid]["name"] == name, f"no thread {tid} {name}")
        check(threads[tid]["slices"] == len(trace.slices(tid)),
              f"{name}: {threads[tid]['slices']} slices, should be {len(trace.slices(tid))}")
    counters = {c.split(".")[-1] for c in seen["counters"]}
    check(counters == {e["name"] for e in trace.by_phase["C"]}, f"counters: {counters}")
    check(sum(t["samples"] for t in seen["threads"]) == len(trace.data["samples"]), "samples")
    check(seen["flows"] == len(trace.by_phase["s"]), f"{seen['flows']} flows")
    check(picture.stat().st_size > 10000, "no picture")


def test_negative(context):
    trace, recording = record_sleeps(context)
    altered = copy.deepcopy(recording)
    worker = max(recording.report["threads"], key=lambda t: t["states"].get("blocked", 0))
    thread = altered.profile.thread(worker["tid"])
    thread.weights = [w * 1.01 for w in thread.weights]
    expect_failure(check_same_times, trace, altered)

    def broken(change):
        data = copy.deepcopy(trace.data)
        change(data)
        return Trace(data)

    def longer(data):
        """One reaches into the middle of the next."""
        slices = [e for e in data["traceEvents"] if e["ph"] == "X" and e["tid"] == worker["tid"]]
        one, following = sorted(slices, key=lambda e: e["ts"])[-3:-1]
        one["dur"] = following["ts"] + following["dur"] / 2 - one["ts"]

    expect_failure(check_nesting, broken(longer))
    expect_failure(check_flows, broken(lambda data: data["traceEvents"].remove(
        next(e for e in data["traceEvents"] if e["ph"] == "f"))))
    expect_failure(check_asyncs, broken(lambda data: data["traceEvents"].append(
        {"ph": "b", "pid": 1, "tid": 1, "id": 1, "cat": "x", "name": "x", "ts": 1})))
    expect_failure(check_stacks, broken(lambda data: data["stackFrames"].popitem()))
