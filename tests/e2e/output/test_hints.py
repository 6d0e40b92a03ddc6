# SPDX-License-Identifier: GPL-2.0-or-later
"""After a run, what would make the next recording say more: for programs that need it, and for no others."""
import os
import re
import shutil
import subprocess

import pytest

from harness import check, expect_failure, needs_command

pytestmark = [pytest.mark.untimed, pytest.mark.host_only("it is about programs, not about the kernel")]

HINT = re.compile(r"^wallprof: hint: (.*)$", re.M)
PYTHON = "import time\nwhile time.process_time() < 0.5: sum(i * i for i in range(1000))\n"
NODE = """function hot(n) { let sum = 0; for (let i = 0; i < n; i++) sum = (sum * 31 + i) % 1000003; return sum; }
while (process.cpuUsage().user < 600000) hot(100000);
"""


def hints(context, *command, options=(), **environment):
    done = context.wallprof("-o", context.path("p.json.gz"), *options, "--", *command,
                            env={**os.environ, "DEBUGINFOD_URLS": "", **environment})
    return HINT.findall(done.stderr)


def check_hint(found, *words):
    """There is such a hint, in one line that says how much it is about and what to do."""
    check(any(all(word in hint for word in words) for hint in found), f"no hint with {words}: {found}")
    for hint in found:
        share = re.match(r"(\d+) % of the stacks lack the names of [^;]+; \S", hint)
        check(share and 10 <= int(share[1]) <= 100, f"{hint!r}")


def check_none(found):
    check(not found, f"{found}")


def test_python(context):
    """Python's functions are read, so there is nothing to add; a hint for other languages is none for Python."""
    script = context.path("work.py")
    script.write_text(PYTHON)
    python = shutil.which("python3", path="/usr/bin")
    if not python:
        needs_command("python3")
    found = hints(context, python, script)
    check_none([hint for hint in found if "Python" in hint])
    check(len(found) <= 2, f"{found}")
    expect_failure(check_hint, found, "Python functions")


def test_node(context):
    needs_command("node")
    script = context.path("work.js")
    script.write_text(NODE)
    check_hint(hints(context, "node", script), "JavaScript functions", "node --perf-basic-prof")
    check_none([hint for hint in hints(context, "node", "--perf-basic-prof", script) if "JavaScript" in hint])


def test_stripped(context):
    """What was built here has no debug information on any server."""
    needs_command("strip")
    program, *arguments = context.workload("burn", threads=1, ms=300)
    stripped = context.path("stripped")
    subprocess.run(["strip", "-o", stripped, program], check=True)
    check_hint(hints(context, stripped, *arguments), "functions in stripped", "build it without")
    check_none(hints(context, program, *arguments))


def test_distribution(context):
    """Programs of the distribution have debug information on servers, if it was not looked for there already."""
    needs_command("gzip")
    data = context.path("data")
    data.write_bytes(os.urandom(1 << 20) * 24)
    program = shutil.which("gzip")
    symbols = subprocess.run(["nm", program], capture_output=True, text=True).stdout
    found = hints(context, program, "-kf", data)
    if symbols:
        check_none(found)
        return
    check_hint(found, "functions in gzip", "export DEBUGINFOD_URLS=https://")
    check_hint(hints(context, program, "-kf", data, DEBUGINFOD_URLS="http://127.0.0.1:1/"), "install its debug symbols")
