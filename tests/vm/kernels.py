# SPDX-License-Identifier: GPL-2.0-or-later
"""Debian's cloud kernels, fetched once and kept.

They come by apt from the mirror that this machine's own sources name, with state
folders of their own, so that what apt knows of this machine stays as it is. NVMe and
ext4 are built into these kernels: they boot from a disk image without an initramfs.
"""
import functools
import os
import re
import subprocess
import tarfile
import tempfile
from pathlib import Path

# Each is the newest kernel of its suite; that of the last one is what there is.
SUITES = {"5.10": "bullseye", "6.1": "bookworm", "6.12": "trixie", "newest": "trixie-backports"}
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
# Since 6.19 the kernel itself is in a package of its own, which the image package needs.
PACKAGE = re.compile(r"^linux-(?:image|binary)-([0-9][0-9a-z.+~-]*-cloud-amd64) ")


class Unavailable(Exception):
    """There is no such kernel to be had; the argument says why."""


class Kernel:
    def __init__(self, path):
        self.path = path
        self.release = path.name.removeprefix("vmlinuz-")
        self.name = ".".join(self.release.split(".")[:2])


def cache_folder():
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "wallprof-test" / "kernels"


def fetch(wanted, refresh=False):
    """The kernel called `wanted` in SUITES."""
    folder = cache_folder() / SUITES[wanted]
    kept = sorted(folder.glob("vmlinuz-*"))
    if kept and not refresh:
        return Kernel(kept[-1])
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        kernel = _download(SUITES[wanted], Path(scratch), folder)
    for old in kept:
        if old != kernel:
            old.unlink()
    return Kernel(kernel)


def _run(command, **settings):
    done = subprocess.run(command, capture_output=True, text=True, **settings)
    if done.returncode != 0:
        raise Unavailable(f"{command[0]}: {(done.stderr or done.stdout).strip()[-300:]}")
    return done.stdout


@functools.cache
def _mirror():
    """Where this machine has Debian itself from."""
    codename = [line.split("=", 1)[1].strip().strip('"') for line in open("/etc/os-release")
                if line.startswith("VERSION_CODENAME=")]
    targets = _run(["apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE)",
                    "Created-By: Packages", "Component: main"])
    for line in targets.splitlines():
        uri, _, release = line.partition(" ")
        if [release] == codename:
            return uri
    raise Unavailable("this machine's apt sources do not name Debian's main archive")


def _private_apt(suite, folder):
    """Options that make apt know this suite, and nothing else."""
    for name in ("lists/partial", "cache/archives/partial"):
        (folder / name).mkdir(parents=True)
    sources = folder / "sources.list"
    sources.write_text(f"deb [arch=amd64 signed-by={KEYRING}] {_mirror()} {suite} main\n")
    settings = {"Dir::Etc::sourcelist": sources, "Dir::Etc::sourceparts": "/dev/null",
                "Dir::State::Lists": folder / "lists", "Dir::Cache": folder / "cache",
                "APT::Sandbox::User": "root", "Acquire::Languages": "none",
                "Acquire::Retries": "2"}
    return [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]


def _version_key(release):
    return [int(n) for n in re.findall(r"\d+", release)]


def _download(suite, scratch, folder):
    options = _private_apt(suite, scratch)
    _run(["apt-get", *options, "-q", "update"])
    listing = _run(["apt-cache", *options, "search", "--names-only", "cloud-amd64$"])
    releases = {match[1] for match in map(PACKAGE.match, listing.splitlines()) if match}
    if not releases:
        raise Unavailable(f"no cloud kernel in {suite}")
    release = max(releases, key=_version_key)
    package = f"linux-binary-{release}"
    if f"{package} " not in listing:
        package = f"linux-image-{release}"
    _run(["apt-get", *options, "-q", "download", package], cwd=scratch)
    (archive,) = scratch.glob("*.deb")
    kernel = folder / f"vmlinuz-{release}"
    _extract_kernel(archive, scratch / kernel.name)
    return (scratch / kernel.name).rename(kernel)


def _extract_kernel(archive, target):
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", archive], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL) as unpack:
        with tarfile.open(fileobj=unpack.stdout, mode="r|") as members:
            for member in members:
                if member.isfile() and Path(member.name).name.startswith("vmlinuz"):
                    target.write_bytes(members.extractfile(member).read())
                    return
    raise Unavailable(f"{archive.name} holds no kernel")
