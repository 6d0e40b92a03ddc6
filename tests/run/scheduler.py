# SPDX-License-Identifier: GPL-2.0-or-later
"""pytest's plugin that decides when a test runs, beside what, and how often.

Suites that are marked `untimed` may have other work beside them: each other, and both matrices. What runs beside others
is in a process of its own, a fork of this one, which sends the reports here. All other suites run here, one by one.
"""
import multiprocessing
import os
from collections import defaultdict, deque
from multiprocessing.connection import wait

import pytest
from _pytest.runner import runtestprotocol

import harness
import long_run
from idle_class import idle_class, leave_idle_class
from results import REPEATED, Results, worst_of

# A test that fails is tried once more at the end, alone: the machine is shared, and a test that holds on it 99.9 times
# of 100 would fail the run; of 3,000 tests that is three, and more on a machine that is slow. More failures than this
# have one cause, and are failures at once.
SECOND_TRIES = int(os.environ.get("WALLPROF_SECOND_TRIES", 12))
PROCESSES = multiprocessing.get_context("fork")


@pytest.hookimpl(trylast=True)
def pytest_configure(config):
    if not config.option.help:
        config.scheduler = Scheduler(config)
        config.pluginmanager.register(config.scheduler)
        config.pluginmanager.unregister(name="terminalreporter")


