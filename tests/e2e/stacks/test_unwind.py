# SPDX-License-Identifier: GPL-2.0-or-later
"""Stacks of programs without frame pointers are the chains of calls that these know of.

Every tick and every switch-out within what a workload announced (tests/workloads/common/announce.h) is compared
from the outermost function to the innermost.
"""
import os
import re
import subprocess
from pathlib import Path

import pytest

from chains import Announcements, Stacks, check_reported, compare
from harness import (GIVE_UP_S, ROOT, WORKLOADS, Profile, Skip, check, expect_failure, fewer, hit,
                     needs_command, needs_root)
from libraries import FLAGS, make_library, make_many, make_thrower, make_wide
from object_files import run
from stack_roots import Roots

pytestmark = pytest.mark.untimed
SOURCES = ROOT / "tests" / "workloads"
STACKS = ("--stacks", "dwarf", "--all-frames")


def record_verbosely(context, program, *arguments):
    """Returns the profile of a command, what it announced, and what wallprof printed."""
    path, output = context.path("announced"), context.path("p.json.gz")
    path.unlink(missing_ok=True)
    done = context.wallprof("-v", "-F", "999", *STACKS, "-o", output, "--", program, *arguments,
                            env={**os.environ, "WALLPROF_ANNOUNCE": str(path)})
    return Profile.load(output), Announcements(path), done.stderr


def record(context, program, *arguments):
    return record_verbosely(context, program, *arguments)[:2]


def longer(chain):
    """With a function more, behind the outermost."""
    first, _, rest = chain.partition(" ")
    return f"{first} other {rest}"


def check_all(profile, reported, **settings):
    """The check, and that it fails for each altered truth."""
    roots = Roots(profile)
    verdict = check_reported(profile, reported, roots, **settings)
    copies_share = settings.get("copies_share", 0.0)
    for alter in (longer, lambda chain: chain.partition(" ")[2]):
        expect_failure(check_reported, profile, reported.altered(alter), roots, copies_share=copies_share)
    return verdict


def calls(context, mode, *depth, program=WORKLOADS / "unwind-calls", **settings):
    profile, reported = record(context, program, mode, hit(context.random.randint(20, 60)), *depth)
    return check_all(profile, reported, **settings), profile


def check_depth(profile, reported, depth):
    """Frames are counted, so one more or one less is wrong."""
    roots = Roots(profile)
    for other in (depth - 1, depth + 1):
        expect_failure(check_reported, profile,
                       reported.altered(lambda c: c.replace(f"*{depth}", f"*{other}")), roots)


def test_recursion(context):
    for depth in (20, 200):
        profile, reported = record(context, WORKLOADS / "unwind-calls", "recursion",
                                   hit(context.random.randint(20, 60)), depth)
        check_all(profile, reported)
        check_depth(profile, reported, depth)


def test_noreturn_tail(context):
    calls(context, "noreturn")


def test_callback_of_qsort(context):
    calls(context, "callback")


def test_alloca(context):
    calls(context, "dynamic")


def test_realigned_stack(context):
    calls(context, "realignment")


def frames_named(profile, thread, name):
    stacks = Stacks(profile)
    return [f for i in range(len(thread.times)) for f in stacks.of(thread, i) if f.name == name]


def test_registers(context):
    """Frames that are found by registers which their callees leave alone."""
    profile, reported = record(context, WORKLOADS / "unwind-registers", hit(context.random.randint(20, 40)))
    check_all(profile, reported, wanted=("tick",))


def test_fibers(context):
    """Their outermost return addresses are planted: a function's first byte, or 0. Nothing is behind them."""
    profile, reported = record(context, WORKLOADS / "unwind-fibers", hit(context.random.randint(10, 20)), 5)
    check_all(profile, reported)


def leaves_in(profile, is_wanted):
    return sum(is_wanted(name) for thread in profile.threads for name in thread.leaves)


def test_stubs(context):
    """Ticks in the middle of the procedure linkage table."""
    for _ in range(3):  # where time is emulated, ticks are few
        _, profile = calls(context, "plt", wanted=("tick",))
        if leaves_in(profile, lambda n: n.endswith("@plt")):
            return
    check(False, "no tick in a stub")


def test_vdso(context):
    calls(context, "vdso", wanted=("tick",))


def test_signal_on_another_stack(context):
    """Until the program's table is made, the recorder has a copy of the stack to walk: that of the signal, which ends
    where the stack that was interrupted is another. On a busy machine that takes some of the handler's first sleeps."""
    profile, reported = record(context, WORKLOADS / "unwind-signal", context.random.randint(3, 9), 30)
    check_all(profile, reported, copies_share=0.1)


def test_static_program(context):
    for mode in ("recursion", "noreturn", "realignment"):
        calls(context, mode, program=WORKLOADS / "unwind-static")


