# SPDX-License-Identifier: GPL-2.0-or-later
"""Every address has its name, line and inlined calls, wherever the debug information is."""
import copy
import os
import re
import resource
import shutil
from pathlib import Path

import pytest

import object_files
from harness import (MS, Profile, check, expect_failure, needs_command, needs_root)

pytestmark = [pytest.mark.untimed, pytest.mark.host_only("it needs a compiler")]
DEBUG_ROOT = Path("/usr/lib/debug/.build-id")


def record(context, *command, options=(), **settings):
    """The profile of a command; the names that other tests found are not at hand."""
    output = context.path("p.json.gz")
    environment = {**os.environ, "XDG_CACHE_HOME": str(context.path("cache")),
                   **settings.pop("env", {})}
    # Each function has to be sampled, however slow interrupts are here.
    done = context.wallprof("--keep-capture", "-F", "999", *options, "-o", output, "--", *command,
                            env=environment, **settings)
    return Profile.load(output), done.stderr


def plain(name):
    """Returns the name without parameters and clone suffixes, which only a linkage name has."""
    return re.sub(r" \[clone [^]]*\]$", "", name).partition("(")[0] or name


def check_chains(chains, program):
    """Names, files and lines of a profile are those that addr2line has. Of several symbols of one
    place each reader takes another one."""
    truth = object_files.addr2line(program, chains)
    other = object_files.addr2line(program, chains, "llvm-addr2line")
    same, stubs = object_files.aliases(program), object_files.stubs(program)
    for address, chain in chains.items():
        if address in stubs:  # to addr2line they have no name, or that of the function before
            check(chain == [(stubs[address], None, None)], f"{address:#x} is {chain}, in {stubs[address]}")
            continue
        check([place[1:] for place in chain] == [place[1:] for place in truth[address]],
              f"{address:#x} is {chain}, but addr2line says {truth[address]}")
        for (name, *_), (one, *_), (two, *_) in zip(chain, truth[address], other[address]):
            check(plain(name) in {plain(n) for n in (one, two, *same.get(one, ()))}
                  or two == "??" and name.startswith("0x"),
                  f"{address:#x} is {chain}, but addr2line says {truth[address]}, and llvm's "
                  f"{other[address]}")
    names = {name for chain in chains.values() for name, _, _ in chain}
    deepest = max(map(len, chains.values()), default=0)
    return names, deepest


def check_inlines(profile, program, name, burning):
    chains = object_files.chains_of(profile, name)
    names, deepest = check_chains(chains, program)
    check(len(chains) >= 10, f"only {len(chains)} addresses in {name}")
    check(deepest >= 3, f"no chain of inlined calls: {chains}")
    check(burning <= {re.sub(r"[(<].*", "", n) for n in names}, f"not all of {burning}: {names}")
    altered = copy.deepcopy(chains)
    address = context_free_choice(altered)
    function, path, line = altered[address][0]
    altered[address][0] = (function, path, (line or 0) + 1)
    expect_failure(check_chains, altered, program)


def context_free_choice(chains):
    """An address whose chain has a line."""
    return next(a for a, chain in sorted(chains.items()) if chain[0][2])


def test_cxx_inlines(context):
    """With different compilers' habits: DWARF versions, compression, optimisation."""
    for i, options in enumerate((["-O2"], ["-O2", "-gdwarf-4"], ["-O3", "-gz"], ["-O1", "-g3"])):
        program = object_files.compile_cxx(context.path(f"inlines{i}"), *options)
        profile, _ = record(context, program, context.random.randint(150, 250))
        check_inlines(profile, program, program.name,
                      {"burn_inlined", "hashing::Digest::add"})


def test_rust_inlines(context):
    for mangling in ("legacy", "v0"):
        program = object_files.compile_rust(context.path(f"inlines-{mangling}"), mangling)
        profile, _ = record(context, program, context.random.randint(150, 250))
        name = re.compile(r"inlines_?\w*::burning::burn_inlined")
        chains = object_files.chains_of(profile, program.name)
        names, deepest = check_chains(chains, program)
        check(deepest >= 3 and any(name.search(n) for n in names), f"{mangling}: {names}")


def separate(context, place):
    """A stripped program, its debug file at a place, and a whole copy to compare with."""
    folder = context.path(place)
    folder.mkdir()
    program = object_files.compile_cxx(folder / "program")
    whole = folder / "whole"
    shutil.copy(program, whole)
    number = object_files.build_id(program)
    debug = {"beside": folder / "program.debug", "below": folder / ".debug" / "program.debug",
             "build-id": DEBUG_ROOT / number[:2] / f"{number[2:]}.debug"}[place]
    debug.parent.mkdir(parents=True, exist_ok=True)
    object_files.split_debug(program, debug, link=place != "build-id")
    return program, debug, whole


