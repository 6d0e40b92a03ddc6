# SPDX-License-Identifier: GPL-2.0-or-later
"""Functions of Python where a thread wakes another one, submits a request to a device, or has a page fault.

tests/workloads/scripts/events.py notes the interpreter's own functions before each of them.
"""
import json
import os
import struct
from typing import NamedTuple

import pytest
from capture_reader import records

from harness import IN_GUEST, ROOT, Profile, Skip, capture_of, check, expect_failure, needs_root
from test_python import Scripts, interpreter, system_python

pytestmark = pytest.mark.untimed
WORKLOAD = ROOT / "tests/workloads/scripts/events.py"
ROUNDS, LEAST = (10, 0.9) if IN_GUEST else (30, 0.95)
FILE_SIZE = 1 << 20
# docs/reference/capture-format.md
WAKING, SCRIPT, SCRIPT_STACK, SCRIPT_CODE = 2, 26, 27, 28
HAS_STACKS = 1
MARKERS = {"request": "BlockIO", "fault": "PageFault"}


class Event(NamedTuple):
    kind: str
    tid: int
    sleeper: int | None
    begin_ns: int
    end_ns: int
    chain: list


class Run:
    """One recording of the workload."""

    def __init__(self, context, python):
        if not python or not python.exists():
            raise Skip("that Python is not installed")
        truth, self.output, file = context.path("truth.json"), context.path("p.json.gz"), context.path("file")
        file.write_bytes(os.urandom(FILE_SIZE))
        os.sync()
        context.wallprof("-q", "--all-frames", "--fault-threshold", "0", "-o", self.output, "--", python, WORKLOAD,
                         context.random.randint(1, 1 << 30), truth, ROUNDS, file)
        self.profile, self.truth = Profile.load(self.output), json.loads(truth.read_text())
        self.scripts = Scripts(self.profile)
        first_ns = min(ns for *_, ns, _ in records(capture_of(self.output), {SCRIPT}))
        planted = [Event(*event) for event in self.truth["events"]]
        self.events = [event for event in planted if event.begin_ns > first_ns]
        check(len(self.events) >= 3 / 4 * len(planted), "the reader was loaded late")

    def chains_of(self, kind):
        """(tid, ns, names of the functions of Python) of each marker of a kind that has a stack."""
        offset = self.truth["realtime_offset_ns"] - self.profile.start_ns
        for thread in self.profile.threads:
            for marker in thread.markers():
                if marker["data"].get("type") == MARKERS[kind] and marker["data"].get("cause"):
                    names = [name for name, *_ in self.scripts.of(marker["data"]["cause"]["stack"])]
                    yield thread.tid, marker["start"] - offset, names

    def wakes(self):
        """{(waker, sleeper): [(ns, names)]} of all wakeups with a waker's stack, as recorded."""
        names, stacks, scripts, found = {}, {}, {}, {}
        for kind, _, ns, raw in records(capture_of(self.output), {WAKING, SCRIPT, SCRIPT_STACK, SCRIPT_CODE}):
            tid = struct.unpack_from("<I", raw, 16)[0]
            if kind == SCRIPT:
                scripts[tid, ns + 1] = struct.unpack_from("<Q", raw, 24)[0]
            elif kind == WAKING and struct.unpack_from("<H", raw, 24)[0] & HAS_STACKS:
                found.setdefault((struct.unpack_from("<I", raw, 20)[0], tid), []).append(ns)
            elif kind == SCRIPT_CODE:
                length = struct.unpack_from("<H", raw, 38)[0]
                names[struct.unpack_from("<Q", raw, 16)[0]] = bytes(raw[48:48 + length]).decode().rpartition(".")[2]
            elif kind == SCRIPT_STACK:
                count = struct.unpack_from("<H", raw, 28)[0]
                stacks[struct.unpack_from("<Q", raw, 16)[0]] = [code for code, _, _ in
                                                                struct.iter_unpack("<QiI", raw[40:40 + 16 * count])]
        return {key: [(ns, [names.get(code) for code in reversed(stacks.get(scripts.get((key[0], ns)), []))])
                      for ns in times] for key, times in found.items()}


def check_chains(kind, events, chains_of):
    """Nearly all events have the planted functions, and then those that these call in Python's own library."""
    wrong = []
    for event in events:
        chains = [names for ns, names in chains_of(event) if event.begin_ns <= ns <= event.end_ns]
        if not any(names[:len(event.chain)] == event.chain for names in chains):
            wrong.append((event, chains))
    share = 1 - len(wrong) / max(len(events), 1)
    print(f"# {kind}: {len(events)} events, {100 * share:.2f} % with the planted functions", flush=True)
    check(events and share >= LEAST, f"{kind}: {len(wrong)} of {len(events)} have other functions: {wrong[:1]}")


def altered(events):
    return [event._replace(chain=event.chain[:-2] + event.chain[-1:]) for event in events]


def check_kind(run, kind, chains_of):
    events = [event for event in run.events if event.kind == kind]
    check_chains(kind, events, chains_of)
    expect_failure(check_chains, kind, altered(events), chains_of)


def by_marker(run, kind):
    of_thread = {}
    for tid, ns, names in run.chains_of(kind):
        of_thread.setdefault(tid, []).append((ns, names))
    return lambda event: of_thread.get(event.tid, [])


def check_texts(run, functions):
    """The profile's own text of a waker names the function that the thread was woken in."""
    strings = run.profile.data["shared"]["stringArray"]
    texts = [strings[marker["data"]["wokenFrom"]] for thread in run.profile.threads for marker in thread.markers()
             if "wokenFrom" in marker["data"]]
    for function in functions:
        count = sum(f"← {function}" in text for text in texts)
        check(count >= 0.75 * LEAST * ROUNDS, f"{count} of {ROUNDS} waits are woken in {function}")


@pytest.mark.parametrize("version", ["system", "3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14"])
def test_events(context, version):
    needs_root()
    run = Run(context, system_python() if version == "system" else interpreter(version))
    wakes = run.wakes()
    check_kind(run, "wake", lambda event: wakes.get((event.tid, event.sleeper), []))
    check_texts(run, ["put_job", "release_lock"])
    expect_failure(check_texts, run, ["get_job"])
    check_kind(run, "fault", by_marker(run, "fault"))
    # Not where the file is on no block device.
    if any(event.kind == "request" for event in run.events):
        check_kind(run, "request", by_marker(run, "request"))