@pytest.mark.host_only("it needs a compiler")
def test_musl(context):
    """Linked statically and not. Debian's musl has no unwind tables: its code is followed."""
    needs_command("musl-gcc")
    for name, options in (("static", ["-static"]), ("dynamic", ["-Wl,-z,lazy"])):
        program = context.path(f"musl-{name}")
        run("musl-gcc", *FLAGS, *options, SOURCES / "stacks/unwind-calls.c", f"-I{SOURCES}/common", SOURCES / "common/announce.c", "-o",
            program)
        for mode in ("recursion", "noreturn"):
            calls(context, mode, program=program)


@pytest.mark.host_only("it needs a compiler")
def test_linked_by_lld(context):
    """Its segments share pages of the file: the mapping alone does not say which segment it is of."""
    for command in ("clang", "ld.lld"):
        needs_command(command)
    program = context.path("by-lld")
    run("clang", "-O2", "-g", "-D_GNU_SOURCE", "-fomit-frame-pointer", "-fno-inline",
        "-fno-optimize-sibling-calls", "-fuse-ld=lld", SOURCES / "stacks/unwind-calls.c",
        f"-I{SOURCES}/common", SOURCES / "common/announce.c", "-o", program)
    ms = context.random.randint(5, 15)
    profile, reported = record(context, "sh", "-c",
                               f"for i in 1 2 3 4 5 6 7 8; do {program} recursion {ms} 20; done")
    check_all(profile, reported)


def tasks(context, mode, count, *path, ms=None, **settings):
    profile, reported = record(context, WORKLOADS / "unwind-tasks", mode,
                               ms or context.random.randint(5, 20), count, *path)
    check_all(profile, reported, **settings)
    return profile, reported


def test_threads(context):
    tasks(context, "threads", context.random.randint(8, 40))


def test_cloned_threads(context):
    tasks(context, "cloned", context.random.randint(5, 15))


def test_vfork(context):
    """The child on its parent's stack, and the parent that waits for it."""
    _, reported = tasks(context, "vforks", context.random.randint(8, 20))
    check({"wait", "spin", "sleep"} == {i["kind"] for i in reported.intervals}, "a kind is missing")


def test_fork_storm(context):
    # A process without a tick has all its time at its switch-outs: each runs long enough for a tick.
    _, reported = tasks(context, "storm", fewer(context.random.randint(100, 200)), ms=5)
    check(len({i["pid"] for i in reported.intervals}) > 10, "no storm")


def test_exec_in_place(context):
    """Many images one after another in one process."""
    count = fewer(context.random.randint(60, 120))
    _, reported = tasks(context, "execs", count, ms=2)
    check(len({i["pid"] for i in reported.intervals}) == 1, "in several processes")
    check(len(reported.intervals) == 2 * count, f"{len(reported.intervals)} intervals, not {2 * count}")


def test_number_used_again(context):
    """Programs that have one number within milliseconds, each with its own mappings."""
    needs_root()
    if not os.access("/proc/sys/kernel/ns_last_pid", os.W_OK):
        raise Skip("this kernel gives no numbers on demand")
    _, reported = tasks(context, "reused", fewer(40), WORKLOADS / "unwind-static", ms=3)
    numbers = reported.values["number"]
    again = sum(a == b for a, b in zip(numbers, numbers[1:]))
    check(again > len(numbers) / 4, f"hardly a number was used again: {numbers}")


def test_deleted_program(context):
    path = context.path("copy")
    tasks(context, "deleted", 1, path, ms=hit(40))
    check(not path.exists(), "it is still there")


@pytest.mark.host_only("it needs a compiler")
def test_exceptions(context):
    """The stack of the unwinder itself while it runs, through 20 frames and back."""
    profile, reported = record(context, make_thrower(context.folder), context.random.randint(200, 400), 20)
    check_all(profile, reported, wanted=("tick",), marked_share=0.01)
    check(reported.values["thrown"][0] > 100, "hardly an exception")


def test_vsyscall(context):
    """The kernel carries out what is called there, and the return address is at the top of the stack."""
    if "[vsyscall]" not in Path("/proc/self/maps").read_text():
        raise Skip("this kernel has no vsyscall page")
    _, profile = calls(context, "vsyscall", wanted=("tick",))
    libraries = {f.library for thread in profile.threads for f in frames_named(profile, thread, "time")}
    check(libraries == {"[vsyscall]"}, f"time() is in {libraries}")


@pytest.mark.parametrize("mode", ["jit-frame", "file-frame"])
def test_code_with_frames(context, mode):
    """Without a table a frame pointer is used, and the stack says that it was guessed."""
    profile, reported = record(context, WORKLOADS / "unwind-calls", mode, hit(40))
    roots = Roots(profile)
    verdict = check_reported(profile, reported, roots, marked_share=1, wanted=())
    check(sum(verdict.marked.values()) > 0 and not verdict.exact, f"not guessed: {verdict}")
    check(all("run_made" in stack for stack in verdict.cut), f"not guessed: {verdict.cut}")
    expect_failure(check_reported, profile, reported.altered(lambda c: c.replace("run_made", "main")),
                   roots, 1, ())


