# SPDX-License-Identifier: GPL-2.0-or-later
"""Stacks of more frames than a record has: both ends are kept, and what is left out is counted.

tests/workloads/stacks/deep.c says how deep it is. Each stack of its recursion begins where its thread does,
and has as many calls as the program has made, those left out included.
"""
import json
import re
from collections import Counter

import pytest

from capture_reader import FROM_COPY, STACK, records
from chains import Stacks, events_of
from harness import IN_GUEST, WORKLOADS, Profile, capture_of, check, expect_failure, is_long

pytestmark = pytest.mark.untimed
FRAMES, LEAF, ROOT = 255, 159, 96  # of a record
SURE = 384  # frames of a walk that is always made
GAP = re.compile(r"\[(at least )?(\d+) frames left out\]")
MANY = re.compile(r"\[recursion: (\d+) or more frames\]|\[(\d+) or more frames left out\]")
DOWN = {"down", "down_a", "down_b", "down_c"}
MS = 2000 if is_long() else 600


def record(context, kind, depth, ms=MS, *options):
    """Returns the profile with all frames, and the path of the capture."""
    output = context.path("p.json.gz")
    context.wallprof("-q", "--all-frames", *options, "-o", output, "--", WORKLOADS / "deep", kind, depth, ms,
                     context.random.randint(1, 1 << 30))
    return Profile.load(output), capture_of(output)


def deep_stacks(profile):
    """Counter of (event, names of the user frames, outermost first) of all stacks with the innermost function."""
    stacks, found = Stacks(profile), Counter()
    for thread in profile.threads:
        for sample, event, _ in events_of(thread):
            names = tuple(f.name for f in stacks.user(thread, sample))
            if "innermost" in names:
                found[event, names] += 1
    return found


def check_stack(names, depth, outer=("run",)):
    """Returns how many frames were left out: "exact" and a number, or "least" and a number."""
    first = next(i for i, name in enumerate(names) if name in DOWN)
    check(names[first - 1] in outer, f"the recursion is called by {names[first - 1]}: {names[:first]}")
    check(names[0] in ("clone3", "__clone3"), f"the outermost frame is {names[0]}")
    end = names.index("innermost")
    left_out, kind = 0, "exact"
    for name in names[first:end]:
        found = GAP.fullmatch(name)
        check(found or name in DOWN, f"{name} is in the recursion")
        if found:
            check(left_out == 0, f"two gaps: {names}")
            left_out, kind = int(found[2]), "least" if found[1] else "exact"
    calls = end - first - (left_out > 0) + left_out
    check(calls == depth if kind == "exact" else calls <= depth, f"{calls} calls, should be {depth} ({kind})")
    return kind, left_out


# A recursion can grow farther between two samples than what is walked: then it is not known to be on the same stack.
CUT_SHARE = 0.2  # of a run of 0.6 s, which begins with the recursion


def without_cut(found, depth):
    """The stacks but for a few that are cut, as only deep ones may be."""
    whole = Counter({key: count for key, count in found.items()
                     if depth <= SURE - 20 or key[1][0] != "[truncated: too deep]"})
    cut = sum(found.values()) - sum(whole.values())
    check(cut <= CUT_SHARE * sum(found.values()), f"{cut} of {sum(found.values())} are cut")
    return whole


def check_depth(found, depth, least=20, events=("tick", "switch"), outer=("run",)):
    """Returns Counter of what was left out."""
    sums, of_event = Counter(), Counter()
    for (event, names), count in without_cut(found, depth).items():
        sums[check_stack(names, depth, outer)] += count
        of_event[event] += count
    check(all(of_event[event] >= least for event in events), f"only {dict(of_event)} stacks")
    return sums


def shared(profile):
    return {f for names in deep_stacks(profile) for f in names}


