# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs wallprof on workloads and holds its profiles against what is known.

A profile is read here from nothing but its format, independently of the code
that wrote it. Times are nanoseconds unless a name says otherwise; those of a
Thread count from the start of the profile.
"""
import bisect
import gzip
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

from untraced_tasks import hidden_tasks

# Else the width of some terminal would cut what is read here. Python's readline, which pytest 8 imports, sets the
# variable without os.environ.
os.environ.pop("COLUMNS", None)
os.unsetenv("COLUMNS")

ROOT = Path(__file__).resolve().parents[3]
BUILD = ROOT / "build"
WALLPROF = BUILD / "wallprof"
WORKLOADS = BUILD / "tests" / "workloads"
MS = 1_000_000
CLOCK_NANOSLEEP = 230  # the system call
CRITICAL_PATH = "Critical path"
STATES = ("running", "runnable", "blocked", "unknown")

# A guest of the kernel matrix: what a clock says there is held to so much besides, for an
# emulated machine is slow and its CPUs come and go; and one waits longer. Counts, and what
# wallprof makes of one recording, are as exact as anywhere.
GUEST_SHARE, GUEST_ABSOLUTE, GUEST_SLOWNESS = 0.1, 20 * MS, 6
IN_GUEST = "WALLPROF_GUEST" in os.environ
ATTEMPTS = 5  # of a test in which a time was wrong, where wallprof may not be to blame; see is_disturbed()
SHARE, ABSOLUTE = (GUEST_SHARE, GUEST_ABSOLUTE) if IN_GUEST else (0, 0)
SLOWNESS = GUEST_SLOWNESS if IN_GUEST else 1
# For what must come: long enough for a machine that is busy with other tests. Only a failure takes that long.
GIVE_UP_S = 120 * SLOWNESS
SWITCH_NS = 5000 * SLOWNESS  # what the kernel's own accounts may be off by, for each switch
# The time that a thread may run in a call that makes it wait, including the BPF programs at both ends,
# and how much longer loading a program takes.
CALL_NS, LOAD_NS = (4 * MS, 100 * MS) if IN_GUEST else (0, 0)


def is_long():
    """Whether this is `tools/test --long`."""
    return "WALLPROF_LONG" in os.environ


def cache_folder():
    """The user's folder for what is fetched or made once and kept."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "wallprof-test"


class Skip(Exception):
    """This test cannot be run here; the argument says why."""


class Failure(AssertionError):
    """A check of the test failed; the argument says which."""


class TimingFailure(Failure):
    """A time is wrong; where is_disturbed(), the machine may be the cause."""


class HostBusy(TimingFailure):
    """The guest's host did not let it run as the test needs; what could be tested was right."""


def check(condition, message):
    if not condition:
        raise Failure(message)


def check_close(what, got, wanted, share, absolute, failure=Failure):
    """got = wanted to `share` of wanted or to `absolute`, whichever is more."""
    allowed = max(share * wanted, absolute)
    if abs(got - wanted) > allowed:
        raise failure(f"{what}: {got / MS:.3f} ms, should be {wanted / MS:.3f} ± {allowed / MS:.3f}")


def noise(ns):
    """By how much a clock's `ns` may be off for no fault of wallprof's: nothing but in a guest."""
    return max(SHARE * ns, ABSOLUTE)


def check_timed(what, got, wanted, share, absolute):
    """check_close for what two clocks say, or one at two moments."""
    check_close(what, got, wanted, max(share, SHARE), max(absolute, ABSOLUTE), TimingFailure)


def noticeable(ns, wanted=0):
    """A truth of `wanted` altered by so much is altered beyond check_timed's tolerance, too."""
    return ns + 3 * noise(wanted)


def fewer(count):
    """Returns how often to repeat what is slow in a guest."""
    return count // SLOWNESS


def hit(ms):
    """Returns how many milliseconds to run so that ticks hit `ms` of them, also in a guest that its host
    lets run for a tenth of the time."""
    return ms * SLOWNESS


def expect_failure(function, *arguments, **settings):
    """The negative run of a suite: with the truth altered, its check must fail."""
    try:
        function(*arguments, **settings)
    except Failure:
        return
    raise Failure(f"{function.__name__} accepts an altered truth")


