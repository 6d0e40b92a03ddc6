# SPDX-License-Identifier: GPL-2.0-or-later
"""Counts the complete user stacks of a profile, by the name of their outermost function.

Ticks and switch-outs alike, of all tasks that have an address space, from the first instant of
the program. A stack is complete if its outermost function is one that programs, threads or
the loader begin with, and nothing in it was guessed. Apart, and counted, are stacks in code made at
run time (no file is behind it), and those taken within execve, when the old program is gone
and the new one has not begun.
"""
import re
from collections import Counter
from dataclasses import dataclass, field

from chains import Stacks, events_of
from harness import check
from stack_roots import Roots

# Stacks of the recorder's child before it executes the program; the loader is a program's first code.
BEFORE = {"execve", "read", "fexecve"}


@dataclass
class Completeness:
    complete: int = 0
    incomplete: Counter = field(default_factory=Counter)  # by what is outermost
    made_code: int = 0
    in_exec: int = 0
    no_mm: int = 0
    events: Counter = field(default_factory=Counter)

    @property
    def judged(self):
        return self.complete + sum(self.incomplete.values())

    @property
    def share(self):
        return self.complete / self.judged if self.judged else 0

    def line(self, name):
        worst = ", ".join(f"{n} x {what}" for what, n in self.incomplete.most_common(5))
        every = self.judged + self.made_code
        return (f"# {name}: {100 * self.share:.3f} % of {self.judged} stacks complete "
                f"({self.events['tick']} ticks, {self.events['switch']} switch-outs); "
                f"{100 * self.made_code / max(every, 1):.2f} % in code made at run time, "
                f"{self.in_exec} within exec; incomplete: {worst or 'none'}")


def is_made_code(frame):
    """Made at run time; or V8's builtins, made in the same way when node was built."""
    return frame.category == "User" and not frame.pseudo and (
        frame.library in (None, "[anon]") or frame.name.startswith("Builtins_"))


def is_before_exec(frames):
    return any(f.library == "wallprof" or f.name in BEFORE for f in frames) or (
        not frames or all(f.pseudo for f in frames))


def what_is_outermost(frames):
    """A text to count incomplete stacks by."""
    if not frames:
        return "no user stack"
    first = next((f for f in frames if not f.pseudo), None)
    pseudo = next((f.name for f in frames if f.pseudo), "")
    where = f"{first.name} ({first.library})" if first else ""
    return " ".join(w for w in (pseudo, where) if w)


def is_without(user):
    return all(f.name == "[no stack]" for f in user)


def last_run_without_stacks(thread, stacks, events):
    """Returns the index of the event at which the thread's last run begins, if no tick hit it; else their count.

    The time of such a run is carried by two samples at its edges, without a stack.
    """
    begin = max((n + 1 for n, (_, event, _) in enumerate(events) if event == "switch"), default=0)
    last = events[begin:]
    if len(last) <= 2 and all(is_without(stacks.user(thread, sample)) for sample, _, _ in last):
        return begin
    return len(events)


# What stands among functions of Python, and cuts nothing: the interpreter's own functions, and what is not read.
AMONG_SCRIPTS = re.compile(r"\[((lib)?python3[\d.]*(\.so[\d.]*)?|importlib|Python functions not read)\]")


def without_interpreter(frames):
    return [f for f in frames if not AMONG_SCRIPTS.fullmatch(f.name)]


def user_frames(stacks, thread, sample, may_guess):
    """may_guess: frames that were guessed count as others do."""
    return [f for f in without_interpreter(stacks.user(thread, sample))
            if f.name != "[no stack]" and not (may_guess and f.pseudo and f.name.startswith("[guessed"))]


def measure(profile, makes_code=False, without_outermost=False, may_guess=False, begins=None):
    """Completeness of a profile; or, to see that it counts, if no stack had its outermost frame.

    makes_code: the program does; in any other, a frame in no file is a fault like others. begins: whether a fiber begins
    with a frame.
    """
    roots = Roots(profile)
    stacks, is_root, result = Stacks(profile), lambda f: roots(f) or bool(begins and begins(f)), Completeness()
    command = next(t for t in profile.threads if t.data["isMainThread"] and t.pid != "0")
    for thread in profile.threads:
        begun, events = thread is not command, list(events_of(thread))
        seen = any(not f.pseudo for i, _, _ in events for f in stacks.user(thread, i))
        dead_from = last_run_without_stacks(thread, stacks, events)
        for number, (sample, event, _) in enumerate(events):
            user = (user_frames(stacks, thread, sample, True) if may_guess
                    else without_interpreter(stacks.user(thread, sample)))
            while without_outermost and user and is_root(user[0]):
                user = user[1:]
            kernel = [f for f in stacks.of(thread, sample) if f.category == "Kernel"]
            begun = begun or not is_before_exec(user)
            # A thread that leaves its CPU for the last time has no memory any more; and if neither a
            # tick nor another switch-out hit it, that is all that is known of it.
            if is_without(user) and not kernel and (number >= dead_from or not seen):
                result.no_mm += 1
            elif begun:
                _count(result, user, kernel, event, is_root, makes_code)
    return result


def _count(result, user, kernel, event, is_root, makes_code):
    if makes_code and any(is_made_code(f) for f in user):
        result.made_code += 1
    elif user and not any(f.pseudo for f in user) and is_root(user[0]):
        result.complete += 1
        result.events[event] += 1
    elif [f.name for f in user] == ["[truncated: in exec]"]:
        result.in_exec += 1
    elif [f.name for f in user] == ["[truncated: process is ending]"]:
        result.no_mm += 1
    else:
        result.incomplete[what_is_outermost(user)] += 1
        result.events[event] += 1


def check_complete(result, share=0.995, least=100):
    check(result.judged >= least, f"only {result.judged} stacks")
    check(result.share >= share, result.line("too few are complete"))


def _is_below(names, chain):
    """Whether the functions of the chain follow each other; None stands for any one."""
    return any(all(want in (None, got) for want, got in zip(chain, names[i:])) and len(names) >= i + len(chain)
               for i in range(len(names)))


def measure_chain(profile, chain, may_guess, begins=()):
    """The same for ticks of a program that is always in one chain of calls, whose outermost function is its root or, of
    a coroutine, where that begins. What it does before and after counts only if it is not whole. begins: the functions
    that remain when a coroutine's has returned."""
    stacks, is_root, result = Stacks(profile), Roots(profile), Completeness()
    for thread in profile.threads:
        for sample, event, _ in events_of(thread):
            user = user_frames(stacks, thread, sample, may_guess)
            names, whole = [f.name for f in user], not any(f.pseudo for f in user)
            if event != "tick" or not user or is_before_exec(user):
                continue
            if whole and _is_below(names, chain) and (chain[0] != "main" or is_root(user[0])):
                result.complete += 1
                result.events[event] += 1
            elif not (whole and (is_root(user[0]) or names[0] in begins)):
                result.incomplete[what_is_outermost(user)] += 1
                result.events[event] += 1
    return result


def measure_hard(profile, kind, altered=False, begins=None):
    """Completeness of a profile of one of HARD. altered: of what another program would do. begins: as in measure()."""
    if kind.chain is None:
        return measure(profile, without_outermost=altered, may_guess=kind.may_guess, begins=begins)
    chain = (*kind.chain[:-1], "other", kind.chain[-1]) if altered else kind.chain
    return measure_chain(profile, chain, kind.may_guess, () if altered else kind.begins)
