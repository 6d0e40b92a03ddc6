# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs whose call frame information is .debug_frame, in a debug file named by .gnu_debuglink.

They have no build id, so its checksum decides whether a debug file is theirs.
"""
import os
import re

import pytest

from chains import check_reported
from harness import ROOT, Failure, Skip, check, expect_failure, needs_command
from libraries import FLAGS
from object_files import run
from stack_roots import Roots
from test_unwind import check_all, check_depth, record_verbosely

pytestmark = [pytest.mark.untimed, pytest.mark.host_only("it needs a compiler")]
SOURCES = ROOT / "tests" / "workloads"
OPTIONS = (*FLAGS, "-fno-asynchronous-unwind-tables", "-fno-unwind-tables", "-Wl,-z,lazy",
           "-Wl,--build-id=none")
# The C library's own files bring some .eh_frame with them: with it the program's has a gap, without
# it there is nothing.
STRIPPED = {"gaps": (), "nothing": ("--remove-section=.eh_frame", "--remove-section=.eh_frame_hdr")}


def make_split(context, stripped, place="", options=()):
    """A program that keeps its symbols, its debug file, and what it was made of."""
    needs_command("gcc")
    needs_command("objcopy")
    folder = context.path(stripped)
    (folder / place).mkdir(parents=True)
    program, whole, debug = folder / "program", folder / "whole", folder / place / "program.debug"
    run("gcc", *OPTIONS, *options, SOURCES / "stacks/unwind-calls.c", f"-I{SOURCES}/common", SOURCES / "common/announce.c", "-o", whole)
    run("objcopy", "--only-keep-debug", whole, debug)
    run("objcopy", "--strip-debug", *STRIPPED[stripped], whole, program)
    run("objcopy", f"--add-gnu-debuglink={debug}", program)
    return program, debug, whole


def spoil(debug):
    """A byte behind its end changes its checksum, and nothing that is read of it."""
    with open(debug, "ab") as file:
        file.write(b"x")


def recursion(context, program):
    return record_verbosely(context, program, "recursion", context.random.randint(20, 60), 20)


UNUSED = re.compile(r"unwind tables: 1 files lack call frame information, and their debug files "
                    r"could not be used")
WHY = re.compile(r"the debug file of (\S+) is not used for its unwind table: from another build")


def check_reported_unused(said, program):
    """A warning reports that a debug file was not used; with -v it names the program."""
    check(UNUSED.search(said), f"not reported: {said}")
    check(WHY.findall(said) == [str(program)], f"not reported for {program}: {said}")


def test_by_link(context):
    for stripped, place in (("gaps", ".debug"), ("nothing", "")):
        program, _, _ = make_split(context, stripped, place)
        profile, reported, said = recursion(context, program)
        check_all(profile, reported)
        check_depth(profile, reported, 20)
        expect_failure(check_reported_unused, said, program)


def test_wrong_checksum(context):
    """A debug file of another build is reported and not used: stacks are cut where code cannot be followed."""
    program, debug, _ = make_split(context, "gaps", options=("-DUNFOLLOWED",))
    spoil(debug)
    profile, reported, said = recursion(context, program)
    verdict = check_reported(profile, reported, Roots(profile), marked_share=1, wanted=())
    check(sum(verdict.marked.values()) > 0 and not verdict.exact,
          f"a debug file of another build was used: {verdict}")
    check_reported_unused(said, program)
    debug.unlink()
    expect_failure(check_reported_unused, recursion(context, program)[2], program)


# ---- wallprof doctor --unwind ----

ROW = re.compile(r"^ *([\d.]+)% +([\d.]+)% +\d+ +\d+ +([\d.]+)% +[\d.]+% +[\d.]+%  (.*)$", re.M)


def doctor(context, program):
    """Returns how much of the code tables cover, in %, and what is printed about the object."""
    text = context.wallprof("doctor", "--unwind", program).stdout
    rows = ROW.findall(text)
    check(len(rows) == 1, f"doctor says: {text}")
    return float(rows[0][0]) - float(rows[0][1]), rows[0][3]


def described(path):
    """By readelf: bytes of the FDEs of .debug_frame, in % of the executable segments."""
    text = run("readelf", "--debug-dump=frames", path)
    text = text.partition("Contents of the .debug_frame section")[2]
    functions = re.findall(r" FDE .* pc=([0-9a-f]+)\.\.([0-9a-f]+)", text)
    check(len(functions) > 10, f"no .debug_frame: {text}")
    segments = re.findall(r"^ +LOAD +\S+ +\S+ +\S+ +0x([0-9a-f]+) +0x[0-9a-f]+ +\w? *\w? *E ",
                          run("readelf", "-lW", path), re.M)
    return 100 * (sum(int(end, 16) - int(start, 16) for start, end in functions)
                  / sum(int(size, 16) for size in segments))


def check_coverage(covered, alone, share):
    """The debug file adds the code that it describes, and some padding between functions."""
    check(share <= covered - alone <= share + 10,
          f"{covered} % covered with it, {alone} % without, of {share:.2f} % it has the rules")


def test_doctor(context):
    program, debug, whole = make_split(context, "gaps")
    covered, said = doctor(context, program)
    check(said == f"{program}, with {debug}", f"the debug file is not named: {said}")
    whole_covered, said = doctor(context, whole)
    check(said == str(whole), f"what has all itself needs no debug file: {said}")
    check(abs(covered - whole_covered) < 0.02, f"{covered} % with it, {whole_covered} % before it was split")
    spoil(debug)
    alone, said = doctor(context, program)
    check(said.startswith(f"{program}; {debug} is not used: "), f"not reported: {said}")
    check_coverage(covered, alone, described(whole))
    expect_failure(check_coverage, alone, alone, described(whole))
    os.truncate(debug, (2 << 30) + 1)
    _, said = doctor(context, program)
    check(said == f"{program}; {debug} is not used: larger than 2 GiB, too large to read for "
                  "its checksum", f"not reported: {said}")
    debug.rename(debug.with_name("other"))
    check(doctor(context, program) == (alone, str(program)), "a debug file that is not there")


def test_doctor_reads_zstd(context):
    """A debug file whose sections are compressed by zstd, which libelf knows only since 0.189."""
    program, debug, whole = make_split(context, "gaps")
    plain, _ = doctor(context, program)
    try:
        run("objcopy", "--compress-debug-sections=zstd", debug)
    except Failure as error:
        raise Skip("objcopy does not compress by zstd") from error
    check("ZSTD" in run("readelf", "-tW", debug), "it is not compressed")
    run("objcopy", "--remove-section=.gnu_debuglink", program)
    run("objcopy", f"--add-gnu-debuglink={debug}", program)
    covered, said = doctor(context, program)
    check(said == f"{program}, with {debug}", f"the debug file is not named: {said}")
    check(abs(covered - plain) < 0.02, f"{covered} % with it, {plain} % before it was compressed")
    debug.unlink()
    alone, _ = doctor(context, program)
    check_coverage(covered, alone, described(whole))
    expect_failure(check_coverage, alone, alone, described(whole))


def test_doctor_of_a_process(context):
    """The same of what a process maps, by the paths that it has."""
    program, debug, _ = make_split(context, "nothing")
    process = context.start([program, "recursion", "20000", "20"],
                            env={"WALLPROF_ANNOUNCE": str(context.path("announced"))})
    text = context.wallprof("doctor", "--unwind", process.pid).stdout
    check(f"  {program}, with {debug}\n" in text, f"doctor says: {text}")
    spoil(debug)
    text = context.wallprof("doctor", "--unwind", process.pid).stdout
    check(f"  {program}; {debug} is not used" in text, f"doctor says: {text}")
