# SPDX-License-Identifier: GPL-2.0-or-later
"""CPU contention: each CPU user counts for exactly as long as it ran while a thread waited."""
import copy
import json
import re
import signal
from pathlib import Path

import pytest

from harness import (GIVE_UP_S, MS, WALLPROF, Profile, Recording, Skip, capture_of, check, check_close, count_repeated,
                     expect_failure, needs_root, wait_until)

# A task's part is held against that task's own clock, with room for what preempts it.
pytestmark = [pytest.mark.untimed,
              pytest.mark.host_only("the parts are made of switches, which other suites hold to account on every kernel")]

PART = re.compile(r"(?P<name>[^,]+?) (?:(?P<number>[\d.]+) (?P<unit>s|ms|us)|for an unknown time)(?:, |$)")
UNITS = {"s": 1000 * MS, "ms": MS, "us": 1000}
ROUNDED_NS = 1000  # of a part below a second


def parts_of(text):
    """{name: ns} of a marker's field, in which tasks may have the same name; 0 for an unknown time."""
    found, parts = list(PART.finditer(text)), {}
    check("".join(m[0] for m in found) == text, f"cannot read {text!r}")
    for m in found:
        parts[m["name"]] = parts.get(m["name"], 0) + (float(m["number"]) * UNITS[m["unit"]] if m["number"] else 0)
    return parts


def burn_of(recording, name):
    """(begin, end) of what the thread burned, in the profile's time."""
    truth, = recording.truth.named(name)
    (_, begin, end), = truth["waits"]
    return recording.at(begin), recording.at(end)


def wait_of(recording):
    """The victim's wait while hog burns, and what it says of the CPU's users. A busy machine has other long ones."""
    thread = recording.profile.thread(recording.truth.named("victim")[0]["tid"])
    waits = [m for m in thread.markers() if "ranInstead" in m["data"]]
    check(waits, "it never waited for a CPU")
    begin, end = burn_of(recording, "hog")
    wait = max(waits, key=lambda m: min(m["end"], end) - max(m["start"], begin))
    return wait, thread.text(wait["data"]["ranInstead"])


def check_parts(recording):
    """The victim's wait: hog and blip have as much of it as they ran by their own clocks."""
    wait, text = wait_of(recording)
    length, parts = wait["end"] - wait["start"], parts_of(text)
    rounded = len(PART.findall(text)) * (ROUNDED_NS if length < 1000 * MS else MS)
    check_close(f"the parts of {text!r}", sum(parts.values()), length, 0, rounded)
    for name in ("hog", "blip"):
        begin, end = burn_of(recording, name)
        ran = min(end, wait["end"]) - max(begin, wait["start"])
        check(ran > 0, f"{name} did not run in the wait")
        # Something may have preempted it; and it ran for a moment before and after, too.
        check(0.7 * ran <= parts.get(name, 0) <= ran + 2 * MS,
              f"{name} ran {ran / MS:.3f} ms of the {length / MS:.3f}, which say {text}")
    return text


def check_sums(recording, parts):
    """The table's parts are the time in which threads waited for a CPU."""
    waited = sum(t["states"]["runnable"] - t["reasons"].get("[runnable: throttled]", 0)
                 for t in recording.report["threads"])
    rows = recording.report["rivals"]
    reported = sum(row["total_ns"] for row in rows)
    check(reported == waited, f"the parts sum to {reported}, and threads waited {waited}")
    for name in ("hog", "blip"):
        tid, part = recording.truth.named(name)[0]["tid"], parts[name]
        row = next((row for row in rows if row["tid"] == tid), {})
        check(row.get("total_ns", 0) >= part - ROUNDED_NS, f"{name} has {row}, and {part} ns of one wait alone")
        check(row["total_ns"] >= row["max_ns"] >= part - ROUNDED_NS, f"the longest part of {name} is {row}")