class Scheduler:
    def __init__(self, config):
        self.config, self.results = config, Results()
        self.items = {}  # by name
        self.is_postponing, self.postponed = True, {}  # {item that failed once: why}
        self.workers = {}  # {the pipe from a process: (the process, the names of its tests without a result)}
        self.sender = None  # in such a process, the other end of its pipe

    def pytest_sessionstart(self):
        print(f"seed: WALLPROF_SEED={self.config.seed}", flush=True)

    def pytest_collectreport(self, report):
        if report.failed:
            self.results.fails(report.nodeid or "collection", str(report.longrepr))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session):
        if session.testsfailed:
            raise session.Failed("tests may be missing")
        self.items = {item.full_name: item for item in session.items}
        if self.config.option.collectonly:
            print(*self.items, sep="\n")
        elif self.config.option.guest:
            print("plan", *self.items, flush=True)  # so that none can get lost
            self.run_in_order(session.items)
            self.run_postponed()
        else:
            self.run_all(session.items)
        return True

    def run_all(self, items):
        is_root, phase = self.config.option.root, self.results.times.phase
        harness.to_open.open_folder()
        programs, suites = defaultdict(list), defaultdict(list)
        for item in items:
            (programs[item.program] if hasattr(item, "program") else suites[item.suite]).append(item)
        with phase("unit tests"):  # many of them wait more than they compute
            jobs = sorted(programs.values(), key=lambda job: -job[0].program.priority)
            self.run_together(deque(jobs), 2 * os.cpu_count())
        if is_root:
            self.run_in_order(sum(suites.values(), []))
            self.run_postponed()
            return
        with phase("what holds no times to account"):
            guests = suites.pop("vm", None)
            untimed = [suite for suite, job in suites.items() if not job[0].runs_alone]
            self.run_untimed(deque(map(suites.pop, untimed)), guests)
        # These hold times to account: nothing else runs beside them.
        for suite, job in suites.items():
            with phase(suite):
                self.run_in_order(job)
        with phase("second tries"):
            self.run_postponed()
        with phase("opening profiles"):
            self.open_profiles()

    def run_untimed(self, jobs, guests):
        if guests:
            first = self.start(guests)
            with idle_class():  # the roots, which wait for the network, and a suite, which waits for what it records
                self.run_together(jobs, 3, first)
            leave_idle_class(os.getpid())
        self.run_together(jobs, 2 + os.cpu_count())  # many suites wait more than they compute

    def run_together(self, jobs, places, until=None):
        """Runs so many jobs at once, each in a process, until all have ended, or the one whose pipe `until` is."""
        while (jobs or self.workers) and (until is None or until in self.workers):
            while jobs and len(self.workers) < places:
                self.start(jobs.popleft())
            for pipe in wait(list(self.workers)):
                self.receive(pipe)

    def start(self, job):
        pipe, sender = PROCESSES.Pipe(duplex=False)
        process = PROCESSES.Process(target=self.work, args=(job, sender), daemon=True)
        process.start()
        sender.close()
        self.workers[pipe] = (process, [item.full_name for item in job])
        return pipe

    def work(self, job, sender):
        self.sender = sender
        before = sum(os.times()[:4])
        self.run_in_order(job)
        sender.send(("add_busy", (job[0].full_name.split(".")[0], sum(os.times()[:4]) - before)))

    def receive(self, pipe):
        process, left = self.workers[pipe]
        try:
            method, argument = pipe.recv()
        except EOFError:
            process.join()
            del self.workers[pipe]
            for name in left:
                self.results.fails(name, f"its process ended with status {process.exitcode}")
            return
        if method == "take" and argument[-1].nodeid in left:
            left.remove(argument[-1].nodeid)
        getattr(self, method)(argument)

    def run_in_order(self, items):
        for item, following in zip(items, [*items[1:], None]):
            self.run_item(item, following)

    def run_item(self, item, following=None):
        harness.repeated.clear()
        harness.current.test = item.full_name
        for remaining in reversed(range(harness.ATTEMPTS)):
            item.keeps_files = False
            reports = runtestprotocol(item, log=False, nextitem=following)
            late = "".join(report.late for report in reports)
            if not (late and remaining and harness.is_disturbed()):
                break
            self.note(f"{item.full_name}: once more, for {late}")
        if harness.repeated:
            reports[-1].user_properties.append((REPEATED, len(harness.repeated)))
        self.take(reports)

    def note(self, line):
        self.sender.send(("note", line)) if self.sender else self.results.note(line)

    def add_busy(self, used):
        self.results.times.add_busy(*used)

    def take(self, reports):
        """The reports of one test, from here, from another process or from a matrix."""
        if self.sender:
            self.sender.send(("take", reports))
            return
        item, worst = self.items.get(reports[-1].nodeid), worst_of(reports)
        self.results.add_times(reports)
        if worst.failed and self.may_postpone(item):
            self.postponed[item] = worst.longrepr
            self.results.postpones(item.full_name, worst.longrepr)
            return
        for report in reports:
            self.config.hook.pytest_runtest_logreport(report=report)
        self.results.add(reports, is_counted=not hasattr(item, "tool"))  # a matrix has results of its own

    def may_postpone(self, item):
        """Tests of one program fail for one cause."""
        causes = {getattr(other, "program", other) for other in self.postponed}
        return (self.is_postponing and item and not item.get_closest_marker("tried_once")
                and (getattr(item, "program", item) in causes or len(causes) < SECOND_TRIES))

    def run_postponed(self):
        """Runs again what failed the first time, with nothing beside it; a second failure counts."""
        postponed, self.is_postponing = self.postponed, False
        for item in postponed:
            self.run_item(item)
        self.results.again_alone = [(item.full_name, why) for item, why in postponed.items()
                                    if item.full_name not in self.results.failed]

    def open_profiles(self):
        """In another reader, all that tests have made."""
        opened = list(harness.to_open.open_all())
        failed = [(test, why) for test, why in opened if why]
        for test, why in failed:
            self.results.fails(f"{test}.opens", why)
        if opened and not failed:
            self.note(f"{len(opened)} profiles were opened")
            self.results.passes("viewer.opens_all")

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session, exitstatus):
        if self.config.option.collectonly:
            return
        if self.config.option.long and not self.config.names:
            print(long_run.page(self.config.seed, self.results), flush=True)
        is_good = self.results.print_summary()
        if exitstatus not in (pytest.ExitCode.INTERNAL_ERROR, pytest.ExitCode.INTERRUPTED, pytest.ExitCode.USAGE_ERROR):
            session.exitstatus = pytest.ExitCode.OK if is_good else pytest.ExitCode.TESTS_FAILED
