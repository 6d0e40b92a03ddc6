# SPDX-License-Identifier: GPL-2.0-or-later
"""99.5 % of all user stacks of installed programs are complete; of hard kinds of code, as many as ever were.

`tools/bench/stacks` writes the figures of the latter to docs/perf/stacks.md.
"""
import pytest

import distro_programs
from gdb_oracle import fiber_beginnings
from stack_completeness import check_complete, measure, measure_hard
from harness import Profile, Skip, check, expect_failure, is_long
from test_unwind import STACKS

pytestmark = [pytest.mark.untimed, pytest.mark.host_only("it needs the programs")]
MAKES_CODE = ("node", "gdb")  # V8; Guile


def run_stock(context, name):
    output = context.path("p.json.gz")
    command = distro_programs.ALL[name](context)
    context.wallprof("-q", *STACKS, "-o", output, "--", *command)
    profile = Profile.load(output)
    makes_code = name in MAKES_CODE
    result = measure(profile, makes_code)
    print(result.line(name), flush=True)
    check_complete(result)
    expect_failure(check_complete, measure(profile, makes_code, True))
    return result


def test_python(context):
    result = run_stock(context, "python3")
    check(result.events["switch"] > 100, "its threads did not wait")


def test_openssl(context):
    run_stock(context, "openssl")


def test_git(context):
    run_stock(context, "git")


def test_sqlite(context):
    run_stock(context, "sqlite3")


def test_gcc(context):
    run_stock(context, "gcc")


def test_node(context):
    result = run_stock(context, "node")
    check(result.made_code > 0, "nothing ran in code made at run time")


def test_gdb(context):
    run_stock(context, "gdb")


def test_hard_kinds(context):
    """The bounds are those of HARD. The installed programs but one run with --long only."""
    for name, kind in distro_programs.HARD.items():
        if kind.chain is None and name != "aes-gcm" and not is_long():
            continue
        try:
            command = kind.command(context)
        except Skip as skipped:
            print(f"# {name}: skipped, {skipped}", flush=True)
            continue
        output = context.path("p.json.gz")
        context.wallprof("-q", *STACKS, "-o", output, "--", *command, status=None)
        profile = Profile.load(output)
        begins = fiber_beginnings(context, command) if kind.fibers else None
        result = measure_hard(profile, kind, begins=begins)
        print(result.line(f"{name} (at least {kind.least} %)"), flush=True)
        check_complete(result, kind.least / 100, 50)
        if kind.least:
            expect_failure(check_complete, measure_hard(profile, kind, True, begins), kind.least / 100, 0)
