# SPDX-License-Identifier: GPL-2.0-or-later
"""`wallprof open`: code in no file, or in one that may be another; profiles that are packed, or become others."""
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness import Viewer, check, expect_failure, needs_command
from test_open import WORK, Opened, Program, check_answer, post
from test_privileges import check_assembly

pytestmark = [pytest.mark.untimed, pytest.mark.host_only("it is about no kernel")]

CLOCK = """import time
end = time.monotonic() + 0.2
while time.monotonic() < end:
    pass
"""
WAIT = ["sh", "-c", "sleep 0.01; true"]


def libs_of(context, name, command):
    path = context.path(name)
    context.wallprof("-q", "-o", path, "--", *command)
    return path, {lib["name"]: lib for lib in json.loads(path.read_text())["libs"]}


def asked(lib, **more):
    return {"debugName": lib["debugName"], "debugId": lib["breakpadId"], **more}


def assembly(opened, lib, start, size):
    return post(opened, "asm/v1", asked(lib, startAddress=hex(start), size=hex(size)))


def symbols_of(opened, *modules):
    """Returns the answer for (library, address or None) pairs; each address is a stack of its own."""
    stacks = [[[i, address] for i, (_, address) in enumerate(modules) if address is not None]]
    (result,) = post(opened, "symbolicate/v5", {"jobs": [{
        "memoryMap": [[lib["debugName"], lib["breakpadId"]] for lib, _ in modules], "stacks": stacks}]})["results"]
    return result


def own_vdso(path):
    """A copy of the kernel's, out of this process, and where a function of it is."""
    line, = [line for line in Path("/proc/self/maps").read_text().splitlines() if line.endswith("[vdso]")]
    begin, end = (int(x, 16) for x in line.split()[0].split("-"))
    with open("/proc/self/mem", "rb") as memory:
        memory.seek(begin)
        path.write_bytes(memory.read(end - begin))
    symbols = subprocess.run(["nm", "-D", "-S", path], check=True, capture_output=True, text=True).stdout
    return next((int(s[0], 16), int(s[1], 16)) for s in map(str.split, symbols.splitlines())
                if s[-1].startswith("__vdso_clock_gettime"))


