# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs that tests compile, and what binutils say of their addresses."""
import os
import re
import subprocess

from harness import ROOT, check, needs_command

WORKLOADS = ROOT / "tests" / "workloads" / "symbols"
FRAME_POINTERS = ("-fno-omit-frame-pointer", "-mno-omit-leaf-frame-pointer")


def run(*command, **settings):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          errors="replace", check=False, **settings)
    check(done.returncode == 0, f"{' '.join(map(str, command))}: {done.stderr.strip()[-800:]}")
    return done.stdout


def compile_cxx(program, *options):
    needs_command("g++")
    run("g++", "-g", *FRAME_POINTERS, *(options or ["-O2"]), WORKLOADS / "inlines.cc", "-o",
        program)
    return program


def compile_rust(program, mangling):
    needs_command("rustc")
    run("rustc", "-g", "-O", "-C", "force-frame-pointers=yes", "-C",
        f"symbol-mangling-version={mangling}", "-Z", "unstable-options",
        WORKLOADS / "inlines.rs", "-o",
        program, cwd=program.parent, env={**os.environ, "RUSTC_BOOTSTRAP": "1"})
    return program


def build_id(program):
    return re.search(r"Build ID: ([0-9a-f]+)", run("readelf", "-n", program))[1]


def split_debug(program, debug, link=True):
    """Moves the debug information of a program to `debug`."""
    run("objcopy", "--only-keep-debug", program, debug)
    run("strip", program)
    if link:
        run("objcopy", f"--add-gnu-debuglink={debug}", program)


def addr2line(program, addresses, tool="addr2line"):
    """{address: [(function, path, line)]}, innermost first; None where nothing is known.

    binutils' says the symbol's name for an innermost function that has no linkage name;
    llvm's does not.
    """
    text = run(tool, "-a", "-i", "-f", "-C", "-e", program, *map(hex, addresses))
    chains, chain = {}, None
    lines = iter(text.splitlines())
    for line in lines:
        if re.fullmatch(r"0x[0-9a-f]+", line):
            chain = chains.setdefault(int(line, 16), [])
            continue
        path, _, number = re.sub(r" \(discriminator \d+\)", "", next(lines)).rpartition(":")
        known = number.isdigit() and number != "0"
        # A path without a line is the symbol table's: that of an object file.
        chain.append((line, os.path.normpath(path) if known else None,
                      int(number) if known else None))
    return chains


def aliases(program):
    """{name: all names of that address} of the program's symbols, demangled."""
    names = {}
    for line in run("nm", "-C", program).splitlines():
        address, kind, name = line[:16], line[17:18], line[19:]
        if kind.lower() in ("t", "w", "i"):
            names.setdefault(address, set()).add(name)
    return {name: same for same in names.values() for name in same}


def stubs(program):
    """{address: name} of each instruction in the procedure linkage table: only a disassembler names them.
    Its first entry, which the others may jump to, has no name, and gets one of its place."""
    names, name = {}, None
    for line in run("objdump", "-d", "--no-show-raw-insn", program).splitlines():
        label = re.match(r"0*([0-9a-f]+) <.*?([^<>]*@plt)(-0x10)?>:$|.*>:$", line)
        if label:
            name = f"fun_{label[1]}" if label[3] else label[2]
        elif name and re.match(r" *[0-9a-f]+:\t", line):
            names[int(line.partition(":")[0], 16)] = name
    return names


def chains_of(profile, library):
    """Returns the frames that a profile has in a library, in the form of addr2line()."""
    shared = profile.data["shared"]
    strings, frames, functions = (shared[n] for n in ("stringArray", "frameTable", "funcTable"))
    libraries = {i for i, lib in enumerate(profile.data["libs"]) if lib["name"] == library}
    chains = {}
    for i in range(frames["length"]):
        function = frames["func"][i]
        resource = functions["resource"][function]
        if resource < 0 or shared["resourceTable"]["lib"][resource] not in libraries:
            continue
        source = functions["source"][function]
        path = None if source is None else strings[shared["sources"]["filename"][source]]
        line = frames["line"][i]
        chains.setdefault(frames["address"][i], {})[frames["inlineDepth"][i]] = (
            strings[functions["name"][function]], os.path.normpath(path) if line else None, line)
    return {address: [chain[depth] for depth in sorted(chain, reverse=True)]
            for address, chain in chains.items()}