class Profile:
    """A profile in the Firefox Profiler's processed format."""

    def __init__(self, data):
        self.data = data
        self.allowed_ns = 0  # see unless_stolen()
        self.meta = data["meta"]
        self.categories = [c["name"] for c in self.meta["categories"]]
        self.start_ns = round(self.meta["startTime"] * MS)  # since the epoch
        self.rows = [Thread(self, t) for t in data["threads"]]
        # Samples of the critical path are in the thread's own track, too.
        self.threads = [t for t in self.rows if t.process != CRITICAL_PATH]

    @classmethod
    def load(cls, path):
        raw = Path(path).read_bytes()
        return cls(json.loads(gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw))

    def thread(self, tid):
        found = [t for t in self.threads if t.tid == tid]
        check(len(found) == 1, f"thread {tid} is in the profile {len(found)} times")
        return found[0]

    def table(self, thread_data, name):
        return thread_data.get(name) or self.data["shared"][name]

    def color_of(self, category):
        return next(c["color"] for c in self.meta["categories"] if c["name"] == category)

    @property
    def window_ns(self):
        return round((self.meta["profilingEndTime"] - self.meta["profilingStartTime"]) * MS)


class Thread:
    def __init__(self, profile, data):
        self.profile, self.data = profile, data
        self.tid = int(data["tid"]) if str(data["tid"]).isdigit() else data["tid"]
        self.pid, self.name = str(data["pid"]), data["name"]
        self.process, self.row = data.get("processName", ""), self.name
        # The main thread's row has what tells the process from others of its name.
        if str(self.tid) == self.pid and " ×" not in self.row:
            self.name = self.process
        # Threads that share a name have their TIDs in their rows.
        self.name = self.name.removesuffix(f" ({self.tid})")
        self._strings = profile.table(data, "stringArray")
        self._read_samples(data["samples"])

    def _read_samples(self, samples):
        stacks = self.profile.table(self.data, "stackTable")
        frames = self.profile.table(self.data, "frameTable")
        functions = self.profile.table(self.data, "funcTable")
        times = samples["time"] if "time" in samples else self._absolute(samples["timeDeltas"])
        self.times = [t * MS for t in times]
        weights = samples["weight"] or [1] * samples["length"]
        self.weights = [w * MS for w in weights]
        self.leaves, self.sample_categories = [], []
        cache = {}
        for stack in samples["stack"]:
            if stack not in cache:
                check(stack is not None, f"thread {self.tid} has a sample without a stack")
                frame = stacks["frame"][stack]
                category = stacks["category"][stack] if "category" in stacks else None
                if category is None:
                    category = frames["category"][frame]
                name = self._strings[functions["name"][frames["func"][frame]]]
                cache[stack] = (name, self.profile.categories[category])
            name, category = cache[stack]
            self.leaves.append(name)
            self.sample_categories.append(category)

    @staticmethod
    def _absolute(deltas):
        now, times = 0, []
        for delta in deltas:
            now += delta
            times.append(now)
        return times

    def category_of_leaf(self):
        """Under which category each wait's pseudo leaf is drawn."""
        return {leaf: category for leaf, category in zip(self.leaves, self.sample_categories)
                if leaf.startswith("[")}

    def frames_of(self, sample):
        """Function names of a sample, leaf first."""
        stacks = self.profile.table(self.data, "stackTable")
        frames = self.profile.table(self.data, "frameTable")
        functions = self.profile.table(self.data, "funcTable")
        stack, names = self.data["samples"]["stack"][sample], []
        while stack is not None:
            names.append(self._strings[functions["name"][frames["func"][stacks["frame"][stack]]]])
            if "prefixOffset" in stacks:
                offset = stacks["prefixOffset"][stack]
                stack = stack - offset if offset else None
            else:
                stack = stacks["prefix"][stack]
        return names

    def lifetime(self):
        begin = (self.data.get("registerTime") or 0) * MS
        end = self.data.get("unregisterTime")
        return begin, (self.profile.meta["profilingEndTime"] if end is None else end) * MS

    def weight_by(self, key):
        """Sum of weights by key(category, leaf)."""
        sums = {}
        for category, leaf, weight in zip(self.sample_categories, self.leaves, self.weights):
            name = key(category, leaf)
            sums[name] = sums.get(name, 0) + weight
        return sums

    def painted_by(self, key, begin=None, end=None):
        """Sum of painted time by key(category, leaf), in [begin, end] or in all.

        As the viewer paints: each sample from the middle to its neighbours.
        """
        born, died = self.lifetime()
        begin = born if begin is None else max(begin, born)
        end = died if end is None else min(end, died)
        sums, count = {}, len(self.times)
        first = max(bisect.bisect_left(self.times, begin) - 1, 0)
        for i in range(first, count):
            left = born if i == 0 else (self.times[i - 1] + self.times[i]) / 2
            right = died if i == count - 1 else (self.times[i] + self.times[i + 1]) / 2
            if left >= end:
                break
            name = key(self.sample_categories[i], self.leaves[i])
            sums[name] = sums.get(name, 0) + max(min(right, end) - max(left, begin), 0)
        return sums

    def samples_between(self, begin, end):
        return range(bisect.bisect_left(self.times, begin), bisect.bisect_right(self.times, end))

    def text(self, number):
        """Returns the text of a marker's field of the format unique-string; None if it has none."""
        return None if number is None else self._strings[number]

    def markers(self):
        table = self.data["markers"]
        for i in range(table["length"]):
            yield {"name": self._strings[table["name"][i]],
                   "start": (table["startTime"][i] or 0) * MS,
                   "end": (table["endTime"][i] or 0) * MS,
                   "data": table["data"][i] or {}}


