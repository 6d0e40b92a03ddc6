# SPDX-License-Identifier: GPL-2.0-or-later
"""Debian's cloud kernels, fetched once and kept.

NVMe and ext4 are built into them: they boot from a disk image without an initramfs. A few modules
are kept beside them, for block devices of other kinds.
"""
import lzma
import re
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

import packages
from harness import cache_folder
from packages import Unavailable

# Each is the newest kernel of its suite; that of the last one is what there is.
SUITES = {"5.10": "bullseye", "6.1": "bookworm", "6.12": "trixie", "newest": "trixie-backports"}
PACKAGE = re.compile(r"^linux-(?:image|binary)-([0-9][0-9a-z.+~-]*-cloud-amd64) ")
# Modules, unless they are built in.
MODULES = ("configfs", "dm-mod", "md-mod", "mq-deadline", "null_blk", "raid0", "veth")
LOOKED_FOR = "looked-for"  # a list of these, beside them


class Kernel:
    def __init__(self, path):
        self.path = path
        self.release = path.name.removeprefix("vmlinuz-")
        self.name = ".".join(self.release.split(".")[:2])
        self.modules = path.parent / f"modules-{self.release}"

    def is_whole(self):
        """With all that is looked for today."""
        looked_for = self.modules / LOOKED_FOR
        return looked_for.exists() and looked_for.read_text().split() == list(MODULES)


def fetch(wanted, refresh=False):
    """The kernel called `wanted` in SUITES. Raises packages.Unavailable."""
    folder = cache_folder() / "kernels" / SUITES[wanted]
    kept = [Kernel(path) for path in sorted(folder.glob("vmlinuz-*"))]
    if kept and kept[-1].is_whole() and not refresh:
        return kept[-1]
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        kernel = Kernel(_download(SUITES[wanted], Path(scratch), folder))
    for old in kept:
        if old.path != kernel.path:
            old.path.unlink()
            shutil.rmtree(old.modules, ignore_errors=True)
    return kernel


def _version_key(release):
    return [int(n) for n in re.findall(r"\d+", release)]


def _download(suite, scratch, folder):
    found = packages.Suite(suite, scratch)
    listing = found.search("cloud-amd64$")
    releases = {match[1] for match in map(PACKAGE.match, listing) if match}
    if not releases:
        raise Unavailable(f"no cloud kernel in {suite}")
    release = max(releases, key=_version_key)
    # Since 6.19 the kernel and its modules are in packages of their own.
    packages_of = [f"linux-{part}-{release}" for part in ("binary", "modules")]
    if not any(line.startswith(f"{packages_of[0]} ") for line in listing):
        packages_of = [f"linux-image-{release}"]
    kernel, modules = scratch / f"vmlinuz-{release}", scratch / f"modules-{release}"
    modules.mkdir()
    for package in packages_of:
        _extract(found.download(package), kernel, modules)
    if not kernel.exists():
        raise Unavailable(f"{packages_of} hold no kernel")
    (modules / LOOKED_FOR).write_text(" ".join(MODULES))
    shutil.rmtree(folder / modules.name, ignore_errors=True)
    modules.rename(folder / modules.name)
    return kernel.rename(folder / kernel.name)


def _extract(archive, kernel, modules):
    """Extracts the kernel and MODULES from a package."""
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", archive], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL) as unpack:
        with tarfile.open(fileobj=unpack.stdout, mode="r|") as members:
            for member in members:
                name, _, suffix = Path(member.name).name.partition(".ko")
                if not member.isfile():
                    continue
                if Path(member.name).name.startswith("vmlinuz"):
                    kernel.write_bytes(members.extractfile(member).read())
                elif name in MODULES and suffix in ("", ".xz"):
                    data = members.extractfile(member).read()
                    (modules / f"{name}.ko").write_bytes(lzma.decompress(data) if suffix else data)
