# SPDX-License-Identifier: GPL-2.0-or-later
"""Code that a program has made at run time has whole stacks if the program describes it, and names if it has any."""
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from chains import Announcements, Stacks, check_reported, compare
from harness import WORKLOADS, Profile, Skip, check, expect_failure, hit, wait_until
from stack_roots import Roots

pytestmark = pytest.mark.untimed
ENDLESS = 1_000_000


def announced(context):
    path = context.path("announced")
    path.unlink(missing_ok=True)
    return path, {**os.environ, "WALLPROF_ANNOUNCE": str(path)}


def record(context, mode, rounds=30):
    path, environment = announced(context)
    output = context.path("p.json.gz")
    seed, ms = context.random.randint(1, 1 << 30), hit(context.random.randint(10, 20))
    context.wallprof("-q", "-o", output, "--", WORKLOADS / "jit-frames", mode, seed, ms, rounds, env=environment)
    return Profile.load(output), Announcements(path)


def attach(context, mode):
    """The same, of a program that has made its code before the recording began."""
    path, environment = announced(context)
    output = context.path("p.json.gz")
    seed = context.random.randint(1, 1 << 30)
    target = context.start([WORKLOADS / "jit-frames", mode, seed, hit(10), ENDLESS], env=environment)
    wait_until(lambda: path.exists() and path.read_text().count("\n") > 2, "it has called its code")
    context.wallprof("-q", "-o", output, "-p", target.pid, "-d", "500ms")
    target.terminate()
    target.wait()
    return Profile.load(output), Announcements(path)


def check_whole(profile, reported):
    roots = Roots(profile)
    verdict = check_reported(profile, reported, roots, marked_share=0.02)
    fewer = reported.altered(lambda chain: chain.replace("run ", "run not_there ", 1))
    expect_failure(check_reported, profile, fewer, roots, marked_share=0.02)
    check(sum(verdict.exact.values()) > 10, f"hardly a stack: {verdict.exact}")


@pytest.mark.parametrize("mode", ["frame", "heap", "gdb", "both"])
def test_described(context, mode):
    check_whole(*record(context, mode))


@pytest.mark.parametrize("mode", ["frame", "heap", "gdb", "both"])
def test_described_before(context, mode):
    check_whole(*attach(context, mode))


@pytest.mark.parametrize("mode", ["replace", "rewrite"])
def test_replaced(context, mode):
    check_whole(*record(context, mode, rounds=5))


@pytest.mark.parametrize("mode", ["list", "endless"])
def test_hostile(context, mode):
    """What is not as it should be ends nothing, and the rest of it is used."""
    check_whole(*record(context, mode))


def check_unknown(profile, reported):
    found = compare(profile, reported, Roots(profile))
    check(not found.exact and sum(found.marked.values()) + len(found.wrong) > 10, f"not what was to be seen: {found}")


@pytest.mark.parametrize("mode", ["silent", "lie"])
def test_not_described(context, mode):
    """Nothing is said of code of which nothing, or two things, are known."""
    check_unknown(*record(context, mode))
    expect_failure(check_unknown, *record(context, "frame"))


def noted(context, mode):
    path, environment = announced(context)
    output = context.path("p.json.gz")
    seed, ms = context.random.randint(1, 1 << 30), hit(10)
    result = context.wallprof("-o", output, "--", WORKLOADS / "jit-frames", mode, seed, ms, 40, env=environment)
    check_unknown(Profile.load(output), Announcements(path))
    return result.stderr


def test_losses(context):
    """Where stacks suffer because not all is read, or because it is contradictory, a note says so."""
    check("processes describe more code that they have made than is read" in noted(context, "large"), "no note")
    check("functions made at run time are described in several ways" in noted(context, "lie"), "no note")


def test_no_losses(context):
    _, environment = announced(context)
    result = context.wallprof("-o", context.path("p.json.gz"), "--", WORKLOADS / "jit-frames", "frame", 1, 10, 20,
                              env=environment)
    check("made" not in result.stderr, result.stderr)


