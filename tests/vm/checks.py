# SPDX-License-Identifier: GPL-2.0-or-later
"""What is run in each guest, and what must come of it.

An emulated machine is slow and its CPUs come and go, so times are held to 10 % or
20 ms here, where tests/e2e has 1 %; counts are exact as ever.
"""
import copy
import functools
import json
import re
import subprocess

from harness import (CATEGORY_OF, MS, Profile, Truth, by_category, by_state, check,
                     check_close, expect_failure, waited)

SHARE, ABSOLUTE = 0.1, 20 * MS
# The verifier's work on one program: the budget, and what stays tolerable beyond it.
MAX_INSTRUCTIONS = 40_000 * 1.2
LOADED = re.compile(r"\((\w+): (\d+) instructions verified, loaded in ([\d.]+) ms\)")

# Name of a case, workload with its options, exit status.
CASES = (
    ("sleeps", "sleeps --threads 4 --rounds 5 --ms 30", 0),
    ("convoy", "convoy --threads 4 --rounds 3 --hold-ms 20", 0),
    ("pool", "pool --threads 40 --convoy-at-ms 150 --hold-ms 80 --total-ms 400", 0),
    ("pingpong", "pingpong --rounds 2000", 0),
    ("pipe", "pingpong --rounds 5 --pause-us 40000", 0),
    ("latepoll", "latepoll --rounds 3 --delay-ms 60", 0),
    ("burn", "burn --threads 4 --cpus 2 --ms 150", 0),
    ("chain", "chain --depth 3 --ms 20", 0),
    ("brief", "brief --ms 60", 0),
    ("exit", "die --status 7", 7),
    ("abort", "die --signal 6", 128 + 6),
)
ATTACHED = "sleeps --threads 4 --rounds 1 --ms 60000"

# What guests run, by the name of the script (see init).
SCRIPTS = {
    "record": "".join(["plain doctor wallprof doctor -v\n",
                       *(f"record {name} {command}\n" for name, command, _ in CASES),
                       f"attach attach {ATTACHED}\n"]),
    "refuse": "plain refuse wallprof -o /results/p.json -- touch /results/witness\n",
}


class Case:
    """What one case left behind; read as a Recording of tests/e2e is."""

    def __init__(self, folder):
        self.folder = folder
        self.log = (folder / "log").read_text(errors="replace")
        self.status = int((folder / "status").read_text())

    def check_status(self, wanted):
        check(self.status == wanted,
              f"status {self.status}, should be {wanted}: {self.log.strip()[-600:]}")

    @functools.cached_property
    def report(self):
        text = (self.folder / "report.json").read_text()
        check(text != "", f"no report: {self.log.strip()[-600:]}")
        return json.loads(text)

    @functools.cached_property
    def profile(self):
        path = self.folder / "profile.json"
        check(path.exists(), f"no profile: {self.log.strip()[-600:]}")
        return Profile.load(path)

    @functools.cached_property
    def truths(self):
        return [Truth(path) for path in sorted(self.folder.glob("truth.json*"))]

    @property
    def threads(self):
        """The truth of every thread, in all processes."""
        return [thread for truth in self.truths for thread in truth.threads]

    def at(self, truth, monotonic_ns):
        """CLOCK_MONOTONIC of a truth as a time of the profile."""
        return monotonic_ns + truth.offset - self.profile.start_ns

    def ledger(self, tid):
        found = [t for t in self.report["threads"] if t["tid"] == tid]
        check(len(found) == 1, f"thread {tid} is in the report {len(found)} times")
        return found[0]


def check_nothing_lost(case):
    report = case.report
    check(report["contradictions"] == 0, f"{report['contradictions']} contradictions")
    check(not report["losses"], f"losses: {report['losses']}")
    for kind, total in report["totals"].items():
        check(total["lost"] == 0 and total["sent"] == total["received"], f"{kind}: {total}")


def check_ledgers(case):
    """The states are the lifetime, and the reasons the time off CPU."""
    for thread in case.report["threads"]:
        states, who = thread["states"], f"{thread['name']} {thread['tid']}"
        check(sum(states.values()) == thread["lifetime_ns"], f"{who}: a broken ledger")
        check(states["unknown"] == 0, f"{who}: {states['unknown']} ns unknown")
        check(sum(thread["reasons"].values()) == states["blocked"] + states["runnable"],
              f"{who}: reasons {thread['reasons']} are not what it waited: {states}")


