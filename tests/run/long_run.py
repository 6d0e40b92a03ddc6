# SPDX-License-Identifier: GPL-2.0-or-later
"""The results of `tools/test --long` as a page, which the run prints at its end."""
import datetime
import os
import platform
import re
import subprocess
import time

import verifier_budget
import harness

HEAD = """# Results of a long run

Besides what `tools/test` runs: every end-to-end test on every kernel of the matrix.

- date: {date}
- command: `WALLPROF_SEED={seed} tools/test --long`
- this machine: Linux {release}, {cpus} CPUs; the other kernels are emulated (TCG, 2 CPUs)
- took: {minutes:.0f} min
- **{passed} passed, {failed} failed, {skipped} skipped**
"""
VM = re.compile(r"^vm\.(\d+\.\d+)\.")


def kernel_of(name):
    match = VM.match(name)
    return match[1] if match else "this machine"


def counts(results):
    """Lines of a table: tests that passed, failed and were skipped, by kernel."""
    lists = (results.passed, results.failed, results.skipped)
    kernels = {kernel_of(name) for names in lists for name in names}
    yield "| kernel | passed | failed | skipped |"
    yield "|---|---|---|---|"
    for kernel in sorted(kernels, key=lambda k: [int(n) for n in re.findall(r"\d+", k)]):
        cells = (sum(kernel_of(name) == kernel for name in names) for names in lists)
        yield f"| {kernel} | " + " | ".join(map(str, cells)) + " |"


def page(seed, results):
    text = HEAD.format(date=datetime.date.today(), seed=seed, release=platform.release(),
                       cpus=os.cpu_count(), minutes=(time.monotonic() - results.times.begin) / 60,
                       passed=len(results.passed), failed=len(results.failed),
                       skipped=len(results.skipped))
    parts = [text, "\n".join(counts(results))]
    if results.failed:
        parts.append("Failed: " + ", ".join(f"`{name}`" for name in results.failed))
    if results.skipped:
        parts.append("Skipped: " + ", ".join(f"`{name}`" for name in results.skipped))
    doctor = subprocess.run([harness.WALLPROF, "doctor", "-v"], capture_output=True, text=True)
    # Notes of the kernel matrix that are lines of such tables already.
    tables = [*verifier_budget.table(doctor.stdout, f"{platform.release()} (this machine)"),
              *(line for line in results.notes if line.startswith(("|", "Verified")))]
    parts.append("## Instructions that the verifier processed, and the time to load each program")
    parts.append("\n".join(f"\n{line}\n" if line.startswith("Verified") else line
                           for line in tables).strip())
    return "\n\n".join(part.strip() for part in parts) + "\n"
