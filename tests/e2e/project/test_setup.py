# SPDX-License-Identifier: GPL-2.0-or-later
"""What tools/run and tools/test share: packages are installed, wallprof is configured and built, when needed."""
import os
import shutil
import subprocess

import pytest

from harness import ROOT, check

# They write down what they are asked for.
MESON = """#!/bin/sh
echo "meson $*" >>"$LOG"
[ "$1" != setup ] || touch "$2/build.ninja"
"""
NINJA = """#!/bin/sh
echo "ninja" >>"$LOG"
"""

pytestmark = pytest.mark.host_only("it is about building")


def called(context, *options):
    """Returns which of the two `build build OPTIONS` calls, and meson's verb."""
    log = context.path("log")
    log.write_text("")
    done = subprocess.run(
        ["sh", "-euc", f'. {ROOT}/tools/setup.sh; build build "$@"', "sh", *options],
        env={**os.environ, "LOG": str(log), "root": str(context.path("tree")),
             "PATH": f"{context.path('bin')}:{os.environ['PATH']}"}, capture_output=True, text=True)
    check(done.returncode == 0 and done.stdout == "", f"{done.returncode} {done.stdout}{done.stderr}")
    return [" ".join(line.split()[:2]) for line in log.read_text().splitlines()]


def test_options_are_remembered(context):
    for name, text in (("meson", MESON), ("ninja", NINJA)):
        path = context.path("bin") / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
    for folder in ("bpf", "src", "export", "tests", "tools"):
        (context.path("tree") / folder).mkdir(parents=True)
    for file in ("meson.build", "meson_options.txt"):
        (context.path("tree") / file).touch()
    for options, wanted in (
            (["-Dtests=disabled"], ["meson setup", "ninja"]),      # tools/run in a fresh tree
            ([], []),                                           # and once more
            (["-Dtests=enabled"], ["meson configure", "ninja"]),   # then tools/test
            (["-Dtests=enabled"], []),
            ([], [])):                                          # tools/run after it
        check(called(context, *options) == wanted, f"{options}: not {wanted}")
    # A folder that was configured by a version with other options is set up again.
    (context.path("bin") / "meson").write_text(MESON + '[ "$1" != configure ]\n')
    check(called(context, "-Dtests=disabled") == ["meson configure", "meson setup", "ninja"],
          "what cannot be configured is not set up")
    source = context.path("tree/src/new.c")
    source.touch()
    built = context.path("tree/build/built").stat().st_mtime
    os.utime(source, (built + 1, built + 1))
    check(called(context) == ["ninja"], "a newer source is not built")


# The archives and the machine that install_packages() asks, made of text files in its folder.
APT_GET = """#!/bin/sh
for word; do
	case $word in
	update) [ ! -e "$FAKE/offline" ] || { echo "W: Temporary failure resolving 'archive'"; exit 100; } ;;
	install) shift_to=1 ;;
	-*) ;;
	*) [ -z "${shift_to-}" ] || echo "$word" >>"$FAKE/got" ;;
	esac
done
"""
APT_CACHE = """#!/bin/sh
! grep -qx "$2" "$FAKE/archive" || printf '%s:\\n  Installed: (none)\\n  Candidate: 1.0\\n' "$2"
"""
DPKG_QUERY = """#!/bin/sh
sed 's/$/ installed/' "$FAKE/installed"
"""
PACKAGES = """# a comment
run   alpha-dev             pkg-config:no-such-module   Alpha
run   beta1|beta1t64        -                           Beta, 2 or later
run   shell                 sh                          a shell
part  gamma                 no-such-command             Gamma
test  delta                 no-such-command             Delta
"""
# The commands of install_packages() itself.
COMMANDS = ("sh", "awk", "cat", "cc", "grep", "id", "mktemp", "pkg-config", "rm", "sed", "tee", "tr")


class Machine:
    """One with these packages, and an archive that has those."""

    def __init__(self, context, name, installed=(), archive=(), offline=False, dpkg=True, packages=PACKAGES):
        self.folder = context.path(name)
        (self.folder / "bin").mkdir(parents=True)
        (self.folder / "tools").mkdir()
        (self.folder / "tools/packages").write_text(packages)
        for list_name, names in (("installed", installed), ("archive", archive), ("got", ())):
            (self.folder / list_name).write_text("".join(f"{n}\n" for n in names))
        if offline:
            (self.folder / "offline").touch()
        for command in COMMANDS:
            (self.folder / "bin" / command).symlink_to(shutil.which(command))
        for command, text in (("apt-get", APT_GET), ("apt-cache", APT_CACHE), ("dpkg-query", DPKG_QUERY)):
            if dpkg:
                path = self.folder / "bin" / command
                path.write_text(text)
                path.chmod(0o755)

    def install(self, *kinds):
        """(status, what it said, what it installed)"""
        done = subprocess.run(["sh", "-euc", f'. {ROOT}/tools/setup.sh; install_packages "$@"', "run", *kinds],
                              env={"PATH": str(self.folder / "bin"), "FAKE": str(self.folder),
                                   "root": str(self.folder)}, capture_output=True, text=True)
        return done.returncode, done.stderr + done.stdout, (self.folder / "got").read_text().split()


def check_machine(machine, kinds, status, got, words=(), not_said=("offline",)):
    result, said, installed = machine.install(*kinds)
    check(result == status and installed == got, f"status {result}, installed {installed}: {said}")
    check(all(word in said for word in words), f"does not say {words}: {said}")
    check(not any(word in said for word in not_said), f"says one of {not_said}: {said}")


def test_alternatives_by_release(context):
    """The name that this release has, and neither if one is installed."""
    both = ("run", "part")
    check_machine(Machine(context, "12", archive=["alpha-dev", "beta1", "gamma"]), both, 0,
                  ["alpha-dev", "beta1", "gamma"])
    check_machine(Machine(context, "13", archive=["alpha-dev", "beta1t64", "gamma"]), both, 0,
                  ["alpha-dev", "beta1t64", "gamma"])
    check_machine(Machine(context, "there", installed=["alpha-dev", "beta1t64"], archive=["gamma"]), both, 0,
                  ["gamma"])
    check_machine(Machine(context, "all", installed=["alpha-dev", "beta1", "gamma"]), both, 0, [])


def test_package_not_found(context):
    """It is named; that the machine is offline is said only if it is."""
    archive = ["alpha-dev", "gamma"]
    check_machine(Machine(context, "renamed", archive=archive), ("run",), 125, [], ["beta1|beta1t64", "no such"],
                  ["offline", "alpha-dev"])
    check_machine(Machine(context, "offline", archive=archive, offline=True), ("run",), 125, [],
                  ["beta1|beta1t64", "offline"], [])
    check_machine(Machine(context, "offline-lists", archive=[*archive, "beta1"], offline=True), ("run",), 0,
                  ["alpha-dev", "beta1"])


def test_without_dpkg(context):
    """Packages are named as their project does, optional parts are not asked for, and
    nothing is in the way if all is there."""
    check_machine(Machine(context, "other", dpkg=False), ("run", "part"), 125, [],
                  ["Alpha", "Beta, 2 or later"], ["alpha-dev", "Gamma", "a shell", "offline"])
    present = "\n".join(line for line in PACKAGES.splitlines() if "alpha" not in line and "beta" not in line)
    check_machine(Machine(context, "complete", dpkg=False, packages=present + "\n"), ("run", "part"), 0, [],
                  [], ["Gamma", "install"])
