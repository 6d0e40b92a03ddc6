# SPDX-License-Identifier: GPL-2.0-or-later
"""Debian's cloud kernels, fetched once and kept.

NVMe and ext4 are built into them: they boot from a disk image without an initramfs.
"""
import re
import subprocess
import tarfile
import tempfile
from pathlib import Path

import packages
from packages import Unavailable

# Each is the newest kernel of its suite; that of the last one is what there is.
SUITES = {"5.10": "bullseye", "6.1": "bookworm", "6.12": "trixie", "newest": "trixie-backports"}
# Since 6.19 the kernel itself is in a package of its own, which the image package needs.
PACKAGE = re.compile(r"^linux-(?:image|binary)-([0-9][0-9a-z.+~-]*-cloud-amd64) ")


class Kernel:
    def __init__(self, path):
        self.path = path
        self.release = path.name.removeprefix("vmlinuz-")
        self.name = ".".join(self.release.split(".")[:2])


def fetch(wanted, refresh=False):
    """The kernel called `wanted` in SUITES. Raises packages.Unavailable."""
    folder = packages.cache_folder() / "kernels" / SUITES[wanted]
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


def _version_key(release):
    return [int(n) for n in re.findall(r"\d+", release)]


def _download(suite, scratch, folder):
    found = packages.Suite(suite, scratch)
    listing = found.search("cloud-amd64$")
    releases = {match[1] for match in map(PACKAGE.match, listing) if match}
    if not releases:
        raise Unavailable(f"no cloud kernel in {suite}")
    release = max(releases, key=_version_key)
    package = f"linux-binary-{release}"
    if not any(line.startswith(f"{package} ") for line in listing):
        package = f"linux-image-{release}"
    kernel = folder / f"vmlinuz-{release}"
    _extract_kernel(found.download(package), scratch / kernel.name)
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
