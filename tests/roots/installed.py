# SPDX-License-Identifier: GPL-2.0-or-later
"""The released files in bare roots: the one-file program and the package record, report, export and open there."""
import json
import os
import re
import shlex
import socket
import subprocess
from pathlib import Path
from urllib.parse import unquote

import packages
import debian_roots
from harness import GIVE_UP_S, Profile, cache_folder, check

CCACHE = "/usr/lib/ccache"  # Debian's compilers under ccache, clang for BPF, too
# A package is built in a temporary folder, which its options map away: what was compiled in another one will do.
CCACHE_OPTIONS = {"CCACHE_NOHASHDIR": "1", "CCACHE_IGNOREOPTIONS": "-ffile-prefix-map=* -fdebug-prefix-map=*"}
BUNDLE_ON = "12"  # the oldest release that is supported: its libc is the least that the program asks for
PORTS = 20  # of which `open` may take one, besides the first, which is in use
# The commands of a user; the last one serves the profile until it gets SIGTERM.
USE = """set -eu
cd /tmp
{program} --version
{program} -q --keep-capture -o p.json -- ls / >ls.txt
grep -qx usr ls.txt
{program} report p.capture >report.txt
grep -q 'ls' report.txt
{program} record -q -o capture -- ls / >ls.txt
{program} export -q -o /out/exported.json capture
cp p.json /out/recorded.json
exec {program} open --no-browser --port {ports} p.json
"""
# The archive's index may be out of date, as the root's own was (debian_roots.py).
APT = "apt-get -q -y -o Acquire::Check-Valid-Until=false -o APT::Install-Recommends=false"
INSTALL = f"""{APT} update >/tmp/apt.log 2>&1 && {APT} install {{package}} >>/tmp/apt.log 2>&1 || {{{{
	tail -n 20 /tmp/apt.log
	exit 1
}}}}
"""


def make(command, release, tree, folder, note):
    """Returns what `tools/package COMMAND` makes of this tree on that release: the machine's own, or in a root."""
    folder.mkdir(exist_ok=True)
    if release == packages.release():
        # debhelper gives a build a HOME of its own.
        environment = {**os.environ, **CCACHE_OPTIONS, "CCACHE_DIR": str(cache_folder() / "ccache"),
                       "PATH": f"{CCACHE}:{os.environ['PATH']}"}
        done = subprocess.run([tree / "tools" / "package", command, folder], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, env=environment)
        check(done.returncode == 0, f"tools/package {command}: {done.stderr.strip()[-2000:]}")
        said = done.stdout
    else:
        said = debian_roots.full(release, note).run(
            f"cd /wallprof && exec tools/package {command} /out",
            {"/wallprof": tree, "/out": folder, "/ccache": debian_roots.ccache_folder(release, "packages")},
            {**CCACHE_OPTIONS, "CCACHE_DIR": "/ccache", "XDG_CACHE_HOME": "/ccache", "PATH": f"{CCACHE}:{debian_roots.ENVIRONMENT['PATH']}"})
    made = folder / Path(said.split()[-1]).name
    check(made.is_file(), f"tools/package {command} made no {made}: {said[-500:]}")
    return made


def check_profile(path):
    names = {row.process for row in Profile.load(path).threads}
    check("ls" in names, f"{path.name} is about {sorted(names)}, not about ls")


def fetch(url):
    done = subprocess.run(["curl", "-sS", "--fail", "--max-time", str(GIVE_UP_S), url], capture_output=True, check=False)
    check(done.returncode == 0, f"curl {url}: {done.stderr.decode().strip()}")
    return done.stdout


def check_used(root, program, binds, before=""):
    """It records and exports a profile of ls, reports it, and what it serves is that profile; the first port that it
    may take is in use."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        _check_used(root, program, binds, before, listening.getsockname()[1])


def _check_used(root, program, binds, before, used_port):
    ports = f"{used_port}-{used_port + PORTS}"
    process = root.start(before + USE.format(program=shlex.quote(program), ports=ports), binds)
    lines, page = [], None
    for line in process.stdout:
        lines.append(line)
        if "/from-url/" in line:
            page = line.strip()
            break
    try:
        check(page, f"no URL was printed: {''.join(lines).strip()[-1500:]}")
        port = int(re.search(r"://127\.0\.0\.1:(\d+)/", unquote(page))[1])
        check(used_port < port <= used_port + PORTS, f"it listens on {port}, and may on {ports}, of which the first is in use")
        check(any(re.fullmatch(r"wallprof \d+\.\d+\.\d+", line.strip()) for line in lines), f"no version: {lines}")
        for name in ("recorded.json", "exported.json"):
            check_profile(binds["/out"] / name)
        served = fetch(unquote(page.partition("/from-url/")[2].partition("/?symbolServer=")[0]))
        check(json.loads(served) == json.loads((binds["/out"] / "recorded.json").read_bytes()),
              "what is served is another profile")
    finally:
        process.terminate()
        process.communicate()
        root.leave(process)
