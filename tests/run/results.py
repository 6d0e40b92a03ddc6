# SPDX-License-Identifier: GPL-2.0-or-later
"""The results of a run, as they come and counted."""
import re
from collections import Counter

import time_table
from matrix import note, say

SUMMARY_COLUMNS = 400  # of the reason why a test failed, in the last lines of a log
RETRIED = re.compile(r"(\S+): once more, for ")
REPEATED = "recordings made again"  # a property of a test's report
OUTCOMES = ("passed", "skipped", "failed")  # the worst of a test's reports is that of the test


def worst_of(reports):
    return max(reports, key=lambda report: OUTCOMES.index(report.outcome))


class Results:
    def __init__(self):
        self.passed, self.failed, self.skipped = [], [], []
        self.whys = []  # of each that failed
        self.again, self.repeated = Counter(), Counter()  # how often tests, and recordings in them, were made again
        self.again_alone = []  # (name, why) of each that failed once and not again
        self.times, self.notes = time_table.TimeTable(), []

    def note(self, line):
        """A line that begins with #, of this run or of a matrix."""
        again = RETRIED.match(line)
        if again:
            self.again[again[1]] += 1
        self.notes.append(line)
        note(line)

    def add(self, reports, is_counted):
        """The reports of one test: of setting up, of the call, and of tearing down."""
        name, worst = reports[-1].nodeid, worst_of(reports)
        if worst.failed:
            self.fails(name, worst.longrepr)
        elif worst.skipped:
            self.skipped.append(name)
            say(f"skip {name}: {worst.longrepr[2].removeprefix('Skipped: ')}")
        elif is_counted:
            self.passes(name, sum(report.duration for report in reports))

    def passes(self, name, seconds=0):
        self.passed.append(name)
        say(f"ok {name}" + (f" ({seconds:.1f} s)" if seconds else ""))

    def fails(self, name, why):
        self.failed.append(name)
        self.whys.append(" ".join(why.split()))
        say(f"not ok {name}", *(f"    {line}" for line in why.strip().split("\n")))

    def postpones(self, name, why):
        say(f"# {name} failed, and is tried once more at the end:", *(f"#     {line}" for line in why.strip().split("\n")))

    def add_times(self, reports):
        name = reports[-1].nodeid
        self.times.add_test(name, sum(report.duration for report in reports))
        self.repeated[name] += dict(reports[-1].user_properties).get(REPEATED, 0)

    def print_summary(self):
        """Returns whether all is well."""
        self.times.print()
        for what, counts in (("second tries of tests, for a time that was wrong", self.again),
                             (f"{REPEATED}, for time that was stolen or switches that were hidden", +self.repeated)):
            print(f"# {what}: {sum(counts.values())}" + "".join(f"; {name} {n}" for name, n in sorted(counts.items())))
        for name, why in self.again_alone:
            print(f"# failed once, and not again alone: {name}: {' '.join(why.split())[-SUMMARY_COLUMNS:]}")
        for name, why in zip(self.failed, self.whys):
            print(f"failed: {name}: {why[-SUMMARY_COLUMNS:]}")
        print(f"{len(self.passed)} passed, {len(self.failed)} failed, {len(self.skipped)} skipped", flush=True)
        return bool(self.passed) and not self.failed
