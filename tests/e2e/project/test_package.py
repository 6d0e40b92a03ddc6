# SPDX-License-Identifier: GPL-2.0-or-later
"""The tarball builds and installs. The packages are tested in bare roots (tests/roots/release-matrix)."""
import os
import subprocess

import pytest

from built_packages import (DEBIAN_ZSH, ZSH, check_installed, check_licenses, check_names_no_folder, check_needed,
                            check_own_names, run)
from harness import (ROOT, WALLPROF, Profile, Skip, check, expect_failure, is_long, needs_command, needs_root)

pytestmark = [pytest.mark.untimed, pytest.mark.host_only("it is about building")]

PREFIX = "/usr/local"  # not where a package is
# As a user who is not root, without a network. Not optimized: that would take most of the time.
BUILD = """set -eu
cd "$1"
meson setup build --prefix "$2" -Dbuildtype=debug -Dtests=disabled -Dexample=disabled
ninja -C build
"""


def unpack(context):
    """The tree as it was committed, as a tarball has it."""
    if not (ROOT / ".git").exists():
        raise Skip("this tree is no repository")
    run(["git", "-c", "safe.directory=*", "clone", "-q", "--no-hardlinks", ROOT, context.path("clone")])
    run(["meson", "setup", context.path("plain"), context.path("clone"), "-Dtests=disabled"])
    run(["meson", "dist", "-C", context.path("plain"), "--no-tests", "--formats", "gztar"])
    (tarball,) = context.path("plain").glob("meson-dist/*.tar.gz")
    run(["tar", "xf", tarball, "--no-same-owner", "-C", context.folder])
    return context.path(tarball.name.removesuffix(".tar.gz"))


def check_records(context, program):
    output = context.path("installed.json")
    run([program, "-q", "-o", output, "--", "true"])
    check(Profile.load(output).threads, "the installed program records nothing")


def test_tarball(context):
    if not is_long():
        raise Skip("only with --long: tests/roots/release-matrix builds the tarball in every run")
    needs_root()
    needs_command("setpriv")
    tree, root = unpack(context), context.path("root")
    run(["chown", "-R", "nobody:", tree])
    run(["unshare", "--net", "setpriv", "--reuid", "nobody", "--regid", "nogroup", "--clear-groups",
         "env", "-i", f"PATH={os.environ['PATH']}", f"HOME={tree}", "sh", "-c", BUILD, "sh", tree, PREFIX])
    run(["meson", "install", "-C", tree / "build", "--destdir", root, "--no-rebuild"])
    installed = root / PREFIX[1:]
    check_installed(installed, ZSH)
    expect_failure(check_installed, installed, DEBIAN_ZSH)
    manual = (installed / "share/man/man1/wallprof-report.1").read_text()
    check(f"{PREFIX}/share/doc/wallprof/waits.md" in manual, "the manual page names another waits.md")
    check_records(context, installed / "bin/wallprof")


def test_checks_of_packages(context):
    """The checks of tests/roots/release-matrix for a bundle fail for a program that is none."""
    needs_command("readelf")
    expect_failure(check_needed, WALLPROF)
    expect_failure(check_names_no_folder, WALLPROF, ROOT)
    licenses = subprocess.run([WALLPROF, "--licenses"], capture_output=True, text=True, check=True).stdout
    expect_failure(check_licenses, licenses)
    archive = context.path("libx.a")
    source, object_file = context.path("x.c"), context.path("x.o")
    source.write_text("".join(f"int x{i};\n" for i in range(30)))
    run(["cc", "-c", source, "-o", object_file])
    run(["ar", "rc", archive, object_file])
    check_own_names({"y1"}, {archive})
    expect_failure(check_own_names, {"x1"}, {archive})
