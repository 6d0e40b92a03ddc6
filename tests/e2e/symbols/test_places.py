# SPDX-License-Identifier: GPL-2.0-or-later
"""Waits and wakeups are separated by the program's own functions, however many the run-time system has above them."""
import os
import re

import pytest

from harness import MS, ROOT, check, expect_failure, needs_command, read_report
from object_files import run

pytestmark = [pytest.mark.untimed, pytest.mark.host_only("compilers are not in the guests")]
SOURCE = ROOT / "tests" / "workloads" / "stacks" / "places.c"
C_FLAGS = ("-O1", "-fno-optimize-sibling-calls", "-fomit-frame-pointer")
READERS, WRITERS = ("read_config", "read_reply"), ("write_config", "write_reply")


def check_places(rows, names, least_ns):
    """Each of the functions is in the chain of one row, with at least so much time; no row has two of them."""
    for name in names:
        found = [row for row in rows if re.search(rf"\b{name}\b", row["chain"])]
        check(found and sum(row["total_ns"] for row in found) >= least_ns,
              f"{name}: {[(r['chain'], r['total_ns']) for r in rows][:8]}")
        check(not any(other in row["chain"] for row in found for other in names if other != name),
              f"two places in one row: {found}")


def check_program(context, program):
    """It reads what another instance of it writes after a while, twice."""
    ms, capture = context.random.randint(40, 80), context.path("capture")
    context.wallprof("record", "-q", "-o", capture, "--", "sh", "-c", f"{program} write {ms} | {program} read {ms}")
    report = read_report(context, capture)
    waits = [row for row in report["waits"] if row["reason"] == "[pipe read wait]"]
    check_places(waits, READERS, MS)
    wakers = [row for row in report["wakers"] if "chain" in row]
    check_places(wakers, WRITERS, MS)
    expect_failure(check_places, waits, WRITERS, 1)
    expect_failure(check_places, [dict(row, chain="read_config ← read_reply") for row in waits], READERS, 1)


def compiled(context, compiler, *options):
    needs_command(compiler)
    program = context.path("places")
    run(compiler, *C_FLAGS, *options, f"-I{SOURCE.parents[1]}/common", SOURCE, "-o", program)
    return program


def test_glibc(context):
    check_program(context, compiled(context, "gcc"))


def test_glibc_static(context):
    """Its functions are in the program's own file."""
    check_program(context, compiled(context, "gcc", "-static"))


def test_musl(context):
    check_program(context, compiled(context, "musl-gcc"))


def test_musl_static(context):
    check_program(context, compiled(context, "musl-gcc", "-static"))


def test_go(context):
    needs_command("go")
    program = context.path("places")
    run("go", "build", "-o", program, SOURCE.parents[1] / "go" / "places.go",
        env={**os.environ, "GOTOOLCHAIN": "local", "GOFLAGS": ""})
    check_program(context, program)


def test_rust(context):
    needs_command("rustc")
    program = context.path("places")
    run("rustc", "-O", "-o", program, SOURCE.with_suffix(".rs"))
    check_program(context, program)
