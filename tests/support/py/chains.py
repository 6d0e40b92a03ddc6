# SPDX-License-Identifier: GPL-2.0-or-later
"""The user stacks of a profile, and whether they are the chains that a workload announced.

What is compared are names, from the outermost function to the innermost; announcements are
described in tests/workloads/common/announce.h.
"""
import bisect
import json
import re
from collections import Counter, namedtuple
from pathlib import Path

from harness import SLOWNESS, TimingFailure, by_state, check

# Outermost functions by name; those that a stripped file does not name: see roots.py.
ROOTS = {"_start", "libc_start_main_stage2", "__libc_start_call_main", "__libc_start_main", "__libc_start_main_impl",
         "__libc_start_main_stage2", "_start_c", "start_thread", "start", "clone3", "__clone3",
         "clone", "__clone", "_dl_start_user"}
# The beginnings of their files' names.
LIBRARIES = {"LIBC": ("libc.so", "ld-musl-"), "LOADER": ("ld-linux-", "ld-musl-"),
             "LIBSTDC++": ("libstdc++.so",), "LIBGCC": ("libgcc_s.so",)}

# Clocks are read some instructions before and after what they are about: in a system call, which
# takes 20 us emulated.
SLACK_NS = 50_000 * SLOWNESS

RECORDING = "[recording]"  # recording's share of the time of many ticks, none of which hit it

# library: its name; pseudo: no code, but what wallprof says of the stack.
Frame = namedtuple("Frame", "name library category pseudo address")


class Stacks:
    """Frames of a thread's samples, outermost first, without inlined calls."""

    def __init__(self, profile):
        self.data, self.shared = profile.data, profile.data["shared"]
        self.categories = profile.categories
        self._frames, self._stacks = {}, {None: ()}

    def of(self, thread, sample):
        return self._stack(thread.data["samples"]["stack"][sample])

    def user(self, thread, sample):
        """User code, and pseudo frames except the leaf's, which is the state."""
        frames = self.of(thread, sample)
        if frames and frames[-1].pseudo and frames[-1].category != "User":
            frames = frames[:-1]
        return [f for f in frames if f.category == "User"]

    def _stack(self, stack):
        table, todo = self.shared["stackTable"], []
        while stack not in self._stacks:
            todo.append(stack)
            if "prefixOffset" in table:
                offset = table["prefixOffset"][stack]
                stack = stack - offset if offset else None
            else:
                stack = table["prefix"][stack]
        frames = self._stacks[stack]
        for inner in reversed(todo):
            frame = self._frame(table["frame"][inner])
            frames = frames + ((frame,) if frame else ())
            self._stacks[inner] = frames
        return frames

    def _frame(self, index):
        if index not in self._frames:
            frames, functions = self.shared["frameTable"], self.shared["funcTable"]
            function = frames["func"][index]
            resource = functions["resource"][function]
            library = self.shared["resourceTable"]["lib"][resource] if resource >= 0 else None
            name = self.shared["stringArray"][functions["name"][function]]
            self._frames[index] = None if frames["inlineDepth"][index] else Frame(
                re.sub(r" *\(.*", "", name) if not name.startswith("[") else name,
                self.data["libs"][library]["name"] if library is not None else None,
                self.categories[frames["category"][index]],
                name.startswith("[") and library is None, frames["address"][index])
        return self._frames[index]


def events_of(thread):
    """(sample, kind, time) of all ticks, as "tick", and of all switch-outs, as "switch".

    A tick has a weight, what only paints has none. A stretch off the CPU began with one
    switch-out, whose stack all its samples have, and stands for all of its time; the event's
    time is its middle. A thread begins off the CPU without one.
    """
    start, ran = None, False
    states = [by_state(*pair) for pair in zip(thread.sample_categories, thread.leaves)]
    # In a row that short processes share, this lies between two of them.
    states = ["none" if leaf == "[not alive]" else state
              for leaf, state in zip(thread.leaves, states)]
    for i, state in enumerate(states):
        if state == "running":
            start, ran = None, True
            if thread.weights[i] > 0 and thread.leaves[i] != RECORDING:
                yield i, "tick", thread.times[i]
        elif state == "none":
            ran = False
        elif start is None and ran and state != "unknown":
            start = i
        last = i + 1 == len(states) or states[i + 1] in ("running", "unknown", "none")
        if start is not None and last:
            yield start, "switch", (thread.times[start] + thread.times[i]) / 2
            start = None
            ran = False


