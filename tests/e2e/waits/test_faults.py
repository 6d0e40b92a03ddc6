# SPDX-License-Identifier: GPL-2.0-or-later
"""Page faults: as many as the kernel counts, of the kinds that the workload took.

By both ways of seeing them, where the kernel allows both; the workload takes each kind in a process
of its own, whose account by the kernel (REC_STATS, and rusage) is the judge.
"""
import json
import os
from pathlib import Path

from harness import (IN_GUEST, MS, WORKLOADS, Profile, Skip, check, check_causes, check_timed,
                     expect_failure, fewer, is_long, needs_root, read_report)

PAGE = 4096
# What a fault of each kind of the workload is called, and how the kernel counts it.
CLASS_OF = {"touch": "first touch", "cow": "copy-on-write", "file": "file, minor",
            "cold": "file, major", "write": "file, first write", "kernel": "first touch"}
OF_FILE = ("file", "cold", "write")
said = []  # by doctor
# Besides those that it means to take, a process takes some: of its stack, its libraries, the file
# that it writes its truth to.
OTHERS = 120


def sources(context):
    """The ways of seeing faults that this kernel allows."""
    return ["events", "fentry"] if allows_fentry(context) else ["events"]


def allows_fentry(context):
    """All kernels of the matrix do. Else asked once: doctor loads each program on its own."""
    if IN_GUEST:
        return True
    if not said:
        said.append(context.wallprof("doctor", status=None).stdout)
    return not any(line.startswith("no") and "fentry/handle_mm_fault" in line
                   for line in said[0].splitlines())


def record_faults(context, source, steps, *options):
    """Profile, report and truth by kind; steps: {kind: count}."""
    data, truth, output = (context.path(n) for n in ("data", "truth", "p.json"))
    truth.unlink(missing_ok=True)
    pages = max((n for kind, n in steps.items() if kind in OF_FILE), default=1)
    data.write_bytes(os.urandom(PAGE * pages))
    context.wallprof("-q", "--keep-capture", "--fault-source", source, *options, "-o", output, "--",
                     WORKLOADS / "faults", truth, data, *(f"{k}:{n}" for k, n in steps.items()))
    told = [json.loads(line) for line in truth.read_text().splitlines()]
    report = read_report(context, context.path("p.json.capture"))
    return Profile.load(output), report, {t["kind"]: t for t in told}


def ledger_of(report, pid):
    (found,) = [t for t in report["threads"] if t["tid"] == pid]
    return found


def faults_of(report, told):
    return ledger_of(report, told["pid"])["faults"]


def check_classes(report, told):
    for kind, name in CLASS_OF.items():
        if kind not in told:
            continue
        count = faults_of(report, told[kind]).get(name, {"count": 0})["count"]
        wanted = told[kind]["min_flt" if kind == "file" else "count"]
        check(0 < wanted <= count <= wanted + OTHERS,
              f"{kind}: {count} are called {name!r}, should be {wanted}")


def check_counts(report, told, source):
    """Of a process's whole life: the kernel's own account, and ours."""
    for kind, truth in told.items():
        ledger = ledger_of(report, truth["pid"])
        done = sum(f["count"] for name, f in ledger["faults"].items() if name != "failed")
        counted = ledger["kernel"]["min_flt"] + ledger["kernel"]["maj_flt"]
        # What the kernel gets for itself is in its account, and seen by the function alone.
        forced = truth["count"] if kind == "mlock" and source == "events" else 0
        # From 7.0 on a program may be left out (tests/vm/checks.py); that is counted.
        missing = report["totals"]["page fault"]["lost"]
        check(counted - missing <= done + forced <= counted,
              f"{kind}: {done} faults recorded, {missing} lost, the kernel counted {counted}")
        check(truth["min_flt"] + truth["maj_flt"] <= counted, f"{kind}: {truth} of {counted}")


ALL = ("--fault-threshold", "0")


def draw_steps(context, kinds):
    return {kind: fewer(context.random.randint(200, 600)) for kind in kinds}


def test_all(context):
    needs_root()
    steps = draw_steps(context, ("touch", "cow", "file", "cold", "write", "kernel", "mlock", "segv"))
    for source in sources(context):
        _, report, told = record_faults(context, source, steps, *ALL)
        check(set(told) == set(steps), f"the workload told of {set(told)}")
        check_classes(report, told)
        check_counts(report, told, source)
        told["touch"]["count"] += OTHERS + 1
        expect_failure(check_classes, report, told)
        ledger_of(report, told["cow"]["pid"])["kernel"]["min_flt"] += (
            report["totals"]["page fault"]["lost"] + 1)
        expect_failure(check_counts, report, told, source)


FTRACE = Path("/proc/sys/kernel/ftrace_enabled")


