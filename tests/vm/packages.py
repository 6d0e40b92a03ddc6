# SPDX-License-Identifier: GPL-2.0-or-later
"""Files out of Debian packages of another suite than this machine's, which stays as it is.

They come by apt from the mirror that this machine's own sources name, with state folders of
their own. What was fetched is kept in the user's cache folder.
"""
import functools
import subprocess

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


class Unavailable(Exception):
    """It is not to be had; the argument says why."""


def _run(command, **settings):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          **settings)
    if done.returncode != 0:
        raise Unavailable(f"{command[0]}: {(done.stderr or done.stdout).strip()[-300:]}")
    return done.stdout


@functools.cache
def codename():
    """Returns the codename of this machine's Debian: bookworm, …"""
    names = [line.split("=", 1)[1].strip().strip('"') for line in open("/etc/os-release")
             if line.startswith("VERSION_CODENAME=")]
    if len(names) != 1:
        raise Unavailable("/etc/os-release does not name this machine's suite")
    return names[0]


def release():
    """Returns the name of this machine's Debian in roots.SUITES, or its codename if it is none of them."""
    return {"bookworm": "12", "trixie": "13"}.get(codename(), codename())


@functools.cache
def mirror():
    """Returns the mirror of this machine's Debian."""
    targets = _run(["apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE)",
                    "Created-By: Packages", "Component: main"])
    for line in targets.splitlines():
        uri, _, release = line.partition(" ")
        if release == codename():
            return uri
    raise Unavailable("this machine's apt sources do not name Debian's main archive")


class Suite:
    """Packages that apt finds in one suite; its state is in `scratch`, an empty folder."""

    def __init__(self, name, scratch):
        for folder in ("lists/partial", "cache/archives/partial"):
            (scratch / folder).mkdir(parents=True)
        sources = scratch / "sources.list"
        sources.write_text(f"deb [arch=amd64 signed-by={KEYRING}] {mirror()} {name} main\n")
        settings = {"Dir::Etc::sourcelist": sources, "Dir::Etc::sourceparts": "/dev/null",
                    "Dir::State::Lists": scratch / "lists", "Dir::Cache": scratch / "cache",
                    "APT::Sandbox::User": "root", "Acquire::Languages": "none",
                    "Acquire::Retries": "2"}
        self.scratch = scratch
        self.options = [w for key, value in settings.items() for w in ("-o", f"{key}={value}")]
        _run(["apt-get", *self.options, "-q", "update"])

    def search(self, pattern):
        """Lines of `apt-cache search` about packages whose names match."""
        return _run(["apt-cache", *self.options, "search", "--names-only", pattern]).splitlines()

    def download(self, package):
        """The path of its .deb, in `scratch`."""
        before = set(self.scratch.glob("*.deb"))
        _run(["apt-get", *self.options, "-q", "download", package], cwd=self.scratch)
        (archive,) = set(self.scratch.glob("*.deb")) - before
        return archive


def unpack(archive, folder):
    _run(["dpkg-deb", "--extract", archive, folder])
