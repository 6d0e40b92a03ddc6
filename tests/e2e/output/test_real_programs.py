# SPDX-License-Identifier: GPL-2.0-or-later
"""The summary and the report's page of real programs: what took most is named first, and it fits the terminal.

What took most is known from the programs' own clocks and from how they are run, not from wallprof.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

import first_screen
from harness import ROOT, Profile, Skip, check, expect_failure, needs_command, needs_root, wait_until

pytestmark = [pytest.mark.untimed,
              pytest.mark.host_only("what is said is made of what other suites hold to account on every kernel")]

SUMMARY_LINES, PAGE_LINES, COLUMNS = 8, 40, 80
MOST = 0.5  # of the path is in the first part, or in several of the same process


def run(*command, **settings):
    return subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True, **settings)


def check_names(report, wanted):
    """The largest parts of the path are of the processes that the expression matches."""
    path = report["critical_path"]
    ours = sum(thread["ns"] for thread in path["threads"] if re.search(wanted, thread["name"]))
    check(ours > MOST * path["length_ns"], f"{wanted}: {ours / path['length_ns']:.0%} of the path")


def check_program(context, command, wanted, states=".", **settings):
    """wanted: of the process in the first part; states: of the parts that are listed."""
    output, environment = context.path("p.json.gz"), dict(os.environ, COLUMNS=str(COLUMNS), LC_ALL="C.UTF-8")
    begin = time.monotonic()
    done = context.wallprof("-o", output, "--", *command, env=environment, **settings)
    took_s = time.monotonic() - begin
    lines = [line for line in done.stderr.splitlines() if not line.startswith("wallprof: ") and "%" in line or
             re.match("took|most|CPUs|next", line)]
    said = done.stderr[done.stderr.index("took "):].splitlines()
    said = [line for line in said if not line.startswith("wallprof: ")]
    print(f"# {' | '.join(lines[:3])}", flush=True)
    check(len(said) <= SUMMARY_LINES, f"{len(said)} lines: {said}")
    check(all(len(line) <= COLUMNS for line in said if not line.startswith("next:")), f"too wide: {said}")
    check(re.match(r" *[\d.]+ % +[\d.]+ m?s  " + wanted, said[1]), f"{wanted} is not first: {said}")
    check(re.search(states, "\n".join(said[1:5])), f"no {states} in {said}")
    page = context.wallprof("report", output, env=environment).stdout.splitlines()
    check(len(page) <= PAGE_LINES and all(len(line) <= COLUMNS for line in page), f"{len(page)} lines: {page}")
    report = json.loads(context.wallprof("report", "--json", output).stdout)
    check(report["window_ns"] / 1e9 <= took_s, f"the window is longer than the {took_s} s of the whole run")
    shown = first_screen.lines(Profile.load(output))
    check(re.search(wanted, "\n".join(shown)), f"{wanted} is not on the first screen: {shown}")
    expect_failure(check_names, report, "no such process")
    return report


def test_make(context):
    """A C project: wallprof's own test programs."""
    for program in ("make", "gcc"):
        needs_command(program)
    folder = context.path("project")
    folder.mkdir()
    sources = sorted((ROOT / "tests" / "oracle").glob("*.c")) + sorted((ROOT / "src" / "base").glob("*.c"))
    names = [shutil.copy(source, folder) and source.stem for source in sources]
    flags = " ".join(f"-I{ROOT / 'src' / name}" for name in sorted(p.name for p in (ROOT / "src").iterdir() if p.is_dir()))
    (folder / "Makefile").write_text(f"all: {' '.join(f'{name}.i' for name in names)}\n%.i: %.c\n"
                                     f"\tgcc -O2 -D_GNU_SOURCE -DWALLPROF_VERSION='\"0\"' -fsyntax-only {flags} "
                                     f"-I{ROOT / 'bpf' / 'abi'} $<; touch $@\n")
    check_program(context, ["make", "-s", "-j4", "-C", folder], r"cc1 \S+\.c")


def test_git_gc(context):
    needs_command("git")
    folder = context.path("repository")
    run("git", "init", "-q", folder)
    for number in range(2):
        (folder / f"{number}").write_bytes(context.random.randbytes(1 << 20))
        words = " ".join(str(context.random.randrange(5000)) for _ in range(150000))
        (folder / "words").write_text(words)
        run("git", "-C", folder, "add", ".")
        run("git", "-C", folder, "-c", "user.name=n", "-c", "user.email=e", "commit", "-q", "-m", f"{number}")
    report = check_program(context, ["git", "-C", folder, "gc", "-q"], "git ")
    check_names(report, "^git")


