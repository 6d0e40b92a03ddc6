# SPDX-License-Identifier: GPL-2.0-or-later
"""Captures that wallprof 0.1.0 made, of version 2 of the format, on each kernel of the matrix: what they say is what it was.

tests/captures has them as KERNEL-WORKLOAD.capture, and beside each, as .json, facts_of() what 0.1.0's own
`report --json` said. The workloads: "waits" was recorded as a command, "sleeps" while it was running already.
"""
import copy
import json

import pytest

from harness import ROOT, Profile, check, expect_failure, read_report

pytestmark = pytest.mark.untimed
FOLDER = ROOT / "tests" / "captures"
LEAST = 6
LATER = ("arguments", "script frames", "script stack", "script function")  # kinds of records that 0.1.0 does not have
SAID = "reports the thread that a soft interrupt interrupted as the waker"


def fields_of(report):
    """Returns what the records alone determine, independently of the names of reasons."""
    return {"window_ns": report["window_ns"],
            "threads": sorted([t["tid"], t["name"], t["lifetime_ns"], t["switch_outs"], t["states"]] for t in report["threads"]),
            "received": {kind: total["received"] for kind, total in report["totals"].items() if kind not in LATER},
            "walked": report["stacks"]["walked"], "whole": report["stacks"]["whole"]}


def check_fields(report, wanted):
    fields = fields_of(report)
    for key, value in wanted.items():
        check(fields[key] == value, f"{key}: {fields[key]}, should be {value}")


def check_said(report):
    """Checks that the report says what such a capture lacks."""
    check(any(SAID in note for note in report["notes"]), f"not said: {report['notes']}")


def test_read(context):
    captures = sorted(FOLDER.glob("*.capture"))
    check(len(captures) >= LEAST, f"only {captures}")
    for capture in captures:
        wanted = json.loads(capture.with_suffix(".json").read_text())
        report = read_report(context, capture)
        check_fields(report, wanted)
        check_said(report)
        altered = copy.deepcopy(wanted)
        altered["threads"][0][4]["blocked"] += 1
        expect_failure(check_fields, report, altered)
        expect_failure(check_said, {"notes": []})


def test_exported(context):
    """In both formats, with every thread."""
    for capture in sorted(FOLDER.glob("*.capture")):
        wanted = json.loads(capture.with_suffix(".json").read_text())
        for name in ("p.json", "p.trace.json"):
            context.wallprof("export", "-q", "-o", context.path(name), capture)
        profile = Profile.load(context.path("p.json"))
        tids = {thread.tid for thread in profile.threads}
        check({t[0] for t in wanted["threads"]} <= tids, f"{capture.name}: threads {tids}")
        json.loads(context.path("p.trace.json").read_text())
