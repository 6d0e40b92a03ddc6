# SPDX-License-Identifier: GPL-2.0-or-later
"""What the matrices of kernels and of releases print for the runner: `ok NAME`, `not ok NAME # why`, `skip NAME # why`."""
import traceback

from harness import Failure, Untimely


class Tally:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def passes(self, name, remark=""):
        self.passed += 1
        print(f"ok {name}" + (f" # {remark}" if remark else ""), flush=True)

    def fails(self, name, why):
        self.failed += 1
        first, *rest = str(why).strip().splitlines() or ["no reason given"]
        print(f"not ok {name} # {first}", *rest, sep="\n#   ", flush=True)

    def skips(self, name, why):
        self.skipped += 1
        print(f"skip {name} # {' '.join(str(why).split())}", flush=True)

    def run(self, name, function, again=False):
        """False if it is to be tried `again`, for only a time is wrong."""
        try:
            function()
            self.passes(name)
        except Untimely as failure:
            if again:
                note(f"{name}: once more, for {failure}")
                return False
            self.fails(name, failure)
        except Failure as failure:
            self.fails(name, failure)
        except Exception:  # whatever else a check may raise is its failure
            text = traceback.format_exc().strip()
            self.fails(name, text.splitlines()[-1] + "\n" + text)
        return True


def note(text):
    print(f"# {text}", flush=True)