def check_switches(case):
    """Of a thread's switch-outs none is missing until it told its count, and none is made up.

    What threads do after the end of the command's first one, dying, is not in the
    window, but in the kernel's own account; what that one did before, in neither.
    """
    told = {t["tid"]: t["nvcsw"] + t["nivcsw"] for t in case.threads}
    for thread in case.report["threads"]:
        account, who = thread["kernel"], f"{thread['name']} {thread['tid']}"
        check(account, f"{who}: no account of the kernel's")
        most = account["nvcsw"] + account["nivcsw"]
        whole = thread["lifetime_ns"] == case.report["window_ns"]
        least = most - 1 if whole else told.get(thread["tid"], 0)
        check(least <= thread["switch_outs"] <= most,
              f"{who}: {thread['switch_outs']} switch-outs recorded, should be {least} to {most}")


def check_threads(case):
    """Every thread is there by its name, and ran for as long as it says."""
    for truth in case.truths:
        for told in truth.threads:
            check(case.ledger(told["tid"])["name"] == told["name"],
                  f"{told['name']} is called {case.ledger(told['tid'])['name']}")
            thread = case.profile.thread(told["tid"])
            until = case.at(truth, told["end_ns"])
            running = thread.painted_by(by_state, end=until).get("running", 0)
            check_close(f"{told['name']}: running", running, told["cpu_ns"], SHARE, ABSOLUTE)


# The mutex of a condition variable may be another wait within that for the variable.
ALSO = {"condvar": ("Lock",)}


def check_waits(case):
    """When a thread says that it waited, it is drawn as waiting for that, then for a CPU."""
    for truth in case.truths:
        for told in truth.threads:
            for kind in {kind for kind, _, _ in told["waits"]}:
                check_kind_of_wait(case, truth, told, kind)


def check_kind_of_wait(case, truth, told, kind):
    thread = case.profile.thread(told["tid"])
    right = runnable = 0
    for wait, begin, end in told["waits"]:
        if wait != kind:
            continue
        painted = thread.painted_by(by_category, case.at(truth, begin), case.at(truth, end))
        right += sum(painted.get(name, 0) for name in (CATEGORY_OF[kind], *ALSO.get(kind, ())))
        runnable += sum(ns for name, ns in painted.items() if name.startswith("Runnable"))
    check_close(f"{told['name']}: {kind} and runnable", right + runnable, waited(told, kind),
                SHARE, ABSOLUTE)
    check(right >= runnable or runnable < ABSOLUTE,
          f"{told['name']}: {kind} {right / MS:.3f} ms, runnable {runnable / MS:.3f} ms")


def check_same_elsewhere(case, wallprof):
    """Another machine makes the same report and the same profile of the capture."""
    capture, other = case.folder / "capture", case.folder / "other.json"
    for made, command in (("report.json", ["report", "--json", capture]),
                          ("profile.json", ["export", "-q", "-o", other, capture])):
        done = subprocess.run([wallprof, *command], capture_output=True)
        check(done.returncode == 0, f"wallprof {command[0]}: {done.stderr.decode()[-600:]}")
        here = done.stdout if made == "report.json" else other.read_bytes()
        check(here == (case.folder / made).read_bytes(), f"{made} of guest and host differ")


def check_recording(case, status, wallprof):
    case.check_status(status)
    check_nothing_lost(case)
    check_ledgers(case)
    check_switches(case)
    check(case.truths or status != 0, "the workload did not tell its truth")
    check_threads(case)
    check_waits(case)
    check(len(case.report["threads"]) >= max(len(case.threads), 1 + (status != 0)),
          "a thread is missing")
    check_same_elsewhere(case, wallprof)


def check_attached(case, wallprof):
    """Threads that slept all the time are there for all of the time."""
    case.check_status(0)
    check_nothing_lost(case)
    check_ledgers(case)
    window = case.report["window_ns"]
    check_close("the window", window, 1000 * MS, SHARE, ABSOLUTE)
    tids = {int(tid) for tid in (case.folder / "tids").read_text().split()}
    check(len(tids) == 5, f"the workload had threads {tids}")
    check({t["tid"] for t in case.report["threads"]} == tids, "not the threads it had")
    for thread in case.report["threads"]:
        check(thread["lifetime_ns"] == window, f"{thread['name']} is not there all the time")
        if thread["name"].startswith("sleeper"):
            check(thread["reasons"].get("[sleep]", 0) >= 0.9 * window,
                  f"{thread['name']} slept, but {thread['reasons']}")
    check_same_elsewhere(case, wallprof)


