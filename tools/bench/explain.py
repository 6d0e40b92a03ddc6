# SPDX-License-Identifier: GPL-2.0-or-later
"""What the loss of a recorded load consists of: the arithmetic, and what a tick's interrupt and a switch cost."""
import re
import statistics
from typing import NamedTuple

from measure import BUILD, medians, run

# What the kernel does around each run of a program, which is not in its count: the time of an empty program by the
# clock of the benchmark, less what is counted of it.
AROUND_A_RUN_S = 0.05e-6
# Ten times the frequency is needed to see ticks among the other interrupts of a virtual machine.
GAPS_HZ, GAPS_MS, GAPS_ROUNDS = 9999, 150, 7
SWITCHING = ["1", "4", "4", "20000", "1"]  # arguments of bench-chains: hardly anything but switches


class Program(NamedTuple):
    """The kernel's count of a BPF program, or of a phase of one."""
    name: str
    runs: int
    ns: int
    seconds: float


def rows_of(text):
    """All lines NAME RUNS NS MS of --cost."""
    found = re.findall(r"^(\S[^\n]*?) +(\d+) +(\d+) +([\d.]+)$", text, re.M)
    return [Program(name, int(runs), int(ns), float(ms) / 1e3) for name, runs, ns, ms in found]


def programs_of(text):
    """The programs that --cost has counted."""
    return [row for row in rows_of(text) if ":" not in row.name]


def phases_of(text):
    """The phases of programs that --cost has measured, named `PROGRAM: PHASE`. Older builds print none."""
    return [row for row in rows_of(text) if ":" in row.name]


def memos_of(text):
    """The lines of -v on stacks that were remembered."""
    return re.findall(r"^wallprof: (stack memo.*)$", text, re.M)


def lost_us(hz):
    """Microseconds that interrupts take from a second of a busy loop, with a timer of this frequency."""
    return float(run([BUILD / "tools" / "bench-gaps", hz, GAPS_MS]).split()[1])


def tick_seconds():
    """What the interrupt of a tick costs without any program: the difference of medians, in seconds."""
    run(["ninja", "-C", BUILD, "tools/bench-gaps"])
    without, with_ticks = medians([(lost_us(0), lost_us(GAPS_HZ)) for _ in range(GAPS_ROUNDS)])
    return (with_ticks - without) / GAPS_HZ / 1e6


def switch_seconds():
    """What a context switch costs in CPU time, with the system call that makes it, in seconds."""
    run(["ninja", "-C", BUILD, "tools/bench-chains"])
    texts = [run([BUILD / "tools" / "bench-chains", *SWITCHING]) for _ in range(GAPS_ROUNDS)]
    return statistics.median(float(re.search(r"([\d.]+) usecs of CPU time/op", text)[1]) for text in texts) / 2 / 1e6


class Explanation(NamedTuple):
    """Parts are seconds of CPU time; base is the CPU time that the load takes alone for the same work."""
    base: float
    parts: dict
    measured: float

    @property
    def sum(self):
        return sum(self.parts.values())

    @property
    def rest(self):
        return self.measured - self.sum

    def share(self, seconds):
        return 100 * seconds / self.base

    def loss(self, seconds):
        """Per cent of the throughput that go if no CPU is idle and the same work takes so much more CPU time."""
        return 100 * seconds / (self.base + seconds)


def explain(base, ticks, added, recorder, programs, tick, more_switches):
    """All but `ticks` in seconds: `ticks` is how often ticks interrupted the load in the counted run, `added` what the
    load takes in addition by the other runs, `recorder` the recorder's CPU time, `tick` what an interrupt costs,
    `more_switches` what the switches take that the machine made in addition. Programs are counted for the whole
    machine."""
    by_name = {program.name: program for program in programs}
    main = ("on_switch", "on_waking", "on_tick")
    parts = {name: by_name[name].seconds for name in main if name in by_name}
    parts["other programs"] = sum(program.seconds for program in programs if program.name not in main)
    parts["around the programs"] = sum(program.runs for program in programs) * AROUND_A_RUN_S
    parts["interrupts of ticks"] = ticks * tick
    parts["more context switches"] = more_switches
    parts["recorder"] = recorder
    return Explanation(base, parts, added + recorder)
