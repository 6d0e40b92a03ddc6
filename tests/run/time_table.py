# SPDX-License-Identifier: GPL-2.0-or-later
"""The times of a run of tools/test: its phases one after the other, and the suites of those that have several.

A phase's CPU time is that of all CPUs that were busy, with whatever: /proc/stat (proc(5)). A suite's is that of its
process and of all children that this has waited for: times(2). CONTRIBUTING.md says how much of the 15 minutes each
phase may take; one that took more is marked.
"""
import os
import re
import threading
import time
from collections import defaultdict
from contextlib import contextmanager
from pathlib import Path

SHOWN_S = 1  # what took less has no line
DOCUMENT = Path(__file__).resolve().parents[2] / "CONTRIBUTING.md"
SHARE = re.compile(r"^\| ([^|]+?) \| (\d+) \|", re.MULTILINE)
TITLE = "## Shares of the 15 minutes"


def shares():
    """{phase: seconds}"""
    section = DOCUMENT.read_text().split(TITLE, 1)[1].split("\n#", 1)[0]
    return {name: int(seconds) for name, seconds in SHARE.findall(section)}


def busy_s(line=None):
    """CPU time of the whole machine that was neither idle nor given to others, in seconds."""
    if line is None:
        with open("/proc/stat") as stat:
            line = stat.readline()
    user, nice, system, _, _, irq, softirq, *_ = map(int, line.split()[1:])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


class TimeTable:
    def __init__(self):
        self.rows = []  # (name, seconds, CPU seconds)
        self.lock, self.suites, self.suites_busy = threading.Lock(), defaultdict(float), defaultdict(float)
        self.begin, self.begin_busy = time.monotonic(), busy_s()
        # The work of tools/test before: /proc/uptime and the first line of /proc/stat when it began.
        begin = os.environ.get("WALLPROF_TEST_BEGIN", "").split("|")
        if len(begin) == 2:
            seconds = time.clock_gettime(time.CLOCK_BOOTTIME) - float(begin[0].split()[0])
            self.add_row("installing and building", seconds, busy_s() - busy_s(begin[1]))
            self.begin -= seconds
            self.begin_busy = busy_s(begin[1])

    def add_row(self, name, seconds, busy):
        self.rows.append((name, seconds, busy))

    def add_test(self, name, seconds):
        with self.lock:
            self.suites[name.split(".")[0]] += seconds

    def add_busy(self, suite, seconds):
        with self.lock:
            self.suites_busy[suite] += seconds

    @contextmanager
    def phase(self, name):
        self.suites.clear()
        self.suites_busy.clear()
        begin, busy = time.monotonic(), busy_s()
        try:
            yield
        finally:
            self.add_row(name, time.monotonic() - begin, busy_s() - busy)
            if len(self.suites) > 1:
                busy_of = self.suites_busy
                self.rows += [(f"  {suite}", seconds, busy_of[suite]) for suite, seconds in
                              sorted(self.suites.items(), key=lambda item: -busy_of[item[0]])]

    def print(self):
        allowed = shares() if DOCUMENT.exists() else {}
        print(f"# {'where the time went':<56}      s  CPU s")
        self.add_row("in all", time.monotonic() - self.begin, busy_s() - self.begin_busy)
        for name, seconds, busy in self.rows:
            if seconds < SHOWN_S:
                continue
            over = f"  over its share of {allowed[name]} s" if seconds > allowed.get(name, seconds) else ""
            print(f"# {name:<56} {seconds:6.0f} {busy:6.0f}{over}")