RUNNING = ("User", "Kernel", "Recording")  # categories

# The categories of the waits of tests/workloads/common/truth.h.
CATEGORY_OF = {"sleep": "Sleep (timer)", "mutex": "Lock", "condvar": "Waiting for another thread",
               "join": "Waiting for another thread", "child": "Waiting for another thread",
               "network": "Network", "pipe": "Pipe/IPC", "between jobs": "Between jobs"}


def by_category(category, _leaf):
    return category


def by_state(category, _leaf):
    if category in RUNNING:
        return "running"
    if category.startswith("Runnable"):
        return "runnable"
    return "unknown" if category.startswith("Unknown") else "blocked"


def by_leaf(category, leaf):
    return leaf if leaf.startswith("[") and category not in RUNNING else "running"


class Truth:
    """The truth that a workload wrote down about itself (tests/workloads/common/truth.h)."""

    def __init__(self, path):
        self.data = json.loads(Path(path).read_text())
        self.threads = self.data["threads"]
        self.pid = self.data["pid"]
        self.offset = self.data["realtime_offset_ns"]

    def named(self, prefix):
        return [t for t in self.threads if t["name"].startswith(prefix)]


def waited(thread, kind):
    return sum(end - begin for k, begin, end in thread["waits"] if k == kind)


class Context:
    """The argument of a test: a folder of its own, its random numbers, and wallprof."""

    def __init__(self, seed, name):
        self.name, self.random = name, random.Random(f"{seed} {name}")
        self.folder = Path(tempfile.mkdtemp(prefix="wp-"))
        self.folder.chmod(0o755)
        self.processes = []
        self.timeout_s = GIVE_UP_S  # with a run of wallprof
        self.cgroup = None  # the folder of a cgroup; started commands enter it before they execute

    def close(self, keep):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
                process.wait()
        if not keep:
            shutil.rmtree(self.folder, ignore_errors=True)

    def path(self, name):
        return self.folder / name

    def workload(self, name, **options):
        """Command line of a workload; a_b=1 becomes --a-b 1."""
        command = [str(WORKLOADS / name)]
        for option, value in options.items():
            command += ["--" + option.replace("_", "-"), str(value)]
        return command

    def record_and_check(self, name, checks, **options):
        """A workload that unless_stolen() records."""
        def checks_allowing(recording, allowed_ns):
            recording.allowed_ns = allowed_ns
            checks(recording)

        unless_stolen(lambda: self.record(name, undisturbed=False, **options), checks_allowing)

    def start(self, command, **settings):
        settings.setdefault("stdout", subprocess.DEVNULL)
        settings.setdefault("stderr", subprocess.DEVNULL)
        process = subprocess.Popen(self.placed(command), **settings)
        self.processes.append(process)
        return process

    def placed(self, command):
        """Returns the command line that enters the cgroup first. The shell enters it, not this process: below a limit
        that lets nothing through, this process could not start anything any more."""
        command = list(map(str, command))
        if not self.cgroup:
            return command
        return ["sh", "-c", 'echo $$ >"$0/cgroup.procs" && exec "$@"', str(self.cgroup), *command]

    def wallprof(self, *arguments, status=0, before=(), **settings):
        """Runs wallprof, below the command line `before`; checks its exit status unless status is None."""
        settings.setdefault("timeout", self.timeout_s)
        settings.setdefault("cwd", self.folder)
        done = subprocess.run(self.placed([*before, WALLPROF, *arguments]), capture_output=True, text=True, **settings)
        check(status is None or done.returncode == status,
              f"wallprof {' '.join(map(str, arguments))}: status {done.returncode}, "
              f"should be {status}: {done.stderr.strip()[-600:]}")
        return done

    def record(self, name, *arguments, undisturbed=True, **options):
        """Profiles a workload; returns what was recorded and what is true.

        undisturbed: only a recording without broken chains will do.
        """
        truth, output = self.path("truth.json"), self.path("p.json.gz")
        least = None  # broken chains beyond what hidden tasks explain
        for attempt in range(6):
            if attempt:
                count_repeated()
            self.wallprof("-q", "--keep-capture", *arguments, "-o", output, "--",
                          *self.workload(name, truth=truth, **options))
            recording = Recording(self, output, truth)
            broken = recording.report["contradictions"]
            check_hidden(broken)
            if broken == 0 or not undisturbed and broken <= most_broken(recording.report):
                return recording
            excess = broken - most_broken(recording.report)
            least = excess if least is None else min(least, excess)
        check(least <= 0, f"{least} broken chains more than hidden tasks explain, in six recordings")
        raise Skip("every recording was disturbed: this kernel raises no tracepoint for "
                   "switches of " + ", ".join(sorted(hidden_tasks())))


