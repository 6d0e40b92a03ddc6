# SPDX-License-Identifier: GPL-2.0-or-later
"""Libraries that tests of stacks compile for unwind-dlopen to load, and more."""
from harness import ROOT, check, needs_command
from object_files import build_id, run

SOURCES = ROOT / "tests" / "workloads"
FLAGS = ("-O2", "-g", "-D_GNU_SOURCE", "-fomit-frame-pointer", "-fno-optimize-sibling-calls",
         "-fno-inline")


def make_library(folder, name, room, rows=0, untouched=False):
    """NAME.so, whose functions have frames of so many bytes and more, and so many rows besides."""
    needs_command("gcc")
    path = folder / f"{name}.so"
    run("gcc", *FLAGS, "-shared", "-fPIC", f"-DNAME={name}", f"-DROOM={room}",
        *([f"-DROWS={rows}"] if rows else []), *(["-DUNTOUCHED"] if untouched else []), SOURCES / "stacks" / "unwind-library.c", "-o", path)
    return path


def copies_of(folder, random, libraries, count):
    """Makes so many files, each with a build ID of its own."""
    for i in range(count):
        source = libraries[i % len(libraries)]
        number = bytes.fromhex(build_id(source))
        data = source.read_bytes()
        check(data.count(number) == 1, f"{source} has its build id elsewhere, too")
        path = folder / f"{source.stem}-{i}.so"
        path.write_bytes(data.replace(number, random.randbytes(20)))
        yield path


def make_large(folder, random, count, rows):
    """Libraries with tables of so many rows each."""
    library = make_library(folder, "large", random.randrange(64, 4000, 16), rows)
    return list(copies_of(folder, random, [library], count))


def make_wide(folder, random, count):
    """Libraries with frames of 90 to 210 KB together, which are hardly used."""
    library = make_library(folder, "wide", random.randrange(30_000, 70_000, 16), 20_000, untouched=True)
    return list(copies_of(folder, random, [library], count))


def make_many(folder, random, count):
    """Their frames are of ten sizes."""
    libraries = [make_library(folder, f"lib{i}", random.randrange(64, 4000, 16))
                 for i in range(10)]
    return list(copies_of(folder, random, libraries, count))


def make_thrower(folder):
    """unwind-throw, of C++."""
    needs_command("g++")
    reported, program = folder / "announce.o", folder / "unwind-throw"
    run("gcc", *FLAGS, "-c", SOURCES / "common" / "announce.c", "-o", reported)
    run("g++", *FLAGS, f"-I{SOURCES}/common", SOURCES / "stacks" / "unwind-throw.cc", reported, "-o", program)
    return program
