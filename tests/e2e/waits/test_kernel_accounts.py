# SPDX-License-Identifier: GPL-2.0-or-later
"""Times and counts compared with the kernel's own accounts."""
import copy
import os
import sys

from harness import (MS, SWITCH_NS, Profile, by_state, check, check_timed, expect_failure, fewer, noticeable,
                     without_stolen)


def unknown(recording, truth):
    """The time that a missed switch leaves unknown may have any state."""
    return recording.ledger(truth["tid"])["states"].get("unknown", 0)


def check_switches(recording, truth):
    """Switch-outs, but for the final one, against /proc.

    The counts were read while the thread was asleep for good; it is woken once more to be
    killed, and may be preempted a few times then. check_kernel_account has those, too.
    """
    counted = truth["nvcsw"] + truth["nivcsw"]
    recorded = recording.ledger(truth["tid"])["switch_outs"]
    check(counted <= recorded <= counted + 6,
          f"{truth['name']}: {recorded} switch-outs, /proc says {counted}")


def check_running(recording, truth):
    """Running time against CLOCK_THREAD_CPUTIME_ID, from when the thread's account begins."""
    thread = recording.profile.thread(truth["tid"])
    switches = truth["nvcsw"] + truth["nivcsw"]
    seconds = (truth["end_ns"] - truth["begin_ns"]) / 1e9
    running = thread.painted_by(by_state, recording.at(truth["begin_ns"]),
                                recording.at(truth["end_ns"])).get("running", 0)
    absolute = MS if switches < 500 * seconds else switches * SWITCH_NS
    absolute += unknown(recording, truth)
    wanted = truth["cpu_ns"] - truth["cpu_begin_ns"]
    check_timed(f"{truth['name']}: running", without_stolen(running, wanted, recording.allowed_ns),
                wanted, 0.01, absolute)


def check_schedstat(recording, truth, with_delay=False):
    """Run and runnable against /proc/…/schedstat, of threads that mostly run."""
    thread = recording.profile.thread(truth["tid"])
    states = thread.painted_by(by_state, end=recording.at(truth["end_ns"]))
    switches = truth["nvcsw"] + truth["nivcsw"]
    wanted = truth["schedstat_run_ns"] + truth["schedstat_delay_ns"]
    got = states.get("running", 0) + states.get("runnable", 0)
    check_timed(f"{truth['name']}: running + runnable",
                without_stolen(got, wanted, recording.allowed_ns), wanted, 0.03,
                switches * SWITCH_NS + unknown(recording, truth))
    if with_delay:
        check_timed(f"{truth['name']}: runnable", states.get("runnable", 0),
                    truth["schedstat_delay_ns"], 0.01,
                    MS + switches * SWITCH_NS + unknown(recording, truth))


def check_kernel_account(recording):
    """The kernel's own count, which the recorder read, has the same switches."""
    for thread in recording.report["threads"]:
        account = thread["kernel"]
        check(account, f"{thread['name']} {thread['tid']}: no account of the kernel's")
        total = account["nvcsw"] + account["nivcsw"]
        check(0 <= total - thread["switch_outs"] <= 1,
              f"{thread['name']} {thread['tid']}: {thread['switch_outs']} switch-outs recorded, "
              f"the kernel counted {total}")


def check_clock(recording):
    """Running time is exactly the kernel's, less what the scheduler's clock was ahead.

    What is left is what a run had before the first switch that is recorded, and rounding.
    """
    for thread in recording.report["threads"]:
        account, states = thread["kernel"], thread["states"]
        name = f"{thread['name']} {thread['tid']}"
        check(account and account["clock_ahead"] is not None, f"{name}: the scheduler's clock is not known")
        check_timed(f"{name}: running + clock", states["running"] + account["clock_ahead"],
                    account["sum_exec_runtime"], 0.002,
                    MS // 4 + thread["switch_outs"] * 50 + states["unknown"])


def workers(recording):
    main = recording.truth.pid
    return [t for t in recording.truth.threads if t["tid"] != main]


def test_switch_counts(context):
    rng = context.random
    for name, options in (("sleeps", {"threads": 5, "ms": rng.randint(5, 20), "rounds": 6}),
                          ("convoy", {"threads": 5, "hold_ms": rng.randint(2, 8)}),
                          ("pingpong", {"rounds": rng.randint(5000, 20000)}),
                          ("burn", {"threads": 4, "ms": rng.randint(100, 200)})):
        # A missed switch-in changes no count of switch-outs.
        recording = context.record(name, undisturbed=False, **options)
        for truth in workers(recording):
            check_switches(recording, truth)
        check_kernel_account(recording)


def all_threads(function, **settings):
    def checks(recording):
        for truth in recording.truth.threads:
            function(recording, truth, **settings)
    return checks


def test_running_time(context):
    rng = context.random
    for name, options in (("burn", {"threads": 1, "ms": rng.randint(100, 300)}),
                          ("burn", {"threads": 4, "ms": rng.randint(100, 300)}),
                          ("convoy", {"threads": 4, "burn": 1, "hold_ms": rng.randint(5, 20)}),
                          ("sleeps", {"threads": 4, "ms": 15})):
        context.record_and_check(name, all_threads(check_running), **options)


def test_running_time_with_many_switches(context):
    context.record_and_check("pingpong", all_threads(check_running),
                             rounds=fewer(context.random.randint(20000, 50000)))


def test_schedstat(context):
    def burners(recording):
        for truth in recording.truth.named("burner"):
            check_schedstat(recording, truth, with_delay=True)
    context.record_and_check("burn", burners, threads=4, cpus=2,
                             ms=context.random.randint(300, 500))
    # On one CPU: schedstat's delay begins when a remote CPU, once awake, has queued the thread.
    context.record_and_check("pingpong", all_threads(check_schedstat), rounds=fewer(30000), cpus=1)


def test_scheduler_clock(context):
    """Beside a loop on each CPU a switch may come long after the wakeup that causes it."""
    for _ in range(os.cpu_count()):
        context.start([sys.executable, "-c", "while True: pass"])
    for name, options in (("pingpong", {"rounds": fewer(4000)}),
                          ("sleeps", {"threads": 4, "ms": 3, "rounds": 100}),
                          ("spread", {"children": 8})):
        recording = context.record(name, undisturbed=False, **options)
        check_clock(recording)


def test_plain_and_compressed_are_the_same(context):
    recording = context.record("brief", ms=20)
    plain = context.path("again.json")
    context.wallprof("export", "-q", recording.capture, "-o", plain)
    check(plain.read_bytes()[:1] == b"{", "FILE.json is not plain JSON")
    check(Profile.load(plain).data == recording.profile.data, "FILE.json and FILE.json.gz differ")


def test_negative(context):
    recording = context.record("burn", threads=1, ms=100)
    truth = copy.deepcopy(workers(recording)[0])
    check_switches(recording, truth)
    truth["nvcsw"] += 20
    expect_failure(check_switches, recording, truth)
    truth["cpu_ns"] += noticeable(10 * MS)
    expect_failure(check_running, recording, truth)
    truth["schedstat_run_ns"] += noticeable(10 * MS)
    expect_failure(check_schedstat, recording, truth)
    check_clock(recording)
    for thread in recording.report["threads"]:
        thread["kernel"]["clock_ahead"] += noticeable(10 * MS)
    expect_failure(check_clock, recording)