def check_hidden(broken):
    """Broken chains with no loss reported are a bug, unless this machine hides switches."""
    check(broken == 0 or hidden_tasks(), f"{broken} broken chains with no loss reported")


def most_broken(report):
    """Even then they are few: each needs a switch of one of the hidden tasks to hit a target."""
    return 20 + 0.002 * report["totals"]["switch"]["received"]


def check_unexplained(report):
    broken = report["contradictions"]
    check_hidden(broken)
    check(broken <= most_broken(report), f"{broken} broken chains: more than hidden tasks explain "
                                         f"({most_broken(report)})")


def capture_of(output):
    """Returns the path of the capture that is kept beside a profile."""
    return Path(re.sub(r"(\.trace)?\.json(\.gz|\.zst)?$", "", str(output)) + ".capture")


class Recording:
    def __init__(self, context, output, truth=None):
        self.context, self.output = context, Path(output)
        self.capture = capture_of(output)
        self.profile = Profile.load(output)
        self.report = read_report(context, self.capture)
        self.truth = Truth(truth) if truth and Path(truth).exists() else None
        self.allowed_ns = 0  # for time stolen from the CPUs, of which no thread's clock knows
        self.keep_for_viewer()

    def keep_for_viewer(self):
        """Every profile that a test makes must open in the viewer's own reader: when all tests are over."""
        if Viewer.is_installed() and to_open.folder:
            to_open.keep(self.context.name, self.output)

    def ledger(self, tid):
        found = [t for t in self.report["threads"] if t["tid"] == tid]
        check(len(found) == 1, f"thread {tid} is in the report {len(found)} times")
        return found[0]

    def at(self, monotonic_ns):
        """CLOCK_MONOTONIC of the truth as a time of the profile."""
        return monotonic_ns + self.truth.offset - self.profile.start_ns


def ledger_by_category(thread, ledger):
    """The ledger's reasons, summed under the categories that the profile draws them in."""
    sums, categories = {}, thread.category_of_leaf()
    for leaf, ns in ledger["reasons"].items():
        # A wait too short to have a row of its own has no category in this thread.
        if leaf in categories:
            sums[categories[leaf]] = sums.get(categories[leaf], 0) + ns
        else:
            check(ns <= MS, f"{thread.name}: {leaf} is nowhere in the profile")
    return sums


def read_report(context, capture):
    return json.loads(context.wallprof("report", "--json", capture).stdout)


