# SPDX-License-Identifier: GPL-2.0-or-later
"""Each wait has its reason and its waker: there is a thread for each kind (tests/workloads/waits/waits.c)."""
import copy
import json
import sys
from collections import Counter

from harness import (GUEST_ABSOLUTE, GUEST_SHARE, IN_GUEST, MS, Failure, Profile, Recording, Skip, TimingFailure,
                     by_leaf, check, check_timed, current, expect_failure, hit, noise, noticeable)
from limited_cpu import PERIOD_US, LimitedCpu

LEAST_KINDS = 37  # on every kernel that these tests know
# Wakers other than the helper: a timer, another thread that had the lock, a child.
TIMERS = {"sleep", "timer wait", "idle: signal", "idle: io_uring", "signal wait", "io_uring wait"}
HOLDERS = {"kernel rwsem wait", "kernel mutex wait", "socket lock wait"}
LOOPBACK = {"network receive wait", "network send wait", "network poll wait", "accept wait"}
HELD_BY = {"mutex wait": "helper", "kernel rwsem wait": "holder", "kernel mutex wait": "holder"}
# An emulated CPU takes milliseconds on the way to sleep and from it; and the holder of the lock of the mappings (as a
# case here does), or of malloc, is as slow.
SEEN_NS = 2 * MS  # in a guest: of a wait, so that its reason can be looked at
ON_THE_WAY = {"running", "[kernel rwsem wait]", "[mutex wait]"}
# A thread of the kernel passes it on.
OTHERS = {"RCU grace period wait", "terminal wait", "device wait"}


class Misnamed(Failure):
    """Renames the waker of a wait, or the lock holder."""


def check_name(right, message):
    if not right:
        raise Misnamed(message)


def wait_of(truth):
    """(reason, begin, end) of the one wait of a case that this kernel offers, or None."""
    return truth["waits"][0] if truth["waits"] else None


def longest(markers, kind, begin, end):
    found = [m for m in markers if m["data"].get("type") == "Wait" and m["start"] < end
             and m["end"] > begin and m["name"].lower() == kind.lower()]
    return max(found, key=lambda m: m["end"] - m["start"], default=None)


def check_waker(kind, reported, name):
    """A child has its creator's name: the helper's, or that of the thread itself."""
    wanted = ("timer interrupt" if kind in TIMERS
              else "holder" if kind in HOLDERS else name if kind == "vfork wait" else "helper")
    # The next soft interrupt may do the work of a sender, or, on a busy machine, ksoftirqd.
    passed_on = kind in LOOPBACK and reported in ("network interrupt", "interrupt")
    check_name(kind in OTHERS or passed_on or reported == wanted,
               f"[{kind}] was ended by {reported}, should be {wanted}")


def as_reported(reported, pid):
    """Returns a profile's name for the kernel's name of an object (tests/workloads/waits/waits_objects.c)."""
    own = f" (waits {pid})"
    if reported.startswith("anon_inode:"):
        return reported.removeprefix("anon_inode:")
    if reported.startswith("socket:"):
        return reported.replace("socket:", "unix:") + own
    return reported + own if reported.startswith("pipe:") or reported.startswith("tcp ") else reported


def check_object(kind, marker, truth, pid, text):
    reported = text(marker["data"].get("object")) or text(marker["data"].get("filename"))
    wanted = as_reported(truth["object"], pid)
    # Here threads change the mappings all the time, so what lies there may not be found.
    check(not wanted or reported in (wanted, wanted.removesuffix(" (anonymous memory)")),
          f"[{kind}] was for {reported}, should be {wanted}")


def kind_where(kind, leaves, is_on_path):
    """An idle wait counts if the run waits for its end, for example in the last thread that ends."""
    counted = kind.removeprefix("idle: ") + " wait"
    return counted if kind.startswith("idle: ") and is_on_path and f"[{counted}]" in leaves else kind


def is_on_path(recording, tid):
    return any(t["tid"] == tid and t["blocked_ns"] > 0 for t in recording.report["critical_path"]["threads"])