def test_separate_debug_files(context):
    """A stripped program with its debug file beside it, below it, and by its build id."""
    for place in ("beside", "below", "build-id"):
        if place == "build-id":
            needs_root()
        program, debug, whole = separate(context, place)
        if place == "below":
            os.truncate(debug, 3 << 30)  # more than a reader may have of memory
        try:
            profile, _ = record(context, program, 150)
        finally:
            debug.unlink()
        check_inlines(profile, whole, "program", {"burn_inlined", "burn_static"})


def test_other_builds_debug_file(context):
    """One of another build is not used, however it is named; the program's own names are."""
    program, debug, _ = separate(context, "beside")
    other = object_files.compile_cxx(context.path("other"), "-O0")
    object_files.run("objcopy", "--only-keep-debug", other, debug)
    profile, _ = record(context, program, 150)
    chains = object_files.chains_of(profile, "program")
    check(all(line is None for chain in chains.values() for _, _, line in chain),
          f"lines of another build: {chains}")


def frame_ranges(program):
    """Returns where functions begin and end by the unwind table."""
    text = object_files.run("readelf", "--debug-dump=frames", program)
    return [(int(m[1], 16), int(m[2], 16)) for m in re.finditer(r" FDE .* pc=([0-9a-f]+)\.\.([0-9a-f]+)", text)]


def is_by_range(name, ranges):
    """A name of a function, or, in start-up code that the unwind table does not know, of a piece of code."""
    piece = re.fullmatch(r"\[no symbols 0x([0-9a-f]+)-0x([0-9a-f]+)\]", name)
    if piece:
        first, last = (int(number, 16) for number in piece.groups())
        return not any(begin < last and first < end for begin, end in ranges)
    return name in {f"fun_{begin:x}" for begin, _ in ranges}


def test_stripped(context):
    """Functions that nothing names are called by where they begin, one name for each; main by what _start passes on."""
    program = object_files.compile_cxx(context.path("stripped"))
    static = int(re.search(r"^([0-9a-f]+) t .*burn_static", object_files.run("nm", program),
                           re.M)[1], 16)
    object_files.run("strip", program)
    profile, reported = record(context, program, 200)
    check(re.search(r" running(, \d+ %)? in (fun_[0-9a-f]+( (←|<-) main)?|main)$", reported, re.M), f"in the summary: {reported}")
    names = {name for chain in object_files.chains_of(profile, "stripped").values()
             for name, _, _ in chain if not name.endswith("@plt")}
    check(f"fun_{static:x}" in names, f"burn_static at {static:x} is not in {names}")
    check("main" in names, f"main is not in {names}")
    ranges = frame_ranges(program)
    others = {name for name in names - {"main", "_start"} if not is_by_range(name, ranges)}
    check(not others, f"{others} are no beginnings of functions")
    check(not is_by_range(f"fun_{static + 1:x}", ranges) and
          not is_by_range(f"[no symbols 0x{static:x}-0x{static + 1:x}]", ranges), "any name would do")


def test_deleted_while_it_runs(context):
    """The program and its debug information delete themselves; another takes the place."""
    program = object_files.compile_cxx(context.path("gone"))
    whole = context.path("whole")
    shutil.copy(program, whole)
    profile, _ = record(context, program, 200, program)
    check(not program.exists(), "the program is still there")
    check_inlines(profile, whole, "gone", {"burn_inlined"})


def test_replaced_while_it_runs(context):
    """After an upgrade, other code under the same path is not used for names."""
    program = object_files.compile_cxx(context.path("program"))
    other = object_files.compile_cxx(context.path("other"), "-O0")
    whole = context.path("whole")
    shutil.copy(program, whole)
    script = f'"{program}" 300 & sleep 0.1; mv "{other}" "{program}"; wait'
    profile, _ = record(context, "sh", "-c", script)
    check_inlines(profile, whole, "program", {"burn_inlined"})


def test_export_without_the_files(context):
    """The same bytes, with neither program nor debug file nor source nor cache."""
    folder = context.path("project")
    folder.mkdir()
    shutil.copy(object_files.WORKLOADS / "inlines.cc", folder)
    program = folder / "program"
    object_files.run("g++", "-g", "-O2", *object_files.FRAME_POINTERS, "inlines.cc", "-o",
                     "program", cwd=folder)
    object_files.split_debug(program, folder / "program.debug")
    record(context, program, 150)
    capture, here = context.path("p.capture"), context.path("here.json")
    context.wallprof("export", "-o", here, capture)
    check("burn_inlined" in here.read_text(), "the profile has no names")
    shutil.rmtree(folder)
    shutil.rmtree(context.path("cache"))
    again = context.path("again.json")
    context.wallprof("export", "-o", again, capture, env={"HOME": "/nonexistent"})
    check(here.read_bytes() == again.read_bytes(), "other bytes without the files")