def test_jit_without_frames(context):
    """The caller is unknown: the stack ends there, and says so."""
    profile, reported = record(context, WORKLOADS / "unwind-calls", "jit-frameless", hit(40))
    verdict = compare(profile, reported, Roots(profile))
    check(sum(verdict.marked.values()) > 0, "no stack was taken")
    check(not verdict.exact and not any(": no such chain" in w for w in verdict.wrong),
          f"a stack that cannot be known is given as whole: {verdict.wrong[:3]}")


@pytest.mark.host_only("it needs a compiler")
def test_dlopen_churn(context):
    """Two libraries take turns at one address, their functions at the same offsets.

    Until its table is there a stack may end early, if it says so. With the other's table
    it would be wrong.
    """
    rounds = context.random.randint(60, 100)
    libraries = [make_library(context.folder, "first", context.random.randrange(100, 1000, 16)),
                 make_library(context.folder, "second", context.random.randrange(2000, 3000, 16))]
    # A library is there for 9 ms; its table takes 1 to 3 ms, on a busy machine 6.
    profile, reported = record(context, WORKLOADS / "unwind-dlopen", "-t", 8, rounds, 0, *libraries)
    addresses = reported.values["address"]
    check(len(addresses) == 2 * rounds and len(set(addresses)) < rounds / 10,
          f"{len(set(addresses))} addresses of {len(addresses)} libraries")
    verdict = check_all(profile, reported, marked_share=0.5)
    print_lost("dlopen churn", verdict)
    other = reported.altered(lambda c: c.replace("first", "?").replace("second", "first")
                             .replace("?", "second"))
    expect_failure(check_reported, profile, other, Roots(profile), 1)


DELAYS = re.compile(r"unwind tables: (\d+) mappings published with one after ([\d.]+) ms "
                    r"\(median\), ([\d.]+) ms \(99 %\), ([\d.]+) ms \(longest\)")


def check_delays(said, mapped):
    """The log says how long each library's tables took, in a possible order.

    The program ends with the last library, so the recorder may still be reading that table then.
    """
    found = DELAYS.findall(said)
    check(len(found) == 1, f"how long tables took is not said: {said}")
    median, late, longest = map(float, found[0][1:])
    check(int(found[0][0]) >= mapped - 2, f"{found[0][0]} mappings of {mapped} got their tables")
    check(0 < median <= late <= longest, f"{median}, {late} and {longest} ms cannot be")
    print(f"# {found[0][0]} tables: {median} ms in the median, 99 % within {late} ms", flush=True)


@pytest.mark.host_only("it needs a compiler")
def test_many_dlopens(context):
    """300 libraries one after another; the number of stacks that come too early for a table is reported."""
    profile, reported, said = record_verbosely(context, WORKLOADS / "unwind-dlopen", 1, 1,
                                               *make_many(context.folder, context.random, 300))
    check(len(set(reported.values["address"])) == 300, "not 300 places")
    print_lost("300 dlopens", check_all(profile, reported, marked_share=0.5))
    check_delays(said, 300)
    expect_failure(check_delays, said, 600)


@pytest.mark.host_only("it needs a compiler")
def test_wide_frames(context):
    """Stacks that are wider than 64 KiB, with absent pages in them, are whole before their tables are made."""
    profile, reported, said = record_verbosely(context, WORKLOADS / "unwind-dlopen", "-t", 4, 1, 1,
                                               *make_wide(context.folder, context.random, 25))
    print_lost("wide frames", check_all(profile, reported, marked_share=0.05))
    copied = int(re.search(r"(\d+) stacks copied", said)[1])
    check(copied > 25, f"{copied} stacks were copied")


def print_lost(what, verdict):
    exact, marked = sum(verdict.exact.values()), sum(verdict.marked.values())
    print(f"# {what}: {marked} of {exact + marked} stacks cut short "
          f"({100 * marked / max(exact + marked, 1):.2f} %)", flush=True)


@pytest.mark.host_only("it needs gdb")
def test_judge(context):
    """The announced stacks are those that a debugger finds in the same programs."""
    needs_command("gdb")
    path = context.path("announced")
    done = subprocess.run(
        ["gdb", "-q", "-batch", "-nx", "-ex", "set startup-with-shell off", "-ex",
         "set debuginfod enabled off", "-ex",
         "break announce_spin", "-ex", "run", "-ex", "bt", "--args", WORKLOADS / "unwind-calls",
         "recursion", "1", "20"], capture_output=True, text=True, timeout=GIVE_UP_S,
        env={**os.environ, "WALLPROF_ANNOUNCE": str(path)})
    check(done.stdout.count(" recurse (") == 20 and " recursion (" in done.stdout,
          f"gdb sees another chain: {done.stdout[-2000:]}")