class Viewer:
    """profiler-cli, an independent reader of profiles."""

    @staticmethod
    def is_installed():
        paths = [os.environ.get(name) for name in ("WALLPROF_NODE", "WALLPROF_VIEWER")]
        return all(path and Path(path).exists() for path in paths)

    def __init__(self):
        self.node, self.script = os.environ.get("WALLPROF_NODE"), os.environ.get("WALLPROF_VIEWER")
        if not self.is_installed():
            raise Skip("profiler-cli is not installed (tools/test installs it with npm)")
        # Its socket lies here, and the name of a socket may have 107 bytes.
        self.folder = Path(tempfile.mkdtemp(prefix="pq", dir="/tmp"))
        self.environment = {**os.environ, "PROFILER_CLI_SESSION_DIR": str(self.folder)}
        self.daemon = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.daemon:
            self.daemon.terminate()
            self.daemon.communicate()
        shutil.rmtree(self.folder, ignore_errors=True)

    def load(self, path):
        """Its daemon is started as it says in its messages. Its own "load" gives it half a second to begin
        and a minute to read: too little where others have the CPUs."""
        self.daemon = subprocess.Popen(
            [self.node, self.script, "--daemon", str(path), "--session", "s"], env=self.environment,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        wait_until(lambda: self.daemon.poll() is not None or self.status() not in (None, "loading", "symbolicating"),
                   f"profiler-cli has loaded {path}")
        check(self.daemon.poll() is None and self.status() == "ready",
              f"profiler-cli does not load {path}: {self.status() or self.daemon.communicate()[1]}")

    def status(self):
        """The state in the answer to "load": "loading", "symbolicating", "ready", an error, or None without an answer."""
        with socket.socket(socket.AF_UNIX) as asked:
            asked.settimeout(30)
            try:
                asked.connect(str(self.folder / "s.sock"))
                asked.sendall(b'{"type": "status"}\n')
                answer = json.loads(asked.makefile().readline())
            except (OSError, ValueError):
                return None
        return answer.get("error") or answer["type"]

    def query(self, *arguments):
        for _ in range(4):
            done = subprocess.run([self.node, self.script, *map(str, arguments), "--session", "s", "--json"],
                                  timeout=GIVE_UP_S, env=self.environment, capture_output=True, text=True)
            if "Timed out" not in done.stderr:  # after half a minute in which others had the CPUs
                break
        check(done.returncode == 0, f"profiler-cli {arguments}: {done.stdout}{done.stderr}")
        return json.loads(done.stdout)

    def thread_handles(self):
        """Handle by tid, of all threads."""
        info = self.query("profile", "info", "--all")
        return {t["tid"]: t["threadHandle"] for p in info["processes"] for t in p["threads"]}

    def categories(self, handle):
        """ns by category."""
        answer = self.query("thread", "samples", "--thread", handle, "--include-idle")
        return {c["name"]: c["samples"] * MS for c in answer["categoryBreakdown"]["categories"]}


class ToOpen:
    """Profiles that tests have made, by another name, so that they stay when the tests' folders go. The folder that
    open_folder() makes is for all processes that begin later."""

    def __init__(self):
        self.folder = None

    def open_folder(self):
        self.folder = Path(tempfile.mkdtemp(prefix="wp-profiles-"))

    def keep(self, test, path):
        folder = Path(tempfile.mkdtemp(prefix=f"{test}-", dir=self.folder))
        os.link(path, folder / path.name)

    def open_all(self):
        """Yields (test, None, or why its profile does not open)."""
        with ThreadPoolExecutor(2 * os.cpu_count()) as pool:
            yield from pool.map(self._open, sorted(self.folder.glob("*/*")))
        shutil.rmtree(self.folder)

    @staticmethod
    def _open(path):
        test = path.parent.name.rpartition("-")[0]
        try:
            with Viewer() as viewer:
                viewer.load(path)
        except (Failure, subprocess.TimeoutExpired) as failure:
            return test, str(failure)
        return test, None


to_open = ToOpen()


repeated = []  # an entry for each recording that this process made again
current = SimpleNamespace(test="a check of the kernel matrix")  # .test: the name of the test that this process runs


def count_repeated():
    repeated.append(1)


def stolen_ns():
    """CPU time that a hypervisor has given to others, since this machine started; in ticks."""
    ticks = int(Path("/proc/stat").read_text().split("\n", 1)[0].split()[8])
    return ticks * 1_000_000_000 // os.sysconf("SC_CLK_TCK")


def hidden_from(recorded):
    """Returns how many switches a recording missed; see check_hidden()."""
    return recorded.report["contradictions"] if isinstance(recorded, Recording) else 0


def unless_stolen(record, checks):
    """Returns what record() returned, when checks(it, 0) held.

    Once more, five times at most, if a hypervisor took a CPU away meanwhile. That time passes,
    and by any trace a thread is running in it, but its CPU clock stands still. How much it was
    is reported too coarsely to be subtracted. If time was stolen in every attempt, the last one's
    running times may be larger by that: it goes to checks() in place of the 0.

    Less than a tick is not reported at all: a machine from which there was ever something stolen gets
    one more attempt though nothing is reported, with nothing allowed for.

    Once more, too, if switches were hidden from the recording: the wait that is asked for may be one of theirs.
    """
    unreported = 1 if stolen_ns() else 0
    for remaining in reversed(range(6)):
        if remaining < ATTEMPTS:
            count_repeated()
        stolen = stolen_ns()
        recorded = record()
        stolen = stolen_ns() - stolen
        allowed_ns = 0 if remaining else stolen
        if allowed_ns:
            print(f"# {allowed_ns / MS} ms stolen from the CPUs are allowed for", flush=True)
        try:
            checks(recorded, allowed_ns)
            return recorded
        except Failure:
            disturbed = stolen or hidden_from(recorded)
            if not remaining or not (disturbed or unreported):
                raise
            unreported -= 0 if disturbed else 1


def without_stolen(got, wanted, allowed_ns):
    """got, less what may be stolen of it, but never less than wanted for that."""
    return got - min(max(got - wanted, 0), allowed_ns)


def is_disturbed():
    """Whether time passes here of which no tracer can know: whose clocks are held against a
    recording may be wrong, then. An emulated machine does not notice when its host takes a CPU from
    it; others learn it from their hypervisor, or have threads whose switches are hidden."""
    return IN_GUEST or stolen_ns() > 0 or bool(hidden_tasks())


def needs_command(name):
    if not shutil.which(name):
        raise Skip(f"{name} is not installed")


def needs_root():
    if os.geteuid() != 0:
        raise Skip("not root")


def cause_of(profile, marker):
    """Names of the functions on the stack that led to what a marker shows, innermost first."""
    shared, names = profile.data["shared"], []
    stacks, frames, functions = (shared[t] for t in ("stackTable", "frameTable", "funcTable"))
    stack = marker["data"].get("cause", {}).get("stack")
    while stack is not None:
        function = frames["func"][stacks["frame"][stack]]
        names.append(shared["stringArray"][functions["name"][function]])
        stack = stacks["prefix"][stack]
    return names


def check_causes(profile, markers, wanted):
    """Each has a stack with that function in it."""
    others = [names for m in markers if wanted not in (names := cause_of(profile, m))]
    check(markers and not others, f"{len(others)} of {len(markers)} without {wanted}: {others[:3]}")


def wait_until(condition, what):
    end = time.monotonic() + GIVE_UP_S
    while not condition():
        check(time.monotonic() < end, f"gave up waiting until {what}")
        time.sleep(0.01)  # most conditions cost a look into /proc


def children(pid):
    return [int(c) for c in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def current_call(tid):
    """The number and the arguments of the system call that a thread is in; [] if it is in none, or has ended."""
    try:
        words = Path(f"/proc/{tid}/syscall").read_text().split()
    except (FileNotFoundError, ProcessLookupError):
        return []
    return [int(word, 0) for word in words] if words and words[0].isdigit() else []


def wait_until_asleep(pid, threads):
    """Until that many threads, besides the main thread, are in clock_nanosleep()."""
    tasks = Path(f"/proc/{pid}/task")
    wait_until(lambda: sum(current_call(task.name)[:1] == [CLOCK_NANOSLEEP] for task in tasks.iterdir()
                           if task.name != str(pid)) == threads, f"{threads} threads sleep")


def alive(pid):
    try:
        os.kill(pid, signal.SIG_DFL)
    except ProcessLookupError:
        return False
    return True