def test_other_root(context):
    """A program in another root folder: its file and its debug file are found there."""
    needs_root()
    needs_command("busybox")
    root = context.path("root")
    (root / "app").mkdir(parents=True)
    (root / "tmp").mkdir()
    program = object_files.compile_cxx(root / "app" / "program", "-O2", "-static-pie")
    whole = context.path("whole")
    shutil.copy(program, whole)
    number = object_files.build_id(program)
    debug = root / str(DEBUG_ROOT).lstrip("/") / number[:2] / f"{number[2:]}.debug"
    debug.parent.mkdir(parents=True)
    object_files.split_debug(program, debug, link=False)
    profile, _ = record(context, "unshare", "-m", "chroot", root, "/app/program", 200)
    names, deepest = check_chains(object_files.chains_of(profile, "program"), whole)
    check(deepest >= 3 and any(n.startswith("burn_inlined(") for n in names), f"{names}")


def test_vdso(context):
    profile, _ = record(context, "python3", "-c",
                        "import time\nend = time.monotonic() + 0.4\n"
                        "while time.monotonic() < end: pass")
    names = {name for chain in object_files.chains_of(profile, "[vdso]").values()
             for name, _, _ in chain}
    check(names & {"clock_gettime", "__vdso_clock_gettime"}, f"in the vDSO: {names}")


SPIN = """
void spin(unsigned long rounds) { while (rounds--) __asm__ volatile(""); }
int other(int x) { return x + 1; }
"""


def malformed_files(context, count):
    """A library with one function, damaged anywhere but in that; where it is, and the copies."""
    needs_command("gcc")
    source, library = context.path("spin.c"), context.path("libspin.so")
    source.write_text(SPIN)
    object_files.run("gcc", "-g", "-O2", "-shared", "-fPIC", "-Wl,-z,noseparate-code", source, "-o",
                     library)
    start = int(re.search(r"^([0-9a-f]+) T spin$", object_files.run("nm", library), re.M)[1], 16)
    size = 64
    data, rng, paths = library.read_bytes(), context.random, []
    headers = [(0, 64), (64, 64 + 56 * 10), (len(data) - 64 * 40, len(data))]
    for i in range(count):
        damaged = bytearray(data)
        for _ in range(rng.choice((1, 3, 10, 100, 1000))):
            low, high = rng.choice([*headers, (0, len(data)), (0, len(data))])
            at = rng.randrange(max(low, 4), high)
            if not start <= at < start + size:
                damaged[at] = rng.choice((0, 0xff, 0x7f, 0x80, rng.randrange(256)))
        if rng.random() < 0.2:
            del damaged[max(start + 4096, rng.randrange(len(data))):]
        path = context.path(f"libspin{i}.so")
        path.write_bytes(damaged)
        paths.append(path)
    return library, start, paths


def check_malformed(context, profile, paths, each_ms):
    thread = max(profile.threads, key=lambda t: sum(t.weights))
    running = sum(w for w, c in zip(thread.weights, thread.sample_categories)
                  if c in ("User", "Kernel")) / MS
    check(running >= 0.95 * each_ms * len(paths),
          f"{running:.0f} ms of {each_ms * len(paths)} that the program ran")
    names = {n for i in range(len(thread.times)) for n in thread.frames_of(i)}
    # A leaf without a frame hides its caller from a walk by frame pointers.
    check({"run_mapped", "main"} & names, f"names of other files: {sorted(names)[:30]}")


def test_malformed_files(context):
    """Damaged ELF files that a program maps and runs cost their own names and nothing else."""
    library, start, paths = malformed_files(context, 20)
    program = context.path("mapelf")
    object_files.run("gcc", "-g", "-O2", *object_files.FRAME_POINTERS,
                     object_files.WORKLOADS / "mapelf.c", "-o", program)
    profile, reported = record(context, program, 20, hex(start), *paths)
    check_malformed(context, profile, paths, 20)
    expect_failure(check_malformed, context, profile, [*paths, *paths], 20)
    check("recording failed" not in reported, reported)
    profile, _ = record(context, program, 100, hex(start), library)
    chains = object_files.chains_of(profile, library.name)
    check({c[-1][0] for c in chains.values()} == {"spin"}, f"the whole library: {chains}")
    report = context.wallprof("report", "--section", "losses", context.path("p.capture")).stdout
    check("no events lost" in report, report[-500:])


def test_more_files_than_descriptors(context):
    """Files for which there is no descriptor left are opened again for their names."""
    limit, count = 500, 600
    library, start, _ = malformed_files(context, 0)
    program = context.path("mapelf")
    object_files.run("gcc", "-g", "-O2", *object_files.FRAME_POINTERS,
                     object_files.WORKLOADS / "mapelf.c", "-o", program)
    copies = [context.path(f"copy{i}.so") for i in range(count)]
    for copy_path in copies:
        shutil.copy(library, copy_path)
    profile, reported = record(
        context, program, 5, hex(start), *copies,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit)))
    check("Too many open files" not in reported, reported)
    check_malformed(context, profile, copies, 5)
    # A tick that comes late misses a file's few milliseconds.
    chains = [object_files.chains_of(profile, path.name).values() for path in copies]
    seen = sum(1 for of_file in chains if of_file)
    named = sum(1 for of_file in chains if any(chain[0][0] == "spin" for chain in of_file))
    check(seen > 0.97 * count, f"{seen} of {count} files have samples")
    check(named == seen, f"{named} of {seen} files have names")