def wakers(case, name, category, shortest_ms):
    """Who ended the waits of the threads called `name`…"""
    strings = case.profile.data["shared"]["stringArray"]
    found = []
    for thread in case.profile.threads:
        if not thread.name.startswith(name):
            continue
        table = thread.data["markers"]
        for marker, number in zip(thread.markers(), table["category"]):
            if (case.profile.categories[number] == category
                    and marker["end"] - marker["start"] >= shortest_ms * MS):
                waker = marker["data"].get("wokenBy")
                found.append("nobody" if waker is None else strings[waker])
    return found


def check_wakers(case, name, category, shortest_ms, count, waker):
    """Each of at least `count` such waits was ended by `waker`…"""
    found = wakers(case, name, category, shortest_ms)
    check(len(found) >= count, f"{len(found)} waits of {name}, should be {count}")
    check(all(w.startswith(waker) for w in found), f"{name} was woken by {sorted(set(found))}, "
          f"should be {waker}")


def check_all_wakers(results):
    """A timer is an interrupt; who sends over loopback is no interrupt, but the sender."""
    for case, *what in (("sleeps", "sleeper", CATEGORY_OF["sleep"], 25, 20, "interrupt"),
                        ("convoy", "convoy", CATEGORY_OF["mutex"], 10, 3, "convoy"),
                        ("latepoll", "client", CATEGORY_OF["network"], 40, 3, "server"),
                        ("pipe", "ask", CATEGORY_OF["pipe"], 30, 5, "answer")):
        check_wakers(Case(results / case), *what)


def check_load(case, kernel):
    """Every program loads, and the verifier has no more work with it than planned."""
    case.check_status(0)
    check(f"kernel {kernel.release}," in case.log, f"another kernel: {case.log[:100]}")
    refused = [line for line in case.log.splitlines() if line.startswith("no ")]
    check(not refused, "; ".join(refused))
    loaded = LOADED.findall(case.log)
    check(len(loaded) >= 10, f"only {len(loaded)} programs")
    for program, instructions, _ in loaded:
        check(0 < int(instructions) <= MAX_INSTRUCTIONS,
              f"{program}: {instructions} instructions verified")


def load_figures(case):
    """One line to print."""
    return ", ".join(f"{program} {instructions} ({milliseconds} ms)"
                     for program, instructions, milliseconds in LOADED.findall(case.log))


def check_negative(results):
    """With the truth altered, the checks fail."""
    case = Case(results / "sleeps")
    good = copy.deepcopy((case.truths, case.report))
    thread = case.threads[0]
    thread["cpu_ns"] += 100 * MS
    expect_failure(check_threads, case)
    thread["tid"] = 1 << 22
    expect_failure(check_threads, case)
    case.truths, case.report = copy.deepcopy(good)
    sleeper = next(t for t in case.threads if t["waits"])
    sleeper["waits"][0][2] += 500 * MS
    expect_failure(check_waits, case)
    case.report["totals"]["switch"]["lost"] = 1
    expect_failure(check_nothing_lost, case)
    case.report["threads"][0]["states"]["running"] += 1
    expect_failure(check_ledgers, case)
    case.ledger(sleeper["tid"])["switch_outs"] -= 1
    expect_failure(check_switches, case)
    expect_failure(check_wakers, case, "sleeper", CATEGORY_OF["sleep"], 25, 20, "sleeper")


def check_refused(results):
    """A kernel below the floor is named as the reason, before the command runs."""
    case = Case(results / "refuse")
    case.check_status(125)
    check("Linux 6.1 or later" in case.log, f"it only says {case.log.strip()!r}")
    check(not (results / "witness").exists(), "the command ran all the same")


def tests_of(kernel, results, wallprof):
    """(name, function without arguments) of each test on what a guest left."""
    if (results / "refuse").exists():
        yield "refuse", lambda: check_refused(results)
        return
    yield "load", lambda: check_load(Case(results / "doctor"), kernel)
    for name, _, status in CASES:
        yield name, functools.partial(
            lambda name, status: check_recording(Case(results / name), status, wallprof),
            name, status)
    yield "attach", lambda: check_attached(Case(results / "attach"), wallprof)
    yield "wakers", lambda: check_all_wakers(results)
    yield "negative", lambda: check_negative(results)
