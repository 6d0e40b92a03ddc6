# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs whose debug information is in files of its own (-gsplit-dwarf)."""
import os
import re
import struct

import pytest

import object_files
from harness import check, expect_failure, needs_command, needs_root
from test_symbols import check_inlines, record

pytestmark = [pytest.mark.untimed, pytest.mark.host_only("it needs a compiler")]
NOBODY = 65534


def make_split(context, name, *options):
    """A program with a .dwo file, which is returned, and the same code with its debug information within."""
    needs_command("g++")
    folder = context.path(name)
    folder.mkdir()
    source = object_files.WORKLOADS / "inlines.cc"
    flags = ("-O2", *object_files.FRAME_POINTERS, *options)
    object_files.run("g++", *flags, "-g", "-gsplit-dwarf", "-c", source, "-o", "inlines.o", cwd=folder)
    object_files.run("g++", "inlines.o", "-o", "program", cwd=folder)
    object_files.run("g++", *flags, "-g", source, "-o", "whole", cwd=folder)
    program, whole = folder / "program", folder / "whole"
    check(object_files.run("nm", program) == object_files.run("nm", whole), "the code differs")
    return program, folder / "inlines.dwo", whole


def check_note(said, program, dwo, why):
    """The message at the end, and the note in the report, name the program and the file."""
    text = f"some inlined calls and lines of {program} are missing: 1 .dwo file {why}, such as {dwo}"
    check(text in said, f"not said: {said}")


def reported(context):
    """All notes: the page has only the first ones, and a busy machine has further ones."""
    return context.wallprof("report", "--section", "losses", context.path("p.capture")).stdout


def test_dwo_and_dwp(context):
    for i, options in enumerate((["-gdwarf-5"], ["-gdwarf-4", "-ffunction-sections"])):
        program, dwo, whole = make_split(context, f"split{i}", *options)
        profile, said = record(context, program, 200)
        check_inlines(profile, whole, "program", {"burn_inlined", "hashing::Digest::add"})
        check("are missing" not in said, said)
        needs_command("llvm-dwp")
        object_files.run("llvm-dwp", "-e", program, "-o", f"{program}.dwp")
        dwo.unlink()
        profile, said = record(context, program, 200)
        check_inlines(profile, whole, "program", {"burn_inlined", "hashing::Digest::add"})
        check("are missing" not in said, said)


def test_beside_the_program(context):
    """A program that was moved with its .dwo file."""
    program, dwo, whole = make_split(context, "split")
    moved = context.path("moved")
    program.parent.rename(moved)
    profile, _ = record(context, moved / program.name, 200)
    check_inlines(profile, moved / whole.name, "program", {"burn_inlined", "hashing::Digest::add"})
    check((moved / dwo.name).exists(), "the .dwo file is gone")


def test_missing_file_is_named(context):
    """Also if the names come from the cache; and lines are there without it."""
    program, dwo, _ = make_split(context, "split")
    hidden = dwo.with_name("hidden")
    dwo.rename(hidden)
    for _ in range(2):
        profile, said = record(context, program, 200)
        check_note(said, program, dwo, "not found")
        check_note(reported(context), program, dwo, "not found")
        chains = object_files.chains_of(profile, "program")
        lines = [line for chain in chains.values() for _, _, line in chain if line]
        check(lines and max(map(len, chains.values())) == 1, f"{chains}")
    # One of another build.
    object_files.run("g++", "-O0", "-g", "-gsplit-dwarf", "-c", object_files.WORKLOADS / "inlines.cc",
                     "-o", "inlines.o", cwd=dwo.parent)
    _, said = record(context, program, 200)
    check_note(said, program, dwo, "of another build")
    hidden.rename(dwo)
    _, said = record(context, program, 200)
    expect_failure(check_note, said, program, dwo, "not found")


def test_unusable_package_is_named(context):
    """A .dwp file that is of another build, or damaged, is not called a missing .dwo file."""
    needs_command("llvm-dwp")
    program, dwo, _ = make_split(context, "split")
    package = program.with_name(f"{program.name}.dwp")
    hidden = dwo.rename(dwo.with_name("hidden"))
    object_files.run("g++", "-O0", "-g", "-gsplit-dwarf", "-c", object_files.WORKLOADS / "inlines.cc",
                     "-o", "other.o", cwd=dwo.parent)
    object_files.run("llvm-dwp", "other.dwo", "-o", package, cwd=dwo.parent)
    _, said = record(context, program, 50)
    other = f"1 unit not in {package}, which is of another build, nor in a .dwo file, such as {dwo}"
    check(other in said and other in reported(context), f"not said: {said}")
    object_files.run("objcopy", "--remove-section=.debug_cu_index", package)
    _, said = record(context, program, 50)
    damaged = f"{package} has no index that can be read, and 1 .dwo file not found, such as {dwo}"
    check(damaged in said and other not in said, f"not said: {said}")
    hidden.rename(dwo)
    _, said = record(context, program, 50)
    check("are missing" not in said, said)


def test_only_what_the_process_may_read(context):
    """Its path is in the program, so root does not open it for a process that could not."""
    needs_root()
    context.folder.chmod(0o755)
    program, dwo, _ = make_split(context, "split")
    dwo.chmod(0o600)
    sudo = {"SUDO_UID": str(NOBODY), "SUDO_GID": str(NOBODY)}
    _, said = record(context, program, 200, env=sudo)
    check_note(said, program, dwo, "not found")
    _, said = record(context, program, 200, options=("--as-root",), env=sudo)
    expect_failure(check_note, said, program, dwo, "not found")


def test_damaged_section(context):
    """A compressed section that cannot be decompressed is reported."""
    program = object_files.compile_cxx(context.path("program"), "-O2", "-gz")
    place = re.search(r"\.debug_str +\w+ +\w+ +(\w+)", object_files.run("readelf", "-SW", program))
    with open(program, "r+b") as file:
        file.seek(int(place[1], 16) + 40)
        file.write(b"\xff" * 16)
    _, said = record(context, program, 200)
    text = f"some inlined calls and lines of {program} are missing: 1 compressed section damaged or too large"
    check(text in said, f"not said: {said}")
    check(os.path.exists(program), "the program is gone")


def test_version_of_dwarf_is_unknown(context):
    """A unit that libdw cannot read is reported with the library's version, which may be too old for it."""
    program = object_files.compile_cxx(context.path("program"), "-O2", "-gdwarf-5", "-gz=none")
    said = record(context, program, 200)[1]
    expect_failure(check_unreadable, said, program)
    place = re.search(r"\.debug_info +\w+ +\w+ +(\w+)", object_files.run("readelf", "-SW", program))
    with open(program, "r+b") as file:
        file.seek(int(place[1], 16) + 4)  # the version follows the length of the first unit
        file.write(struct.pack("<H", 9))
    for _ in range(2):  # from the cache, too
        profile, said = record(context, program, 200)
        check_unreadable(said, program)
        check_unreadable(reported(context), program)
    names = {name for chain in object_files.chains_of(profile, "program").values() for name, _, _ in chain}
    check("main" in names, f"without names of the symbol table: {names}")


def check_unreadable(said, program):
    text = rf"some inlined calls and lines of {program} are missing: libdw 0\.\d+ cannot read its DWARF: \w+"
    check(re.search(text, said), f"not said: {said}")