def until(thread, sample, event, at):
    """The last moment that an event's stack may be of. From a switch-in to the first tick, or to the switch-out if that
    comes first, a profile shows the stack of the latter; later ticks have stacks of their own."""
    def ran(i):
        return i >= 0 and by_state(thread.sample_categories[i], thread.leaves[i]) == "running"

    if event == "switch" or ran(sample - 1):
        return at
    stacks, last = thread.data["samples"]["stack"], sample
    while last + 1 < len(stacks) and ran(last + 1) and (
            stacks[last + 1] == stacks[sample] or thread.leaves[last + 1] == RECORDING):
        last += 1
        if thread.weights[last] > 0 and thread.leaves[last] != RECORDING:
            break
    return thread.times[last]


def since(thread, sample, event, at):
    """The first moment that an event's stack may be of. The cost of recording takes up the beginning of a stretch on the
    CPU, so a tick that struck in it is shown behind it."""
    first = before = sample
    while event == "tick" and before > 0 and (thread.leaves[before - 1] == RECORDING or thread.weights[before - 1] == 0):
        before -= 1
        if thread.leaves[before] == RECORDING:
            first = before
    return min(at, thread.times[first])


def _word(word):
    """One word of a chain as an expression over "name\tlibrary\n" lines."""
    if word == ".":
        return r"[^\t\n]*\t[^\n]*\n"
    if word == "plt:":
        return r"[^\t\n]*@plt\t[^\n]*\n"
    if word.startswith("lib:"):
        names = LIBRARIES.get(word[4:], (word[4:],))
        return rf"(?:[^\t\n]*\t(?:{'|'.join(map(re.escape, names))})[^\n]*\n)+"
    name, _, times = word.partition("*")
    return rf"(?:{re.escape(name)}\t[^\n]*\n){{{times or 1}}}"


AT_BOTH_ENDS = ("announce_now", "announce")


def expression_of(chain):
    """Returns the pattern that the lines of a whole stack must match, below its outermost functions."""
    whole, _, rest = chain.partition(" + ")
    return re.compile("".join(_word(w) for w in whole.split()) + _any_of(rest))


def _any_of(rest):
    """A function that does something between two readings of the clock begins and ends within one."""
    if not rest:
        return ""
    return "(?:" + "|".join(_word(w) for w in [*rest.split(), *AT_BOTH_ENDS]) + ")*"


def lines_of(frames):
    return "".join(f"{f.name}\t{f.library}\n" for f in frames)


def below_roots(frames, first):
    """Without what calls the first function of the chain, and whether that is whole."""
    for i, frame in enumerate(frames):
        if frame.name == first:
            return frames[i:], frames[:i]
    return frames, []


# These overwrite what they saved of their callers' registers with those that they will go on with
# (__builtin_eh_return()). These callers cannot be found by rbp then, and how many ticks come just
# then is chance.
EH_RETURN = ("_Unwind_Resume", "_Unwind_RaiseException", "_Unwind_Resume_or_Rethrow",
             "_Unwind_ForcedUnwind")
EH_RETURN_SHARE = 0.03


def judge(frames, chain, is_root):
    """"exact", "marked" (not whole, and says so) or what is wrong."""
    pseudo = [f.name for f in frames if f.pseudo]
    real = [f for f in frames if not f.pseudo]
    is_all = chain.startswith("^ ")
    chain = chain.removeprefix("^ ")
    inner, outer = (real, []) if is_all else below_roots(real, chain.split(" ")[0])
    right = expression_of(chain).fullmatch(lines_of(inner))
    if not pseudo:
        if not right:
            return "no such chain"
        if is_all:
            return "exact"
        if not outer or not is_root(outer[0]):
            return "does not reach its root"
        if not all(f.name in ROOTS or (f.library or "").startswith(LIBRARIES["LIBC"]) for f in outer[1:]):
            return "begins with other functions"
        return "exact"
    if right or ends_like(real, chain) or any(f.name in EH_RETURN for f in real):
        return "marked"
    return "marked, and wrong up to there"


def ends_like(frames, chain):
    """A stack that is truncated at its root is the inner end of the chain."""
    if not frames:
        return True
    words = []
    for word in chain.partition(" + ")[0].split():
        name, _, times = word.partition("*")
        words += [name] * int(times or 1)
    rest = chain.partition(" + ")[2]
    ends = [re.compile("".join(map(_word, words[i:])) + _any_of(rest))
            for i in range(len(words) + 1)]
    return any(end.fullmatch(lines_of(frames)) for end in ends)