def check_wait(recording, truth, share=0.02, absolute=MS):
    kind, begin, end = wait_of(truth)
    begin, end = recording.at(begin), recording.at(end)
    thread = recording.profile.thread(truth["tid"])
    leaves = thread.painted_by(by_leaf, begin, end)
    kind = kind_where(kind, leaves, is_on_path(recording, truth["tid"]))
    late = sum(ns for leaf, ns in leaves.items() if leaf.startswith("[runnable"))
    got = leaves.get(f"[{kind}]", 0)
    if absolute > MS:
        # An emulated CPU runs so slowly, and is taken away so often, that most of a wait's time may be
        # spent on the way to it. Running times are held to CPU clocks elsewhere (check_threads).
        late += sum(ns for leaf, ns in leaves.items() if leaf in ON_THE_WAY and leaf != f"[{kind}]")
        if got < SEEN_NS:
            raise TimingFailure(f"[{kind}] is hardly any of it: {leaves}")
    check_timed(f"[{kind}] of {leaves}", got, end - begin - late, share, absolute)
    marker = longest(thread.markers(), kind, begin, end)
    check(marker, f"[{kind}] has no marker")
    evidence = thread.text(marker["data"].get("evidence")) or ""
    check(evidence.startswith("kernel stack"), f"[{kind}] rests on {evidence}")
    check_waker(kind, thread.text(marker["data"].get("wokenBy")), truth["name"])
    check_object(kind, marker, truth, recording.truth.pid, thread.text)
    holder = thread.text(marker["data"].get("heldBy"))
    check_name(holder == HELD_BY.get(kind), f"[{kind}] is for a lock that {holder} has")


def check_waits(recording, share=0.02, absolute=MS):
    cases = [t for t in recording.truth.named("wait ") if wait_of(t)]
    for truth in cases:
        check_wait(recording, truth, share, absolute)
    kinds = {wait_of(t)[0] for t in cases}
    check(len(kinds) >= LEAST_KINDS, f"only {len(kinds)} kinds of waits here: {sorted(kinds)}")


def options_of(context):
    return {"ms": context.random.randint(30, 60), "seed": context.random.randint(1, 1 << 30)}


def test_kinds(context):
    tolerance = (GUEST_SHARE, GUEST_ABSOLUTE) if IN_GUEST else (0.02, MS)
    context.record_and_check("waits", lambda recording: check_waits(recording, *tolerance),
                             **options_of(context))


def test_idle_on_path(context):
    """Elsewhere it is idle, and nothing else is."""
    leaves = {"[io_uring wait]": MS}
    check(kind_where("idle: io_uring", leaves, True) == "io_uring wait", "on the path it counts")
    for kind, on_path in (("idle: io_uring", False), ("idle: signal", True), ("sleep", True)):
        check(kind_where(kind, leaves, on_path) == kind, f"{kind} is {kind} whatever it looks like")


def test_negative(context):
    recording = context.record("waits", undisturbed=False, **options_of(context))
    truth = next(t for t in recording.truth.named("wait ") if wait_of(t)
                 and wait_of(t)[0] == "pipe read wait")
    for change in (lambda wait: wait.__setitem__(0, "pipe write wait"),
                   lambda wait: wait.__setitem__(2, wait[2] + noticeable(20 * MS, wait[2] - wait[1]))):
        altered = copy.deepcopy(truth)
        change(altered["waits"][0])
        expect_failure(check_wait, recording, altered)
    expect_failure(check_waker, "pipe read wait", "holder", "wait 7")


# A command of one thread; its child ends a poll of it after 50 ms: of two pipes, of a pipe and a Unix socket.
POLLS = """import os, select, socket, time
two, mixed = [os.pipe(), os.pipe()], [os.pipe(), [s.detach() for s in socket.socketpair()]]
if os.fork() == 0:
    for ends in two, mixed:
        time.sleep(0.05)
        os.write(ends[0][1], b"x")
    os._exit(0)
for ends in two, mixed:
    poll = select.poll()
    for end in ends:
        poll.register(end[0], select.POLLIN)
    poll.poll()
"""


def check_polls(context, wanted):
    output = context.path("polls.json.gz")
    context.wallprof("-q", "-o", output, "--", sys.executable, "-c", POLLS)
    waits = [m["name"] for t in Profile.load(output).threads for m in t.markers()
             if m["name"].lower().endswith("poll wait") and m["end"] - m["start"] > 20 * MS]
    check(waits == wanted, f"they are {waits}, should be {wanted}")


def test_polls(context):
    """Several descriptors of one kind are named by it."""
    check_polls(context, ["Pipe poll wait", "Poll wait"])
    expect_failure(check_polls, context, ["Poll wait", "Poll wait"])


def functions_of(context, recording, name):
    report = json.loads(context.wallprof("report", "--json", "--function", name,
                                         recording.capture).stdout)
    return report["functions"]


