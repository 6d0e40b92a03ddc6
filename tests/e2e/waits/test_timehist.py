# SPDX-License-Identifier: GPL-2.0-or-later
"""Waits and delays of the run queue against `perf sched timehist` of the same run.

Run by run, of those that begin and end at the same moments to both: all but a few. Where not every switch
raises its tracepoint perf does not notice, and what it says of the next one is of more than one wait.
"""
import bisect
import re
import subprocess
from collections import defaultdict, namedtuple

from harness import (IN_GUEST, MS, SWITCH_NS, WALLPROF, Recording, Skip, TimingFailure, check, check_close,
                     expect_failure, needs_command, needs_root)
from untraced_tasks import hidden_tasks

# "   19048.822571 [0000]  convoy 0[11066/11064]      0.000      0.000      0.000"
LINE = re.compile(r"^ *([\d.]+) +\[\d+\] +(.*)\[(\d+)(?:/\d+)?\] +([\d.]+) +([\d.]+) +([\d.]+)")
# "41.007143708:  sched:sched_waking: comm=burn pid=423 prio=120 target_cpu=001"
EVENT = re.compile(r"^ *([\d.]+): +sched:sched_(waking|switch): (.*)")
WAKING = re.compile(r" pid=(\d+) prio=")
SWITCH = re.compile(r" prev_pid=(\d+) prev_prio=-?\d+ prev_state=(\S+) ==> .* next_pid=(\d+) ")
# A thread came to a CPU at `ns`, after it had been off it for so long, `delay` of it since it was woken.
Run = namedtuple("Run", "ns off delay")
NEAR_NS = 2 * SWITCH_NS
SAME_NS = 100
ROUNDED_NS = 3000  # by timehist, whose times are of microseconds
LEAST_SHARE = 0.9
ATTEMPTS = 5


def ask_perf(*arguments):
    return subprocess.run(["perf", *arguments], capture_output=True, text=True, check=True).stdout.splitlines()


def woken_early(data):
    """{tid: [ns]}, when it came to a CPU after it had been woken even before it had left one to sleep."""
    woken, slept, comes = set(), set(), defaultdict(list)  # since it came or went; and then slept all the same
    for match in filter(None, map(EVENT.match, ask_perf("script", "-i", data, "--ns", "-F", "time,event,trace"))):
        if match[2] == "waking":
            woken.add(int(WAKING.search(f" {match[3]}")[1]))
            continue
        before, state, after = SWITCH.search(f" {match[3]} ").groups()
        if state[0] != "R" and int(before) in woken:
            slept.add(int(before))
        if int(after) in slept:
            comes[int(after)].append(float(match[1]) * 1e9)
        slept.discard(int(after))
        woken -= {int(before), int(after)}
    return comes


def with_early(runs, early):
    """timehist forgets such a wakeup when the thread leaves its CPU, and prints no delay, although the
    thread has waited for nothing but a CPU since."""
    return [run._replace(delay=run.off) if run.delay == 0 and
            any(abs(ns - run.ns) < ROUNDED_NS for ns in early) else run for run in runs]


def perf_runs(data):
    """{tid: [Run]}. A line is of a switch-out, and has how long the thread ran before it."""
    lines, early = ask_perf("sched", "timehist", "-i", data), woken_early(data)
    runs = defaultdict(list)
    for match in filter(None, map(LINE.match, lines)):
        off, delay, run = (float(match[i]) * MS for i in (4, 5, 6))
        runs[int(match[3])].append(Run(float(match[1]) * 1e9 - run, off, delay))
    return defaultdict(list, {tid: with_early(found, early[tid]) for tid, found in runs.items()})


def our_runs(recording, tid):
    """From the profile's markers: what lies between two runs is one or two of them."""
    thread, runs = recording.profile.thread(tid), []
    off, delay = 0, 0
    markers = sorted((m for m in thread.markers() if m["data"].get("type") == "Wait"),
                     key=lambda m: m["start"])
    for marker, following in zip(markers, [*markers[1:], None]):
        off += marker["end"] - marker["start"]
        if marker["name"] == "Runnable (woken)":
            delay += marker["end"] - marker["start"]
        if not following or following["start"] > marker["end"] + SAME_NS:
            runs.append(Run(marker["end"], off, delay))
            off, delay = 0, 0
    return runs


