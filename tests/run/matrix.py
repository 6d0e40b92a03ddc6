# SPDX-License-Identifier: GPL-2.0-or-later
"""The output of the kernel and release matrices: `ok NAME`, `not ok NAME # why`, `skip NAME # why`."""
import sys
import threading
import traceback

from harness import Failure, Skip, TimingFailure


_printing = threading.Lock()  # of lines that belong together


def say(*lines):
    """In one piece, for other threads and processes print, too."""
    with _printing:
        sys.stdout.write("".join(f"{line}\n" for line in lines))
        sys.stdout.flush()


class Tally:
    """Counts and prints; several threads may share one."""

    def __init__(self):
        self.passed = self.failed = self.skipped = 0
        self.counting = threading.Lock()

    def _count(self, what):
        with self.counting:
            setattr(self, what, getattr(self, what) + 1)

    def passes(self, name, remark=""):
        self._count("passed")
        say(f"ok {name}" + (f" # {remark}" if remark else ""))

    def fails(self, name, why):
        self._count("failed")
        first, *rest = str(why).strip().splitlines() or ["no reason given"]
        say(f"not ok {name} # {first}", *(f"#   {line}" for line in rest))

    def skips(self, name, why):
        self._count("skipped")
        say(f"skip {name} # {' '.join(str(why).split())}")

    def run(self, name, function, again=False):
        """False if it is to be tried `again`, for only a time is wrong."""
        try:
            function()
            self.passes(name)
        except TimingFailure as failure:
            if again:
                note(f"{name}: once more, for {failure}")
                return False
            self.fails(name, failure)
        except Failure as failure:
            self.fails(name, failure)
        except Skip as why:
            self.skips(name, why)
        except Exception:  # whatever else a check may raise is its failure
            text = traceback.format_exc().strip()
            self.fails(name, text.splitlines()[-1] + "\n" + text)
        return True


def note(text):
    say(f"# {text}")
