# SPDX-License-Identifier: GPL-2.0-or-later
"""The modules that guests of the kernel matrix have beside their kernels (tests/vm/kernels.py)."""
import re
import subprocess
from pathlib import Path

from harness import Skip

MODULES = Path("/fast/modules")  # of a guest


def load(name, *parameters):
    """Loads a module of the kernel, and before it the modules that it depends on."""
    if Path("/sys/module", name.replace("-", "_")).exists():
        return
    module = MODULES / f"{name}.ko"
    if not module.exists():
        raise Skip(f"this kernel's module {name} is not available")
    for other in re.search(rb"depends=([^\0]*)\0", module.read_bytes())[1].decode().split(","):
        if other:
            load(other)
    subprocess.run(["insmod", module, *parameters], check=True)
