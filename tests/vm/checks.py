# SPDX-License-Identifier: GPL-2.0-or-later
"""The runs of each guest, and the checks of their results.

Two things: recordings that only the host checks, for it can export them too and compare;
and the end-to-end suites, run in the guest by pytest. Times are held to
what that harness has for guests; counts are exact as ever.
"""
import functools
import json
import random
import re
import shlex
import subprocess
from types import SimpleNamespace

import verifier_budget
import test_reasons
from harness import (CATEGORY_OF, MS, GUEST_ABSOLUTE as ABSOLUTE, GUEST_SHARE as SHARE, Profile, TimingFailure, Truth,
                     by_category, by_state, check, check_timed, expect_failure, waited)

# What one recording has, one after the other, for loading the programs takes an emulated CPU seconds:
# name of a case, workload with its options, exit status. As the last one ends, so does the recording.
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
    ("waits", "waits --ms 60 --seed SEED", 0),
    ("exit", "die --status 7", 7),
    ("abort", "die --signal 6", 128 + 6),
)
# The shell that runs them: each beside it, so that its number is known.
CASE = """out=/results/{0}
mkdir $out
{1} --truth $out/truth.json >$out/log 2>&1 &
echo $! >$out/pid
wait $!
status=$?
echo $status >$out/status
"""
LAST = """[ $status -le 128 ] || kill -$((status - 128)) $$
exit $status
"""
EACH_SWITCH = 5000  # ns
CHARGED_EARLY = 40_000  # ns
ATTACHED = "sleeps --threads 4 --rounds 1 --ms 60000"

# The jobs of guests, by the name of the script (see init).
SCRIPTS = {
    "together": "record together /bin/sh /cases\n",
    "attach": f"attach attach {ATTACHED}\n",
    "refuse": "plain refuse wallprof -o /results/p.json -- touch /results/witness\n",
}
RECORDINGS = "".join(["plain doctor wallprof doctor -v\n", SCRIPTS["together"], SCRIPTS["attach"],
                      "plain carried wallprof export -o /results/carried/profile.json /carried.capture\n"])
# Of the suites (tests/e2e), what every run of the matrix has on each kernel, and what else it has: so many on each,
# drawn by the seed, no test on two of them. A long run has all of it on each.
EVERYWHERE = ("block.throttled_sync", "cli.missing_privilege", "faults.all", "gil.sums", "script_events.system",
              "stacks.32_bit_code", "workloads.negative")
SOMEWHERE = ("attached.hangs", "block.limited", "block.throttled_map", "clocks.suspend", "faults.without_ftrace",
             "graphs.graphs", "layers.striped", "loss.cpu_comes_back", "privileges.capabilities",
             "record.pid_namespace", "rings.groups", "rings.hotplug", "strip.fork_and_exec",
             "strip.main_thread_ends_first", "system.cgroup", "system.sleeps_through", "ticks.followed",
             "unwind.exec_in_place", "unwind.number_used_again", "unwind.signal", "unwind.vfork", "wakers.as_perf")
DRAWN = 2
# What a guest with many CPUs has in a long run, on one kernel.
MANY_CPUS, ON_MANY_CPUS = 16, ("rings",)
SUITE_RESULT = re.compile(r"^(ok|not ok|skip) ([\w.]+)(?:: (.*)| \(.*\))?$")


def selection(seed, kernels):
    """{kernel: names of end-to-end tests} of a run that is not a long one."""
    drawn = random.Random(seed).sample(SOMEWHERE, DRAWN * len(kernels))
    return {kernel: (*EVERYWHERE, *drawn[i::len(kernels)]) for i, kernel in enumerate(kernels)}


def scripts(seed, tests, command, further=""):
    """{name: text} of what guests run, see init. tests: {kernel: names of end-to-end tests, none = all}.
    command: what to run in a shell instead, or None. further: lines for each kernel that is recorded on."""
    return {**SCRIPTS,
            **{f"record-{kernel}": RECORDINGS + further + f"suites {seed} {' '.join(names)}\n"
               for kernel, names in tests.items()},
            "many-cpus": f"suites {seed} {' '.join(ON_MANY_CPUS)}\n",
            "cases": "".join(CASE.format(name, command.replace("SEED", str(seed)))
                             for name, command, _ in CASES) + LAST,
            "run": f"cd /wallprof\nplain run sh -c {shlex.quote(command or 'true')}\n"}