def test_sqlite(context):
    """Each transaction is synced to the disk."""
    needs_command("sqlite3")
    count = context.random.randint(100, 200)
    context.path("insert.sql").write_text("PRAGMA synchronous=FULL; CREATE TABLE t(x);\n" +
                                          "INSERT INTO t VALUES(randomblob(2000));\n" * count)
    with open(context.path("insert.sql")) as script:
        report = check_program(context, ["sqlite3", "t.db"], r"sqlite3 t\.db", stdin=script)
    check_names(report, "^sqlite3")
    rows = run("sqlite3", context.path("t.db"), "SELECT count(*) FROM t").stdout
    check(int(rows) == count, f"{rows} rows, should be {count}")


def test_npm_install(context):
    """From a folder, so that no network is needed."""
    for program in ("npm", "node"):
        needs_command(program)
    for name in ("library", "program"):
        context.path(name).mkdir()
    for number in range(60):
        (context.path("library") / f"m{number}.js").write_text("module.exports = 1;\n" * 100)
    context.path("library/package.json").write_text('{"name": "library", "version": "1.0.0"}')
    context.path("program/package.json").write_text('{"name": "program", "version": "1.0.0"}')
    command = ["npm", "install", "--offline", "--no-audit", "--no-fund", "--install-links", context.path("library")]
    report = check_program(context, command, r"(npm|node)\b", cwd=context.path("program"))
    check_names(report, r"^(npm|node)\b")
    check((context.path("program") / "node_modules" / "library" / "m7.js").exists(), "nothing was installed")


def test_package_install(context):
    """dpkg unpacks a package into a folder of its own."""
    needs_root()
    needs_command("dpkg-deb")
    tree, root = context.path("tree"), context.path("root")
    (tree / "DEBIAN").mkdir(parents=True)
    (tree / "DEBIAN" / "control").write_text("Package: planted\nVersion: 1\nArchitecture: all\nMaintainer: n <e@x>\n"
                                             "Description: planted\n")
    (tree / "data").write_text(" ".join(str(context.random.randrange(10000)) for _ in range(1_000_000)))
    run("dpkg-deb", "--build", "--root-owner-group", "-Zxz", "-z1", tree, context.path("planted.deb"))
    for name in ("var/lib/dpkg/updates", "var/lib/dpkg/info", "var/lib/dpkg/triggers"):
        (root / name).mkdir(parents=True)
    (root / "var/lib/dpkg/status").write_text("")
    report = check_program(context, ["dpkg", f"--root={root}", "--log=/dev/null", "-i", context.path("planted.deb")],
                           r"dpkg(-deb)?\b")
    check_names(report, r"^dpkg")
    check((root / "data").exists(), "nothing was installed")


def test_pgbench(context):
    """The client waits for its server, which is not recorded."""
    needs_root()
    programs = max(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda p: int(p.parent.name), default=None)
    if not programs:
        raise Skip("postgresql is not installed")
    folder = context.path("pg")
    folder.mkdir()
    context.folder.chmod(0o755)
    shutil.chown(folder, "postgres")
    as_user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
    run(*as_user, programs / "initdb", "-D", folder / "data", "-A", "trust", "--no-sync", cwd="/")
    context.start([*as_user, programs / "postgres", "-D", folder / "data", "-k", folder, "-h", "", "-F"], cwd="/")
    bench = [programs / "pgbench", "-h", folder, "-U", "postgres"]
    wait_until(lambda: subprocess.run([*bench, "-i", "-q", "-s", "1", "postgres"], capture_output=True,
                                      check=False).returncode == 0, "the server answers")
    report = check_program(context, [*bench, "-n", "-c", "4", "-t", context.random.randint(100, 200), "postgres"],
                           r"pgbench ", r"postgres|PGSQL|poll wait")
    check_names(report, "^pgbench")


def test_python_server(context):
    """Attached to: idle for nearly all the time, which is said, and is no answer."""
    server = context.start([sys.executable, "-m", "http.server", "--bind", "127.0.0.1", "0"])
    output = context.path("p.json.gz")
    done = context.wallprof("-o", output, "-p", server.pid, "-d", "500ms", env=dict(os.environ, COLUMNS=str(COLUMNS)))
    check(re.search(r"^recorded 50\d\.\d+ ms \(1 thread, (9\d|100) % idle\)", done.stderr, re.M), done.stderr)
    check("poll wait]" not in done.stderr, f"idle waits are an answer: {done.stderr}")
