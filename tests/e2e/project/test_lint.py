# SPDX-License-Identifier: GPL-2.0-or-later
"""clang-tidy, shellcheck and pyflakes find nothing. Which checks are left out, and why: .clang-tidy, .shellcheckrc."""
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from itertools import islice

import pytest

from harness import BUILD, ROOT, Skip, check, expect_failure, needs_command

pytestmark = [pytest.mark.untimed, pytest.mark.host_only("it is about the sources")]
FOLDERS = ("bpf", "src", "export", "tests", "tools", "docs", ".ci")
AT_A_TIME = 2
FILES_IN_A_CALL = 12
CHECKED_BY = 14  # of clang-tidy, as Debian 12 has it


def files():
    return sorted(p for folder in FOLDERS for p in (ROOT / folder).rglob("*") if p.is_file() and "__pycache__" not in p.parts)


def scripts(*programs):
    """Files without a suffix that these programs run."""
    found = []
    for path in files():
        if path.suffix in ("", ".py", ".sh"):
            first = path.open("rb").readline()
            if first.startswith(b"#!") and any(program in first for program in programs):
                found.append(path)
    return found


def check_silent(command):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, cwd=ROOT)
    check(done.returncode == 0, f"{command[0]}: {(done.stdout + done.stderr)[:3000]}")


def parts_of(paths):
    paths = iter(paths)
    while part := list(islice(paths, FILES_IN_A_CALL)):
        yield part


def test_clang_tidy(context):
    needs_command("clang-tidy")
    version = subprocess.run(["clang-tidy", "--version"], capture_output=True, text=True).stdout
    if f"version {CHECKED_BY}." not in version:
        raise Skip(f"each version has more checks; those of .clang-tidy were chosen for clang-tidy {CHECKED_BY}")
    command = ["clang-tidy", "-p", BUILD, "--quiet"]
    sources = sorted(p for folder in ("src", "export") for p in (ROOT / folder).rglob("*.c"))
    check(len(sources) > 100, f"only {len(sources)} sources")
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        for done in [pool.submit(check_silent, [*command, *part]) for part in parts_of(sources)]:
            done.result()
    bad = context.path("bad.c")
    bad.write_text("#define TWICE(x) x * 2\nint main(void)\n{\n\treturn TWICE(1 + 1);\n}\n")
    expect_failure(check_silent, ["clang-tidy", f"--config-file={ROOT / '.clang-tidy'}", "--quiet", bad, "--"])


# cmocka 2 calls these deprecated; their replacements are missing in cmocka 1, which Debian 12 has.
DEPRECATED_BY_CMOCKA = re.compile(r"\b(assert_(not_)?in_(range|set)|(expect|will)_\w+_(count|always|maybe)|check_expected|"
                                  r"expect_(not_)?(value|in_range|in_set)|expect_check|cast_ptr_to_largest_integral_type)\(")


def check_cmocka(paths):
    bad = [f"{path}: {found[1]}" for path in paths for found in DEPRECATED_BY_CMOCKA.finditer(path.read_text())]
    check(not bad, f"deprecated by cmocka 2: {bad}")


def test_cmocka(context):
    tests = sorted((ROOT / "tests").rglob("*.c"))
    check(len(tests) > 100, f"only {len(tests)} sources")
    check_cmocka(tests)
    bad = context.path("bad.c")
    bad.write_text("assert_in_range(1, 0, 2);\n")
    expect_failure(check_cmocka, [bad])


def test_shellcheck(context):
    needs_command("shellcheck")
    check_silent(["shellcheck", *scripts(b"/sh", b"bash"), ROOT / "tools" / "setup.sh"])
    bad = context.path("bad")
    bad.write_text("#!/bin/sh\nrm $1\n")
    expect_failure(check_silent, ["shellcheck", bad])


def test_pyflakes(context):
    needs_command("pyflakes3")
    programs = scripts(b"python")
    check(len(programs) > 5, f"only {len(programs)} programs")
    check_silent(["pyflakes3", *(p for p in files() if p.suffix == ".py"), *programs])
    bad = context.path("bad.py")
    bad.write_text("import os\n")
    expect_failure(check_silent, ["pyflakes3", bad])