def check_updates(context, recording, threads, updates):
    """Below the function that updates a map: all of the waits, as long as the program says.

    Each update waits for a grace period once; where these are expedited, for a lock of RCU's, too, and
    once in a while the period has passed by then.
    """
    waits = [end - begin for t in recording.truth.named("updater") for _, begin, end in t["waits"]]
    (below,) = functions_of(context, recording, "bpf_map_update_elem")
    group, wanted = recording.report["waits"][0], threads * updates
    evidence = group["evidence"] or ""
    least = wanted - (threads // 4 if evidence.startswith("synchronize_rcu_expedited") else 0)
    check(below["count"] >= least and below["threads"] == threads,
          f"{below}, should be {threads} threads with {updates} waits each")
    # The call, whose time the program writes down, computes, too, and a short one mostly.
    wanted_ns = sum(waits) / len(waits)
    check_timed("an update waits", below["total_ns"] / len(waits), wanted_ns, 0.02, min(0.6 * wanted_ns, MS / 4))
    check(group["reason"] == "[RCU grace period wait]" and evidence.startswith("synchronize_rcu")
          and least <= group["count"] <= wanted, f"the largest is {group}")
    check("bpf_map_update_elem" in group["chain"], f"it is in {group['chain']}")


def rcu_ns(recording):
    return sum(g["total_ns"] for g in recording.report["waits"]
               if g["reason"] == "[RCU grace period wait]")


def test_map_in_map(context):
    threads, updates = 8, 20

    def checks(recording):
        check_updates(context, recording, threads, updates)
        expect_failure(check_updates, context, recording, threads, updates + 1)

    context.record_and_check("map-in-map", checks, threads=threads, updates=updates)
    plain = context.record("map-in-map", undisturbed=False, threads=threads, updates=updates,
                           plain=1)
    check(rcu_ns(plain) == 0, f"a plain array waits {rcu_ns(plain) / MS:.1f} ms for RCU")


def check_cpu_users(recording):
    """Two that share a CPU have each other to blame."""
    burners = {t["tid"] for t in recording.truth.named("burner")}
    runnable, ran = (sum(recording.ledger(tid)["states"][state] for tid in burners)
                     for state in ("runnable", "running"))
    blamed = sum(r["total_ns"] for r in recording.report["rivals"] if r["tid"] in burners)
    check(runnable > 50 * MS, f"they were runnable for {runnable / MS:.1f} ms only")
    # The rest is what else this machine does, and one of the two ends before the other.
    wanted = min(runnable, ran)
    check(blamed >= 0.75 * wanted - noise(wanted),
          f"for {runnable / MS:.1f} ms a CPU was wanted, for {blamed / MS:.1f} the other had it, of {ran / MS:.1f}")


def test_cpu_users(context):
    context.record_and_check("burn", check_cpu_users, threads=2, cpus=1,
                             ms=context.random.randint(150, 250))


def check_throttled(recording, throttled_ns):
    """One thread, and before and after it the main one: what the cgroup was kept from running is what they waited.

    It may have lost its CPU to another, or have been woken, just before: then that is its reported state.
    """
    burner, = recording.truth.named("burner")
    reasons = Counter(recording.ledger(burner["tid"])["reasons"])
    main = recording.profile.thread(recording.truth.pid)
    for begin, end in ((0, recording.at(burner["begin_ns"])), (recording.at(burner["end_ns"]), recording.profile.window_ns)):
        reasons.update(main.painted_by(by_leaf, begin, end))
    reported = reasons["[runnable: throttled]"]
    runnable = sum(ns for leaf, ns in reasons.items() if leaf.startswith("[runnable"))
    check_timed("throttled", reported, min(max(reported, 0.5 * throttled_ns), throttled_ns), 0.1,
                PERIOD_US * 100)
    check_timed("runnable", runnable, max(runnable, throttled_ns), 0.1, PERIOD_US * 100)


def test_throttled(context):
    if current.test.startswith("busy."):
        raise Skip("beside other loops the limit is hardly reached")
    output = context.path("throttled.json.gz")
    with LimitedCpu(context, PERIOD_US * context.random.randint(20, 40) // 100) as limited:
        context.wallprof("-q", "--keep-capture", "-o", output, "--",
                         *limited.command(context.workload("burn", threads=1, ms=hit(100),
                                                           truth=context.path("truth.json"))))
        throttled_ns = limited.throttled_ns()
    recording = Recording(context, output, context.path("truth.json"))
    check(throttled_ns > 2 * PERIOD_US * 1000, f"throttled for {throttled_ns / MS:.1f} ms only")
    check_throttled(recording, throttled_ns)
    expect_failure(check_throttled, recording, noticeable(2 * throttled_ns, throttled_ns))
