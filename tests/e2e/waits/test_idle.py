# SPDX-License-Identifier: GPL-2.0-or-later
"""Which waits are idle or between jobs, and which count (tests/workloads/waits/jobs.c)."""
import os
import time
from collections import Counter

import pytest

from harness import MS, SLOWNESS, Recording, check, expect_failure, wait_until

pytestmark = pytest.mark.untimed  # shares of waits, and not how long they are

WANTED = {("session", "job"): "[between jobs: epoll]", ("session", "row"): "[epoll wait]",
          ("session", "commit"): "[condition variable wait]", ("worker", "job"): "[between jobs: condition variable]",
          ("ticker", "tick"): "[idle: condition variable]"}
# A wait that takes less was short for the program, too; to look at it takes a while.
LEAST_NS = 0.2 * MS
# To notify a worker of the commit may take a wait, too.
SIGNALLING = "[condition variable signal wait]"


def kind_of_thread(truth):
    return truth["name"].split()[0]


def leaves_of(recording, thread, truth, kind):
    """Counter of the blocked leaves' ns within the program's waits of that kind, as far as they are in the window."""
    sums = Counter()
    for reported, begin, end in truth["waits"]:
        begin, end = recording.at(begin), recording.at(end)
        if reported != kind or end - begin < LEAST_NS or begin < 0 or end > recording.profile.window_ns:
            continue
        for leaf, ns in thread.painted_by(lambda category, leaf: (category, leaf), begin, end).items():
            if (leaf[1].startswith("[") and leaf[1] != SIGNALLING
                    and not leaf[0].startswith(("Runnable", "User", "Kernel", "Lock"))):
                sums[leaf[1]] += ns
    return sums


def check_jobs(recording, wanted, least):
    """Nearly all of each kind of wait is what it is; least: so many kinds are seen."""
    seen = {}
    for truth in recording.truth.threads:
        for (thread_kind, kind), leaf in wanted.items():
            if kind_of_thread(truth) == thread_kind:
                thread = recording.profile.thread(truth["tid"])
                seen.setdefault((thread_kind, kind, leaf), Counter()).update(leaves_of(recording, thread, truth, kind))
    for (thread_kind, kind, leaf), sums in seen.items():
        check(sums[leaf] >= 0.95 * sums.total(), f"{thread_kind}'s waits for {kind} are {dict(sums)}, should be {leaf}")
    check(sum(sums.total() > 5 * MS for sums in seen.values()) >= least, f"seen are {seen}")


def jobs_options(context, rounds):
    rng = context.random
    return {"threads": rng.randint(3, 6), "rounds": rounds, "hold_us": rng.randint(2000, 5000),
            "seed": rng.randint(1, 1 << 30)}


def check_altered(recording, wanted):
    for pair in (("session", "job"), ("session", "row"), ("session", "commit"), ("worker", "job")):
        other = "[epoll wait]" if wanted[pair] != "[epoll wait]" else "[between jobs: epoll]"
        expect_failure(check_jobs, recording, {**wanted, pair: other}, 1)


def attach_to_jobs(context):
    """A window in the middle of what the sessions do."""
    options = jobs_options(context, 250 // SLOWNESS)
    truth, output = context.path("truth.json"), context.path("p.json.gz")
    process = context.start(context.workload("jobs", truth=truth, **options))
    wait_until(lambda: len(os.listdir(f"/proc/{process.pid}/task")) == 2 * options["threads"] + 4,
               "the workload has its threads")
    time.sleep(0.1)  # the sessions are at work
    context.wallprof("-q", "--keep-capture", "-o", output, "-p", process.pid, "-d", f"{800 * SLOWNESS}ms")
    process.wait(60 * SLOWNESS)
    recording = Recording(context, output, truth)
    return recording


def test_attached(context):
    recording = attach_to_jobs(context)
    check_jobs(recording, WANTED, 5)
    check_altered(recording, WANTED)
    report = recording.report
    check(report["critical_path"] is None and "no process ended" in report["no_critical_path"],
          f"its critical path is {report['critical_path']}, {report.get('no_critical_path')}")


def test_command(context):
    """Waits on the critical path always count; the rest is as with -p."""
    recording = context.record("jobs", undisturbed=False, **jobs_options(context, 40 // SLOWNESS))
    on_path = {t["tid"] for t in recording.report["critical_path"]["threads"] if t["blocked_ns"] > MS}
    wanted = {pair: leaf for pair, leaf in WANTED.items()
              if not any(kind_of_thread(t) == pair[0] and t["tid"] in on_path for t in recording.truth.threads)}
    if wanted:
        check_jobs(recording, wanted, 1)
        expect_failure(check_jobs, recording, {pair: "[idle: epoll]" for pair in wanted}, 1)
    text = context.wallprof("report", "--full", recording.capture).stdout
    check(" between jobs, not counted here)" in text and "between jobs (not counted as waits)" in text,
          f"no word of what is between jobs: {text[:2000]}")
