# SPDX-License-Identifier: GPL-2.0-or-later
"""Names of D, Ada and Fortran are readable, with and without debug information."""
import pytest

import object_files
from harness import check, expect_failure, needs_command
from test_symbols import record

pytestmark = [pytest.mark.untimed, pytest.mark.host_only("it needs a compiler")]


def build(context, compiler, name, *options):
    """A program of one of the workloads; the compiler leaves other files beside it."""
    needs_command(compiler)
    program = context.path(name.replace(".", "-"))
    object_files.run(compiler, *options, object_files.WORKLOADS / name, "-o", program, cwd=context.folder)
    return program


def check_names(profile, program, wanted):
    names = {name for chain in object_files.chains_of(profile, program.name).values() for name, _, _ in chain}
    check(wanted <= names, f"{wanted - names} are not among {sorted(names)[:40]}")


def test_ada(context):
    program = build(context, "gnatmake", "places.adb", "-g", "-O0")
    profile, _ = record(context, program)
    check_names(profile, program, {"places.inner.middle.deep", "places.inner.middle", "places"})
    # Without debug information only names of Ada's library are known to be Ada's.
    object_files.run("strip", "-g", program)
    profile, _ = record(context, program)
    check_names(profile, program, {"places", "main"})
    expect_failure(check_names, profile, program, {"places.inner.middle.deep"})


def test_fortran(context):
    program = build(context, "gfortran", "places.f90", "-g", "-O1", "-fno-inline")
    for strip in (False, True):
        if strip:
            object_files.run("strip", "-g", program)
        profile, _ = record(context, program)
        check_names(profile, program, {"inner::middle"})
    expect_failure(check_names, profile, program, {"__inner_MOD_middle"})


def test_d(context):
    program = build(context, "gdc", "places.d", "-g", "-O1")
    for strip in (False, True):
        if strip:
            object_files.run("strip", "-g", program)
        profile, _ = record(context, program)
        check_names(profile, program, {"places.Inner!(uint).Inner.middle(uint)"})
    expect_failure(check_names, profile, program, {"places.Inner.middle"})