def check_trace(context, recording, text):
    """The Chrome trace says the same."""
    output = context.path("p.trace.json")
    context.wallprof("export", "-q", "-o", output, recording.capture)
    events = json.loads(output.read_text())["traceEvents"]
    said = [e.get("args", {}).get("data", {}).get("ranInstead") for e in events]
    check(text in said, f"{text!r} is not among {said}")


def swapped(recording):
    """The same recording, with the truth altered: hog ran when blip did, and the other way round."""
    altered = copy.copy(recording)
    altered.truth = copy.deepcopy(recording.truth)
    hog, blip = (altered.truth.named(name)[0] for name in ("hog", "blip"))
    hog["waits"], blip["waits"] = blip["waits"], hog["waits"]
    return altered


def in_order(truth):
    """Both burned before the victim ran. A scheduler may let it run first: 6.12 has a server for starved tasks."""
    (begin, _), = (wait[1:] for wait in truth.named("victim")[0]["waits"])
    return all(wait[2] <= begin + ROUNDED_NS for name in ("hog", "blip") for wait in truth.named(name)[0]["waits"])


def repeated(record_once):
    """The first recording in which the victim ran last."""
    needs_root()
    for _ in range(6):
        recording = record_once()
        if in_order(recording.truth):
            return recording
        count_repeated()
    raise Skip("the scheduler lets a thread run before tasks of real time")


def lengths(context):
    return {"hog": context.random.randint(120, 180), "blip": context.random.randint(8, 15)}


def record(context, *arguments):
    return repeated(lambda: context.record("contend", *arguments, undisturbed=False, **lengths(context)))


def test_command(context):
    """All three threads are recorded, and nothing else."""
    recording = record(context)
    text = check_parts(recording)
    check_sums(recording, parts_of(text))
    check_trace(context, recording, text)
    expect_failure(check_parts, swapped(recording))


def thread_called(pid, name):
    """The number of a thread of a process, once it has that name."""
    def found():
        return [int(task.name) for task in Path(f"/proc/{pid}/task").iterdir()
                if task.joinpath("comm").read_text().strip() == name]
    wait_until(found, f"there is a thread {name}")
    return found()[0]


QUIET_MS = 1500  # before the victim waits


def record_victim(context):
    truth, output = context.path("truth.json"), context.path("p.json")
    for left in (truth, capture_of(output)):
        left.unlink(missing_ok=True)
    process = context.start(context.workload("contend", truth=truth, wait=1, start=QUIET_MS, **lengths(context)))
    recorder = context.start([WALLPROF, "-q", "--keep-capture", "-o", output, "-t",
                              str(thread_called(process.pid, "victim"))])
    wait_until(lambda: recorder.poll() is not None or capture_of(output).exists(), "the recording begins")
    process.send_signal(signal.SIGUSR1)
    process.wait(GIVE_UP_S)
    check(recorder.wait(GIVE_UP_S) == 0, "wallprof failed")
    return Recording(context, output, truth)


def test_non_targets(context):
    """The victim alone is recorded. The tasks that have its CPU are recorded only while it waits."""
    recording = repeated(lambda: record_victim(context))
    text = check_parts(recording)
    check_sums(recording, parts_of(text))
    expect_failure(check_parts, swapped(recording))
    # Switches between non-targets are recorded while the victim waits, not in the second and a half before.
    sent = recording.report["totals"]["switch"]["sent"]
    check(sent < 100, f"{sent} switches were recorded")


def test_system(context):
    """The switches of all CPUs are recorded."""
    recording = record(context, "-a")
    text = check_parts(recording)
    check_sums(recording, parts_of(text))
    check_trace(context, recording, text)
    expect_failure(check_parts, swapped(recording))


def test_omitted(context):
    """An export of the victim alone also shows what had the CPU: the others' switches are in the capture."""
    recording = record(context)
    output = context.path("victim.json")
    context.wallprof("export", "-q", "--thread", "victim", "-o", output, recording.capture)
    recording.profile = Profile.load(output)
    check(not [t for t in recording.profile.threads if t.name in ("hog", "blip")], "the others were not excluded")
    check_parts(recording)
    expect_failure(check_parts, swapped(recording))
