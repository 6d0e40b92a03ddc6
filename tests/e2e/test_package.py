# SPDX-License-Identifier: GPL-2.0-or-later
"""What is handed on: the tarball builds and installs, and so does the Debian package. Only with --long."""
import os
import subprocess

from harness import ROOT, Profile, Skip, check, is_long, needs_command, needs_root

HOST_ONLY = "it is about building"
UNTIMED = True

INSTALLED = ("usr/bin/wallprof", "usr/share/man/man1/wallprof.1",
             "usr/share/bash-completion/completions/wallprof")
ZSH, DEBIAN_ZSH = "usr/share/zsh/site-functions/_wallprof", "usr/share/zsh/vendor-completions/_wallprof"


def run(command, **settings):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          env={**os.environ, "PATH": os.environ["PATH"] + ":/usr/sbin"}, **settings)
    check(done.returncode == 0, f"{command[0]}: {(done.stdout + done.stderr)[-2000:]}")
    return done.stdout


def unpack(context):
    """The tree as it was committed."""
    if not is_long():
        raise Skip("only with --long")
    if not (ROOT / ".git").exists():
        raise Skip("this tree is no repository")
    run(["git", "-c", "safe.directory=*", "clone", "-q", "--no-hardlinks", ROOT, context.path("clone")])
    run(["meson", "setup", context.path("plain"), context.path("clone"), "-Dtests=disabled"])
    run(["meson", "dist", "-C", context.path("plain"), "--no-tests", "--formats", "gztar"])
    (tarball,) = context.path("plain").glob("meson-dist/*.tar.gz")
    run(["tar", "xf", tarball, "-C", context.folder])
    return context.path(tarball.name.removesuffix(".tar.gz"))


def check_installed(context, root, zsh):
    """What there should be is there, and records."""
    for name in (*INSTALLED, zsh):
        found = [p for p in (root / name, root / f"{name}.gz") if p.is_file()]
        check(len(found) == 1, f"{name} is not installed")
    output = context.path("installed.json")
    run([root / "usr/bin/wallprof", "-q", "-o", output, "--", "true"])
    check(Profile.load(output).threads, "the installed program records nothing")


def test_tarball(context):
    needs_root()
    tree, build, root = unpack(context), context.path("build"), context.path("root")
    run(["meson", "setup", build, tree, "-Dtests=disabled", "--prefix=/usr"])
    run(["ninja", "-C", build])
    run(["meson", "install", "-C", build, "--destdir", root])
    check_installed(context, root, ZSH)


def test_debian_package(context):
    needs_root()
    needs_command("dpkg-buildpackage")
    needs_command("dh")
    tree, root = unpack(context), context.path("root")
    run(["dpkg-buildpackage", "-us", "-uc", "-b"], cwd=tree)
    (package,) = context.folder.glob("wallprof_*.deb")
    depends = run(["dpkg-deb", "-f", package, "Depends"])
    for library in ("libbpf1", "libdw1", "libzstd1", "libmicrohttpd12", "libjansson4", "libcapstone4"):
        check(library in depends, f"it does not depend on {library}: {depends}")
    run(["dpkg-deb", "-x", package, root])
    check_installed(context, root, DEBIAN_ZSH)