def suite_results(text):
    """(name, ok | not ok | skip, why) of each end-to-end test that a guest ran or should have."""
    planned, reported, name = None, {}, None
    for line in text.splitlines():
        match = SUITE_RESULT.match(line)
        if line.startswith("plan "):
            planned = line.split()[1:]
        elif match:
            name = match[2]
            reported[name] = (match[1], match[3] or "")
        elif name and line.startswith("    "):  # why a test failed
            reported[name] = (reported[name][0], reported[name][1] + line[4:] + "\n")
    check(planned, f"pytest did not start: {text.strip()[-600:]}")
    for name in planned:
        yield (name, *reported.get(name, ("not ok", f"it was not run: {text.strip()[-300:]}")))


class Case:
    """The results of one case, in a recording that may have others; read as a Recording of
    tests/e2e is."""

    def __init__(self, folder, recording=None):
        self.folder, self.recording = folder, recording or folder
        self.log = (folder / "log").read_text(errors="replace")
        self.status = int((folder / "status").read_text())

    def check_status(self, wanted):
        check(self.status == wanted,
              f"status {self.status}, should be {wanted}: {self.log.strip()[-600:]}")

    @functools.cached_property
    def report(self):
        text = (self.recording / "report.json").read_text()
        check(text != "", f"no report: {self.log.strip()[-600:]}")
        return json.loads(text)

    @functools.cached_property
    def profile(self):
        path = self.recording / "profile.json"
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
    check(report["contradictions"] == 0, f"{report['contradictions']} missed switches")
    # From 7.0 on programs of exec, rename, page faults and requests may preempt each other, and the
    # kernel then leaves one out; emulation makes that likely. It must be counted, and be no more than that.
    preemptible = int(re.search(r"Linux (\d+)", case.profile.meta["oscpu"])[1]) >= 7
    totals, spared = report["totals"], {}
    if preemptible:
        spared = {kind: max(1, totals[kind]["sent"] // 20) for kind in ("exec", "task")}
        # A stack of a program that was not reported, and the others.
        unknown = totals["exec"]["lost"] + totals["task"]["lost"]
        # The program sees all page faults, though few are recorded.
        faults = sum(t["kernel"]["min_flt"] + t["kernel"]["maj_flt"]
                     for t in report["threads"] if t.get("kernel"))
        spared |= {"page fault": max(3, faults // 100), "request": 3, "stack copy": 3 * unknown}
    for kind, total in totals.items():
        check(total["sent"] - total["received"] == total["lost"], f"{kind}: {total}")
        check(total["lost"] == 0 or kind in spared, f"{kind}: {total}")
        # How long a preempted program waits depends on the load of the guest's host.
        if total["lost"] > spared.get(kind, 0):
            raise TimingFailure(f"{kind}: {total}, and {spared[kind]} at most may be lost")
    check(sum(loss["count"] for loss in report["losses"])
          == sum(total["lost"] for total in report["totals"].values()), "losses without a total")


def check_ledgers(case):
    """The states are the lifetime, and the reasons the time off CPU."""
    for thread in case.report["threads"]:
        states, thread_name = thread["states"], f"{thread['name']} {thread['tid']}"
        check(sum(states.values()) == thread["lifetime_ns"], f"{thread_name}: a broken ledger")
        check(states["unknown"] == 0, f"{thread_name}: {states['unknown']} ns unknown")
        check(sum(thread["reasons"].values()) == states["blocked"] + states["runnable"],
              f"{thread_name}: reasons {thread['reasons']} are not what it waited: {states}")


def command_of(case):
    """The command's first thread outlives all others, and is older than the window."""
    leaders = [t for t in case.report["threads"] if t["tid"] == t["pid"]]
    return max(leaders, key=lambda t: t["lifetime_ns"])


def charged_early(ledger):
    """So much of a thread's waiting for a CPU the kernel may have among its running time.

    It charges a thread that is woken on an idle CPU from the wakeup on, not from when that CPU has left its
    idling (kernel/sched/core.c, wakeup_preempt: rq_clock_skip_update), and has no run_delay then.
    That is 0.5 us on hardware, and 10 to 30 emulated.
    """
    early = ledger["states"]["runnable"] - ledger["kernel"]["run_delay"]
    return min(max(early, 0), CHARGED_EARLY * (ledger["switch_outs"] + 1))


def check_running(name, ledger, running, wanted, switches):
    wanted -= min(max(wanted - running, 0), charged_early(ledger))
    # From the kernel's reading of its clock to our program's, emulated.
    check_timed(f"{name}: running", running, wanted, SHARE, ABSOLUTE + EACH_SWITCH * switches)


def check_threads(case):
    """Every thread is there by its name, and ran for as long as it says.

    Except for names without a record, which the kernel skipped: check_nothing_lost says when it may.
    """
    misnamed = []
    for truth in case.truths:
        for reported in truth.threads:
            ledger, thread = case.ledger(reported["tid"]), case.profile.thread(reported["tid"])
            if ledger["name"] != reported["name"]:
                misnamed.append(f"{reported['name']} is called {ledger['name']}")
            running = thread.painted_by(by_state, end=case.at(truth, reported["end_ns"]))["running"]
            check_running(reported["name"], ledger, running, reported["cpu_ns"],
                          reported["nvcsw"] + reported["nivcsw"])
    check(len(misnamed) <= case.report["totals"]["task"]["lost"], "; ".join(misnamed))


def check_switches(case):
    """Each of a thread's switch-outs is recorded, except the last one, and no more are."""
    for ledger in case.report["threads"]:
        account, thread_name = ledger["kernel"], f"{ledger['name']} {ledger['tid']}"
        check(account, f"{thread_name}: no account of the kernel's")
        counted = account["nvcsw"] + account["nivcsw"]
        check(counted - 1 <= ledger["switch_outs"] <= counted,
              f"{thread_name}: {ledger['switch_outs']} switch-outs recorded, the kernel counted {counted}")


def check_reported_switches(case):
    """A thread reads its own counts a little before its end."""
    for reported in case.threads:
        switches = case.ledger(reported["tid"])["switch_outs"]
        check(switches >= reported["nvcsw"] + reported["nivcsw"], f"{reported['name']}: {switches} switch-outs "
              f"recorded, it counted {reported['nvcsw']} and {reported['nivcsw']}")


# The mutex of a condition variable may be another wait within that for the variable.
ALSO = {"condvar": ("Lock",)}


def check_waits(case):
    """When a thread says that it waited, it is drawn as waiting for that."""
    for truth in case.truths:
        for reported in truth.threads:
            # Those of the case "waits" are check_reasons'.
            for kind in {kind for kind, _, _ in reported["waits"] if kind in CATEGORY_OF}:
                check_kind_of_wait(case, truth, reported, kind)


def check_kind_of_wait(case, truth, reported, kind):
    """Besides, on the way to sleep and from it, it is only running or runnable."""
    thread, states = case.profile.thread(reported["tid"]), {}
    for wait, begin, end in reported["waits"]:
        if wait != kind:
            continue
        for name, ns in thread.painted_by(by_category, case.at(truth, begin),
                                          case.at(truth, end)).items():
            right = name in (CATEGORY_OF[kind], *ALSO.get(kind, ()))
            state = "right" if right else by_state(name, "")
            states[state] = states.get(state, 0) + ns
    right, wanted = states.pop("right", 0), waited(reported, kind)
    what = f"{reported['name']}: {kind}"
    check_timed(f"{what}, {states} included", right + states.get("running", 0)
                + states.get("runnable", 0), wanted, SHARE, ABSOLUTE)
    if right < wanted / 2 - ABSOLUTE:
        raise TimingFailure(f"{what} {right / MS:.3f} ms, should be most of {wanted / MS:.3f}: {states}")


def check_reasons(results):
    """A wait of each kind has its reason, its waker, and the holder of the lock.

    The waker is compared by name: if the record of a name is lost (check_nothing_lost), the test is repeated.
    """
    case = case_of(results, "waits")
    (truth,) = case.truths
    recording = SimpleNamespace(profile=case.profile, report=case.report, truth=truth,
                                at=functools.partial(case.at, truth))
    lost = case.report["totals"]["task"]["lost"]
    try:
        test_reasons.check_waits(recording, SHARE, ABSOLUTE)
    except test_reasons.Misnamed as failure:
        if not lost:
            raise
        raise TimingFailure(f"{failure}; lost, as the report says: {lost} records of tasks") from failure


def check_same_elsewhere(case, wallprof):
    """Another machine makes the same report and the same profile of the capture."""
    capture, other = case.folder / "capture", case.folder / "other.json"
    for made, command in (("report.json", ["report", "--json", capture]),
                          ("profile.json", ["export", "-q", "-o", other, capture])):
        done = subprocess.run([wallprof, *command], capture_output=True)
        check(done.returncode == 0, f"wallprof {command[0]}: {done.stderr.decode()[-600:]}")
        here = done.stdout if made == "report.json" else other.read_bytes()
        check(here == (case.folder / made).read_bytes(), f"{made} of guest and host differ")


def case_of(results, name):
    return Case(results / name, results / "together")


def check_together(case, wallprof):
    """The recording of all cases, and the shell that runs them."""
    case.check_status(CASES[-1][2])
    check_nothing_lost(case)
    check_ledgers(case)
    check_switches(case)
    shell = command_of(case)
    check_running(shell["name"], shell, shell["states"]["running"],
                  shell["kernel"]["sum_exec_runtime"], shell["switch_outs"])
    check_same_elsewhere(case, wallprof)


def check_case(case, status):
    case.check_status(status)
    check_nothing_lost(case)
    check_ledgers(case)
    check(case.truths or status != 0, "the workload did not write its truth")
    check_threads(case)
    check_reported_switches(case)
    check_waits(case)
    # The workload that dies has a second thread, and writes nothing.
    pid = int((case.folder / "pid").read_text())
    found = sum(t["pid"] == pid for t in case.report["threads"])
    check(found >= 1 + (status != 0), f"{found} threads of process {pid}")


def check_attached(case, wallprof):
    """Threads that slept all the time are there for all of the time."""
    case.check_status(0)
    check_nothing_lost(case)
    check_ledgers(case)
    window = case.report["window_ns"]
    check_timed("the window", window, 1000 * MS, SHARE, ABSOLUTE)
    tids = {int(tid) for tid in (case.folder / "tids").read_text().split()}
    check(len(tids) == 5, f"the workload had threads {tids}")
    check({t["tid"] for t in case.report["threads"]} == tids, "not the threads it had")
    for thread in case.report["threads"]:
        check(thread["lifetime_ns"] == window, f"{thread['name']} is not there all the time")
        if (thread["name"].startswith("sleeper")
                and thread["reasons"].get("[sleep]", 0) < 0.9 * window):
            raise TimingFailure(f"{thread['name']} slept, but {thread['reasons']}")
    check_same_elsewhere(case, wallprof)


def wakers(case, name, category, shortest_ms):
    """Returns the wakers of the waits of the threads called `name`…"""
    strings, tids = case.profile.data["shared"]["stringArray"], {t["tid"] for t in case.threads}
    found = []
    for thread in case.profile.threads:
        if thread.tid not in tids or not thread.name.startswith(name):
            continue
        table = thread.data["markers"]
        for marker, number in zip(thread.markers(), table["category"]):
            if (case.profile.categories[number] == category
                    and marker["end"] - marker["start"] >= shortest_ms * MS):
                waker = marker["data"].get("wokenBy")
                found.append("none" if waker is None else strings[waker])
    return found


def check_wakers(case, name, category, shortest_ms, count, waker):
    """Each of at least `count` such waits was ended by `waker`…"""
    found = wakers(case, name, category, shortest_ms)
    if len(found) < count:  # of such a length
        raise TimingFailure(f"{len(found)} waits of {name}, should be {count}")
    check(all(w.startswith(waker) for w in found), f"{name} was woken by {sorted(set(found))}, "
          f"should be {waker}")


def check_all_wakers(results):
    """A timer is an interrupt; a wakeup over loopback has the sender as its waker, not an interrupt."""
    for case, *what in (("sleeps", "sleeper", CATEGORY_OF["sleep"], 25, 20, "timer interrupt"),
                        ("convoy", "convoy", CATEGORY_OF["mutex"], 10, 3, "convoy"),
                        ("latepoll", "client", CATEGORY_OF["network"], 40, 3, "server"),
                        ("pipe", "ask", CATEGORY_OF["pipe"], 30, 5, "answer")):
        check_wakers(case_of(results, case), *what)


def check_programs(case, kernel):
    case.check_status(0)
    check(f"Linux {kernel.release}," in case.log, f"another kernel: {case.log[:100]}")
    verifier_budget.check_programs(case.log)


def check_load(case, kernel):
    """Every program loads, and the verifier has no more work with it than planned."""
    check_programs(case, kernel)
    log = case.log
    for end in (",", ")"):
        case.log = log.replace(f" instructions verified{end}", f"00000 instructions verified{end}")
        expect_failure(check_programs, case, kernel)
    case.log = log


def check_negative(results):
    """With the truth altered, the checks fail."""
    def rename_all(case, _reported):
        case.report["totals"]["task"].update(lost=0)  # else as many names may be wrong
        for thread in case.threads:
            thread.update(name="another")

    def fails(function, alter, *arguments):
        case = case_of(results, "sleeps")
        function(case, *arguments)
        alter(case, next(t for t in case.threads if t["name"].startswith("sleeper")))
        expect_failure(function, case, *arguments)

    fails(check_threads, lambda case, reported: reported.update(cpu_ns=reported["cpu_ns"] + 100 * MS))
    fails(check_threads, lambda case, reported: reported.update(tid=1 << 22))
    fails(check_threads, rename_all)
    fails(check_waits, lambda case, reported: reported["waits"][0].__setitem__(0, "mutex"))
    fails(check_waits, lambda case, reported: reported["waits"].append(
        ["pipe", reported["waits"][0][1], reported["waits"][-1][2]]))
    fails(check_reported_switches, lambda case, reported: reported.update(nvcsw=reported["nvcsw"] + 10_000))
    fails(check_switches, lambda case, reported: case.ledger(reported["tid"]).update(switch_outs=1))
    fails(check_nothing_lost, lambda case, reported: case.report["totals"]["switch"].update(lost=1))
    fails(check_nothing_lost, lambda case, reported: case.report["totals"]["page fault"].update(
        sent=10**6, received=0, lost=10**6))
    fails(check_nothing_lost, lambda case, reported: case.report.update(contradictions=1))
    fails(check_ledgers, lambda case, reported: case.ledger(reported["tid"]).update(lifetime_ns=1))
    expect_failure(check_wakers, case_of(results, "sleeps"), "sleeper", CATEGORY_OF["sleep"], 25, 20,
                   "sleeper")


def check_refused(results):
    """A kernel below the floor is named as the reason, before the command runs."""
    case = Case(results / "refuse")
    case.check_status(125)
    check("Linux 6.1 or later" in case.log, f"it only says {case.log.strip()!r}")
    check(not (results / "witness").exists(), "the command ran all the same")


def script_of(test):
    """The script that makes once more what the test is about."""
    return "attach" if test == "attach" else "together"


def tests_of(kernel, results, carried, others, wallprof):
    """{name: function without arguments} of each test on what a guest left in that folder."""
    if (results / "refuse").exists():
        return {"refuse": lambda: check_refused(results)}
    return {
        "load": lambda: check_load(Case(results / "doctor"), kernel),
        **others.tests(lambda name: Case(results / name)),
        "together": lambda: check_together(Case(results / "together"), wallprof),
        **{name: functools.partial(lambda name, status: check_case(case_of(results, name), status),
                                   name, status) for name, _, status in CASES},
        "attach": lambda: check_attached(Case(results / "attach"), wallprof),
        "carried": lambda: carried.check_same(Case(results / "carried")),
        "wakers": lambda: check_all_wakers(results),
        "reasons": lambda: check_reasons(results),
        "negative": lambda: check_negative(results),
    }