def test_vdso(context):
    """Code of the kernel's that every process has, without a file."""
    needs_command("objdump")
    path, libs = libs_of(context, "p.json", [sys.executable, "-c", CLOCK])
    check("[vdso]" in libs, f"it is not in the profile: {list(libs)}")
    opened, binary = Opened(context, path), context.path("vdso")
    start, size = own_vdso(binary)
    answer = assembly(opened, libs["[vdso]"], start, size)
    check_assembly(answer, binary, start, size)
    expect_failure(check_assembly, answer, binary, start, size // 2)
    result = symbols_of(opened, (libs["[vdso]"], start))
    check("clock_gettime" in result["stacks"][0][0].get("function", ""), str(result))
    profile = json.loads(path.read_text())
    row = next(lib for lib in profile["libs"] if lib["name"] == "[vdso]")
    row["codeId"] = "00" * 20
    path.write_text(json.dumps(profile))
    error = assembly(opened, libs["[vdso]"], start, size)["error"]
    check("recorded" in error, f"another kernel's is taken for this one's: {error}")


def test_reasons(context):
    """A refused request gets its reason."""
    program = Program(context)
    bare = context.path("bare")
    subprocess.run(["gcc", "-O2", "-g", "-Wl,--build-id=none", "-o", bare, "-x", "c", "-"], input=WORK, text=True,
                   check=True)
    path, libs = libs_of(context, "p.json", ["sh", "-c", f"{bare}; sleep 0.01; {program.binary}"])
    profile = json.loads(path.read_text())
    profile["libs"] += [{**libs["[kernel.kallsyms]"], "debugName": name, "path": name}
                        for name in ("[ext4]", "//anon", "")]
    path.write_text(json.dumps(profile))
    libs = {lib["debugName"]: lib for lib in profile["libs"]}
    opened = Opened(context, path)
    for name, words in (("bare", "no build ID"), ("[kernel.kallsyms]", "kernel code is not served"),
                        ("[ext4]", "not in a file"), ("//anon", "not in a file"), ("", "not in a file")):
        errors = (assembly(opened, libs[name], 0x1100, 16).get("error", ""),
                  str(symbols_of(opened, (libs[name], 0x1100))["module_errors"]),
                  post(opened, "source/v1", asked(libs[name], moduleOffset="0x1100", file="x")).get("error", ""))
        check(all(words in error for error in errors), f"{name}: {errors}")
    os.truncate(program.binary, 0)
    error = assembly(opened, libs["work"], program.start, 16).get("error", "")
    check("not a program" in error, f"an empty file: {error}")


def test_not_asked(context):
    """A library that the profile lacks is not found, whether an address of it is asked or not."""
    path, libs = libs_of(context, "p.json", WAIT)
    opened, known = Opened(context, path), libs["libc.so.6"]
    lacking = {**known, "debugName": "libfoo.so"}
    for address in (None, 0x1000):
        result = symbols_of(opened, (known, address), (lacking, address))
        check(list(result["found_modules"].values()) == [True, False], f"asked for {address}: {result}")


def check_unpacked(opened, plain, name):
    answer = opened.ask()
    check_answer(answer, 200)
    check(answer.data == plain and answer.getheader("content-encoding") is None,
          f"{len(answer.data)} bytes, {answer.headers}")
    check(opened.name == name, f"it is called {opened.name}")


def test_zstd(context):
    """No viewer reads it: it is unpacked, whatever its name, and all that is asked goes by what was in it."""
    packed, capture, again = (context.path(n) for n in ("p.json.zst", "p.json.zst.capture", "p.json"))
    context.wallprof("-q", "--keep-capture", "-o", packed, "--", *WAIT)
    context.wallprof("-q", "export", "-o", again, capture)
    plain, other = again.read_bytes(), context.path("z.json")
    other.write_bytes(packed.read_bytes() * 2)  # frames may follow each other, as they do from other programs
    opened = Opened(context, packed)
    check_unpacked(opened, plain, "p.json")
    expect_failure(check_unpacked, opened, plain + b" ", "p.json")
    packed.unlink()
    check_unpacked(opened, plain, "p.json")
    lib, = [lib for lib in json.loads(plain)["libs"] if lib["name"] == "libc.so.6"]
    check("instructions" in assembly(opened, lib, 0x30000, 16), "its libraries are not found")
    check_unpacked(Opened(context, other), plain * 2, "z.json")
    with Viewer() as viewer:
        viewer.load(opened.url)
        from_url = viewer.thread_handles()
    with Viewer() as viewer:
        viewer.load(again)
        check(viewer.thread_handles() == from_url and from_url, f"{from_url} from the URL")


def test_damaged_zstd(context):
    packed, bad = context.path("p.json.zst"), context.path("bad.json.zst")
    context.wallprof("-q", "-o", packed, "--", "true")
    data = packed.read_bytes()
    middle = context.random.randrange(20, len(data) - 20)
    for broken in (data[:5], data[:middle], data[:-1], data[:middle] + bytes([data[middle] ^ 0xff]) + data[middle + 1:],
                   data + data[:9], data + b"{}"):
        bad.write_bytes(broken)
        done = context.wallprof("open", "--no-browser", bad, status=1)
        check(f"decompressing {bad} failed: " in done.stderr and not done.stdout, f"{len(broken)} bytes: {done}")
    environment = {**os.environ, "TMPDIR": str(context.path("no-folder"))}
    check_answer(Opened(context, packed, env=environment).ask(), 200)  # in memory


def test_becomes_fifo(context):
    """The file at the profile's path may be replaced by a FIFO before the next request, which does not block."""
    path, libs = libs_of(context, "p.json", WAIT)
    opened, lib = Opened(context, path), libs["libc.so.6"]
    path.unlink()
    os.mkfifo(path)
    check("error" in assembly(opened, lib, 0x1000, 16), "a FIFO has libraries")
    check_answer(opened.ask(), 404)