def pairs_of(recording, perf, tid):
    ours = our_runs(recording, tid)
    times = [run.ns for run in ours]
    for theirs in perf:
        ns = recording.at(theirs.ns)
        i = bisect.bisect_left(times, ns)
        near = min(ours[max(i - 1, 0):i + 1], key=lambda run: abs(run.ns - ns), default=None)
        if near and abs(near.ns - ns) < NEAR_NS and \
                abs((near.ns - near.off) - (ns - theirs.off)) < NEAR_NS:
            yield near, theirs


def check_threads(recording, perf):
    """Compares the threads that the workload made: perf's main thread also has wallprof's time. Both look at
    a clock at one event after the other, and a host may let its guest wait in between.
    Returns how many runs perf reports, and how many of them were compared."""
    reported, compared = 0, 0
    for thread in recording.truth.threads:
        if thread["tid"] == recording.truth.pid:
            continue
        pairs = list(pairs_of(recording, perf[thread["tid"]], thread["tid"]))
        reported += len(perf[thread["tid"]])
        compared += len(pairs)
        for what in ("off", "delay"):
            worst = max(pairs, key=lambda pair: abs(getattr(pair[0], what) - getattr(pair[1], what)), default=None)
            check_close(f"{thread['name']}: {what} (ours and perf's, where they differ most: {worst})",
                        sum(getattr(ours, what) for ours, _ in pairs),
                        sum(getattr(run, what) for _, run in pairs), 0.01,
                        len(pairs) * SWITCH_NS, TimingFailure)
    return reported, compared


def record_once(context, name, **options):
    """perf first: its tracepoints' times are then those before wallprof's programs ran. It may not get
    of BPF programs that are loaded meanwhile, at which its version of 6.1 gives up.
    """
    data, output, truth = (context.path(f"{name}{end}") for end in (".data", ".json.gz", ".truth"))
    done = subprocess.run(["perf", "sched", "record", "--no-bpf-event", "-k", "CLOCK_MONOTONIC", "-q",
                           "-o", data, "--", WALLPROF, "-q", "--keep-capture", "-o", output, "--",
                           *context.workload(name, truth=truth, **options)],
                          capture_output=True, text=True, timeout=context.timeout_s)
    check(output.exists(), f"perf and wallprof recorded nothing: {done.stderr[-600:]}")
    return Recording(context, output, truth), perf_runs(data)


def record(context, name, **options):
    """perf does not always close its file."""
    for _ in range(ATTEMPTS):
        try:
            return record_once(context, name, **options)
        except subprocess.CalledProcessError as error:
            why = error.stderr.strip()
    raise Skip(f"perf cannot read what it wrote: {why}")


def test_same_run(context):
    needs_root()
    needs_command("perf")
    if hidden_tasks():
        raise Skip("this kernel raises no tracepoint for switches of " + ", ".join(sorted(hidden_tasks())))
    rng, reported, compared = context.random, 0, 0
    workloads = [("relay", {"threads": 6, "rounds": 10, "hold_us": rng.randint(800, 2000)}),
                 ("burn", {"threads": 4, "cpus": 2, "ms": rng.randint(60, 120)})]
    if not IN_GUEST:  # where each takes 12 s
        workloads += [("convoy", {"threads": 4, "rounds": 5, "hold_ms": rng.randint(5, 15)}),
                      ("pingpong", {"rounds": 5000})]
    for name, options in workloads:
        recording, perf = record(context, name, **options)
        of_this = check_threads(recording, perf)
        reported, compared = reported + of_this[0], compared + of_this[1]
    print(f"# perf sched timehist: {compared} of {reported} runs compared", flush=True)
    check(compared >= LEAST_SHARE * reported > 0, f"only {compared} of perf's {reported} runs are ours, too")
    altered = {tid: [run._replace(delay=run.delay + 2 * SWITCH_NS) for run in runs]
               for tid, runs in perf.items()}
    expect_failure(check_threads, recording, altered)