class Announcements:
    """The lines that a workload appended to $WALLPROF_ANNOUNCE."""

    def __init__(self, path):
        lines = [json.loads(line) for line in Path(path).read_text().splitlines()]
        self.intervals = [line for line in lines if "chain" in line]
        self.values = {}
        for line in lines:
            if "value" in line:
                self.values.setdefault(line["kind"], []).append(line["value"])

    def altered(self, change):
        """With each chain as change(chain) has it."""
        other = object.__new__(Announcements)
        other.values = self.values
        other.intervals = [{**i, "chain": change(i["chain"])} for i in self.intervals]
        return other


Verdict = namedtuple("Verdict", "exact marked wrong cut")


def lives_in(thread, interval, offset):
    begin, end = interval["begin_ns"] + offset, interval["end_ns"] + offset
    return thread.times and thread.times[0] <= begin and end <= thread.times[-1]


def compare(profile, reported, is_root):
    """Counts the ticks and switch-outs within the announcements that are right, and those that are wrong.

    Verdict of Counters by (kind of event, kind announced); `wrong` is a list of texts, `cut` counts
    the stacks that are marked.
    """
    stacks, verdict = Stacks(profile), Verdict(Counter(), Counter(), [], Counter())
    # An interrupt between two readings of clocks makes the difference smaller.
    offset = max(i["offset_ns"] for i in reported.intervals[:10]) - profile.start_ns
    intervals = {}
    for interval in reported.intervals:
        intervals.setdefault(interval["tid"], []).append(interval)
    for thread in profile.threads:
        # 12.3 is the fourth that had the number 12; rows of devices and CPUs have names.
        number = str(thread.tid).partition(".")[0]
        if not number.isdigit():
            continue
        tid = int(number)
        mine = sorted((i for i in intervals.get(tid, ()) if lives_in(thread, i, offset)),
                      key=lambda i: i["begin_ns"])
        starts = [i["begin_ns"] + offset + SLACK_NS for i in mine]
        for sample, event, at in events_of(thread):
            number = bisect.bisect_right(starts, since(thread, sample, event, at)) - 1
            if number >= 0 and until(thread, sample, event, at) < mine[number]["end_ns"] + offset - SLACK_NS:
                _take(verdict, stacks.user(thread, sample), mine[number], event, is_root)
    return verdict


def _take(verdict, frames, interval, event, is_root):
    key = (event, interval["kind"])
    result = judge(frames, interval["chain"], is_root)
    if result == "exact":
        verdict.exact[key] += 1
    elif result == "marked":
        verdict.marked[key] += 1
        verdict.cut[f"{event}: " + " > ".join(f.name for f in frames)] += 1
    else:
        verdict.wrong.append(f"{event} in {interval['chain']}: {result}: "
                             + " > ".join(f.name for f in frames))


def check_reported(profile, reported, is_root, marked_share=0.0, wanted=("tick", "switch"), copies_share=0.0):
    """No stack is wrong, at most such a share is cut short, and there were some of each kind.

    copies_share: an additional share may be cut because the recorder had only a copy of a part of the stack.
    """
    check(reported.intervals, "the workload announced nothing")
    verdict = compare(profile, reported, is_root)
    check(not verdict.wrong, f"{len(verdict.wrong)} wrong stacks: " + "\n".join(verdict.wrong[:5]))
    exact, marked = sum(verdict.exact.values()), sum(verdict.marked.values())
    for event in wanted:
        if not any(e == event for e, _ in verdict.exact):
            raise TimingFailure(f"no {event} within the announcements: {verdict}")
    overwritten = of_copies = 0
    for text, n in verdict.cut.items():
        if any(f" {name} " in f"{text} " for name in EH_RETURN):
            overwritten += n
        elif "[truncated: copy of stack too short]" in text and copies_share:
            of_copies += n
    check(marked - overwritten - of_copies <= marked_share * (exact + marked)
          and overwritten <= EH_RETURN_SHARE * (exact + marked)
          and of_copies <= copies_share * (exact + marked),
          f"{marked} of {exact + marked} stacks are cut short: "
          f"{verdict.cut.most_common(5)}")
    return verdict
