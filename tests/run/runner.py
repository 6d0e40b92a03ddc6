# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs every test of every suite and counts them; tools/test calls it.

Suites: style, unit (cmocka, each of its tests on its own), unit-asan (the same
under the sanitizers), vm (the kernel matrix), roots (other releases of Debian), fuzz (fuzz.py), and one for each
tests/e2e/*/test_*.py.
Suites that hold no times to account say so (UNTIMED), and may have other work beside them: each other,
and both matrices.
In a guest of the kernel matrix (--guest) only the last ones, as far as they need a kernel. In a root of another
release (--root) the unit tests without sanitizers, and those suites that are named.
"""
import argparse
import importlib
import json
import os
import random
import re
import subprocess
import sys
import threading
import time
import traceback
from collections import Counter, deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from threading import Semaphore

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "support" / "py"), *map(str, sorted((TESTS / "e2e").glob("*")))]

import busy  # noqa: E402
import fuzz  # noqa: E402
import harness  # noqa: E402
import long_run  # noqa: E402
import time_table  # noqa: E402

# cmocka 1 writes "ok 1 # SKIP name", cmocka 2 "ok 1 - name # SKIP".
TAP = re.compile(r"^(ok|not ok) \d+ (?:# SKIP (\S+)|- (\S+)( # SKIP.*)?)$")
SUMMARY_COLUMNS = 400  # of the reason why a test failed, in the last lines of a log
# A test that fails is tried once more at the end, alone: the machine is shared, and a test that holds on it 99.9 times
# of 100 would fail the run. More failures than this have one cause, and are failures at once.
SECOND_TRIES = 5
MATRIX_RESULT = re.compile(r"^(ok|not ok|skip) ((?:vm|roots)\S*)(?: # (.*))?$")
RETRIED = re.compile(r"^(vm\.\S+|roots\.\S+|[\d.]+\S*): once more, for ")


def tap_results(text):
    """(name, ok | not ok | skip) of each test in what a cmocka program prints."""
    for match in filter(None, map(TAP.match, text.splitlines())):
        yield match[2] or match[3], "skip" if match[2] or match[4] else match[1]


class Runner:
    def __init__(self, seed, wanted, without=()):
        self.seed, self.wanted, self.without = seed, wanted, without
        self.passed, self.failed, self.skipped = [], [], []
        self.whys = []  # of each that failed
        self.again = Counter()  # how often tests were run again
        self.postponed = []  # (name, why, a function that runs it again) of tests that failed once
        self.second_tries = 0  # that may still be postponed
        self.again_alone = []  # (name, why) of each that failed once and not again
        self.times = time_table.TimeTable()
        self.notes = []  # of the kernel matrix

    def is_wanted(self, name):
        return (not self.wanted or any(w in name for w in self.wanted)) and not any(w in name for w in self.without)

    def passes(self, name, seconds=None):
        self.passed.append(name)
        print(f"ok {name}" + (f" ({seconds:.1f} s)" if seconds else ""), flush=True)

    def fails(self, name, why, run_again=None):
        if run_again and self.second_tries:
            self.second_tries -= 1
            self.postponed.append((name, why, run_again))
            print(f"# {name} failed, and is tried once more at the end:\n#     " + why.strip().replace("\n", "\n#     "),
                  flush=True)
            return
        self.failed.append(name)
        self.whys.append(" ".join(why.split()))
        print(f"not ok {name}\n    " + why.strip().replace("\n", "\n    "), flush=True)

    def skips(self, name, why):
        self.skipped.append(name)
        print(f"skip {name}: {why}", flush=True)

    def run(self, name, function):
        """One Python test, with a context of its own."""
        if not self.is_wanted(name):
            return
        for remaining in reversed(range(harness.ATTEMPTS)):
            try:
                self.run_once(name, function)
                return
            except harness.TimingFailure as failure:
                why = str(failure).split("\n", 1)[0]
                if remaining and harness.is_disturbed():
                    self.again[name] += 1
                    print(f"# {name}: {why}: once more", flush=True)
                    continue
                if isinstance(failure, harness.HostBusy):
                    self.skips(name, f"its host was too busy: {why}")
                else:
                    self.fails(name, str(failure), lambda: self.run(name, function))
                return

    def run_once(self, name, function):
        begin, harness.current.test = time.monotonic(), name
        context, good = harness.Context(self.seed, name), False
        try:
            function(context)
            good = True
            self.passes(name, time.monotonic() - begin)
        except harness.TimingFailure as failure:
            raise type(failure)(f"{failure}\n(files: {context.folder})") from None
        except harness.Skip as skip:
            good = True
            self.skips(name, str(skip))
        except harness.Failure as failure:
            self.fails(name, f"{failure}\n(files: {context.folder})", lambda: self.run(name, function))
        except Exception:  # whatever else a test may raise is its failure
            self.fails(name, f"{traceback.format_exc()}(files: {context.folder})", lambda: self.run(name, function))
        finally:
            context.close(keep=not good)
            self.times.add_test(name, time.monotonic() - begin)

    def run_postponed(self):
        """Runs again what failed the first time, with nothing beside it; a second failure counts."""
        postponed, self.postponed, self.second_tries = self.postponed, [], 0
        for name, _, run_again in postponed:
            with busy.BusyMachine() if name.startswith("busy.") else nullcontext():
                run_again()
        self.again_alone = [(name, why) for name, why, _ in postponed
                            if not any(failed == name or failed.startswith(name + ".") for failed in self.failed)]

    def run_module(self, suite, prefix=""):
        for name, function in tests_of(suite):
            self.run(prefix + name, function)

    def run_busy(self, suites):
        """Runs one suite on a busy machine."""
        wanted = [suite for suite in suites if any(self.is_wanted(f"busy.{name}") for name, _ in tests_of(suite))]
        if wanted:
            with busy.BusyMachine():
                for suite in wanted:
                    self.run_module(suite, "busy.")

    def run_modules(self, left):
        """Runs the suites that are left while others take from the same list."""
        while left:
            try:
                suite = left.popleft()
            except IndexError:
                return
            self.run_module(suite)

    def unit_tests(self, suite, build):
        """(name, test) of the cmocka programs that this build folder has."""
        done = subprocess.run(["meson", "introspect", str(build), "--tests"],
                              capture_output=True, text=True)
        if done.returncode != 0:
            if self.is_wanted(f"{suite}.build"):
                self.fails(f"{suite}.build", done.stderr or f"{build.name} is no build folder")
            return []
        tests = [t for t in json.loads(done.stdout)
                 if any(s.split(":")[-1] == "unit" for s in t["suite"])]
        if not tests and self.is_wanted(f"{suite}.registered"):
            self.fails(f"{suite}.registered", "meson knows of no unit test")
        return [(f"{suite}.{test['name']}", test) for test in tests]

    def run_units(self, builds=("build", "build-asan")):
        """Many of them wait more than they compute; first those that take long."""
        tests = [test for build in builds
                 for test in self.unit_tests(build.replace("build", "unit"), harness.ROOT / build)]
        tests.sort(key=lambda test: -test[1]["priority"])
        with ThreadPoolExecutor(2 * os.cpu_count()) as pool:
            for done in [pool.submit(self.run_cmocka, *test) for test in tests]:
                done.result()

    def run_cmocka(self, name, test):
        def run_again():
            self.run_cmocka(name, test)

        # Their single tests are only known when run: a name may be that of the program,
        # or say which program it is in.
        if not self.is_wanted(name) and not any(w.startswith(name + ".") for w in self.wanted):
            return
        environment = {**os.environ, **test["env"], "CMOCKA_MESSAGE_OUTPUT": "TAP",
                       "WALLPROF_SEED": str(self.seed), "UBSAN_OPTIONS": "halt_on_error=1"}
        try:
            done = subprocess.run(test["cmd"], capture_output=True, text=True, errors="replace",
                                  timeout=max(test["timeout"], 30) * 4, env=environment,
                                  cwd=test["workdir"] or harness.ROOT)
        except subprocess.TimeoutExpired:
            self.fails(name, "timed out", run_again)
            return
        if done.returncode != 0 and self.second_tries:
            self.fails(name, f"status {done.returncode}\n{done.stdout[-3000:]}{done.stderr[-3000:]}", run_again)
            return
        broken, seen = False, 0
        for test_name, result in tap_results(done.stdout):
            seen += 1
            single = f"{name}.{test_name}"
            if result == "skip":
                self.skips(single, "skipped by the test itself")
            elif result == "not ok":
                broken = True
                self.fails(single, done.stdout[-3000:] + done.stderr[-3000:])
            else:
                self.passes(single)
        if done.returncode != 0 and not broken:
            self.fails(name, f"status {done.returncode}\n{done.stdout[-500:]}{done.stderr[-3000:]}")
        elif seen == 0:
            self.fails(name, "ran no test")

    def wants_matrix(self, suite):
        return not self.wanted or any(w.startswith(suite) for w in self.wanted)

    def run_matrix(self, suite, tool, skip_by, *arguments):
        """Other kernels, or other releases: one call for all its tests."""
        if not self.wants_matrix(suite):
            return
        why = os.environ.get(skip_by)
        if why:
            self.skips(suite, why)
            return
        begin = time.monotonic()
        with subprocess.Popen([harness.ROOT / tool, *arguments], text=True, stdout=subprocess.PIPE,
                              env={**os.environ, "WALLPROF_SEED": str(self.seed)}) as matrix:
            results, failed = 0, False
            for line in matrix.stdout:
                results += self.take_matrix_line(line.rstrip("\n"))
                failed |= line.startswith("not ok ")
        if results == 0 or matrix.returncode != int(failed):
            self.fails(suite, f"{tool} did not run (status {matrix.returncode})")
        self.times.add_test(suite, time.monotonic() - begin)

    def take_matrix_line(self, line):
        """Whether the line is the result of a test that ran."""
        match = MATRIX_RESULT.match(line)
        if match and match[1] == "ok":
            self.passes(match[2])
        elif match:
            report = self.skips if match[1] == "skip" else self.fails
            report(match[2], match[3] or "no reason given")
        elif line.startswith("#"):
            note = line[1:].strip()
            again = RETRIED.match(note)
            if again:
                self.again[again[1]] += 1
            self.notes.append(note)
            print(line, flush=True)
        return bool(match) and match[1] != "skip"

    def open_profiles(self):
        """In another reader, all that tests have made."""
        failed = len(self.failed)
        count = 0
        for test, why in harness.to_open.open_all():
            count += 1
            if why:
                self.fails(f"{test}.opens", why)
        if count and len(self.failed) == failed:
            print(f"# {count} profiles were opened", flush=True)
            self.passes("viewer.opens_all")

    def summary(self):
        self.times.print()
        print(f"# second tries of tests, for a time that was wrong: {sum(self.again.values())}"
              + "".join(f"; {name} {count}" for name, count in sorted(self.again.items())))
        print(f"# recordings made again, for time that was stolen or switches that were hidden: "
              f"{sum(harness.repeated.values())}"
              + "".join(f"; {name} {count}" for name, count in sorted(harness.repeated.items())))
        for name, why in self.again_alone:
            print(f"# failed once, and not again alone: {name}: {' '.join(why.split())[-SUMMARY_COLUMNS:]}")
        for name, why in zip(self.failed, self.whys):
            print(f"failed: {name}: {why[-SUMMARY_COLUMNS:]}")
        print(f"{len(self.passed)} passed, {len(self.failed)} failed, {len(self.skipped)} skipped")
        return 1 if self.failed or not self.passed else 0


def tests_of(suite):
    """(name, function) of each test in a test_*.py."""
    for name, function in list(vars(importlib.import_module(suite)).items()):
        if name.startswith("test_") and callable(function):
            yield f"{suite[5:]}.{name[5:]}", function


def run_guest(runner, suites):
    """Runs what depends on the kernel, and then some of it again on a busy machine. All names come first, so that none
    can get lost."""
    wanted, wanted_busy, left = [], [], {}
    wants_busy = not runner.wanted or any(name.startswith("busy.") for name in runner.wanted)
    for suite, name, function in ((suite, *test) for suite in suites for test in tests_of(suite)):
        why = harness.why_host_only(function)
        if why:
            left.setdefault(why, []).append(name)
            continue
        if runner.is_wanted(name):
            wanted.append((name, function))
        if suite in busy.SUITES and wants_busy and runner.is_wanted(f"busy.{name}"):
            wanted_busy.append((f"busy.{name}", function))
    print("plan " + " ".join(name for name, _ in wanted + wanted_busy), flush=True)
    for why, names in left.items():
        print(f"# left to the host, {len(names)} tests: {why}", flush=True)
    for name, function in wanted:
        runner.run(name, function)
    if wanted_busy:
        with busy.BusyMachine():
            for name, function in wanted_busy:
                runner.run(name, function)


class IdleClass:
    """Keeps work that runs beside the guests in SCHED_IDLE, so that it takes only CPU time that the guests leave. Each
    thread has its own policy, and the processes that it starts inherit it. leave() ends this for all of them."""

    def __init__(self):
        self.lock, self.is_over = threading.Lock(), False

    def run(self, function):
        with self.lock:
            if not self.is_over:
                os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
        function()

    def leave(self):
        with self.lock:
            self.is_over = True
        # A task that is still in the class may start another one during the pass.
        while any([leave_idle_class(task) for pid in (os.getpid(), *children_of(os.getpid())) for task in tasks_of(pid)]):
            pass


def children_of(pid):
    """The processes that it started, those that these started, and so on."""
    children = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = path.read_text().rpartition(")")[2].split()[1]
        except OSError:  # it has ended meanwhile
            continue
        children.setdefault(int(parent), []).append(int(path.parent.name))
    found, left = [], [pid]
    while left:
        more = children.get(left.pop(), [])
        found += more
        left += more
    return found


def tasks_of(pid):
    try:
        return [int(name) for name in os.listdir(f"/proc/{pid}/task")]
    except OSError:  # the process has ended
        return []


def leave_idle_class(task):
    """Returns whether the thread was in SCHED_IDLE."""
    try:
        if os.sched_getscheduler(task) != os.SCHED_IDLE:
            return False
        os.sched_setscheduler(task, os.SCHED_OTHER, os.sched_param(0))
        return True
    except OSError:  # the thread has ended
        return False


def run_together(runner, untimed, long):
    """Runs the suites that do not check times, beside the kernel matrix and after it."""
    left = deque(untimed)
    # An emulated machine keeps one CPU busy.
    room = Semaphore(fuzz.AT_A_TIME - 1)

    def run_roots():
        runner.run_matrix("roots", "tests/roots/release-matrix", "WALLPROF_SKIP_ROOTS", *(["--long"] if long else []))

    def run_suites():
        runner.run_modules(left)
        fuzz.run(runner, room)

    with ThreadPoolExecutor(2) as pool:
        idle = IdleClass()
        # Both wait a lot: the roots for the network, the suites for the programs that they record.
        beside = [pool.submit(idle.run, function) for function in (run_roots, run_suites)]
        try:
            runner.run_matrix("vm", "tests/vm/kernel-matrix", "WALLPROF_SKIP_VM", *(["--long"] if long else []))
        finally:
            room.release()
            idle.leave()
        workers = os.cpu_count()  # one works already, and many suites wait more than they compute
        with ThreadPoolExecutor(workers) as suites_at_once:
            beside += [suites_at_once.submit(runner.run_modules, left) for _ in range(workers)]
        for done in beside:
            done.result()


def busy_suites(seed, options):
    """All of them, one drawn by the seed, or those with a requested test."""
    if options.name:
        return busy.SUITES if any(name.startswith("busy.") for name in options.name) else ()
    return busy.SUITES if options.long else (random.Random(seed).choice(busy.SUITES),)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--long", action="store_true", help="every suite on every kernel; "
                        "print a page of the results at the end")
    parser.add_argument("--guest", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--root", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--without", action="append", default=[], metavar="NAME", help="omit tests with NAME in their SUITE.TEST")
    parser.add_argument("name", nargs="*", help="run only tests whose SUITE.TEST contains a NAME")
    options = parser.parse_args()
    seed = int(os.environ.get("WALLPROF_SEED") or random.randrange(1 << 31))
    print(f"seed: WALLPROF_SEED={seed}", flush=True)
    runner, begin = Runner(seed, options.name, options.without), time.monotonic()
    if options.long:
        os.environ["WALLPROF_LONG"] = "1"  # before the suites are read
    # Go's standard library is compiled once, not by each test that builds a program.
    os.environ.setdefault("GOCACHE", str(harness.cache_folder() / "go-build"))
    suites = sorted(path.stem for path in (TESTS / "e2e").glob("*/test_*.py"))
    if options.guest:
        run_guest(runner, suites)
        sys.exit(runner.summary())
    if options.root:
        runner.run_units(["build"])
        for suite in suites:
            runner.run_module(suite)
        sys.exit(runner.summary())
    times = runner.times
    runner.second_tries = SECOND_TRIES
    with times.phase("unit tests"):
        runner.run_units()
    untimed = [suite for suite in suites if getattr(importlib.import_module(suite), "UNTIMED", False)]
    with times.phase("what holds no times to account"):
        run_together(runner, untimed, options.long)
    # These hold times to account: nothing else runs beside them.
    for suite in suites:
        if suite not in untimed:
            with times.phase(suite[5:]):
                runner.run_module(suite)
    with times.phase("busy"):
        runner.run_busy(busy_suites(seed, options))
    with times.phase("second tries"):
        runner.run_postponed()
    with times.phase("opening profiles"):
        runner.open_profiles()
    if options.long and not options.name:
        print(long_run.page(runner, time.monotonic() - begin), flush=True)
    sys.exit(runner.summary())


if __name__ == "__main__":
    main()