def run(context, kind, depth, events=("tick", "switch"), outer=("run",)):
    profile, capture = record(context, kind, depth)
    found = deep_stacks(profile)
    sums = check_depth(found, depth, events=events, outer=outer)
    exact = sum(n for (how, _), n in sums.items() if how == "exact")
    print(f"# {kind} {depth}: {sum(sums.values())} stacks, {exact} counted exactly", flush=True)
    check(exact > 0, "no stack was walked to its end")
    check(depth > SURE - 20 or exact == sum(sums.values()), f"not all were walked to their ends: {sums}")
    expect_failure(check_depth, found, depth + 1, 20, events, outer)
    expect_failure(check_depth, found, depth, 20, events, ("other",))
    return capture, sums


@pytest.mark.parametrize("depth", [100, 250, 300, 1000, 20000])
def test_waits(context, depth):
    run(context, "wait", depth + context.random.randint(-40, 40), ("switch",))


@pytest.mark.parametrize("depth", [300, 1000, 20000])
def test_ticks(context, depth):
    run(context, "spin", depth + context.random.randint(-40, 40), ("tick",))


@pytest.mark.parametrize("depth", [100, 300, 20000])
def test_mutual_recursion(context, depth):
    run(context, "wait+", depth + context.random.randint(-40, 40), ("switch",))


def test_below_a_deep_kernel_stack(context):
    profile, _ = record(context, "sync", 1000)
    stacks, kernel = Stacks(profile), Counter()
    check_depth(deep_stacks(profile), 1000, 5, ("switch",))
    for thread in profile.threads:
        for sample, _, _ in events_of(thread):
            frames = stacks.of(thread, sample)
            if any(f.name == "flush" for f in frames):
                kernel[sum(f.category == "Kernel" for f in frames)] += 1
    check(max(kernel) >= 8, f"kernel frames: {kernel}")


def wakers_of(capture):
    """Frames of all user stacks that wakeups refer to."""
    stacks, found = {}, []
    for kind, flags, _, data in records(capture, {STACK, 2}):
        if kind == STACK:
            if flags & 1 and (int.from_bytes(data[16:24], "little") not in stacks or flags & FROM_COPY):
                stacks[int.from_bytes(data[16:24], "little")] = (flags, int.from_bytes(data[28:30], "little"))
        elif len(data) >= 48:
            found.append(int.from_bytes(data[40:48], "little"))
    return [stacks[i] for i in found if i in stacks]


def test_of_a_waker(context):
    _, capture = record(context, "wake", 1000, MS, "--waker-stacks", "0")
    deep = [count for flags, count in wakers_of(capture) if flags & 16]
    check(len(deep) > 50 and set(deep) == {FRAMES}, f"{len(deep)} stacks of wakers are deep: {Counter(deep)}")


def test_depth_that_changes(context):
    """The stack differs each time, and is never taken for another one."""
    profile, _ = record(context, "vary", 900)
    sums = check_depth(deep_stacks(profile), 900, events=("switch",))
    check(sums, "no stacks")


def check_callers(found, depth):
    callers = Counter()
    for (_, names), count in without_cut(found, depth).items():
        check_stack(names, depth, ("from_one", "from_two"))
        callers[names[next(i for i, n in enumerate(names) if n in DOWN) - 1]] += count
    one, two = callers["from_one"], callers["from_two"]
    check(min(one, two) > 20 and 0.8 < one / two < 1.25, f"by turns, but {callers}")


@pytest.mark.parametrize("depth", [300, 5000])
def test_other_callers(context, depth):
    """Two functions call the same recursion by turns, at the same addresses."""
    found = deep_stacks(record(context, "root", depth, 3 * MS)[0])
    check_callers(found, depth)
    renamed = Counter()
    for (event, names), count in found.items():
        renamed[event, tuple("from_two" if n == "from_one" else n for n in names)] += count
    expect_failure(check_callers, renamed, depth)