@pytest.mark.parametrize("mode, cut", [("new", 0.15), ("reuse", 0.15), ("append", 0.1)])
def test_called_at_once(context, mode, cut):
    """Code is called as soon as it is described, and is gone 50 ms later. Stacks up to the look wait for it.

    What is cut is code that was called before it was known that other code was mapped in its place, in 1 to 10 ms.
    """
    path, environment = announced(context)
    output = context.path("p.json.gz")
    seed = context.random.randint(1, 1 << 30)
    context.wallprof("-q", "-o", output, "--", WORKLOADS / "jit-frames", mode, seed, 50, 20, env=environment)
    profile, reported = Profile.load(output), Announcements(path)
    roots = Roots(profile)
    verdict = check_reported(profile, reported, roots, marked_share=cut)
    fewer = reported.altered(lambda chain: chain.replace("run ", "run not_there ", 1))
    expect_failure(check_reported, profile, fewer, roots, marked_share=cut)
    check(sum(verdict.exact.values()) > 100, f"hardly a stack: {verdict.exact}")


USER = 65534
POSTGRES = Path("/usr/lib/postgresql/15")
QUERY = ("select count(*) from generate_series(1, {rows}) a, generate_series(1, 1000) b"
         " where (a % 13) * 3 + (a + b) % 7 > 5 and a - b > 10")


def postgres(context):
    """A server's process at work on a long query, which LLVM has compiled."""
    if not (POSTGRES / "lib" / "llvmjit.so").exists():
        raise Skip("PostgreSQL 15 with llvmjit.so is not installed")
    folder = Path(tempfile.mkdtemp(prefix="wp-jit-"))
    os.chown(folder, USER, USER)  # it refuses to run as root
    as_user = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"]
    subprocess.run(as_user + [POSTGRES / "bin/initdb", "-D", folder / "data", "-A", "trust", "-U", "wallprof"],
                   check=True, stdout=subprocess.DEVNULL, cwd=folder)
    text = QUERY.format(rows=ENDLESS)
    query = folder / "query"
    query.write_text("set jit = on; set jit_above_cost = 0; " + text + ";\n")
    # A single process: one session, which reads its queries from its standard input.
    target = context.start(as_user + [POSTGRES / "bin/postgres", "--single", "-j", "-D", folder / "data", "-c",
                                      "jit_above_cost=0", "postgres"],
                           stdin=query.open(), stdout=subprocess.DEVNULL, cwd=folder)
    wait_until(lambda: any("x" in line.split()[1] and len(line.split()) == 5
                           for line in Path(f"/proc/{target.pid}/maps").read_text().splitlines()), "it has compiled")
    return target, folder


def test_postgresql(context):
    """Stacks through a query that was compiled are whole, and none of their frames is guessed."""
    target, folder = postgres(context)
    output = context.path("p.json.gz")
    try:
        context.wallprof("-q", "-o", output, "-p", target.pid, "-d", "500ms")
    finally:
        target.kill()
        target.wait()
        shutil.rmtree(folder)
    profile = Profile.load(output)
    table = Stacks(profile)
    stacks = [table.of(thread, i) for thread in profile.threads for i in range(len(thread.times))]
    made = [frames for frames in stacks if any(frame.library == "[jit]" for frame in frames)]
    guessed = [frames for frames in made if any(frame.name.startswith(("[guessed", "[truncated")) for frame in frames)]
    check(len(made) > 100, f"of {len(stacks)} stacks only {len(made)} have code of LLVM")
    check(len(guessed) < 0.02 * len(made), f"{len(guessed)} of {len(made)} stacks are not whole: {guessed[:3]}")


def made_names(profile):
    """Names of frames between run and called_back."""
    table, names = Stacks(profile), set()
    for thread in profile.threads:
        for i in range(len(thread.times)):
            found = [frame.name for frame in table.user(thread, i)]
            if "run" in found and "called_back" in found:
                names.update(found[found.index("run") + 1:found.index("called_back")])
    return names


def test_perf_map_first(context):
    """A perf map names code before an object that is shown to gdb does; the stacks are whole all the same."""
    output = context.path("p.json.gz")
    _, environment = announced(context)
    arguments = ["-q", "-o", output, "--", WORKLOADS / "jit-frames", "mapped", 5, 10, 30]
    context.wallprof(*arguments, env=environment)
    names = made_names(Profile.load(output))
    check(names and all(name.startswith("mapped_") for name in names), f"names: {names}")
    arguments[arguments.index("mapped")] = "both"  # the same without a map
    context.wallprof(*arguments, env=environment)
    names = made_names(Profile.load(output))
    check(names and all(name.startswith("made_") for name in names), f"names: {names}")