def test_without_ftrace(context):
    """The kernel then takes fentry programs and never runs them: faults are told by events."""
    if not IN_GUEST:
        raise Skip("it sets what the whole machine has")
    steps = draw_steps(context, ("touch", "mlock"))
    try:
        FTRACE.write_text("0")
    except OSError as error:
        raise Skip(f"this kernel's ftrace stays: {error.strerror}") from None
    try:
        _, report, told = record_faults(context, "auto", steps, *ALL)
        check_counts(report, told, "events")
        expect_failure(check_counts, report, told, "fentry")
        refused = context.wallprof("--fault-source", "fentry", "--", "true", status=125)
        check("ftrace_enabled" in refused.stderr, f"fentry: {refused.stderr}")
    finally:
        FTRACE.write_text("1")
    _, report, told = record_faults(context, "auto", steps, *ALL)
    check_counts(report, told, "fentry")


def test_by_default(context):
    """Those that are major or slept; of the others the kernel's count."""
    steps = draw_steps(context, ("touch", "cold"))
    for source in sources(context):
        _, report, told = record_faults(context, source, steps)
        major = ledger_of(report, told["cold"]["pid"])["kernel"]["maj_flt"]
        found = faults_of(report, told["cold"])["file, major"]
        check(found["count"] == major, f"{found} of {major} major faults")
        check("first touch" not in faults_of(report, told["touch"])
              or faults_of(report, told["touch"])["first touch"]["count"] < steps["touch"],
              f"minor faults: {faults_of(report, told['touch'])}")
        check(ledger_of(report, told["touch"]["pid"])["kernel"]["min_flt"] >= steps["touch"],
              "the kernel's count of minor faults is missing")
        path = os.path.realpath(context.path("data"))
        check([f["count"] for f in report["faulted_files"] if f["path"] == path] == [major],
              f"faults by file: {report['faulted_files']}, should be {path}")


def test_off(context):
    _, report, told = record_faults(context, "off", {"cold": 50})
    check(not faults_of(report, told["cold"]), "faults are recorded that nobody wants")
    context.wallprof("--fault-source", "guess", "--", "true", status=125)
    context.wallprof("--fault-threshold", "soon", "--", "true", status=125)


def check_storm(report, told):
    """Each fault is recorded, or counted among what was lost."""
    ledger = ledger_of(report, told["pid"])
    done = sum(f["count"] for f in ledger["faults"].values())
    counted = ledger["kernel"]["min_flt"] + ledger["kernel"]["maj_flt"]
    missing = report["totals"]["page fault"]["lost"]
    check(done <= counted <= done + missing,
          f"{done} faults recorded, {missing} lost, the kernel counted {counted}")
    check(missing == sum(loss["count"] for loss in report["losses"]
                         if loss["kind"] == "page fault"), f"losses: {report['losses']}")


def test_storm(context):
    """200,000 a second, or as many as the machine can."""
    count = fewer(context.random.randint(400_000, 600_000) // (1 if is_long() else 3))
    for source in sources(context):
        _, report, told = record_faults(context, source, {"storm": count}, *ALL)
        check_storm(report, told["storm"])
        report["totals"]["page fault"]["lost"] = 0
        ledger_of(report, told["storm"]["pid"])["kernel"]["min_flt"] += 1
        expect_failure(check_storm, report, told["storm"])


def markers_of(profile, pid):
    thread = profile.thread(pid)
    return [m for m in thread.markers() if m["data"] and m["data"]["type"] == "PageFault"]


def check_waits(profile, report, told):
    """What a thread waited in faults is the reason that it has, and the markers' sum."""
    ledger = ledger_of(report, told["cold"]["pid"])
    waited = sum(f["waited_ns"] for f in ledger["faults"].values())
    reason = ledger["reasons"].get("[page-fault I/O wait]", 0)
    check(waited == reason, f"{waited} ns in faults, {reason} by reason")
    spans = sum(m["end"] - m["start"] for m in markers_of(profile, told["cold"]["pid"]))
    took = sum(f["ns"] for f in ledger["faults"].values())
    check_timed("markers", spans, took, 0.02, MS)
    length = told["cold"]["end_ns"] - told["cold"]["begin_ns"]
    check(took <= length + 20 * MS, f"faults took {took} ns of {length}")


def test_waits(context):
    for source in sources(context):
        profile, report, told = record_faults(context, source, {"cold": 300})
        check_waits(profile, report, told)
        strings = profile.data["shared"]["stringArray"]
        path = os.path.realpath(context.path("data"))
        found = [m for m in markers_of(profile, told["cold"]["pid"])
                 if strings[m["data"].get("filename", 0)] == path]
        check(len(found) > 250, f"{len(found)} markers name the file")
        # One that did not sleep has a stack if all are recorded.
        check_causes(profile, [m for m in found if m["data"].get("waited")], "main")
        offsets = {m["data"]["offset"] for m in found}
        check(offsets <= set(range(0, 300 * PAGE, PAGE)) and len(offsets) > 250,
              f"not the pages that were read: {sorted(offsets)[:5]}")
        ledger_of(report, told["cold"]["pid"])["reasons"]["[page-fault I/O wait]"] += MS
        expect_failure(check_waits, profile, report, told)
