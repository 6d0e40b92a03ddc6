# SPDX-License-Identifier: GPL-2.0-or-later
"""The folders of cgroups."""
import subprocess
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")


def old(controller):
    """The hierarchy of a controller of version 1, or None."""
    root = ROOT / controller
    return root if (root / "cgroup.procs").exists() else None


def unified(context, left, controller):
    """The hierarchy of version 2, with the controller for its children; mounted if it is not. `left`
    (an ExitStack) puts back what was there."""
    root = ROOT
    if not (root / "cgroup.controllers").exists():
        root = context.path("cgroup")
        root.mkdir()
        subprocess.run(["mount", "-t", "cgroup2", "none", root], check=True)
        left.callback(subprocess.run, ["umount", root], check=True)
    control = root / "cgroup.subtree_control"
    if controller not in control.read_text().split():
        control.write_text(f"+{controller}")
        left.callback(control.write_text, f"-{controller}")
    return root