def check_fibers(found):
    """Each is below its own function, or cut."""
    callers = Counter()
    for (event, names), count in found.items():
        naps = {"nap", "nap_below"} & set(names)
        if event != "switch" or not naps:
            continue
        roots = {"from_one", "from_two"} & set(names)
        check(roots <= {"from_one" if naps == {"nap"} else "from_two"}, f"{naps} below {roots}: {names}")
        callers[tuple(naps), tuple(roots)] += count
    whole = {naps for (naps, roots) in callers if roots}
    check(len(whole) == 2, f"of each coroutine a stack has to be whole: {callers}")
    return callers


def test_coroutines(context):
    """Two deep stacks of one thread: the ends of one are not taken for those of the other."""
    found = deep_stacks(record(context, "fibers", context.random.randint(1000, 4000), 3 * MS)[0])
    print(f"# coroutines: {dict(check_fibers(found))}", flush=True)
    renamed = Counter({(event, tuple("nap" if n == "nap_below" else n for n in names)): count
                       for (event, names), count in found.items()})
    expect_failure(check_fibers, renamed)


def functions_of(report):
    return {f["name"]: (f["self_ns"], f["total_ns"]) for f in report["functions_by_cpu"]} if isinstance(
        report.get("functions_by_cpu"), list) else report


def check_folded(names, depth):
    """Folded, a stack has its ends, and says of how many frames it is at least."""
    check([n for n in names if n in ("run", "innermost")] == ["run", "innermost"], f"its ends: {names}")
    shown = sum(n in DOWN for n in names)
    least = sum(int(a or b) for a, b in MANY.findall(" ".join(names)))
    check(shown <= 8, f"{shown} calls are not folded: {names}")
    check(shown + least <= depth < shown + 2 * least + 4 or depth > SURE - 20,
          f"{shown} calls and at least {least} more, should be {depth}")


@pytest.mark.parametrize("depth", [100, 300, 20000])
def test_folded(context, depth):
    """By default recursion is folded, and sums by function stay the same."""
    _, capture = record(context, "spin", depth)
    output, sums = context.path("folded.json"), []
    for options in ((), ("--all-frames",)):
        context.wallprof("export", "-q", *options, "-o", output, capture)
        stacks = deep_stacks(Profile.load(output))
        if not options:
            for _, names in without_cut(stacks, depth):
                check_folded(names, depth)
                expect_failure(check_folded, names[:-1] if names[-1] == "innermost" else
                               tuple(n for n in names if n != "run"), depth)
        sums.append(Counter())
        for (_, names), count in stacks.items():
            for name in {n for n in names if not n.startswith("[")}:
                sums[-1][name] += count
        text = context.wallprof("report", "--json", *options, capture).stdout
        sums[-1]["json"] = json.dumps(json.loads(text)["functions"], sort_keys=True)
    check(sums[0] == sums[1], f"sums by function differ: {sums}")


def check_cost(lines, per_stack_us):
    runs = [re.fullmatch(r"on_switch: user stack, walked +(\d+) +(\d+) +.*", line) for line in lines]
    (found,) = [r for r in runs if r]
    mean_us = int(found[2]) / 1000
    check(int(found[1]) > 100 and mean_us <= per_stack_us, f"{found[1]} walks, {mean_us:.1f} us each")
    return mean_us


@pytest.mark.skipif(IN_GUEST, reason="its times are those of an emulator")
def test_walks_are_bounded(context):
    """A walk of 20,000 frames takes a millisecond; a 32nd of the CPU's time is what such walks may take."""
    depth, ms = 20000, 3000
    done = context.wallprof("record", "-v", "--cost", "-o", context.path("capture"), "--", WORKLOADS / "deep", "wait",
                            depth, ms, 1)
    lines = done.stderr.splitlines() + done.stdout.splitlines()
    mean = check_cost(lines, 250)
    print(f"# a switch at {depth} frames: {mean:.1f} us for the user stack on average", flush=True)
    expect_failure(check_cost, lines, mean / 2)
