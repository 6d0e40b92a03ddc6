# SPDX-License-Identifier: GPL-2.0-or-later
"""Page faults: as many as the kernel counts, of the kinds that the workload took.

By both ways of seeing them, where the kernel allows both; the workload takes each kind in a process
of its own, whose account by the kernel (REC_STATS, and rusage) is the judge.
"""
import json
import os
from pathlib import Path

from harness import (IN_GUEST, MS, WORKLOADS, Profile, Skip, check, check_causes, check_timed, expect_failure, fewer,
                     is_long, needs_root, read_report)

PAGE = 4096
# The class of a fault of each kind of the workload, and the kernel's counter of it.
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
        said.append(context.wallprof("doctor", "-v", status=None).stdout)
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
    reported = [json.loads(line) for line in truth.read_text().splitlines()]
    report = read_report(context, context.path("p.capture"))
    return Profile.load(output), report, {t["kind"]: t for t in reported}


def ledger_of(report, pid):
    (found,) = [t for t in report["threads"] if t["tid"] == pid]
    return found


def faults_of(report, reported):
    return ledger_of(report, reported["pid"])["faults"]


def check_classes(report, reported):
    for kind, name in CLASS_OF.items():
        if kind not in reported:
            continue
        count = faults_of(report, reported[kind]).get(name, {"count": 0})["count"]
        wanted = reported[kind]["min_flt" if kind == "file" else "count"]
        check(0 < wanted <= count <= wanted + OTHERS,
              f"{kind}: {count} are called {name!r}, should be {wanted}")


def check_counts(report, reported, source):
    """Compares the faults of a process's whole lifetime with the kernel's own account."""
    for kind, truth in reported.items():
        ledger = ledger_of(report, truth["pid"])
        done = sum(f["count"] for name, f in ledger["faults"].items() if name != "failed")
        counted = ledger["kernel"]["min_flt"] + ledger["kernel"]["maj_flt"]
        # Faults of the kernel itself are in its account, and only the function sees them.
        forced = truth["count"] if kind == "mlock" and source == "events" else 0
        # From 7.0 on a program may be missing (tests/vm/checks.py); that is counted.
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
        _, report, reported = record_faults(context, source, steps, *ALL)
        check(set(reported) == set(steps), f"the workload wrote down {set(reported)}")
        check_classes(report, reported)
        check_counts(report, reported, source)
        reported["touch"]["count"] += OTHERS + 1
        expect_failure(check_classes, report, reported)
        ledger_of(report, reported["cow"]["pid"])["kernel"]["min_flt"] += (
            report["totals"]["page fault"]["lost"] + 1)
        expect_failure(check_counts, report, reported, source)


FTRACE = Path("/proc/sys/kernel/ftrace_enabled")


def test_without_ftrace(context):
    """The kernel then takes fentry programs and never runs them: faults come from perf events."""
    if not IN_GUEST:
        raise Skip("it sets what the whole machine has")
    steps = draw_steps(context, ("touch", "mlock"))
    try:
        FTRACE.write_text("0")
    except OSError as error:
        raise Skip(f"this kernel's ftrace stays: {error.strerror}") from None
    try:
        _, report, reported = record_faults(context, "auto", steps, *ALL)
        check_counts(report, reported, "events")
        expect_failure(check_counts, report, reported, "fentry")
        refused = context.wallprof("--fault-source", "fentry", "--", "true", status=125)
        check("ftrace_enabled" in refused.stderr, f"fentry: {refused.stderr}")
    finally:
        FTRACE.write_text("1")
    _, report, reported = record_faults(context, "auto", steps, *ALL)
    check_counts(report, reported, "fentry")


def test_by_default(context):
    """Those that are major or slept; of the others the kernel's count."""
    steps = draw_steps(context, ("touch", "cold"))
    for source in sources(context):
        _, report, reported = record_faults(context, source, steps)
        major = ledger_of(report, reported["cold"]["pid"])["kernel"]["maj_flt"]
        found = faults_of(report, reported["cold"])["file, major"]
        check(found["count"] == major, f"{found} of {major} major faults")
        check("first touch" not in faults_of(report, reported["touch"])
              or faults_of(report, reported["touch"])["first touch"]["count"] < steps["touch"],
              f"minor faults: {faults_of(report, reported['touch'])}")
        check(ledger_of(report, reported["touch"]["pid"])["kernel"]["min_flt"] >= steps["touch"],
              "the kernel's count of minor faults is missing")
        path = os.path.realpath(context.path("data"))
        check([f["count"] for f in report["faulted_files"] if f["path"] == path] == [major],
              f"faults by file: {report['faulted_files']}, should be {path}")


def test_off(context):
    _, report, reported = record_faults(context, "off", {"cold": 50})
    check(not faults_of(report, reported["cold"]), "faults are recorded that were not asked for")
    context.wallprof("--fault-source", "guess", "--", "true", status=125)
    context.wallprof("--fault-threshold", "soon", "--", "true", status=125)


def check_storm(report, reported):
    """Each fault is recorded, or counted among what was lost."""
    ledger = ledger_of(report, reported["pid"])
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
        _, report, reported = record_faults(context, source, {"storm": count}, *ALL)
        check_storm(report, reported["storm"])
        report["totals"]["page fault"]["lost"] = 0
        ledger_of(report, reported["storm"]["pid"])["kernel"]["min_flt"] += 1
        expect_failure(check_storm, report, reported["storm"])


def markers_of(profile, pid):
    thread = profile.thread(pid)
    return [m for m in thread.markers() if m["data"] and m["data"]["type"] == "PageFault"]


def check_waits(profile, report, reported):
    """The time that a thread waited in faults is that of the reason, and the sum of its markers."""
    ledger = ledger_of(report, reported["cold"]["pid"])
    waited = sum(f["waited_ns"] for f in ledger["faults"].values())
    reason = ledger["reasons"].get("[page-fault I/O wait]", 0)
    check(waited == reason, f"{waited} ns in faults, {reason} by reason")
    spans = sum(m["end"] - m["start"] for m in markers_of(profile, reported["cold"]["pid"]))
    took = sum(f["ns"] for f in ledger["faults"].values())
    check_timed("markers", spans, took, 0.02, MS)
    length = reported["cold"]["end_ns"] - reported["cold"]["begin_ns"]
    check(took <= length + 20 * MS, f"faults took {took} ns of {length}")


def test_waits(context):
    for source in sources(context):
        profile, report, reported = record_faults(context, source, {"cold": 300})
        check_waits(profile, report, reported)
        strings = profile.data["shared"]["stringArray"]
        path = os.path.realpath(context.path("data"))
        found = [m for m in markers_of(profile, reported["cold"]["pid"])
                 if strings[m["data"].get("filename", 0)] == path]
        check(len(found) > 250, f"{len(found)} markers name the file")
        # One that did not sleep has a stack if all are recorded.
        check_causes(profile, [m for m in found if m["data"].get("waited")], "main")
        offsets = {m["data"]["offset"] for m in found}
        check(offsets <= set(range(0, 300 * PAGE, PAGE)) and len(offsets) > 250,
              f"not the pages that were read: {sorted(offsets)[:5]}")
        ledger_of(report, reported["cold"]["pid"])["reasons"]["[page-fault I/O wait]"] += MS
        expect_failure(check_waits, profile, report, reported)
